"""Makes the events of a run's lines again from the store, so that an output can show another process's run."""

from __future__ import annotations

import time

from msgspec import UNSET, convert
from msgspec.structs import astuple, replace

from teamchat.core.engine.events import Dropped, Moved, PauseKind, Queued, Refused
from teamchat.core.engine.state import Route, RouteStatus, Rules
from teamchat.core.engine.strategies import strategy_of
from teamchat.core.errors import ExitCode
from teamchat.core.made import made_of
from teamchat.core.messages import ConversationMessage
from teamchat.core.routing.todos import Change
from teamchat.core.store.checks import CheckRecord, find_check
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.routes import find_route, load_state, part_of
from teamchat.core.store.summaries import Summary
from teamchat.core.store.turns import Turn, find_turn, turn_of_session
from teamchat.core.turn import lines
from teamchat.core.turn.run_events import (
    AgentSpoke,
    CheckFinished,
    CheckStarted,
    Conclusion,
    ConversationEvent,
    GroupCompared,
    JsonLine,
    LessonsFound,
    MessageStored,
    RecordingFiles,
    Replied,
    RunVerdict,
    SummaryStored,
    TaskChanged,
    TodoChanged,
    TurnFinished,
    TurnStarted,
    Warned,
)
from teamchat.runners.agent_events import Usage

NOBODY = Rules((), ())


class Retold:
    """Makes the events of lines from the store, for an output that shows another process's run."""

    def __init__(self, db: Database, session: int) -> None:
        self._db, self._session = db, session
        self._log = SqliteLog(db, session)

    def event(self, line: JsonLine) -> ConversationEvent | None:
        """Make the event of a line; None if another line has told it, or the store no longer has it."""
        event: ConversationEvent | None = None
        match line:
            case lines.SpokenLine():
                event = AgentSpoke(
                    line.member, line.turn, line.event(**{name: getattr(line, name) for name in line.names})
                )
            case lines.MessageLine(id=message):
                event = self.message(self._log.get(message, hidden=True))
            case lines.RefusedLine(limit=limit):
                event = Refused(self._route(line), limit)
            case lines.QueuedLine():
                event = (Dropped if isinstance(line, lines.DroppedLine) else Queued)(self._route(line))
            case lines.LineOfTurn(turn=number) if turn := find_turn(self._db, self._session, number):
                event = self._of_turn(line, turn)
            case lines.CheckStartedLine(number=number) if check := find_check(self._db, self._session, number):
                event = _of_check(line, check)
            case lines.TodoAddedLine(number=number, text=text, by=by, message=message):
                done = isinstance(line, lines.TodoDoneLine)
                event = TodoChanged(Change(number, "done" if done else "added", text, by, time.time(), message))
            case lines.ProcessMovedLine():
                event = self._moved()
            case TaskChanged() | GroupCompared() | Warned() | RecordingFiles():
                event = line
        return event

    def message(self, message: ConversationMessage) -> MessageStored | Replied:
        """Make the event that told of a stored message."""
        turn = turn_of_session(self._db, self._session, message.turn_id) if message.turn_id else None
        return Replied(turn, message, part_of(self._db, turn.id)) if turn else MessageStored(message)

    def conclusion(self, line: lines.ResultLine) -> Conclusion:
        """Make the conclusion of a run."""
        process = load_state(self._db, self._session, NOBODY).process if line.process else None
        report = None
        if process:
            report = convert(line.process, type(strategy_of(process.kind).report(process)))
        return made_of(
            Conclusion,
            line,
            code=ExitCode(line.code),
            waiting_for=line.waiting,
            paused=PauseKind(line.paused) if line.paused else None,
            held=tuple(map(self._route, line.held)),
            usage=Usage(*astuple(line.usage)),
            process=report,
            verdict=None if line.verdict is UNSET else RunVerdict(line.verdict),
        )

    def _route(self, line: lines.RouteFields | lines.QueuedLine) -> Route:
        """Make the call as the line has it, with all that the store has of it."""
        stored = find_route(self._db, self._session, line.number) or Route(line.parent, line.by, "", line.number)
        names = ("target", "priority", "group", "attempt")
        return replace(stored, status=RouteStatus(line.status), **{name: getattr(line, name) for name in names})

    def _of_turn(self, line: JsonLine, turn: Turn) -> ConversationEvent | None:
        match line:
            case lines.TurnStartedLine(route=route):
                return TurnStarted(turn, find_route(self._db, self._session, route) if route is not None else None)
            case lines.CompactedLine(member=member, through=through, kept=kept, text=text):
                return SummaryStored(turn, Summary(member, through, kept, text))
            case lines.LessonsLine(found=found, lessons=kept):
                return LessonsFound(turn, found, kept)
            case lines.TurnFinishedLine(reply=reply, partial=partial) if turn.outcome:
                return TurnFinished(turn, replace(turn.outcome, reply=reply), partial)
        return None

    def _moved(self) -> Moved | None:
        state = load_state(self._db, self._session, NOBODY)
        calls = tuple(route for route in state.queue if route.part)
        return Moved(state.process, calls) if state.process else None


def _of_check(line: lines.CheckStartedLine, check: CheckRecord) -> CheckStarted | CheckFinished:
    if isinstance(line, lines.CheckFinishedLine):
        return CheckFinished(check)
    return CheckStarted(replace(check, status="running", result=None, changes=None, output_key=None, undone=None))
