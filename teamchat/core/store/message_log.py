"""The messages and the task of a conversation: the protocol of every log, and the log in memory.

`ContextManager` works on any log. Every log has to pass the contract in `tests/core/store/message_log_contract.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Protocol

from teamchat.core.errors import UsageError
from teamchat.core.messages import ConversationMessage, NewMessage
from teamchat.patterns import regex

NOT_EMPTY = "a conversation can only be restored into an empty one"
_NUMBERED = regex(r"msg-([0-9]{1,18})")  # a longer number may not fit into the 64 bits of a store
MOST_COUNTED = 10**18 - 1
"""The greatest N of a `msg-N` that counts. Only a greater one may be taken though it is more than all that count."""


class MessageLog(Protocol):
    """Messages in the order they were said, and the team task. An id that is not in the log is a `KeyError`."""

    team_task: str | None

    def append(self, draft: NewMessage) -> ConversationMessage:
        """Store the message under the next id: `msg-1`, `msg-2`, ..."""
        ...

    def latest(self, up_to: str | None = None) -> ConversationMessage | None:
        """Return the newest message, or the newest at or before the message with the id `up_to`."""
        ...

    def window(self, before_id: str, size: int) -> Sequence[ConversationMessage]:
        """Return the newest `size` messages before the message with that id, oldest first, at a cost of O(size)."""
        ...

    def get(self, message_id: str) -> ConversationMessage:
        """Return the message with that id."""
        ...

    def place(self, message_id: str) -> int:
        """Say where the message with that id stands: a later message has a greater place."""
        ...

    def all(self) -> Sequence[ConversationMessage]:
        """Return every message, in a sequence of the caller's own."""
        ...

    def restore(self, messages: Iterable[ConversationMessage], team_task: str | None) -> None:
        """Fill an empty log with an imported conversation and its ids, which must be unique; the next id follows.

        Raises `UsageError`, and changes nothing, when there are messages already.
        """
        ...

    def is_imported(self, message_id: str) -> bool:
        """Whether the message was read from a file: nobody said it here, whomever the file says it was said to."""
        ...

    def clear(self) -> None:
        """Begin anew without messages and task, at the first id; in a store, only prompts begin anew."""
        ...

    def when_stored(self, tell: Callable[[], None]) -> None:
        """Call `tell` once everything written so far is stored; never if it is rolled back."""
        ...


def free_number(number: int, taken: Callable[[str], bool]) -> int:
    """Find the smallest number from `number` on whose `msg-N` is free."""
    return next(free for free in count(number) if not taken(f"msg-{free}"))


def next_number(messages: Iterable[ConversationMessage]) -> int:
    """Return one more than the greatest `msg-N` of at most 18 digits; ids of any other form do not count.

    An id with more digits may have that number; `free_number` skips it.
    """
    matches = (_NUMBERED.fullmatch(message.id) for message in messages)
    return max((int(match[1]) for match in matches if match), default=0) + 1


class MemoryLog:
    """A log in memory."""

    def __init__(self) -> None:
        self.team_task: str | None = None
        self._messages: list[ConversationMessage] = []
        self._places: dict[str, int] = {}
        self._imported = frozenset[str]()
        self._next = 1

    def append(self, draft: NewMessage) -> ConversationMessage:
        number = free_number(self._next, self._places.__contains__)
        message = draft.stored_as(f"msg-{number}")
        self._next = number + 1
        self._places[message.id] = len(self._messages)
        self._messages.append(message)
        return message

    def latest(self, up_to: str | None = None) -> ConversationMessage | None:
        if up_to is not None:
            return self.get(up_to)
        return self._messages[-1] if self._messages else None

    def window(self, before_id: str, size: int) -> list[ConversationMessage]:
        end = self._places[before_id]
        return self._messages[max(end - size, 0) : end]

    def get(self, message_id: str) -> ConversationMessage:
        return self._messages[self._places[message_id]]

    def place(self, message_id: str) -> int:
        return self._places[message_id]

    def all(self) -> list[ConversationMessage]:
        return list(self._messages)

    def clear(self) -> None:
        self.team_task = None
        self._messages, self._places, self._imported, self._next = [], {}, frozenset(), 1

    def when_stored(self, tell: Callable[[], None]) -> None:
        tell()

    def restore(self, messages: Iterable[ConversationMessage], team_task: str | None) -> None:
        if self._messages:
            raise UsageError(NOT_EMPTY)
        self.team_task = team_task
        self._messages = list(messages)
        self._places = {message.id: place for place, message in enumerate(self._messages)}
        self._next = next_number(self._messages)
        self._imported = frozenset(self._places)

    def is_imported(self, message_id: str) -> bool:
        return message_id in self._imported
