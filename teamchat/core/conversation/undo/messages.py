"""Undo and redo of the conversation: its messages, queue, counters, todo list and task. Files are not touched here.

Undone messages keep their ids, and no prompt has a word of them: history and todo list leave them out, summaries that
cover them no longer hold, and a vendor session that remembers them is not resumed. Lessons stay: a person has accepted
them, and often they say what went wrong. Tokens and money stay spent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain

from msgspec import Struct

from teamchat.core.engine.decide import decide
from teamchat.core.engine.events import Redone, Retargeted, Undone
from teamchat.core.engine.state import Route, RouteStatus, Rules, State
from teamchat.core.errors import UnknownName, UsageError
from teamchat.core.messages import ConversationMessage
from teamchat.core.store.checks import CheckRecord, checks_behind, mark_checks_redone, mark_checks_undone
from teamchat.core.store.database import Database
from teamchat.core.store.lessons import Lesson, lessons_since
from teamchat.core.store.lineage import hidden_reply, hide_messages, show_messages
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.routes import load_state
from teamchat.core.store.sessions import Session, name_of
from teamchat.core.store.summaries import Clear, last_clear, redo_clears, undo_clear, undo_clears_from
from teamchat.core.store.texts import Packed, pack
from teamchat.core.store.turns import (
    Before,
    Turn,
    before_turn,
    deliver_turn,
    find_turn,
    get_turn,
    keep_reply,
    last_turn_to_undo,
    mark_redone,
    mark_undone,
    running_turns,
    state_now,
    turns_from,
)
from teamchat.core.store.undos import Scope, Trees, Undo, begin_undo, last_undo, mark_undo, unfinished_undo
from teamchat.core.text.commands import saying
from teamchat.core.turn.run import Run


class UndoPlan(Struct, frozen=True):
    """The plan of an undo, which reverts everything from the beginning of turn `first` on."""

    session: Session
    first: int
    turns: tuple[Turn, ...]
    """The turns that are undone, in order, side turns among them."""
    checks: tuple[CheckRecord, ...]
    """The checks that ran since, whose changes go back, too."""
    group: tuple[int, ...]
    """The numbers of the turns that began from one state and are undone together; empty for a turn alone."""
    messages: tuple[ConversationMessage, ...]
    """The messages that are hidden, in order."""
    before: Before
    """The state that comes back."""
    answered: Mapping[int, str]
    """The message that each undone turn answered and will answer again, by the number of its route."""
    queue: tuple[Route, ...]
    """The queue after the undo: the calls of the undone turns are on hold in it."""
    again: tuple[Route, ...]
    """The calls that a retry runs: calls of the undone turns, and calls of their groups without a reply."""
    task: str | None
    """The task as it was."""
    task_changes: bool
    """Whether `task` differs from the task now."""
    lessons: tuple[Lesson, ...]
    """The lessons that were learned from the session since, and that stay."""

    @property
    def why_together(self) -> str | None:
        """Why more turns are undone than were named; None for a turn alone."""
        if not self.group:
            return None
        *others, last = map(str, self.group)
        return f"turns {', '.join(others)} and {last} are of one group, and are undone together"


def plan_undo(db: Database, session: Session, rules: Rules, turn: int | None = None) -> UndoPlan:
    """Plan what an undo from that turn on reverts, by default from the last turn. Nothing is changed.

    Raises `UnknownName` for a turn that there is not, and `UsageError` while a turn runs and for a turn that is undone
    already, is not part of the conversation, or was run by an older teamchat.
    """
    for running in running_turns(db, session.id):
        raise UsageError(f"turn {running.number} ({running.member}) runs", "teamchat stop")
    named = _turn(db, session, turn)
    before = before_turn(db, named)
    if before is None:
        raise UsageError(f"turn {named.number} was run by an older teamchat, which kept nothing to undo it by")
    turns = tuple(turns_from(db, session.id, before.first))
    messages = tuple(SqliteLog(db, session.id).after(before.through))
    answered = _answered(turns, messages)
    state, _ = decide(load_state(db, session.id, rules), Undone(turns[0].started_at, before.state, answered))
    together = [undone.number for undone in turns if undone.route is not None and _begins(db, undone) == before.first]
    return UndoPlan(
        session=session,
        first=before.first,
        turns=turns,
        checks=tuple(checks_behind(db, session.id, before.first)),
        group=tuple(together) if len(together) > 1 else (),
        messages=messages,
        before=before,
        answered=answered,
        queue=state.queue,
        again=tuple(_again(state, {undone.route for undone in turns})),
        task=before.task,
        task_changes=before.task != SqliteLog(db, session.id).team_task,
        lessons=tuple(lessons_since(db, session.name, turns[0].started_at)),
    )


def _answered(turns: Iterable[Turn], hidden: Iterable[ConversationMessage]) -> dict[int, str]:
    """Map the routes of undone turns to the messages that they answered and that are not undone with them."""
    gone = {message.id for message in hidden}
    return {turn.route: turn.setup.answers for turn in turns if turn.route and turn.setup.answers not in gone}


def _again(state: State, undone: Collection[int | None]) -> Iterator[Route]:
    run = {mate.number for route in state.queue if route.number in undone for mate in state.mates(route)}
    for route in state.queue:
        if route.number in run and route.status is RouteStatus.HELD and route.answer is None:
            yield route


def _begins(db: Database, turn: Turn) -> int | None:
    """Return the number of the turn with which a turn's group began; its own, if it is alone."""
    before = before_turn(db, turn)
    return before.first if before else None


