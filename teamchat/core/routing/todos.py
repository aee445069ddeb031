"""The todo list of a conversation, computed from its changes. Pure.

A change is never altered. One that a message made counts as long as that message does: an undo of the message undoes
its items and ticks too, and a redo restores them. A number is given once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct, field

from teamchat.assemblers.truncation import byte_length, truncate_end
from teamchat.core.text.clean import told

LONGEST_TODO = 300  # UTF-8 bytes; a longer text is cut to its beginning
MOST_OPEN = 100  # so that the list stays a small part of a prompt
MOST_SHOWN = 10  # numbers that a problem names
_LONGEST_NUMBER = 9  # digits

What = Literal["added", "done", "cleared"]
HOW_TO = "[TODO: ...] adds one, [DONE: n] closes one."


class Add(Struct, frozen=True):
    """A request to add an item; the text is a `todo_text` with something in it."""

    text: str


class Finish(Struct, frozen=True):
    number: int


Wish = Add | Finish


class Change(Struct, frozen=True):
    """A change of an item: by whom and when (seconds since 1970). `text` is the item's text.

    `message` is the id of the message that made it, None for a command's. It does not count while that is `hidden`.
    """

    number: int
    what: What
    text: str
    by: str
    at: float
    message: str | None = None
    hidden: bool = False


class Todo(Struct, frozen=True):
    """An item of the list: the change that added it and, once it is done, the first change that closed it."""

    added: Change
    done: Change | None = None

    @property
    def number(self) -> int:
        return self.added.number

    @property
    def line(self) -> str:
        """The item as a member is told it: one line that nothing in it can break."""
        return f"- {self.number} ({self.added.by}): {self.added.text}"


class TodoList(Struct, frozen=True):
    """The items by their numbers, in order; `last` is the highest number that was ever given."""

    items: Mapping[int, Todo] = field(default_factory=dict)
    last: int = 0

    @property
    def open(self) -> list[Todo]:
        return [item for item in self.items.values() if item.done is None]

    @property
    def done(self) -> int:
        return len(self.items) - len(self.open)


def read_todos(changes: Iterable[Change]) -> TodoList:
    """Compute the list from the changes of a session, in order."""
    items: dict[int, Todo] = {}
    last = 0
    for change in changes:
        last = max(last, change.number)
        if change.hidden:
            continue
        item = items.get(change.number)
        if change.what == "added":
            items[change.number] = Todo(change)
        elif change.what == "cleared":
            items.pop(change.number, None)
        elif item and item.done is None:
            items[change.number] = Todo(item.added, change)
    return TodoList(items, last)


class Noted(Struct, frozen=True):
    """The changes to store for some requests, and the requests that were not done, in words for the user.

    `unknown` are numbers that are not on the list, `already` numbers that a command need not close again.
    """

    changes: tuple[Change, ...] = ()
    unknown: tuple[int, ...] = ()
    problems: tuple[str, ...] = ()
    already: tuple[int, ...] = ()


def apply_wishes(todos: TodoList, wishes: Iterable[Wish], by: str, at: float, message: str | None = None) -> Noted:
    """Apply the todo changes that a message or command asks for, one after the other. None of them fails.

    A message may close a done item again: it then stays done if the message that closed it first is undone.
    """
    items = {number: item.added.text for number, item in todos.items.items()}
    left = {item.number for item in todos.open}
    last, cut, full = todos.last, list[int](), 0
    changes: list[Change] = []
    unknown: dict[int, None] = {}
    closed: set[int] = set()
    already: dict[int, None] = {}
    for wish in wishes:
        match wish:
            case Add() if len(left) >= MOST_OPEN:
                full += 1
            case Add(text=text):
                last += 1
                items[last] = _shortened(text)
                left.add(last)
                cut += [last] if items[last] != text else []
                changes.append(Change(last, "added", items[last], by, at, message))
            case Finish(number=number) if number not in items:
                unknown[number] = None
            case Finish(number=number) if message is None and number not in left | closed:
                already[number] = None
            case Finish(number=number) if number not in closed:
                left.discard(number)
                closed.add(number)
                changes.append(Change(number, "done", items[number], by, at, message))
    return Noted(tuple(changes), tuple(unknown), tuple(_problems(cut, full, unknown, left)), tuple(already))


def _problems(cut: list[int], full: int, unknown: Iterable[int], left: Iterable[int]) -> Iterable[str]:
    if cut:
        yield f"todo {_listed(cut)} is longer than {LONGEST_TODO} bytes, and was cut to its beginning"
    if full:
        yield f"{MOST_OPEN} todos are open already: {full} more {'was' if full == 1 else 'were'} not added"
    if unknown:
        yield f"there is no todo {_listed(unknown)} (open: {_listed(sorted(left)) or 'none'})"


def _listed(numbers: Iterable[int]) -> str:
    shown = [str(number) for number in numbers]
    return ", ".join([*shown[:MOST_SHOWN], *(["..."] if len(shown) > MOST_SHOWN else [])])


def rendered(todos: TodoList) -> str | None:
    """Write the list for members: open items, the number of done ones, and how to change it. None if it is empty."""
    if not todos.items:
        return None
    nothing = [] if todos.open else ["Nothing is open."]
    return "\n".join([*(item.line for item in todos.open), *nothing, f"{todos.done} done. {HOW_TO}"])


def todo_text(text: str) -> str:
    """Put `text` on one line without control characters; empty if it has no letter or digit."""
    line = " ".join(told(text).split())
    return line if any(character.isalnum() for character in line) else ""


def todo_number(written: str) -> int | None:
    """Return the number of `3` or `#3`, None for anything else."""
    digits = written.strip().removeprefix("#")
    return int(digits) if digits.isdecimal() and len(digits) <= _LONGEST_NUMBER else None


def _shortened(text: str) -> str:
    if byte_length(text) <= LONGEST_TODO:
        return text
    return f"{truncate_end(text, LONGEST_TODO - byte_length('…'))}…"
