r"""Making `@path` inert in text that a CLI would otherwise expand by reading the file into the prompt.

Messages of other agents are quoted into prompts, so a mention in them must stay text. A backslash before the `@` does
that (observed for Gemini 0.61.0; Claude 2.1.197 expands no `@` that is glued to what precedes it) and stays readable.
Where a path ends in running text is not documented, so every plausible end is tried: escaping a name that exists once
too often costs a backslash, missing one puts a file into the prompt that nobody asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from teamchat.runners.base import Prepared
from teamchat.runners.foreign import scalar

_CHECKS = 20_000  # existence checks per prompt; beyond that everything is escaped, so that hostile text costs no time
_LONGEST_NAME = 255  # characters of one path component
_LONGEST_PATH = 4096
_AT = re.compile(r"(?<!\\)(\\*+)@(?=\S)", re.ASCII)
_QUOTED = re.compile(r'"([^"\n]{1,4096})"')
_STEP = re.compile(r"\\.|\w+|[^\s\w]", re.ASCII)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def inert(prompt: str, *, own_from: int, names: Callable[[str, int], bool]) -> Prepared:
    """`prompt` in UTF-8, with each `@` before `own_from` escaped whose token `names(prompt, start)` something."""
    pieces: list[str] = []
    done = escaped = 0
    for found in _AT.finditer(prompt, 0, own_from):
        if len(found[1]) % 2 == 0 and names(prompt, found.end()):
            pieces += (prompt[done : found.end() - 1], "\\")
            done = found.end() - 1
            escaped += 1
    pieces.append(prompt[done:])
    return Prepared(scalar("".join(pieces)).encode(), escaped)


def existing(exists: Callable[[str], bool]) -> Callable[[str, int], bool]:
    """Whether the token at a place in the prompt is, or begins with, the name of something that exists."""
    checks = _CHECKS

    def names(prompt: str, start: int) -> bool:
        nonlocal checks
        for candidate in _candidates(prompt, start):
            checks -= 1
            if checks < 0 or exists(candidate):
                return True
        return False

    return names


def _candidates(prompt: str, start: int) -> Iterator[str]:
    if quoted := _QUOTED.match(prompt, start):
        yield quoted[1]
    end = component = start
    while (step := _STEP.match(prompt, end)) and step.end() - component <= _LONGEST_NAME + 1:
        end = step.end()
        if step[0] == "/":
            component = end
        yield prompt[start:end]
        if step[0].startswith("\\") or "\\" in prompt[start:end]:
            yield _ESCAPED.sub(r"\1", prompt[start:end])
        if end - start > _LONGEST_PATH:
            return
