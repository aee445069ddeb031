"""Words typed without quotes: `send`, `task`, `todo add` and `learn` take them as one text.

Some words are commands in other programs, such as `list` or `rm`. Typed alone, such a word is not a text. A word that
asks for the stored text prints it. A word that would change it is refused, with the right command.
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
    """Return the text as typed; None without words, and for a word that asks for the stored text.

    Raises `UsageError` for words that ask to remove it: they are no `what`, and `removal` gives the commands.
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
    """Read the numbers in `3 4`, `3,4` and `#3`, each by its typed word; None for a word that is not a number."""
    return {part: todo_number(part) for word in words for part in word.split(",") if part.strip()}