def _turn(db: Database, session: Session, number: int | None) -> Turn:
    if number is None:
        last = last_turn_to_undo(db, session.id)
        if last is None:
            raise UsageError(f"there is no turn to undo in session {session.name}", "teamchat log")
        return last
    turn = find_turn(db, session.id, number)
    if turn is None:
        raise UnknownName(f"session {session.name} has no turn {number}", "teamchat log")
    if turn.undone is not None:
        raise UsageError(f"turn {number} is undone already", "teamchat log --all")
    if turn.route is None:
        raise UsageError(
            f"turn {number} is no part of the conversation ({turn.setup.purpose}): there is nothing to undo"
        )
    return turn


def start_undo(run: Run, plan: UndoPlan, scope: Scope, trees: Trees) -> Undo:
    """Store that an undo begins. A killed one is found by `unfinished_undo`, and completed by running it again."""
    now = state_now(run.db, run.session, run.state, _next_turn(run))
    return begin_undo(run.db, run.session, scope, plan.first, plan.before, now, trees)


def _next_turn(run: Run) -> int:
    last = find_turn(run.db, run.session)
    return last.number + 1 if last else 1


def undo_conversation(run: Run, plan: UndoPlan, undo: Undo | None = None) -> Undo:
    """Undo what the plan says, in one transaction. `undo` is one that has begun. Raises `StoreError`."""
    answers = list(_kept_again(run.db, plan))
    with run.transaction():
        undo = undo or start_undo(run, plan, "conversation", {})
        hide_messages(run.db, run.session, (message.id for message in plan.messages), undo.id)
        mark_undone(run.db, plan.turns, undo.id)
        mark_checks_undone(run.db, plan.checks, undo.id)
        undo_clears_from(run.db, run.session, plan.first, undo.id)
        for turn, text in answers:
            keep_reply(run.db, turn, text)
        run.manager.set_team_task(plan.task)
        run.decide(Undone(run.machine.now(), plan.before.state, plan.answered))
        return mark_undo(run.db, undo, "done")


def _kept_again(db: Database, plan: UndoPlan) -> Iterator[tuple[Turn, Packed]]:
    """Find earlier turns whose replies became messages since, with their replies: their groups are no longer over."""
    hidden = {message.id: message for message in plan.messages}
    for route in plan.before.queue:
        turn = get_turn(db, route.answer) if route.answer is not None else None
        if turn and turn.outcome and turn.outcome.reply in hidden:
            yield turn, pack(hidden[turn.outcome.reply].content)


