from __future__ import annotations

import os
import sys
from collections import defaultdict
from functools import cache, partial
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from teamchat.cli.output import EachMessage, Output, Silent
from teamchat.cli.output.lines import called, moment, note
from teamchat.cli.output.long import as_stored, write_block, write_text
from teamchat.cli.output.terminal.look import look_of
from teamchat.cli.startup.options import JsonOption, PlaceOptions, at_least
from teamchat.cli.startup.typed import placed_here
from teamchat.cli.startup.workspace import abandoned, find_root, find_team, lock_file, open_store
from teamchat.core.engine.state import Route, RouteStatus
from teamchat.core.engine.strategies import kind_in_words, strategy_of
from teamchat.core.errors import ExitCode, TeamchatError, UsageError
from teamchat.core.messages import ConversationMessage, name_of
from teamchat.core.receipt import KILLED
from teamchat.core.routing.names import fold
from teamchat.core.routing.requests import quoted
from teamchat.core.store.checks import CheckRecord, every_check, ran_before, running_checks
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.routes import open_routes, part_of, process_of
from teamchat.core.store.sessions import Session, need_session
from teamchat.core.store.summaries import Clear, clears_in
from teamchat.core.store.turns import number_of, running_turns, turn_numbers
from teamchat.core.store.unsent import handed_over_to
from teamchat.core.text.clean import printable
from teamchat.core.turn.run_events import MessageStored, Replied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from teamchat.core.conversation.following import Follower


MARK = len("· ")  # columns before a note


