"""Words that are typed without quotes: `send`, `task`, `todo add` and `learn` take them as a text.

What people type here because other programs have it is no text where it is all that they type: a word that asks for
what is kept prints it, and one that would change it is refused with the command that does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from teamchat.core.errors import UsageError
from teamchat.core.routing.requests import quoted
from teamchat.core.routing.todos import todo_number

READS = ("list", "ls", "show")
ADDS = ("add", "set")
REMOVES = ("rm", "remove", "delete", "del", "forget", "clear")


def typed_text(words: Sequence[str] | None, what: str, removal: Callable[[Sequence[int]], str]) -> str | None:
    """The text of the words, as they were typed; None without any, and for one that asks for what is kept.

    Raises `UsageError` where they ask to remove it: they are no `what`, and `removal` gives the commands.
    """
    first, *others = words or [""]
    if not words or (first in READS and not others):
        return None
    if first in ADDS and len(others) == 1 and " " in others[0]:
        return others[0]
    numbers = numbers_of(others)
    if first in REMOVES and None not in numbers.values():
        raise UsageError(f"{quoted(' '.join(words))} is not a {what}", removal([*filter(None, numbers.values())]))
    return " ".join(words)


def numbers_of(words: Sequence[str]) -> dict[str, int | None]:
    """What `3 4`, `3,4` and `#3` mean, each as it was typed; None for what is no number."""
    return {part: todo_number(part) for word in words for part in word.split(",") if part.strip()}
