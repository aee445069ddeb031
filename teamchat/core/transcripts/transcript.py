"""A conversation to keep outside its store: its messages and, for each turn, the member's steps and changed files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import attrgetter, is_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Struct
from msgspec.structs import fields, replace
from pydantic import Field

from teamchat.core.engine.processes.words import Result
from teamchat.core.messages import ConversationMessage
from teamchat.core.store.checks import CheckRowStatus
from teamchat.core.store.turns import TurnStatus
from teamchat.core.store.usage import UsageSums
from teamchat.runners.base import Access
from teamchat.runners.untrusted.file_changes import Kind

Count = Annotated[int, Field(ge=0, le=10**15)]
Seconds = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]
StepKind = Literal["said", "tool", "denied", "question", "retry", "note", "error"]


class TranscriptStep(Struct, frozen=True):
    """An action of a member, `at` seconds into its turn.

    `name` is the tool's, for a call that was made or denied. `output` and `failed` are the result of a call.
    """

    at: Seconds
    kind: StepKind
    text: str
    name: str = ""
    output: str = ""
    failed: bool = False


class ChangedFile(Struct, frozen=True):
    """A file that changed during a turn; `what` is None where only the CLI's own report is known.

    `added` and `removed` count lines; they are None where that is unknown.
    """

    path: str
    what: Kind | None = None
    added: Count | None = None
    removed: Count | None = None


class MemberTurn(Struct, frozen=True):
    """A turn of a member. None is unknown, never zero."""

    number: Count
    member: str
    agent: str
    access: Access
    began_ms: Count
    status: TurnStatus
    model: str | None = None
    seconds: Seconds | None = None
    failure: str | None = None
    text: str = ""
    """The partial text of a turn that failed."""
    steps: tuple[TranscriptStep, ...] = ()
    """The steps, without texts that are in the reply or in `text`."""
    files: tuple[ChangedFile, ...] = ()
    more_files: Count = 0
    """The number of changed files beyond `files`."""
    input_tokens: Count | None = None
    cached_tokens: Count | None = None
    output_tokens: Count | None = None
    cost_usd: Annotated[float, Field(ge=0, le=10**15, allow_inf_nan=False)] | None = None
    undone: bool = False
    host: str | None = None
    """The machine it ran on, if that was another one."""
    patch: str = ""
    """The changes in the files. This is for a reader, and the JSON form is without it."""
    bounded: bool = True
    """Whether the access was enforced. This is for a reader, and the JSON form is without it."""


class RanCheck(Struct, frozen=True):
    """A check that teamchat ran. One that a person typed has no name. None is unknown.

    `output` is the beginning of its output, and `output_bytes` is the size of the whole.
    """

    number: Count
    command: str
    status: CheckRowStatus
    began_ms: Count
    name: str = ""
    reason: str = ""
    exit_code: int | None = None
    seconds: Seconds | None = None
    by_hand: bool = False
    output: str = ""
    output_bytes: Count = 0
    files: tuple[ChangedFile, ...] = ()
    more_files: Count = 0
    undone: bool = False


class SaidEntry(Struct, frozen=True):
    """A message, and the turn that it came from if that is known. `images` are the names of its images.

    `cleared`: prompts began after it. `words` is the reply to a process with its JSON in words; empty if it has none.
    """

    message: ConversationMessage
    turn: MemberTurn | None = None
    images: tuple[str, ...] = ()
    undone: bool = False
    cleared: bool = False
    words: str = ""

    @property
    def shown(self) -> str:
        """The text for a person."""
        return self.words or self.message.content

    @property
    def state(self) -> tuple[str, ...]:
        """Its outcome, in words for a reader."""
        states = ("undone", self.undone), ("cleared: prompts begin after it", self.cleared)
        return tuple(words for words, holds in states if holds)


Entry = SaidEntry | MemberTurn | RanCheck
"""A message, a turn without one (it failed or is not over), or a check."""


def mapped(value: Any, change: Callable[[str, str], str], name: str = "") -> Any:
    """Change every text in the value. `change` gets the name of its field and the text.

    A value whose texts stay the same is returned itself.
    """
    if isinstance(value, str):
        return change(name, value) if value else value
    if isinstance(value, tuple):
        items = tuple(mapped(item, change, name) for item in value)
        return value if all(map(is_, items, value)) else items
    if not isinstance(value, Struct):
        return value
    changed = {}
    names, values_of = _with_text(type(value))
    for each, held in zip(names, values_of(value), strict=True):
        if held:  # most have nothing to say
            made = change(each, held) if isinstance(held, str) else mapped(held, change, each)
            if made is not held:
                changed[each] = made
    return replace(value, **changed) if changed else value


@cache
def _with_text(kind: type[Struct]) -> tuple[tuple[str, ...], Callable[[Struct], tuple[Any, ...]]]:
    """Find the fields that may hold a text, and a function that gets their values."""
    names = tuple(field.name for field in fields(kind) if _may_be_text(field.type))
    if len(names) > 1:
        return names, attrgetter(*names)
    return names, lambda value: tuple(getattr(value, name) for name in names)


def _may_be_text(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _may_be_text(get_args(hint)[0])
    if isinstance(hint, UnionType) or get_origin(hint) is Union:
        return any(map(_may_be_text, get_args(hint)))
    return hint not in (int, float, bool, NoneType)


class LazyEntries(Struct, frozen=True):
    """Entries that are made anew each time they are asked for."""

    make: Callable[[], Iterator[Entry]]

    def __iter__(self) -> Iterator[Entry]:
        return self.make()


class Transcript(Struct, frozen=True):
    """A conversation. Its entries are in their order, and may be asked for more than once."""

    session: str
    team: str
    task: str | None
    began_ms: int
    """The beginning, in milliseconds since 1970 (UTC)."""
    entries: Iterable[Entry] = ()
    title: str | None = None
    """The title that a person gave it."""
    result: Result | None = None
    """The result of the process that ended the conversation."""
    merges: tuple[str, ...] = ()
    """The commands that bring in the members' changes in their worktrees."""
    spent: UsageSums | None = None
    """The time, tokens and cost of all turns."""

    @property
    def said(self) -> Iterator[SaidEntry]:
        return (entry for entry in self.entries if isinstance(entry, SaidEntry))

    @property
    def messages(self) -> int:
        """Their number."""
        return sum(1 for _ in self.said)

    @property
    def speakers(self) -> tuple[str, ...]:
        """The names of all who spoke or tried to, in the order of their first entry."""
        spoke = (entry for entry in self.entries if not isinstance(entry, RanCheck))
        names = (entry.message.speaker.role_name if isinstance(entry, SaidEntry) else entry.member for entry in spoke)
        return tuple(dict.fromkeys(names))
