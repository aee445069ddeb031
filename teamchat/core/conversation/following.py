"""Follows a conversation that another process runs: the lines of its run, and an end for one that was killed.

The reader holds no lock, writes nothing and delays nobody. The events of the lines, with all that the store has of
them, are made by `retelling`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.conversation.conclusion import conclude, conclusion
from teamchat.core.conversation.recovery import how_left
from teamchat.core.engine.events import GroupFailed, HumanAsked, Idle, PauseKind, TurnFailed
from teamchat.core.engine.guards import guard
from teamchat.core.engine.state import OPEN, Route, RouteStatus, State
from teamchat.core.errors import ExitCode
from teamchat.core.files.session_lock import holder_of
from teamchat.core.receipt import KILLED, Outcome
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.routes import all_routes, load_state
from teamchat.core.store.sessions import Session, check_there
from teamchat.core.store.turns import LARGEST, Turn, find_turn, running_turns, turns_between
from teamchat.core.team.team import Team
from teamchat.core.turn import lines
from teamchat.core.turn.machine import steady_now
from teamchat.core.turn.run import RESUME, Tally, rules_of
from teamchat.core.turn.run_events import Conclusion, JsonLine, Warned
from teamchat.core.turn.run_file import RunReader, run_file

LOOK_S = 1.0  # between two looks whether the session and the process that runs it are there
STILL_S = 1.0  # a message's work is over after so many seconds without anything to do
NOBODY_RUNS = "nobody runs what is waiting"
NOT_BEGUN = "the next turn did not begin (why is said where it runs)"
_TRIED = (RouteStatus.RUNNING, RouteStatus.WAITING)


class Follower:
    """Follows one session, from the beginning of what runs now. `lock` is the file of the session's lock.

    Call `look` again and again: whenever the file of the run may have changed, and once a second. After `follow_only`
    only a person's message and its consequences are followed.
    """

    def __init__(self, db: Database, session: Session, team: Team, lock: Path) -> None:
        self.db, self.session, self.team, self.lock = db, session, team, lock
        self.tally = Tally()
        self.state = load_state(db, session.id, rules_of(team))
        self.active = False
        """Whether a run goes on whose end was not told."""
        self.shown: str | None = None
        """The newest message that was shown already."""
        self.code: ExitCode | None = None
        """The exit code of the last run, if it has told one."""
        self._reader = RunReader(run_file(db.path.parent, session.id))
        self._log = SqliteLog(db, session.id)
        self._working: dict[int, str] = {}  # who works in the turns that run, and below 0 the checks
        self._first: int | None = None  # the first turn of the run
        self._last: int | None = None  # the newest turn that was told; None where that is not known
        self._unseen = False  # a run goes on whose lines are nowhere
        self._still_since = math.inf
        self._request: str | None = None
        self._messages, self._routes, self._turns = set[str](), set[int](), set[int]()  # led to by the request
        self._past = list(self._what_runs())
        if self.active and holder_of(lock) is None:
            self.active, self._past = False, []
        last, told = find_turn(db, session.id), self._last
        self._last = last.number if last else 0
        self._number = self._reader.number or (None if last else 0)  # the number of the run; None while unknown
        if last and not self.active and self._last > (told or 0):
            self.code = None  # the file does not have the last run
        self.unsure = not self.active and self._runs_unseen()
        """Whether something seems to run whose lines are nowhere: it is told if it still does after a second."""
        self._looked = time.monotonic() if self.unsure else -math.inf
        if last and last.outcome and not running_turns(db, session.id):
            self.tally.fail_turn(last, last.outcome)

    def follow_only(self, request: str) -> None:
        """Follow only the message `request` and its consequences. Call it before the first `look`."""
        self._request, self._past, self.tally, self.active = request, [], Tally(), True
        self._first, self._last = (self._last or 0) + 1, None
        self._messages.add(request)
        self._working.clear()

    def close(self) -> None:
        self._reader.close()

    def look(self) -> Iterator[JsonLine | Conclusion]:
        """Emit the events since the last look. A run that told no end gets its conclusion.

        Raises `UnknownName` once the session is deleted, and `StoreError`.
        """
        past, self._past = self._past, []
        yield from past
        yield from self._further()
        now = time.monotonic()
        if now - self._looked >= LOOK_S:
            self._looked = now
            self.db.check_there()
            check_there(self.db, self.session)
            if self.active and holder_of(self.lock) is None:
                yield from self._further()
                if self.active:
                    yield from self._ended()
            unseen = not self.active and self._runs_unseen()
            if unseen and self.unsure:
                yield _missing("what runs now is")
                self.active = self._unseen = True
                self._first, self._last = (self._last or 0) + 1, None
            self.unsure = unseen and not self.active
        if self._request and self.active and self._is_over(now):
            yield from self._further()
            yield from self._ended()

    def _runs_unseen(self) -> bool:
        """Whether the store has a running turn with a process that runs it, and no line has told of it."""
        last = find_turn(self.db, self.session.id)
        runs = last is not None and last.status == "running" and last.number > (self._last or 0)
        return runs and holder_of(self.lock) is not None

    def _further(self) -> Iterator[JsonLine | Conclusion]:
        for line in self._reader.read():
            if self._request:
                if not self._follows(line):
                    continue
            elif isinstance(line, lines.RunLine):
                yield from self._begins(line)
                continue
            if (missed := self._missed_before(line)) > 0:
                yield _missing(_several(missed, "turn"))
            self._note(line)
            shown = self.shown
            if shown and isinstance(line, lines.MessageLine) and self._log.place(line.id) <= self._log.place(shown):
                continue
            yield _missing(_several(line.lines, "line")) if isinstance(line, lines.LeftOutLine) else line

    def _missed_before(self, line: JsonLine) -> int:
        """Count the turns between the last one told and the one that begins."""
        if not isinstance(line, lines.TurnStartedLine) or self._last is None or self._request:
            return 0
        return line.turn - self._last - 1

    def _begins(self, line: lines.RunLine) -> Iterator[JsonLine | Conclusion]:
        """Begin a run. The run before may have been killed, and runs in between may be missing."""
        if self.active and not self._unseen:
            yield from self._ended(self._last)
        self._unseen = False
        if self._number is not None and (missed := line.number - self._number - 1) > 0:
            yield _missing(_several(missed, "run"))
            self._last = None
        self._note(line)

    def _note(self, line: JsonLine) -> None:
        """Note the values in the end of the run."""
        match line:
            case lines.RunLine(number=number):
                self.tally, self._number, self.active, self.code = Tally(), number, True, None
                self._first, self.unsure = None, False
                self._working.clear()
            case lines.ResultLine(code=code):
                self.active, self.code = False, ExitCode(code)
            case lines.LeftOutLine():
                self._last = None
            case lines.TurnStartedLine(turn=turn, member=member):
                self._working[turn] = member
                self._first, self._last = self._first or turn, turn
            case lines.TurnFinishedLine(turn=number):
                self._working.pop(number, None)
            case lines.CheckFinishedLine(number=number):
                self._working.pop(-number, None)
            case lines.CheckStartedLine(number=number, check=label):
                self._working[-number] = label
            case lines.ProcessMovedLine():
                self.tally.process = True

    def _what_runs(self) -> Iterator[JsonLine]:
        """Tell from the file which turns and checks run now, who waits, and what the process is."""
        open_: dict[tuple[str, int], list[tuple[int, JsonLine]]] = {}
        for place, line in enumerate(self._reader.read()):
            self._note(line)
            match line:
                case lines.RunLine() | lines.ResultLine():
                    open_.clear()
                case lines.DroppedLine(number=number):
                    open_.pop(("route", number), None)
                case lines.RefusedLine():
                    pass
                case lines.QueuedLine(number=number):
                    open_["route", number] = [(place, line)]
                case lines.TurnFinishedLine(turn=number):
                    (_, begun), *_ = open_.pop(("turn", number), [(0, line)])
                    if isinstance(begun, lines.TurnStartedLine) and begun.route is not None:
                        open_.pop(("route", begun.route), None)
                case lines.LineOfTurn(turn=number):
                    open_.setdefault(("turn", number), []).append((place, line))
                case lines.CheckFinishedLine(number=number):
                    open_.pop(("check", number), None)
                case lines.CheckStartedLine(number=number):
                    open_["check", number] = [(place, line)]
                case lines.ProcessMovedLine():
                    open_["process", 0] = [(place, line)]
        left = (pair for pairs in open_.values() for pair in pairs)
        yield from (line for _, line in sorted(left, key=itemgetter(0)))

    def _follows(self, line: JsonLine) -> bool:
        """Whether the line belongs to the request or its consequences."""
        match line:
            case lines.MessageLine(id=message, turn=turn):
                follows = message == self._request or turn in self._turns
                self._messages |= {message} if follows else set()
            case lines.QueuedLine(number=number, parent=parent):
                follows = parent in self._messages
                self._routes |= {number} if follows else set()
            case lines.TurnStartedLine(turn=turn, route=route):
                follows = route in self._routes
                self._turns |= {turn} if follows else set()
            case lines.LineOfTurn(turn=turn):
                follows = turn in self._turns
            case lines.CheckStartedLine(route=route):
                follows = route in self._routes
            case lines.TodoAddedLine(message=message):
                follows = message in self._messages
            case Warned(route=route):
                follows = route in self._routes
            case _:
                follows = False
        return follows

    def _state(self) -> State:
        """Load the followed part of the state."""
        state = load_state(self.db, self.session.id, rules_of(self.team))
        if self._request:
            queue = tuple(route for route in state.queue if route.request == self._request)
            state = replace(state, queue=queue, process=None)
        return state

    def _is_over(self, now: float) -> bool:
        """Whether nothing is left to do for the request: the run may go on with something else."""
        state = self._state()
        head = next((route for route in state.queue if route.status in OPEN), None)
        waits = head is not None and head.status is not RouteStatus.ASKED
        works = self._working or waits or any(route.status is RouteStatus.RUNNING for route in state.queue)
        self._still_since = math.inf if works else min(self._still_since, now)
        return now - self._still_since > STILL_S

    @property
    def session_id(self) -> int:
        """The number of the session in the store."""
        return self.session.id

    def _ended(self, last: int | None = None) -> Iterator[JsonLine | Conclusion]:
        """Conclude a run that told no end: with the sums of the store, and replies that no line told.

        `last` is its last turn, if another run may have begun since.
        """
        turns = self._turns_of_run(last)
        tally = Tally(process=self.tally.process)
        for turn in turns:
            tally.add(turn, turn.outcome or Outcome(None, None, denied=None))
        said = [(turn, turn.outcome.reply) for turn in turns if turn.outcome and turn.outcome.reply]
        untold = {reply for _, reply in said if self._request and reply not in self._messages}
        if untold:
            yield _missing("lines are")
        for turn, reply in sorted(said, key=lambda pair: self._log.place(pair[1])):
            message = self._log.get(reply, hidden=True)
            tally.add_reply(message)
            if reply in untold:
                yield lines.message_line(message, turn=turn.number)
        self.tally, self.active = tally, False
        if self._unseen and turns:
            self._last = turns[-1].number
        yield self.conclusion(killed=not (self._request or self._unseen))
        self._unseen = False

    def _turns_of_run(self, last: int | None) -> list[Turn]:
        """List the turns of the run, or the turns that the request led to, as now in the store."""
        if self._first is None:
            return []
        turns = turns_between(self.db, self.session.id, self._first, LARGEST if last is None else last)
        return [turn for turn in turns if self._request in (None, turn.setup.request)]

    def _has_ended(self, number: int) -> bool:
        """Whether the store has the end of a turn, though no line has told it."""
        turn = find_turn(self.db, self.session.id, number) if number > 0 else None
        return turn is not None and turn.status not in ("running", "interrupted")

    def conclusion(self, *, killed: bool = False) -> Conclusion:
        """Say how the run has ended, and how it can continue, as far as the store tells."""
        state = self.state = self._state()
        working = {number: who for number, who in self._working.items() if not self._has_ended(number)}
        if any(route.status in _TRIED for route in state.queue) or working:
            turns = running_turns(self.db, self.session.id)
            left = {how_left(self.db, turn) for turn in turns if turn.number in working}
            why = (left.pop() if len(left) == 1 else KILLED) if working else NOBODY_RUNS
            paused = PauseKind.INTERRUPTED if any(turn.setup.host for turn in turns) else None
            who = f"{', '.join(working.values())} " if working else ""
            return conclusion(self, ExitCode.INTERRUPTED, f"{who}{why}", RESUME, paused=paused)
        failed = tuple(route for route in state.held if route.number in self.tally.failures)
        if failed:
            mates = [route for route in all_routes(self.db, self.session.id) if _mates(route, failed[0])]
            delivered = any(mate.status is RouteStatus.DONE for mate in mates)
            return conclude(self, GroupFailed(failed, not delivered) if len(mates) > 1 else TurnFailed(failed[0]))
        if state.asked or not state.held:
            return conclude(self, HumanAsked(state.asked) if state.asked else Idle())
        if reached := guard(state, steady_now()):
            return conclude(self, reached)
        code, why = (ExitCode.INTERRUPTED, NOBODY_RUNS) if killed else (ExitCode.MEMBER_FAILED, NOT_BEGUN)
        return conclusion(self, code, why, RESUME)


def _mates(one: Route, other: Route) -> bool:
    return other.group is not None and (one.parent, one.group) == (other.parent, other.group)


def _several(number: int, what: str) -> str:
    return f"{number:,} {what}s are" if number > 1 else f"a {what} is"


def _missing(what: str) -> Warned:
    """Warn that lines, or whole turns and runs, are missing."""
    return Warned(text=f"{what} missing here: teamchat log has the messages")
