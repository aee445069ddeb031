"""What a turn does in a process, and what its prompt may show."""

from __future__ import annotations

from msgspec import Struct


class Part(Struct, frozen=True):
    """The part of a process that a turn does. `kind` and `role` say what is asked, with `number` of `total`.

    - `seat` is the member for whom it is done, where that matters: a fallback may do it in its place.
    - `handover`: markers of its reply call members, and its prompt says how.
    - `history`: its prompt quotes the conversation before the message that it answers.
    - `continues`: the turn continues the member's vendor session, which knows what was said before.
    - `layers` are the names of the layers that it may see; None is all of them.
    - `shows` are ids of messages that its prompt quotes besides, each said by the one of `labels`, or by its speaker.
    - `task`: its prompt shows the team's task.
    - `instead` replaces the text of the message that it answers.
    - `apart`: a member that may write works in a worktree of its own, and no fallback takes its place.
    - `compares` are the members whose worktrees its prompt compares, each called by the one of `options`. The turn may
      only read.
    - `others` are the members that do it if this one fails, in the order of asking.
    - `options`, `fault` and `prompt` fill in the note on what is asked.
    """

    kind: str
    role: str
    number: int = 0
    total: int = 0
    seat: str = ""
    handover: bool = False
    history: bool = False
    continues: bool = False
    layers: tuple[str, ...] | None = None
    task: bool = True
    shows: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    instead: str = ""
    apart: bool = False
    compares: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    fault: str = ""
    prompt: str = ""
