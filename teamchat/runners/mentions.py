r"""Keeps a CLI from expanding mentions in a prompt: `@path`, `@agent`, `$skill`, keywords.

Prompts quote messages of other agents, so a mention in them must stay text. Only a person's typed text may expand. The
escape is readable: a backslash before the `@` (observed for Gemini 0.61.0; Claude 2.1.197 expands no `@` directly after
another character), one after the `$` (Codex 0.169.0 expands `\$name`, too), a hyphen in a keyword. It is not documented
where a path ends in running text, so every plausible end is tried. An unneeded escape costs a backslash. A missing one
puts an unwanted file into the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from teamchat.patterns import regex
from teamchat.runners.base import Prepared
from teamchat.runners.untrusted.json import scalar

_CHECKS = 10_000  # existence checks per prompt; after that everything is escaped, so that hostile text costs no time
_LONGEST_NAME = 255  # characters of one path component
_LONGEST_PATH = 4096
_QUOTED = regex(r'"([^"\n]{1,4096})"')
_STEP = regex(r"\\.|\w+|[^\s\w]", re.ASCII)
_ESCAPED = regex(r"\\(.)", re.DOTALL)


def mention(begin: str = r"\S", text_behind: str = "") -> str:
    """Build a pattern for an `@` that is not yet escaped, with the backslashes before it and every `@` right behind it.

    `begin` matches the first character after an `@`. Behind one of `text_behind` an `@` is text.
    Each branch begins with a plain character, which `re` looks for at a tenth of the cost.
    """
    at_sign = f"@(?={begin})"
    return rf"@(?<![\\{text_behind}]@)(?={begin})(?:{at_sign})*+|\\(?<!\\\\)\\(?:\\\\)*+{at_sign}"


def escaped_mention(mention: str) -> str:
    """Put a backslash before each `@` of a match of `mention`."""
    return mention.replace("@", "\\@")


def inert(prompt: str, typed: range, mentions: re.Pattern[str], escaped: Callable[[re.Match[str]], str]) -> Prepared:
    """Encode `prompt` in UTF-8 with these mentions `escaped`, except in the `typed` part.

    The mentions are not collected in a list: a hostile prompt is made of them.
    """
    before, own, behind = prompt[: typed.start], prompt[typed.start : typed.stop], prompt[typed.stop :]
    sent = mentions.sub(escaped, before) + own + mentions.sub(escaped, behind)
    return Prepared(scalar(sent).encode(), len(sent) - len(prompt))


class Existing:
    """Tells whether something of a name exists, by `exists`. After too many checks every name counts (`all`)."""

    def __init__(self, exists: Callable[[str], bool]) -> None:
        self._exists = exists
        self._left = _CHECKS
        self.all = False

    def __call__(self, name: str) -> bool:
        self._left -= 1
        self.all = self._left < 0
        return self.all or self._exists(name)

    def at(self, text: str, start: int) -> bool:
        """Whether the token at `start` is, or begins with, the name of something that exists."""
        return any(map(self, _candidates(text, start)))


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
