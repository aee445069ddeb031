"""Which version of an agent CLI is installed, held against the one whose behaviour its runner was tested with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from teamchat.core.doctor.checks import Check
from teamchat.core.errors import ExitCode
from teamchat.core.team import INSTALL
from teamchat.runners.base import Runner
from teamchat.runners.failures import ending
from teamchat.runners.running import SpawnFailed

Ask = Callable[[Sequence[str], Mapping[str, str], Path, float], tuple[int | None, bytes]]
"""How a program is asked for its version, as `runners.process.capture` does."""

ANSWER_S = 10.0  # Gemini takes one and a half
_VERSION = re.compile(rb"\d{1,9}(?:\.\d{1,9})+[0-9A-Za-z.+-]*")
_NOT_STARTED = (126, 127)  # what shells and `env` end with when there is no interpreter for a script


def check_version(
    name: str,
    program: str,
    runner: Runner,
    env: Mapping[str, str],
    folder: Path,
    ask: Ask,
    answer_s: float = ANSWER_S,
) -> Check:
    """What the program of the built-in agent `name` says of its version when it is asked in `folder`. Blocks."""
    try:
        code, said = ask((str(Path(program).absolute()), "--version"), env, folder, answer_s)
    except SpawnFailed as error:
        return _broken(f"can not be started: {error}")
    if code in _NOT_STARTED:
        return _broken(f"--version {ending(code)}: what it needs to run is missing")
    if code is None:
        return Check(None, "version", "warning", f"--version gave no answer in {answer_s:g} s")
    version = _VERSION.search(said)
    if code or version is None:
        return Check(None, "version", "warning", f"--version {ending(code)}, and told no version")
    return _compared(version[0].decode(), runner.tested_version or "", INSTALL[name])


def _broken(text: str) -> Check:
    return Check(None, "version", "failed", text, code=ExitCode.AGENT_UNAVAILABLE)


def _compared(version: str, tested: str, upgrade: str) -> Check:
    """A version held against the tested one; an early form of a version (1.2.0-rc1) comes before it."""
    if version == tested:
        return Check(None, "version", "ok", f"{version}, the tested one", version)
    if _numbers(version) <= _numbers(tested):
        return Check(None, "version", "warning", f"{version}, older than the tested {tested}", version, upgrade)
    return Check(None, "version", "warning", f"{version}, newer than the tested {tested}", version)


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"[\d.]*\d", version)
    return tuple(int(number) for number in found[0].split(".") if number) if found else ()
