"""What a run prints, without what time and machine make of it: for a cassette, and for a replay to be held against it.

Members of a group speak at the same time, so their lines come in another order each time; here each turn of a group has
its lines together.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from teamchat.cli.output.jsonl import JsonOutput
from teamchat.cli.output.plain import PlainOutput
from teamchat.core.events import (
    AgentSpoke,
    Compacted,
    Conclusion,
    ConversationEvent,
    Replied,
    TurnFinished,
    TurnStarted,
)
from teamchat.runners.agent_events import Note, TextDelta
from teamchat.runners.turn import SILENT

CHANGING = ("time_ms", "seconds", "first_byte_s", "session")


@dataclass(frozen=True, slots=True)
class _Part:
    """What one event printed; `turn` is whose it is, if it is of a turn."""

    turn: int | None
    shown: list[dict[str, Any]]
    printed: list[str]
    starts: bool = False
    ends: bool = False

    @property
    def place(self) -> tuple[bool, int, list[str]]:
        return self.turn is None, self.turn or 0, self.printed if self.turn is None else []


class Transcript:
    """Listens to a run. `shown` are the objects that `--json --stream` prints, `printed` the lines of a piped run."""

    def __init__(self) -> None:
        self._json, self._plain = JsonOutput("", stream=True), PlainOutput()
        self._parts: list[_Part] = []

    def __call__(self, event: ConversationEvent) -> None:
        if isinstance(event, AgentSpoke) and _passing(event):
            return
        if isinstance(event, TurnFinished):
            setup = replace(event.turn.setup, redacted=0)  # a recording has no secrets that a replay could take out
            turn = replace(event.turn, setup=setup)
            event = replace(event, turn=turn, outcome=replace(event.outcome, seconds=0.0, first_byte_s=None))
        self._keep(
            lambda: self._json(event),
            lambda: self._plain(event),
            _turn_of(event),
            starts=isinstance(event, TurnStarted),
            ends=isinstance(event, TurnFinished),
        )

    def finish(self, conclusion: Conclusion) -> None:
        self._keep(lambda: self._json.finish(conclusion), lambda: self._plain.finish(conclusion), None)

    def _keep(
        self,
        as_json: Callable[[], None],
        plain: Callable[[], None],
        turn: int | None,
        *,
        starts: bool = False,
        ends: bool = False,
    ) -> None:
        shown = [json.loads(line) for line in _printed_by(as_json).split("\n") if line]
        kept = [{key: value for key, value in line.items() if key not in CHANGING} for line in shown]
        printed = _printed_by(plain).removesuffix("\n")
        self._parts.append(_Part(turn, kept, printed.split("\n") if printed else [], starts, ends))

    @property
    def shown(self) -> list[dict[str, Any]]:
        return [line for part in _in_order(self._parts) for line in part.shown]

    @property
    def printed(self) -> list[str]:
        return [line for part in _in_order(self._parts) for line in part.printed]


def _passing(spoke: AgentSpoke) -> bool:
    """Whether it tells of time alone, or comes again whole."""
    return isinstance(spoke.event, TextDelta) or (isinstance(spoke.event, Note) and spoke.event.text.startswith(SILENT))


def _turn_of(event: ConversationEvent) -> int | None:
    match event:
        case AgentSpoke(turn=turn):
            return turn
        case TurnStarted(turn=turn) | TurnFinished(turn=turn) | Replied(turn=turn) | Compacted(turn=turn):
            return turn.number
        case _:
            return None


def _printed_by(show: Callable[[], None]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(printed):
        show()
    return printed.getvalue()


def _in_order(parts: list[_Part]) -> list[_Part]:
    """Where turns are under way, what they print turn by turn, and what else there was behind it."""
    result: list[_Part] = []
    together: list[_Part] = []
    running: set[int | None] = set()
    for part in parts:
        together.append(part)
        running = (running | {part.turn} if part.starts else running) - ({part.turn} if part.ends else set())
        if not running:
            result += sorted(together, key=lambda part: part.place)
            together = []
    return result + together
