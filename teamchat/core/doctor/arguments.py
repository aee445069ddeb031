"""Checks the options among a member's own arguments against its CLI's help."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path

from teamchat.core.agents import AGENT_TYPES
from teamchat.core.doctor.checks import Check
from teamchat.core.doctor.versions import ANSWER_S, NEUTRAL, Ask
from teamchat.core.text.secret_words import masked
from teamchat.patterns import regex
from teamchat.runners.base import Runner
from teamchat.runners.process.running import SpawnFailed

_OPTION = regex(r"--[A-Za-z][\w-]*|-[A-Za-z]")
_REFUSED = regex(
    r"unknown (?:option|argument)|unexpected argument|invalid (?:value|choice|values)|argument '.*' is invalid|"
    r"argument missing|required for '?--|Not enough arguments",
    re.IGNORECASE,
)


def check_arguments(
    args: Iterable[str], program: str, runner: Runner, env: Mapping[str, str], ask: Ask
) -> Check | None:
    """A finding about the options in `args`; None if there are none. Blocks.

    A CLI may take an option that its help leaves out, so an option that the help lacks is only a warning.
    """
    options = list(dict.fromkeys(_options(args)))
    if not options or runner.vendor is None:
        return None
    words = AGENT_TYPES[runner.vendor].help
    typed = " ".join((Path(program).name, *words))
    try:
        code, said = ask((str(Path(program).absolute()), *words), env, NEUTRAL, ANSWER_S)
    except SpawnFailed:
        return None  # the check of the version reports it
    if code or not said:
        return Check(None, "args", "unknown", f"`{typed}` did not answer")
    strange = [option for option in options if not _named(option, said.decode(errors="replace"))]
    if strange:
        named = ", ".join(masked(strange, ()))
        return Check(
            None, "args", "warning", f"`{typed}` does not name {named}: a misspelt option fails every turn", named
        )
    return Check(None, "args", "ok", f"named by `{typed}`: {', '.join(options)}", ", ".join(options))


def refused_arguments(reason: str) -> bool:
    """True if a turn failed because its CLI refused an argument, by its error text (2.1.330, 0.169.0 and 0.61.0)."""
    return bool(_REFUSED.search(reason))


def _options(args: Iterable[str]) -> Iterator[str]:
    for word in takewhile(lambda word: word != "--", args):
        if found := _OPTION.fullmatch(word.partition("=")[0]):
            yield found[0]


def _named(option: str, help_text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", help_text) is not None
