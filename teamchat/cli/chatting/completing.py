"""What Tab offers in chat: members after `@`, `[NEXT:` and `--to`, and commands after `/`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from teamchat.cli.chatting.kept import Place
from teamchat.patterns import regex

_AT = regex(r"(?:^|\s)@(?:\S*[+,])?([^\s+,]*)\Z")
_NEXT = regex(r"\[NEXT:\s*(?:[^\]\n]*[+,]\s*)?([^\]\n+,]*)\Z", re.IGNORECASE)
_TO = regex(r"--(?:to|with)(?:\s+|=)(?:\S*[+,])?([^\s+,]*)\Z")
_COMMAND = regex(r"\A/(\S*)\Z")
_MEMBER = regex(r"\A/open\s+(\S*)\Z")
_LONGEST = 2000  # characters before the cursor that are looked at; the patterns' time grows faster than the text


def offered(before: str, members: Sequence[str], commands: Iterable[str]) -> tuple[int, list[str]]:
    """What may follow the text `before` the cursor, and how many characters of it are replaced."""
    if found := _COMMAND.search(before):
        return len(found[1]), _beginning_with(found[1], commands)
    patterns = (_TO, _MEMBER) if before.startswith("/") else (_AT, _NEXT)
    for pattern in patterns:
        if found := pattern.search(before[-_LONGEST:]):
            return len(found[1]), _beginning_with(found[1], members)
    return 0, []


def completer(place: Place, commands: Callable[[], Iterable[str]]) -> Completer:
    """Offers the members of chat's team, except the person at the keyboard."""

    class Offering(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
            del complete_event
            names = [member.name for member in place.team.members if member.name != place.you]
            typed, found = offered(document.text_before_cursor, names, commands())
            return (Completion(name, -typed) for name in found)

    return Offering()


def _beginning_with(typed: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.casefold().startswith(typed.casefold())]
