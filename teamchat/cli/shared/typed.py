"""The command line as it was typed, for hints that say what to type instead."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

from teamchat.cli.shared.retyped import has, line_of, placed
from teamchat.core.errors import NearMiss, NoRoom

if TYPE_CHECKING:
    from teamchat.cli.shared.piped import Message

TYPED: ContextVar[Sequence[str]] = ContextVar("TYPED", default=())


def typed_with(*options: str) -> str | None:
    """The command with these options in front of its others; None for one that nobody would paste."""
    command, *rest = TYPED.get() or [""]
    return line_of(command, *options, *rest)


@contextlib.contextmanager
def saying_what_to_type(message: Message) -> Iterator[None]:
    """Give a refusal the command that would have been taken; of a piped text it cannot be had again."""
    try:
        yield
    except NearMiss as error:
        error.hint = typed_with("--to", error.names) if error.names else "teamchat team"
        raise
    except NoRoom as error:
        error.hint = typed_with("--cut") if len(message.text) == message.typed else None
        raise


def was_typed(option: str) -> bool:
    """Whether the option stands in the command."""
    return has(option, TYPED.get())


def placed_here(command: str) -> str:
    """The command for the team and the session that were typed."""
    return placed(command, TYPED.get())
