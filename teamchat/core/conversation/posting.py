"""Posting a message: a person's message or a member's reply is stored with the calls and todos that it asks for.

Everything happens in the caller's transaction. Each message comes with the event that the engine decides on.

Loop detection: two agents that only agree with each other cost money and produce nothing. Work that a turn leaves in
the files is progress, even if its words are those of the turn before.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import partial
from typing import Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from teamchat.core.context.conversation_view import TASK_CUT
from teamchat.core.conversation.addressing import (
    Addressed,
    AddressedReply,
    Prompts,
    address_reply,
    not_followed,
    speaker_of,
)
from teamchat.core.conversation.waiting import waiting_in
from teamchat.core.engine.events import (
    Action,
    Dropped,
    HumanSpoke,
    Moved,
    NotCalled,
    NotDropped,
    PutAside,
    Queued,
    Reassigned,
    Refused,
    TurnEnded,
)
from teamchat.core.engine.state import LastSaid, Route
from teamchat.core.engine.strategies import strategy_of
from teamchat.core.engine.workflow import Fault, Finding, Kind, Part, Process
from teamchat.core.messages import ConversationMessage, NewMessage, Routing
from teamchat.core.receipt import Outcome
from teamchat.core.routing.requests import RouteRequest
from teamchat.core.routing.todos import Noted
from teamchat.core.store.images import Image, put_images
from teamchat.core.store.routes import last_process
from teamchat.core.store.todos import note_todos
from teamchat.core.store.turns import Turn, changed_places, turns_in_places
from teamchat.core.team.team import Member
from teamchat.core.turn.attempts import Answer
from teamchat.core.turn.run import Run
from teamchat.core.turn.run_events import MessageStored, Replied, TaskChanged, TodoChanged, Warned
from teamchat.core.turn.watching import in_thread
from teamchat.core.worktrees import any_made
from teamchat.patterns import regex
from teamchat.runners.agent_events import Text

LOOK_BACK = 24  # messages; a speaker's own last reply is looked for among these
Event = TypeVar("Event")


class Posted(Struct, Generic[Event], frozen=True):
    """A stored message, the engine's event for it, and the todos that it changed."""

    message: ConversationMessage
    event: Event
    noted: Noted


class Parsed(Struct, frozen=True):
    """A parsed reply: its requests, whether it says something `new`, and the finding of a process in it."""

    member: Member
    text: str
    asks: AddressedReply
    new: bool
    finding: Finding | None = None


