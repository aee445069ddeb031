"""The output of a run, without values that depend on time or machine. A cassette keeps it, and a replay is compared
with it.

The members of a group speak at the same time, so their lines come in another order each time. Here the lines of each
member are kept together.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from itertools import groupby
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from teamchat.cli.output.plain import PlainOutput
from teamchat.core.engine.processes.until_report import UntilReport
from teamchat.core.store.rows import encoded
from teamchat.core.turn.lines import LineMaker, printed, result_line
from teamchat.core.turn.run_events import (
    AgentSpoke,
    CheckFinished,
    Conclusion,
    ConversationEvent,
    GroupCompared,
    JsonLine,
    RecordingFiles,
    TurnFinished,
    TurnStarted,
    Warned,
)
from teamchat.runners.agent_events import NOTHING_YET, SHOWN_ONLY, Note
from teamchat.runners.child.supervisor import SILENT

CHANGING = ("time_ms", "seconds", "first_byte_s", "session")


class _Part(Struct, frozen=True):
    """The output of one event; `route` is the turn's route, if the event belongs to a turn."""

    route: int | None
    shown: list[dict[str, Any]]
    printed: list[str]


class RunTranscript:
    """Records the output of a run: `shown` has the objects of `--json --stream`, `printed` the lines of a piped run."""

    def __init__(self) -> None:
        self._lines, self._plain = LineMaker(), PlainOutput()  # as ever
        self._parts: list[_Part] = []
        self._routes: dict[int, int | None] = {}  # the route of each turn, by the turn's number

    def __call__(self, event: ConversationEvent) -> None:
        if (isinstance(event, AgentSpoke) and _passing(event)) or _of_disk(event):
            return
        if isinstance(event, TurnFinished):
            setup = replace(event.turn.setup, redacted=0)  # a recording has no secrets left for a replay to remove
            turn = replace(event.turn, setup=setup)
            event = replace(event, turn=turn, outcome=replace(event.outcome, seconds=0.0, first_byte_s=None))
        if isinstance(event, CheckFinished) and event.check.result:
            event = CheckFinished(replace(event.check, result=replace(event.check.result, seconds=0.0)))
        if isinstance(event, TurnStarted):
            self._routes[event.turn.number] = event.turn.route
        lines = [line for line in self._lines.of(event) if not line.of_file]
        self._keep(lines, lambda: self._plain(event), self._route_of(event))

    def finish(self, conclusion: Conclusion) -> None:
        if isinstance(conclusion.process, UntilReport):
            conclusion = replace(conclusion, process=_without_times(conclusion.process))
        self._keep([result_line("", conclusion)], lambda: self._plain.finish(conclusion), None)

    def _keep(self, lines: list[JsonLine], plain: Callable[[], None], route: int | None) -> None:
        whole = [json.loads(encoded(printed(line))) for line in lines]
        shown = [{key: value for key, value in line.items() if key not in CHANGING} for line in whole]
        said = _printed_by(plain).removesuffix("\n")
        self._parts.append(_Part(route, shown, said.split("\n") if said else []))

    def _route_of(self, event: ConversationEvent) -> int | None:
        match event:
            case AgentSpoke(turn=number):
                return self._routes.get(number)
            case TurnStarted(turn=turn) | TurnFinished(turn=turn):
                return turn.route
            case Warned(route=route):
                return route
            case _:
                return None

    @property
    def shown(self) -> list[dict[str, Any]]:
        return [line for part in _in_order(self._parts) for line in part.shown]

    @property
    def printed(self) -> list[str]:
        return [line for part in _in_order(self._parts) for line in part.printed]


def _without_times(report: UntilReport) -> UntilReport:
    members = tuple(replace(member, seconds=0.0) for member in report.members)
    return replace(report, seconds=0.0, members=members)


def _of_disk(event: ConversationEvent) -> bool:
    """Whether the event is about files on the disk; a replay has no files."""
    return isinstance(event, GroupCompared | RecordingFiles) or (isinstance(event, Warned) and event.of_disk)


def _passing(spoke: AgentSpoke) -> bool:
    """Whether the line only reports time, or is repeated in full later."""
    return isinstance(spoke.event, SHOWN_ONLY) or (
        isinstance(spoke.event, Note) and spoke.event.text.startswith((SILENT, NOTHING_YET))
    )


def _printed_by(show: Callable[[], None]) -> str:
    """Return what `show` prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(printed):
        show()
    return printed.getvalue()


def _in_order(parts: list[_Part]) -> list[_Part]:
    """Sort the parts: where routes run at the same time, by route, in the order in which the routes began."""
    result: list[_Part] = []
    for of_route, together in groupby(parts, lambda part: part.route is not None):
        several = list(together)
        began = list(dict.fromkeys(part.route for part in several))
        result += sorted(several, key=lambda part: began.index(part.route)) if of_route else several
    return result