def log(
    number: Annotated[
        int, typer.Option("-n", callback=at_least(0), metavar="N", help="Print only the last N messages; 0 prints all.")
    ] = 0,
    full: Annotated[
        str | None,
        typer.Option(
            "--full", metavar="MESSAGE", help="Print one message whole, such as msg-7 (a turn's reply: show --reply)."
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on printing messages as they come (what members do: watch).")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Include messages that were undone, marked as such.")
    ] = False,
    *,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> int:
    """Print the conversation, and what is waiting or paused."""
    if full is not None and (as_json or number or follow):
        raise UsageError("--full, --json, --follow and -n exclude each other")
    if follow:
        from teamchat.cli.running.keyboard import KEYBOARD

        if KEYBOARD.get():
            raise UsageError("chat shows each message as it comes; --follow is for another terminal")
    root = find_root(place.team)
    with open_store(root) as db:
        chosen = need_session(db, place.session)
        follower = None
        if follow:
            from teamchat.cli.running.watching import team_to_show
            from teamchat.core.conversation.following import Follower

            follower = Follower(db, chosen, team_to_show(place.team, chosen, root), lock_file(root, chosen.id))
        messages = SqliteLog(db, chosen.id)
        if full is not None:
            write_text(as_stored(messages.get(full, hidden=everything).content))
            return ExitCode.DONE
        last = None
        whole_log = not number  # then one pass over all turns, else a look at the few shown ones
        numbers = turn_numbers(db, chosen.id) if whole_log else {}
        cleared = {clear.through: clear for clear in clears_in(db, chosen.id)}
        hidden = messages.hidden() if everything and whole_log else frozenset()
        show_check = partial(print_check, as_json=as_json, killed=partial(was_killed, root, db))
        between = Between(db, chosen, whole=whole_log, undone=everything, running=not follow, show=show_check)
        for message in messages.newest(number, hidden=everything):
            turn = numbers.get(message.turn_id) if message.turn_id else None
            undone = message.id in hidden
            if not whole_log:
                turn = number_of(db, chosen.id, message.turn_id) if message.turn_id else None
                undone = everything and messages.is_hidden(message.id)
            between.before(message, turn)
            shown = message if as_json else in_words(db, chosen, message)
            print_message(shown, turn, undone=undone, as_json=as_json, team=place.team)
            print_clear(cleared.get(message.id), as_json=as_json)
            last = message
        between.rest()
        if not as_json:
            for line in queue_lines(root, db, chosen, place.team):
                note(line)
        if follower is None:
            return ExitCode.DONE
        follower.shown = last.id if last else None
        return follow_log(follower, place.team, as_json=as_json)


def in_words(db: Database, session: Session, message: ConversationMessage) -> ConversationMessage:
    """Return the message, with the JSON of a process put in words."""
    if message.turn_id is None or (part := part_of(db, message.turn_id)) is None:
        return message
    from teamchat.core.engine.processes import words

    process = (
        db.the(process_of, "SELECT process FROM sessions WHERE id = ?", session.id) if part.role == "planner" else None
    )
    workers = words.workers_of(process, message.id)
    return replace(message, content=words.in_words(part, message.speaker.role_name, message.content, workers))


class Between:
    """The checks of a session between its messages, each shown before the first message that was said after it.

    Only those behind the first message are read unless the `whole` log is shown. `undone` ones may be among them, and
    one that is `running`.
    """

    def __init__(
        self,
        db: Database,
        session: Session,
        *,
        whole: bool,
        undone: bool,
        running: bool,
        show: Callable[[CheckRecord], None],
    ) -> None:
        self._db, self._session, self._whole, self._show = db, session, whole, show
        self._undone, self._running = undone, running
        self._checks: Iterator[CheckRecord] | None = None
        self._next: CheckRecord | None = None

    def before(self, message: ConversationMessage, turn: int | None) -> None:
        """Show the checks that ran before a message, which the turn of that number wrote if there is one."""
        if self._checks is None:
            if self._whole:
                self._begin(every_check(self._db, self._session.id))
            else:
                newest = every_check(self._db, self._session.id, newest_first=True)
                since = takewhile(lambda check: not ran_before(check, turn, message.timestamp), newest)
                self._begin(reversed(list(since)))
        while self._next is not None and ran_before(self._next, turn, message.timestamp):
            self._step()

    def rest(self) -> None:
        """Show the checks that ran after the last message."""
        if self._checks is None:  # there is no message
            self._begin(every_check(self._db, self._session.id))
        while self._next is not None:
            self._step()

    def _begin(self, checks: Iterator[CheckRecord]) -> None:
        self._checks = (
            check
            for check in checks
            if (self._undone or check.undone is None) and (self._running or check.status != "running")
        )
        self._next = next(self._checks, None)

    def _step(self) -> None:
        assert self._checks is not None
        assert self._next is not None
        self._show(self._next)
        self._next = next(self._checks, None)


def was_killed(root: Path, db: Database, check: CheckRecord) -> bool:
    """Return whether the store says that the check runs although teamchat was killed meanwhile."""
    return check.status == "running" and check in abandoned(
        root, check.session, lambda: running_checks(db, check.session)
    )


def print_check(
    check: CheckRecord,
    *,
    as_json: bool,
    among_notes: bool = False,
    killed: Callable[[CheckRecord], bool] = lambda _: False,
) -> None:
    """Print the line of a check; at a terminal the same as while it ran. `killed` finds checks that nothing runs."""
    from teamchat.cli.output.checks import check_line

    undone = check.undone is not None
    if as_json:
        from teamchat.cli.output.jsonl import print_line
        from teamchat.core.turn.lines import CheckFinishedLine, CheckStartedLine, check_fields

        line = CheckFinishedLine if check.result else CheckStartedLine
        print_line(line(**check_fields(check), hidden=undone))
        return
    notes = ["undone"] if undone else []
    abandoned = killed(check)
    lines = [", ".join([check_line(check, abandoned=abandoned), *notes])]
    if sys.stdout.isatty() and (look := look_of(os.environ)).styles:
        from teamchat.cli.output.terminal.reading import check_lines
        from teamchat.cli.running.showing import terminal_width

        lines = check_lines(check, notes, terminal_width(), look, abandoned=abandoned)
        if among_notes:
            print("\n".join(["", *lines]), flush=True)
            return
    print("\n".join([*lines, ""]), flush=True)


def print_clear(clear: Clear | None, *, as_json: bool) -> None:
    """Print that prompts begin after the message before, if they do."""
    if clear is None:
        return
    from teamchat.runners.untrusted.json import one_line

    if as_json:
        from teamchat.cli.output.jsonl import write_line

        write_line("cleared", after=clear.through, task=clear.task)
        return
    task = f"; the task was: {one_line(clear.task, 60)}" if clear.task else ""
    print(printable(f"cleared {moment(clear.at)}: prompts begin here{task}") + "\n", flush=True)


def print_message(
    message: ConversationMessage,
    turn: int | None,
    *,
    undone: bool,
    as_json: bool,
    team: str | None = None,
    among_notes: bool = False,
) -> None:
    """Print a message under its id, its speaker and those whom it calls; at a terminal rendered, in their colours."""
    if as_json:
        from teamchat.cli.output.jsonl import print_line
        from teamchat.core.turn.lines import message_line

        print_line(message_line(message, turn=turn, hidden=undone))
        return

    back, whole_text = ("undone", "--all --full") if undone else ("", "--full")
    whole = placed_here(f"teamchat log {whole_text} {message.id}") if sys.stdout.isatty() else ""
    if sys.stdout.isatty() and (look := look_of(os.environ)).styles:
        from teamchat.cli.output.terminal.reading import message_lines

        notes = [*([f"turn {turn}"] if turn else []), *([back] if back else [])]
        from teamchat.cli.running.showing import terminal_width

        lines = message_lines(message, notes, whole, team_names(team), terminal_width(), look)
        print("\n".join(["", *lines] if among_notes else [*lines, ""]), flush=True)
        return
    to = f" -> {', '.join(message.routing.resolved_addressees)}" if message.routing.resolved_addressees else ""
    head = f"{message.id} {name_of(message)}{to}" + (f" (turn {turn})" if turn else "")
    write_block(f"{head}, {back}" if back else head, message.content, whole)


@cache
def team_names(team: str | None) -> tuple[str, ...]:
    """Name the members of the team here; none if its file cannot be read."""
    try:
        return tuple(member.name for member in find_team(team).members)
    except TeamchatError:
        return ()


def follow_log(follower: Follower, team: str | None, *, as_json: bool) -> int:
    """Print each further message in the same way, and notes on turns."""
    from teamchat.cli.output.plain import PlainOutput
    from teamchat.cli.running.watching import show_as_it_happens

    def show(event: MessageStored | Replied) -> None:
        turn = event.turn.number if isinstance(event, Replied) else None
        shown = event.message if as_json else in_words(follower.db, follower.session, event.message)
        print_message(shown, turn, undone=False, as_json=as_json, team=team, among_notes=True)

    def output_of() -> Output:
        check = partial(print_check, as_json=as_json, among_notes=True)
        return EachMessage(show, Silent() if as_json else PlainOutput(), check)

    return show_as_it_happens(follower, output_of)


def queue_lines(root: Path, db: Database, session: Session, team: str | None) -> Iterator[str]:
    """Write who is running and who is waiting, with callers that have left the `team`.

    If teamchat was killed, also the command that continues the conversation.
    """

    def running() -> list[Route]:
        return [route for route in open_routes(db, session.id) if route.status is RouteStatus.RUNNING]

    left = abandoned(root, session.id, running)
    how = how_routes_were_left(db, session) if left else {}
    routes = list(open_routes(db, session.id))
    gone = who_left({route.by for route in routes}, session, team)
    for route in routes:
        where = f" ({route.by} is no longer in the team)" if route.by in gone else ""
        answered = ", whose reply is kept" if route.part and route.answer is not None else ""
        yield f"{how[route.number] if route in left else route.status}: {called(route)}{where}{answered}"
    on_hold = next((route for route in routes if route.part and route.status is RouteStatus.HELD), None)
    if on_hold and on_hold.part:
        yield f"the {kind_in_words(on_hold.part.kind)} of {on_hold.request} is on hold"
        yield f"try: {placed_here('teamchat resume')}"
        yield f"try: {placed_here('teamchat resume --drop')}"
    elif left:
        yield f"try: {placed_here('teamchat resume')}"

    for unsent in handed_over_to(db, session.id):
        yield f"queued, not sent yet: {quoted(unsent.text)}"
    yield from result_lines(db, session)


def result_lines(db: Database, session: Session) -> Iterator[str]:
    """Write the result of the process that ended the conversation, if one did."""
    process = db.the(process_of, "SELECT process FROM sessions WHERE id = ?", session.id)
    if process is None or not process.over:
        return
    from teamchat.cli.output.process_report import report_lines
    from teamchat.cli.running.showing import wrap_width

    strategy = strategy_of(process.kind)
    lines, width = map(printable, report_lines(strategy.report(process))), wrap_width()
    if width is None:
        yield from lines
    else:
        from teamchat.cli.output.terminal.result import fitted

        yield from fitted(lines, width - MARK)
    if hint := strategy.next_command(process):
        yield f"try: {placed_here(hint)}"


def how_routes_were_left(db: Database, session: Session) -> Mapping[int | None, str]:
    """Say what became of turns that no process runs any more, by the numbers of their routes."""
    from teamchat.core.conversation.recovery import how_left

    left = {turn.route: how_left(db, turn) for turn in running_turns(db, session.id)}
    return defaultdict(lambda: KILLED, left)  # a route runs before its turn begins


def who_left(names: set[str], session: Session, team: str | None) -> set[str]:
    """Find the names that no member has. Empty if the team file cannot be read, or is another session's."""
    try:
        current_team = find_team(team) if names else None
    except TeamchatError:
        return set()
    if current_team is None or current_team.name != session.team:
        return set()
    there = {fold(member.name) for member in current_team.members}
    return {name for name in names if fold(name) not in there}