class Posting(Struct, frozen=True):
    """Posts the messages of one run."""

    run: Run

    def message(
        self,
        addressed: Addressed,
        images: Sequence[Image] = (),
        typed: int = 0,
        *,
        answers: bool = True,
        process: Process | None = None,
    ) -> Posted[HumanSpoke]:
        """Store a message with its images and task. A person typed the first `typed` characters.

        Without `answers` it leaves open a question that the person is asked, as an agent's message does. It may begin a
        `process`.
        """
        run, who = self.run, addressed.speaker
        before = _said_before(run.manager.get_current_message()) if addressed.wordless else None
        message = run.manager.add_message(
            NewMessage(
                addressed.text,
                who,
                Routing(addressed.names, addressed.markers),
                typed=typed if who.type == "human" else 0,
                pasted=addressed.pasted,
            )
        )
        put_images(run.db, run.session, message.id, images)
        if addressed.task is not None:
            run.manager.set_team_task(addressed.task)
        noted = note_todos(run.db, run.session, addressed.todos, who.role_name, message.id)
        answers = answers and not addressed.wordless and who.type == "human"
        if process and process.kind is Kind.UNTIL and run.machine.live:
            from teamchat.core.engine.processes.until_round import left_changed

            process = replace(process, earlier=left_changed(last_process(run.db, run.session)))
        spoke = HumanSpoke(
            run.machine.now(),
            message.id,
            who.role_name,
            addressed.requests,
            addressed.drops,
            answers=answers,
            process=process,
            before=before,
        )
        return Posted(message, spoke, noted)

    def parse(self, *replies: tuple[Member, str, Part | None, Prompts]) -> list[Parsed]:
        """Parse replies that are about to be stored one after the other, and warn of faults in them.

        Each comes with its part of a process, and with a function that gives its prompts.

        A large reply takes seconds, and longer when nobody reads the warnings, so this runs outside of a transaction.
        """
        parsed: list[Parsed] = []
        earlier = self._last_replies()
        for member, text, part, prompts in replies:
            asks = address_reply(text, self.run.team, member, prompts)
            for problem in asks.problems:
                self.run.emit(Warned(problem))
            new = not says_nothing_new(text, earlier, member.name, self.run.team.limits.similarity)
            finding = self._finding(member, text, part, asks) if part else None
            parsed.append(Parsed(member, text, asks, new, finding))
            earlier.insert(0, (member.name, text))
        return parsed

    def _finding(self, member: Member, text: str, part: Part, asks: AddressedReply) -> Finding | None:
        """Read the process's finding in a reply. Warns of a reply that lacks the form."""
        process = self.run.state.process
        if process is None:
            return None
        strategy = strategy_of(process.kind)
        if asks.repeated:
            from teamchat.core.routing.asides import blanked

            text = blanked(text, asks.repeated)
        finding = strategy.read(process, part, text, asks.requests)
        if isinstance(finding, Fault):
            warning = f"{member.name}'s reply lacks what was asked for: {finding.why}; {strategy.after_fault(part)}"
            self.run.emit(Warned(warning))
        return finding

    def worked(self, parsed: Parsed, route: Route, turn: Turn, outcome: Outcome | None) -> Parsed:
        """Add to a reply the files that its member changed, if a process has it work apart from all others.

        A reply whose turn left files in a new state says something new, whatever its words. `outcome` is
        that of the `turn`, which may not be stored yet.
        """
        if self._left_new_tree(outcome):
            parsed = replace(parsed, new=True)
        if route.part is None or not (route.part.apart or route.part.kind == Kind.UNTIL):
            return parsed
        if route.part.kind == Kind.UNTIL:
            from teamchat.core.conversation.checking import with_trees

            return replace(parsed, finding=with_trees(self.run.db, self.run.session, parsed.finding, turn, outcome))
        from teamchat.core.conversation.processes import work_of

        return replace(parsed, finding=work_of(self.run.db, self.run.session, turn, outcome))

    def _left_new_tree(self, outcome: Outcome | None) -> bool:
        changes = outcome.known_changes if outcome else None
        if changes is None:
            return False
        seen, after = self.run.seen_trees, (changes.top, changes.after)
        seen.add((changes.top, changes.before))
        new = after not in seen
        seen.add(after)
        return new

    def reply(self, parsed: Parsed, turn: Turn, route: Route, *, asked: bool = False) -> Posted[TurnEnded]:
        """Store a member's reply to the message of `route`.

        If its agent `asked` its user something, the person that the turn serves is called before all others.
        """
        run, member = self.run, parsed.member
        asks, finding, part = parsed.asks, parsed.finding, route.part
        if asked and (served := self._served(route)):
            asks = with_first_call(served, asks)
            if part and part.handover:  # whom it asks is one of its calls
                finding = self._finding(member, parsed.text, part, asks)
        names = asks.names if part is None or part.handover else ()
        message = run.manager.add_message(
            NewMessage(
                parsed.text,
                speaker_of(member),
                Routing(names, asks.markers),
                turn_id=turn.id,
                agent=turn.agent,
                stands_for=None if member.name == route.target else route.target,
                pasted=asks.repeated,
            )
        )
        noted = note_todos(run.db, run.session, asks.todos, member.name, message.id)
        ended = TurnEnded(
            run.machine.now(),
            route.number,
            message.id,
            asks.requests,
            asks.drops,
            speaker=member.name,
            new=parsed.new,
            finding=finding,
            words=asks.words,
        )
        return Posted(message, ended, noted)

    def _served(self, route: Route) -> str | None:
        """Return the person whose message the route serves, or the team's first person; None without people."""
        asking = self.run.manager.get_message(route.request).speaker.role_name
        people = [human.name for human in self.run.team.humans]
        return asking if asking in people else next(iter(people), None)

    def _last_replies(self) -> list[tuple[str, str]]:
        """List the replies since the last message that is not a reply, newest first, as (speaker, text)."""
        replies: list[tuple[str, str]] = []
        for message in reversed(self.run.manager.get_latest_messages(LOOK_BACK)):
            if message.turn_id is None:
                break
            replies.append((message.speaker.role_name, message.content))
        return replies


def _said_before(newest: ConversationMessage | None) -> LastSaid | None:
    """Return the newest message with words, which those whom a message of markers only calls answer."""
    if newest is None:
        return None
    by = (newest.speaker.role_name, newest.stands_for) if newest.speaker.type == "ai" else ()
    return LastSaid((), newest.id, tuple(filter(None, by)))


def with_first_call(name: str, asks: AddressedReply) -> AddressedReply:
    """Return the reply with a call of `name` before all others."""
    others = (request for request in asks.requests if request.target != name)
    return replace(asks, requests=(RouteRequest(name), *others))


WORDS = regex(r"[^\W\d_]+")
DONE = regex(
    r"\b(?:(?:all|we(?:'re| are)|i(?:'m| am)|it(?:'s| is)) done|nothing (?:more|else|further|left) to (?:add|do|say)|"
    r"no further (?:comments|questions|changes)|task (?:is )?complete|goodbye)\b",
    re.IGNORECASE,
)
SHORT = 400  # characters; a longer reply has something to say
PIECE = 3  # words
LONGEST = 200_000  # characters; comparing two larger texts takes seconds and hundreds of megabytes


def alike(one: str, other: str) -> float:
    """Measure how similar two texts are, from 0 to 1: the share of common three-word pieces. Digits do not count.

    Two long texts are either equal (1) or different (0).
    """
    if max(len(one), len(other)) > LONGEST:
        return float(one == other)
    pieces, others = _pieces(one), _pieces(other)
    return len(pieces & others) / len(pieces | others) if pieces or others else 1.0


