"""The completions of chat: names of members, commands and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from teamchat.cli.chatting.files import Files
from teamchat.cli.chatting.typing import ChatPlace
from teamchat.patterns import regex

_AT = regex(r"(?:^|\s)@(?:\S*[+,])?([^\s+,]*)\Z")
_NEXT = regex(r"\[NEXT:\s*(?:[^\]\n]*[+,]\s*)?([^\]\n+,]*)\Z", re.IGNORECASE)
_TO = regex(r"--(?:to|with)(?:\s+|=)(?:\S*[+,])?([^\s+,]*)\Z")
_COMMAND = regex(r"\A/(\S*)\Z")
_MEMBER = regex(r"\A/open\s+(\S*)\Z")
_FILE = regex(r"(?:^|\s)@([^\s+,]*)\Z")
_LONGEST = 2000  # how many characters before the cursor are matched; the patterns take more than linear time


def offered(
    before: str, members: Sequence[str], commands: Iterable[str], files: Callable[[str], list[str]] = lambda _typed: []
) -> tuple[int, list[str]]:
    """List the texts that may follow `before`, the text left of the cursor, with the number of characters they replace.

    `files` returns the files that begin with the typed text.
    """
    if match := _COMMAND.search(before):
        return len(match[1]), _beginning_with(match[1], commands)
    patterns = (_TO, _MEMBER) if before.startswith("/") else (_AT, _NEXT)
    for pattern in patterns:
        if match := pattern.search(before[-_LONGEST:]):
            names = _beginning_with(match[1], members)
            if pattern is _AT and _FILE.search(before[-_LONGEST:]):
                names += files(match[1])
            return len(match[1]), names
    return 0, []


def completer(place: ChatPlace, commands: Sequence[str]) -> Completer:
    """Make a completer of the members of chat's team, without the person at the keyboard, and of its files."""
    files = Files(place.team.root)

    class Offering(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
            names = [member.name for member in place.team.members if member.name != place.you]
            below = partial(files.beginning_with, wait=complete_event.completion_requested)
            typed, offers = offered(document.text_before_cursor, names, commands, below)
            return (Completion(name, -typed) for name in offers)

    return Offering()


def _beginning_with(typed: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.casefold().startswith(typed.casefold())]
