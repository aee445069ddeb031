"""Tells what the engine decides, and what is stored, as the events of a run."""

from __future__ import annotations

from functools import partial

from msgspec import Struct, field

from teamchat.core.context.context_manager import TASK_CUT
from teamchat.core.conversation.addressing import Addressed, not_followed
from teamchat.core.conversation.posting import Posted
from teamchat.core.engine.actions import (
    Action,
    Dropped,
    Moved,
    NotCalled,
    NotDropped,
    Queued,
    Reassigned,
    Refused,
)
from teamchat.core.engine.events import HumanSpoke, TurnEnded
from teamchat.core.engine.state import Route
from teamchat.core.routing.todos import Noted
from teamchat.core.store.turns import Turn
from teamchat.core.turn.attempts import Answer
from teamchat.core.turn.events import (
    MessageStored,
    ProcessMoved,
    Replied,
    RouteDropped,
    RouteQueued,
    RouteRefused,
    TaskChanged,
    TodoChanged,
    Warned,
)
from teamchat.core.turn.run import Run
from teamchat.core.turn.watching import in_thread
from teamchat.core.worktrees import any_made
from teamchat.runners.events import Text


class Teller(Struct):
    """Tells the listener of one run. `apart` are the members whose changes in worktrees were told."""

    run: Run
    apart: set[str] = field(default_factory=set)

    def stored(self, addressed: Addressed, posted: Posted[HumanSpoke], *, by_others: bool = False) -> None:
        """A person's message is stored. Another process has handed over one that is `by_others`."""
        run = self.run
        task = run.manager.get_team_task() if addressed.task is not None else None
        if task != addressed.task:
            run.emit(Warned(TASK_CUT))
        if by_others:
            run.tally.of_others.add(posted.message.id)
        else:
            run.tally.said = posted.message.id
        run.emit(MessageStored(posted.message))
        if task is not None:
            run.emit(TaskChanged(task))
        self._todos(posted.noted)

    def reply(self, turn: Turn, reply: Posted[TurnEnded], route: Route) -> None:
        """A member's reply is stored as a message."""
        self.run.tally.add_reply(reply.message, route.request)
        self.run.emit(Replied(turn, reply.message))
        self._todos(reply.noted, f"{reply.message.speaker.role_name}: ")

    def not_followed(self, answer: Answer) -> None:
        """An agent calls others before the text that is its reply: a CLI gives the last one alone."""
        if answer.failed or answer.route.part:
            return
        finished, member = answer.finished, answer.member
        earlier = (timed.event.text for timed in finished.events if isinstance(timed.event, Text))
        if names := not_followed(earlier, finished.text, self.run.team, member):
            called = f"{member.name} calls {', '.join(names)} in an earlier message of its turn"
            self.run.emit(Warned(f"{called}, and not in its reply: nobody was called by that"))

    def _todos(self, noted: Noted, who: str = "") -> None:
        for change in noted.changes:
            self.run.emit(TodoChanged(change))
        for problem in noted.problems:
            self.run.emit(Warned(f"{who}{problem}"))

    def action(self, action: Action) -> None:
        """What the engine did with the queue; a final action is told by what follows from it."""
        emit = self.run.emit
        match action:
            case Queued(route=route):
                emit(RouteQueued(route))
            case Dropped(route=route, left=left):
                if left:
                    emit(Warned(f"{route.target}, whom {route.by} asked, is no longer in the team"))
                emit(RouteDropped(route))
            case NotDropped(route=route, agent=agent):
                emit(Warned(f"{agent} cannot drop {route.target}, whom {route.by} called in {route.parent}"))
            case NotCalled(target=target, by=by, message=message, process=process):
                why = "the process decides who speaks" if process else "--only"
                emit(Warned(f"{target}, whom {by} calls in {message}, is not called ({why})"))
            case Reassigned(route=route, failed=failed):
                self._reassigned(route, failed)
            case Moved(process=moved):
                emit(ProcessMoved(moved))
            case Refused(route=route, limit=limit):
                emit(RouteRefused(route, limit))
            case _:
                pass

    def _reassigned(self, route: Route, failed: str) -> None:
        failure, part = self.run.tally.failures.get(route.number), route.part
        reason = failure.reason if failure else f"{failed} failed"
        which = f"subtask {part.number} of {part.total}: " if part and part.number else ""
        self.run.emit(Warned(f"{which}{reason}; {route.target} does it", route.number))

    async def not_merged(self, *turns: Turn) -> None:
        """Tell once for each member that the changes in its worktree are not in the user's files."""
        run = self.run
        if not (run.host.live and any_made(run.trees.folder)):
            return
        from teamchat.core.conversation.side_by_side import not_merged

        for turn in turns:
            told = None
            if turn.member not in self.apart:
                told = await in_thread(partial(not_merged, run, turn))
            if told:
                self.apart.add(turn.member)
                run.emit(Warned(told, turn.route, of_disk=True))