def _pieces(text: str) -> set[tuple[str, ...]]:
    words = WORDS.findall(text.casefold())
    return {tuple(words[index : index + PIECE]) for index in range(max(len(words) - PIECE + 1, 1))} if words else set()


def says_done(text: str) -> bool:
    """Whether a short reply says that nothing is left to do."""
    return len(text) <= SHORT and DONE.search(text) is not None


def says_nothing_new(text: str, before: list[tuple[str, str]], speaker: str, similarity: float) -> bool:
    """Whether a reply repeats itself; `before` holds the agents' earlier replies as (speaker, text), newest first.

    It says nothing new when it is similar to this speaker's own last reply, or when it and the last reply of another
    speaker both say that they are done. `similarity` 0 switches the check off.
    """
    if similarity <= 0 or not before:
        return False
    own = next((said for name, said in before if name == speaker), None)
    if own is not None and alike(text, own) >= similarity:
        return True
    name, last = before[0]
    return name != speaker and says_done(text) and says_done(last)


class Teller(Struct):
    """Tells the listener of one run. `apart` are the members whose changes in worktrees were told."""

    run: Run
    apart: set[str] = field(default_factory=set)

    def stored(self, addressed: Addressed, posted: Posted[HumanSpoke], *, by_others: bool = False) -> None:
        """Tell that a person's message is stored; `by_others`: another process has handed it over."""
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

    def heard(self, message: str) -> None:
        """Tell who reads a person's message that calls nobody while a process runs."""
        process = self.run.state.process
        if process and any(done.message == message for done in process.unheard):
            self.run.emit(Warned(f"{process.do} gets {message} before its next turn"))

    def reply(self, turn: Turn, reply: Posted[TurnEnded], route: Route) -> None:
        """Tell that a member's reply is stored as a message."""
        self.run.tally.add_reply(reply.message, route.request)
        self.run.emit(Replied(turn, reply.message, route.part))
        self._todos(reply.noted, f"{reply.message.speaker.role_name}: ")

    def not_followed(self, answer: Answer) -> None:
        """Warn that an agent called others before the text that is its reply: a CLI gives only the last text."""
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
        """Tell what the engine did with the queue; a final action is told by what follows from it."""
        emit = self.run.emit
        match action:
            case Queued() | Moved() | Refused():
                emit(action)
            case Dropped(route=route, left=left):
                if left:
                    emit(Warned(f"{route.target}, whom {route.by} asked, is no longer in the team"))
                process, failure = self.run.state.process, self.run.tally.failures.get(route.number)
                if route.part and process and process.quorum and failure:
                    emit(Warned(f"{failure.reason}; it is decided without {route.target}", route.number))
                emit(action)
            case NotDropped(route=route, agent=agent):
                emit(Warned(f"{agent} cannot drop {route.target}, whom {route.by} called in {route.parent}"))
            case NotCalled(target=target, by=by, message=message, process=process):
                why = "the process decides who speaks" if process else "--only"
                emit(Warned(f"{target}, whom {by} calls in {message}, is not called ({why})"))
            case Reassigned(route=route, failed=failed):
                failure, part = self.run.tally.failures.get(route.number), route.part
                reason = failure.reason if failure else f"{failed} failed"
                which = f"subtask {part.number} of {part.total}: " if part and part.number else ""
                emit(Warned(f"{which}{reason}; {route.target} does it", route.number))

    def aside(self, actions: Sequence[Action]) -> None:
        """Report the calls that a person's message has set aside."""
        self.waits("set aside", [action.route.number for action in actions if isinstance(action, PutAside)])

    def waits(self, how: str, routes: Collection[int]) -> None:
        """Tell that these routes wait, by the message that called, with the commands that run and drop it."""
        for waiting in waiting_in(self.run.db, self.run.session) if routes else ():
            if not set(waiting.numbers).isdisjoint(routes):
                self.run.emit(Warned(f"{how}: {waiting}"))
                self.run.emit(Warned(waiting.commands))

    async def not_merged(self, *turns: Turn) -> None:
        """Tell once for each member that the changes in its worktree are not in the user's files."""
        run = self.run
        if not (run.machine.live and any_made(run.trees.folder)):
            return
        from teamchat.core.conversation.side_by_side import not_merged

        for turn in turns:
            warning = None
            if turn.member not in self.apart:
                warning = await in_thread(partial(not_merged, run, turn))
            if warning:
                self.apart.add(turn.member)
                run.emit(Warned(warning, turn.route, of_disk=True))

    async def to_merge(self) -> None:
        """List the changes to merge at the end of a process; the pick of a judge does that itself."""
        run = self.run
        process = run.state.process if run.tally.process else None
        if process is None or process.kind is Kind.BEST or not (run.machine.live and any_made(run.trees.folder)):
            return
        if process.kind is Kind.UNTIL and process.over and strategy_of(process.kind).undecided(process):
            return  # red work is named by its worktree alone
        from teamchat.core.conversation.side_by_side import to_merge

        places = turns_in_places(run.db, run.session)
        changed = changed_places(run.db, run.session, process.request)
        if warning := await in_thread(partial(to_merge, run, process, {name: places[name] for name in changed})):
            run.emit(Warned(warning, of_disk=True))
