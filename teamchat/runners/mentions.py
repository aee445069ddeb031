r"""Making inert what a CLI would otherwise expand in a prompt: `@path`, `@agent`, `$skill`, keywords.

Messages of other agents are quoted into prompts, so a mention in them must stay text. Only what a person typed may
expand. An escape stays readable: a backslash before the `@` (observed for Gemini 0.61.0; Claude 2.1.197 expands no `@`
that is glued to what precedes it), one behind the `$` (Codex 0.169.0 expands `\$name`, too), a hyphen in a keyword.

Where a path ends in running text is not documented, so every plausible end is tried: escaping a name that exists once
too often costs a backslash, missing one puts a file into the prompt that nobody asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from teamchat.runners.base import Prepared
from teamchat.runners.untrusted_json import scalar

Escape = tuple[int, str]
"""Where in the prompt something is put, and what."""

_CHECKS = 20_000  # existence checks per prompt; beyond that everything is escaped, so that hostile text costs no time
_LONGEST_NAME = 255  # characters of one path component
_LONGEST_PATH = 4096
_AT = re.compile(r"(?<!\\)(\\*+)@(?=\S)", re.ASCII)
_QUOTED = re.compile(r'"([^"\n]{1,4096})"')
_STEP = re.compile(r"\\.|\w+|[^\s\w]", re.ASCII)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def inert(prompt: str, escapes: Iterable[Escape]) -> Prepared:
    """`prompt` in UTF-8 with these escapes in it."""
    pieces: list[str] = []
    done = 0
    chosen = sorted(escapes)
    for at, escape in chosen:
        pieces += (prompt[done:at], escape)
        done = at
    pieces.append(prompt[done:])
    return Prepared(scalar("".join(pieces)).encode(), len(chosen))


def mentions(prompt: str, typed: range, names: Callable[[str, int], bool]) -> Iterator[Escape]:
    """A backslash for each `@` whose token `names(prompt, start)` something, but for what was `typed`."""
    for found in others(_AT, prompt, typed):
        if len(found[1]) % 2 == 0 and names(prompt, found.end()):
            yield found.end() - 1, "\\"


def others(what: re.Pattern[str], prompt: str, typed: range) -> Iterator[re.Match[str]]:
    """Where `what` stands in the parts of the prompt that no person typed."""
    return chain(what.finditer(prompt, 0, typed.start), what.finditer(prompt, typed.stop))


def existing(exists: Callable[[str], bool]) -> Callable[[str, int], bool]:
    """Whether the token at a place in the prompt is, or begins with, the name of something that exists."""
    exists = checked(exists)

    def names(prompt: str, start: int) -> bool:
        return any(exists(candidate) for candidate in _candidates(prompt, start))

    return names


def checked(exists: Callable[[str], bool]) -> Callable[[str], bool]:
    """The same, but that everything exists after too many checks."""
    checks = _CHECKS

    def there(name: str) -> bool:
        nonlocal checks
        checks -= 1
        return checks < 0 or exists(name)

    return there


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