def undo_to_redo(db: Database, session: Session) -> Undo:
    """Find the newest undo of the session, which a redo reverts.

    Raises `UsageError` if there is no undo, if one was interrupted, and if something was said or run since.
    """
    if begun := unfinished_undo(db, session.id):
        raise UsageError(f"the undo of turn {begun.turn} was interrupted; undo that turn again to complete it")
    undo = last_undo(db, session.id)
    if undo is None:
        raise UsageError(f"there is nothing to redo in session {session.name}", "teamchat log")
    ran = (f"turn {turn.number} ({turn.member}) ran" for turn in turns_from(db, session.id, undo.before.first))
    said = (f"{message.id} was said" for message in SqliteLog(db, session.id).after(undo.before.through))
    if since := next(chain(ran, said), None):
        raise UsageError(f"{since} since turn {undo.turn} was undone, so that the undo stays", "teamchat log --all")
    return undo


def redo_conversation(run: Run, undo: Undo) -> Undo:
    """Restore what an undo has reverted, in one transaction. A task that was set since stays.

    Raises `StoreError`.
    """
    with run.transaction():
        for route in run.state.queue:
            if route.answer is not None and (reply := hidden_reply(run.db, undo.id, route.answer)):
                deliver_turn(run.db, get_turn(run.db, route.answer), reply)
        show_messages(run.db, undo.id)
        mark_redone(run.db, undo.id)
        mark_checks_redone(run.db, undo.id)
        redo_clears(run.db, run.session, undo.id)
        if run.manager.get_team_task() == undo.task:
            run.manager.set_team_task(undo.before.task)
        run.decide(Redone(run.machine.now(), undo.before.state))
        return mark_undo(run.db, undo, "redone")


def clear_to_undo(run: Run) -> Clear | None:
    """Find the clear that the next undo takes back: nothing was said or run since."""
    clear = last_clear(run.db, run.session)
    log = SqliteLog(run.db, run.session)
    newest = log.latest()
    if clear is None or newest is None or any(log.after(log.place(clear.through))):
        return None
    ran = next(turns_from(run.db, run.session, clear.turn + 1), None)
    return clear if ran is None else None


def take_back_clear(run: Run, clear: Clear) -> None:
    """Have prompts begin where they did before, with the task, unless another one was set since."""
    with run.transaction():
        undo_clear(run.db, clear)
        if clear.task is not None and run.manager.get_team_task() is None:
            run.manager.set_team_task(clear.task)


def check_may_clear(run: Run) -> None:
    """Raise `UsageError` while calls wait, and where nothing was said yet, or since the last clear."""
    if run.manager.get_latest_message() is None:
        raise UsageError(f"nothing was said in session {name_of(run.db, run.session)} yet", saying())
    if run.state.queue:
        names = ", ".join(dict.fromkeys(route.target for route in run.state.queue))
        raise UsageError(
            f"calls wait in session {name_of(run.db, run.session)}: {names}", "teamchat resume\nteamchat resume --drop"
        )
    if clear_to_undo(run):
        has_task = run.manager.get_team_task() is not None
        raise UsageError("nothing was said since it was cleared", "teamchat task --clear" if has_task else None)


def give_call(run: Run, number: int, name: str) -> Route:
    """Give the held call of that number to the member called `name`. Its receipt says so.

    Raises `UnknownName` for a member that there is not, and `UsageError` for a call that cannot be given to it.
    """
    member = run.team.member(name)
    route = next((route for route in run.state.queue if route.number == number), None)
    if route is None or route.status is not RouteStatus.HELD or route.answer is not None:
        raise UsageError("that call is not on hold", "teamchat log")
    if member.type == "human":
        raise UsageError(f"{member.name} is a person; a call can be given to an agent only", "teamchat team")
    check_not_called(run.state.queue, route, member.name)
    if member.name != route.target:
        run.step(Retargeted(run.machine.now(), number, member.name))
    return run.state.route(number)


def check_not_called(queue: Iterable[Route], route: Route, name: str) -> None:
    """Raise `UsageError` where the message that made the call of `route` calls the member `name` as well."""
    if any(other.target == name for other in queue if other.parent == route.parent and other.number != route.number):
        raise UsageError(f"{name} is called by {route.parent} already", saying("--to", name))
