"""One session while a command runs it: the needs of its turns, and the state that the engine decides on."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from teamchat.core.checkpoint.find import known_reason
from teamchat.core.checkpoint.paths import readable
from teamchat.core.context.conversation_view import ContextManager, manager_of
from teamchat.core.context.layers.sources import Compared, collector_of
from teamchat.core.engine.decide import decide
from teamchat.core.engine.events import Action, Dropped, Event, Paused, WorkBegan
from teamchat.core.engine.guards import guard
from teamchat.core.engine.state import UNBOUNDED, Bounds, Route, RouteStatus, Rules, State
from teamchat.core.engine.workflow import Kind
from teamchat.core.errors import AgentMissing, ExitCode, NoMessage, NotTrusted, TeamchatError, UsageError
from teamchat.core.messages import ConversationMessage, Span, Speaker
from teamchat.core.receipt import Outcome
from teamchat.core.store.database import Database
from teamchat.core.store.routes import load_state, save_state
from teamchat.core.store.sessions import fence_key, name_of
from teamchat.core.store.turns import Turn, find_turn, last_turn_of, turns_in_places
from teamchat.core.store.usage import used_meanwhile
from teamchat.core.team.programs import in_worktree
from teamchat.core.team.team import Member, Team
from teamchat.core.team.writers import may_write
from teamchat.core.turn.caller import VARIABLE, Caller, admit, find_caller
from teamchat.core.turn.live_pool import LivePool
from teamchat.core.turn.machine import Cooldowns, Machine, ReadyTurn
from teamchat.core.turn.run_events import ConversationEvent, RecordingFiles, Warned, spoken
from teamchat.core.turn.watching import in_thread, threadsafe
from teamchat.core.turn.work_trees import WorkTrees, owner_of, refs_of
from teamchat.core.worktrees import any_made, first_try
from teamchat.runners.agent_events import AgentEvent, Failure, FailureKind, Usage
from teamchat.runners.child.removal import remove
from teamchat.runners.child.supervisor import Stopper
from teamchat.runners.untrusted.file_changes import NoCheckpoint, WorkTree

if TYPE_CHECKING:
    from teamchat.core.turn.hosting import Hosting, HostPlace

DECIDED = Failure(FailureKind.STOPPED, "was stopped")  # the process is decided without the turn
RESUME = "teamchat resume"
SKIP = f"{RESUME} --skip"


class TurnFailure(Struct, frozen=True):
    """The reason why a turn has no reply.

    `repeats`: a resume fails again until a person has removed the reason.
    """

    code: ExitCode
    reason: str
    hint: str | None
    repeats: bool = False


def why_failed(turn: Turn, outcome: Outcome, failure: Failure) -> str:
    """Say why a turn has no reply. If its host disappeared, say what to do: nobody sees that from here."""
    ran = outcome.ran
    if ran and ran.gone:
        again = f"{RESUME} runs it again, --skip goes on without it"
        return f"{ran.host}: {ran.gone}; turn {turn.number} interrupted; {again}"
    return f"{turn.member} {failure.reason}"


class Tally(Struct):
    """The sums over the turns of one run. A sum with an unknown part is unknown."""

    turns: int = 0
    """The number of turns with a route."""
    text: str = ""
    """The last text of the run."""
    repeated: tuple[Span, ...] = ()
    """The parts of `text` where no marker counts."""
    denied: int | None = 0
    usage: Usage = field(default_factory=lambda: Usage(0, 0, 0, 0.0))
    failures: dict[int, TurnFailure] = field(default_factory=dict)
    process: bool = False
    """Whether the run began or continued a process."""
    routes: list[int] = field(default_factory=list)
    """The numbers of the routes that had a turn."""
    said: str | None = None
    """The last message that a person sent in this run."""
    of_others: set[str] = field(default_factory=set)
    """Messages that other processes handed over: replies to them are not results of this run."""

    def add_reply(self, reply: ConversationMessage, request: str | None = None) -> None:
        """Note the reply to the person's message `request`."""
        if request not in self.of_others:
            self.end_with(reply.content, reply.pasted)

    def end_with(self, text: str, repeated: tuple[Span, ...] = ()) -> None:
        """Note the last text of the run so far."""
        self.text, self.repeated = text, repeated

    def fail(self, route: Route, error: TeamchatError) -> None:
        """Note why the turn of a route could not begin."""
        self.failures[route.number] = TurnFailure(error.code, str(error), hint_for(error), repeats=_repeats(error))

    def fail_turn(self, turn: Turn, outcome: Outcome) -> None:
        """Note why the turn failed, if it did and had a route."""
        if outcome.failure and turn.route is not None:
            reason = why_failed(turn, outcome, outcome.failure)
            self.failures[turn.route] = TurnFailure(outcome.code, reason, outcome.failure.hint)

    def add(self, turn: Turn, outcome: Outcome) -> None:
        self.fail_turn(turn, outcome)
        if turn.route is not None:
            self.turns += 1
            self.routes.append(turn.route)
        self.denied = _plus(self.denied, None if outcome.denied is None else len(outcome.denied))
        used, more = self.usage, outcome.usage or Usage()
        self.usage = Usage(
            input_tokens=_plus(used.input_tokens, more.input_tokens),
            cached_tokens=_plus(used.cached_tokens, more.cached_tokens),
            output_tokens=_plus(used.output_tokens, more.output_tokens),
            cost_usd=None
            if used.cost_usd is None or more.cost_usd is None
            else round(used.cost_usd + more.cost_usd, 9),  # the same in whichever order a group's turns end
        )


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def hint_for(error: TeamchatError) -> str | None:
    """Return the command that repairs the error. A message that was undone is skipped: nobody can answer it."""
    return SKIP if isinstance(error, NoMessage) else error.hint


def _repeats(error: TeamchatError) -> bool:
    """Whether resuming fails again: no command repairs the program, the team file or the environment."""
    return isinstance(error, AgentMissing | NotTrusted | UsageError) and error.hint is None


class Hand(Struct):
    """The actions of a person at the prompt of a chat while members work. The threads of the chat share it."""

    held_back: set[int] = field(default_factory=set)
    """The numbers of kept messages that no run may send yet."""
    typed: set[int] = field(default_factory=set)
    """The numbers of messages that were typed in this chat."""
    stopping: float | None = None
    """The time of the person's last request to stop a turn that still runs, in seconds since 1970."""
    stopped: dict[tuple[int, int], float] = field(default_factory=dict)
    """The time of the request, for each session and route that it held.

    A message typed later in this chat sets the route aside.
    """

    def replaced_by(self, session: int, unsent: int, at: float) -> tuple[int, ...]:
        """Return the session's routes that the kept message with that number, typed at that time, sets aside."""
        if unsent not in self.typed:
            return ()
        return tuple(route for (of, route), stopped in self.stopped.items() if of == session and stopped <= at)


class Apart(Struct, frozen=True):
    """The members of the running group that have a worktree for it, and those with a place for each part."""

    worktrees: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()

    def gives_place(self, route: Route) -> bool:
        """Whether the turn of the route has a place of its own, beside others of its member."""
        return route.part is not None and route.part.place and route.target in self.places


NOBODY = Apart()


class Run:
    """Everything that the coordinator, the attempts and the side turns of one session share.

    - `team` is the loaded team, `db` the open store, `session` the number of a session in it.
    - `folder` is where running turns keep their output. It may be shared by all sessions of the store.
    - `emit` receives every event as it happens.
    - `stopper` ends the running turn when a stop is requested (Ctrl-C).
    - `machine` is the environment, clock and program starts of turns. A replay has one of a recording.
    - `manager` reads and stores the messages and makes the prompts. It belongs to `session`. By default it is made
      from the team's settings.
    - `cooldowns` remembers which agents met a rate limit. Without it none is avoided.
    - `hand`: a person types messages while members work (`chat`), which are sent between turns.
    - `takes_over`: other processes may hand messages over, which are sent in the same way.
    - `bounds` limit this run beyond the team file.
    - `lets_go`: turns on hosts that went on without this program are given up.
    - `person`: somebody sees what a turn waits for, and can end that.
    """

    def __init__(
        self,
        team: Team,
        db: Database,
        session: int,
        *,
        folder: Path,
        stopper: Stopper,
        emit: Callable[[ConversationEvent], None],
        machine: Machine | None = None,
        manager: ContextManager | None = None,
        cooldowns: Cooldowns | None = None,
        hand: Hand | None = None,
        takes_over: bool = False,
        bounds: Bounds = UNBOUNDED,
        person: bool = False,
        lets_go: bool = False,
    ) -> None:
        self.team, self.db, self.session, self.folder, self.stopper = team, db, session, folder, stopper
        self.emit, self.machine, self.cooldowns = emit, machine or Machine(), cooldowns
        self.hand, self.takes_over, self.person, self.lets_go = hand, takes_over, person, lets_go
        self.manager = manager or manager_of(team, db, session, window=bounds.window)
        self.tally, self.live = Tally(), LivePool()
        self.group: int | None = None  # The first turn of the running group.
        self.compared = Compared(self.team, self.db, session, live=self.machine.live)
        self.collector = self.machine.collected(collector_of(self.team, self.db, session, self.compared))
        self.trees = WorkTrees(folder.parent, refs_of(fence_key(db, session)), stopper)
        # The trees of files that turns of this run found and left, by the tops of their work trees.
        self.seen_trees: set[tuple[str, str]] = set()
        self._told_of_refused = False
        self.apart = NOBODY
        self.enough = False  # Whether the group's answers so far decide the process.
        self._stoppers: list[Stopper] = []
        self.at_once: int | None = None  # The number of turns of the running group at the same time.
        self.state: State = load_state(self.db, session, rules_of(self.team, bounds))

    @property
    def session_id(self) -> int:
        """The number of the session in the store."""
        return self.session

    @cached_property
    def caller(self) -> Caller | None:
        """The turns around this process, if an agent runs it; a replay runs in none."""
        return find_caller() if self.machine.live else None

    @cached_property
    def hosting(self) -> Hosting:
        """The hosts of members that work elsewhere."""
        from teamchat.core.turn.hosting import Hosting  # only a member with `host` needs it

        return Hosting(self.person)

    async def place(self, member: Member, route: Route | None = None) -> HostPlace | None:
        """Choose where the member's next turn runs, if on a host. Raises `HostUnavailable`, or the recorded error."""
        if not member.host:
            return None
        if not self.machine.live:
            return self.machine.place(member, route.part if route else None)

        def say(text: str) -> None:
            self.emit(Warned(f"{member.name}: {text}", route.number if route else None, of_disk=True))

        try:
            found = await self.hosting.place(member, self.team, say, self.stopper)
            return await self._with_files(found, member, route) if route else found
        except TeamchatError as error:
            self.machine.no_host(member, error)
            raise

    async def _with_files(self, place: HostPlace, member: Member, route: Route) -> HostPlace:
        """Add the files of the member's worktree to the place, if it works in one. Raises `HostUnavailable`."""
        if not self.has_worktree(member, route):
            return place
        from teamchat.core.turn.carried import carried

        name, session = self.worktree_name(member, route), name_of(self.db, self.session)
        state, host = self.trees.folder, place.host.name
        try:
            return await in_thread(lambda: place.with_files(carried(state, self.session, session, name, host)))
        except TeamchatError:
            self.ordered(place)
            raise

    def speaks(self, member: str, turn: int, events: Sequence[AgentEvent]) -> None:
        """Emit the events of an agent that were read together."""
        for spoke in spoken(member, turn, events):
            self.emit(spoke)

    def ordered(self, place: HostPlace | None) -> None:
        """Note that the turn of a place was given to its host, or runs nowhere."""
        if place and place.dispatch:
            self.hosting.ordered(place)

    @property
    def speaker(self) -> Speaker | None:
        """The speaker in place of a person: the agent in whose turn this runs. Raises `GuardReached` if it is lost."""
        return self.caller.turn.speaker if self.caller else None

    def count_turn(self) -> None:
        """Count a turn that is about to begin in the conversations around this one. Raises `GuardReached`."""
        if self.caller:
            self.caller.begin_turn(name_of(self.db, self.session), self.db.path, self.machine.now())

    def admitted(self, planned: ReadyTurn, folder: Path) -> tuple[ReadyTurn, str | None]:
        """Give the turn a token for its agent. Return it, and the store's record for the token.

        Without a token the agent may run no turn. `folder` is that of the turn, or of a process that has served earlier
        turns.
        """
        if not self.machine.live:
            return planned, None
        env = {name: value for name, value in planned.env.items() if name != VARIABLE}
        admission = None
        with contextlib.suppress(UnicodeEncodeError):
            env[VARIABLE], admission = admit(folder, self.team, planned.member, self.state.rules, self.caller)
        return replace(planned, env=env), admission

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Change the store and `state` together, or neither of them."""
        before = self.state
        try:
            with self.db.transaction():
                yield
        except BaseException:
            self.state = before
            raise

    def decide(self, event: Event) -> tuple[Action, ...]:
        """Let the engine decide and save the new state, in the caller's transaction."""
        old = self.state
        self.state, actions = decide(old, event)
        dropped = [action.route for action in actions if isinstance(action, Dropped)]
        save_state(self.db, self.session, old, self.state, dropped)
        return actions

    def step(self, event: Event) -> tuple[Action, ...]:
        """Let the engine decide, in a transaction of its own."""
        with self.transaction():
            return self.decide(event)

    def guard(self) -> Paused | None:
        """Return the limit that is reached, if any: then no turn may begin or be tried again."""
        inner, state = used_meanwhile(self.db, self.session), self.state
        spent = replace(
            state,
            turns=state.turns + inner.turns,
            tokens=state.tokens + inner.tokens,
            cost_usd=state.cost_usd + inner.cost_usd,
        )
        return guard(spent, self.machine.now())

    def budget(self) -> float | None:
        """Return what each running turn may spend, in US dollars; None means no limit.

        It is never 0, which no CLI accepts as a limit.
        """
        limit, around = self.team.limits.cost_usd, self.caller.budget() if self.caller else None
        left = [around] if around is not None else []
        if limit is not None:
            left.append(limit - self.state.cost_usd - used_meanwhile(self.db, self.session).cost_usd)
        if not left:
            return None
        running = sum(route.status is RouteStatus.RUNNING for route in self.state.queue)
        at_once = max(min(running, self.at_once or running), 1)
        return max(min(left) / at_once, 0.0001)

    def has_worktree(self, member: Member, route: Route | None = None) -> bool:
        """Whether the member works in a worktree of its own, always or for that route. A replay makes none."""
        chosen = member.workspace == "worktree" or member.name in self.apart.worktrees
        if route is None or route.part is None:
            return self.machine.live and chosen
        apart = (route.part.apart or self.apart.gives_place(route)) and member.access != "read"
        return self.machine.live and (chosen or apart or self.shared_worktree(route) is not None)

    def shared_worktree(self, route: Route) -> str | None:
        """Name the member in whose worktree the route's whole process works; None if in none."""
        process = self.state.process
        return process.do if process and process.worktree and route.part else None

    def worktree_name(self, member: Member, route: Route) -> str:
        """Name the worktree for the member's turn on the route, if it is in one."""
        return self.shared_worktree(route) or self.place_name(member, route) or member.name

    def place_name(self, member: Member, route: Route) -> str | None:
        """Name the place of the member's next turn for the route, if it has one: `sarah#3`.

        Work that an earlier turn of the session began in such a place is not continued: the second place is
        `sarah#3.2`. A member that a process asks again, and that works apart there, continues where it was.
        """
        if route.part is None or not self.apart.gives_place(route):
            return None
        name = route.part.called(member.name)
        tries = 0 if route.part.apart else self.tries[name]
        return f"{name}.{tries + 1}" if tries else name

    @cached_property
    def tries(self) -> Counter[str]:
        """The number of the session's turns that began in each place, whatever the try."""
        return Counter(map(first_try, turns_in_places(self.db, self.session)))

    def _began_apart(self, member: Member, route: Route) -> bool:
        """Whether the route's last turn was in the member's worktree: its group may be over now."""
        if member.workspace is not None or not route.attempt or not any_made(self.trees.folder):
            return False
        from teamchat.core.worktrees.records import find

        tree = find(self.trees.folder, self.session, member.name)
        last = last_turn_of(self.db, self.session, member.name) if tree else None
        return bool(tree and last and last.route == route.number and Path(last.setup.cwd).is_relative_to(tree.folder))

    async def placed(self, member: Member, route: Route) -> Member:
        """Give the member the folder of its next turn: in its worktree, if it has one. A missing worktree is made.

        A member that compares the work of others may only read, and not in its own worktree, which may be one of those
        compared. Raises `UsageError` if no worktree can be made, `NotTrusted` and `CheckpointFailed`.
        """
        if route.part and route.part.only_reads:
            member = replace(member, access="read", allow=())
            if not self.shared_worktree(route):
                return member
        if not (self.has_worktree(member, route) or (self.machine.live and self._began_apart(member, route))):
            return member
        return in_worktree(member, await self.ready_worktree(self.worktree_name(member, route), member.cwd, route))

    async def ready_worktree(self, name: str, cwd: Path, route: Route) -> Path:
        """Return the folder in the worktree of that name; a missing worktree is made.

        A process's worktree gets the user's later changes only before the process begins. Raises as `placed` does.
        """
        from teamchat.core.worktrees.make import empty_submodules, place, ready

        process = self.state.process if self.shared_worktree(route) else None
        refresh = process is None or not process.done
        first = place(self.trees.folder, self.session, name, cwd) is None
        owner = owner_of(self.db, self.session)
        there = await in_thread(partial(ready, self.trees.folder, owner, name, cwd, refresh=refresh))
        if first and (empty := empty_submodules(self.trees.folder, self.session, name)):
            text = f"in {name}'s worktree submodules are empty: {', '.join(map(readable, empty))}"
            self.emit(Warned(text, route.number, of_disk=True))
        return there

    def looked_at(self, member: Member, route: Route) -> Member:
        """Give the member the folder of its next turn, without making a worktree if that is missing."""
        if not self.has_worktree(member, route):
            return member
        from teamchat.core.worktrees.make import place

        name = self.worktree_name(member, route)
        cwd = place(self.trees.folder, self.session, name, member.cwd)
        return in_worktree(member, cwd) if cwd else member

    async def tree_before(
        self, turn: Turn, planned: ReadyTurn, *, in_line: bool = False
    ) -> WorkTree | NoCheckpoint | None:
        """Record the files of a turn's work tree before the turn; `in_line` is as in `WorkTrees`.

        A replay looks at none.
        """
        if not self.machine.live:
            return None
        member = planned.member
        if reason := known_reason(member.cwd):
            return NoCheckpoint(reason)
        writes = may_write(member, planned.agent)
        if planned.hosted and planned.hosted.returns is None:
            return NoCheckpoint(f"it ran on {planned.setup.host}")
        number, before, tell = turn.number, self.trees.before, threadsafe(self.emit)

        def slow(over: bool) -> None:
            tell(RecordingFiles(number, over))

        take = partial(before, str(number), member.cwd, number=number, writes=writes, in_line=in_line, slow=slow)
        tree = await in_thread(take)
        if isinstance(tree, NoCheckpoint):
            self._tell_of_refused(turn, tree)
        if in_line:
            # Note the files at the beginning of a process's work, unless they are known.
            process, begin = self.state.process, getattr(tree, "before", None)
            if process and process.kind is Kind.UNTIL and not process.base and begin:
                self.step(WorkBegan(self.machine.now(), begin))
        return tree

    def _tell_of_refused(self, turn: Turn, now: NoCheckpoint) -> None:
        """Warn once that git does not read the repository, unless it was so in the turn before."""
        refused, before = self.trees.refused, find_turn(self.db, self.session, turn.number - 1)
        known = before and before.outcome and before.outcome.changes == now
        if refused and not (self._told_of_refused or known):
            self._told_of_refused = True
            mends = f"; this mends it: {refused.hint}" if refused.hint else ""
            text = f"no files are recorded, so undo cannot restore any: {refused.reason}{mends}"
            self.emit(Warned(text, of_disk=True))

    def stopped(self, member: str | None = None) -> bool:
        """Whether a person wants no further turn to begin: of that member, or of anybody."""
        return bool(self.stopper.asked) or self.machine.stopped(member)

    @contextlib.contextmanager
    def stopper_of(self, route: Route) -> Iterator[Stopper]:
        """Return the stopper of the route's turn, if its group may be decided without it; else that of the run."""
        process = self.state.process
        if route.part is None or process is None or process.quorum is None:
            yield self.stopper
            return
        with self.stopper.within() as stopper:
            self._stoppers.append(stopper)
            try:
                if self.enough and self.machine.live:
                    stopper.request(DECIDED)
                yield stopper
            finally:
                self._stoppers.remove(stopper)

    def stop_the_rest(self) -> None:
        """Stop the group's running turns: it is decided without them. A replay ends them as recorded."""
        self.enough = True
        for stopper in self._stoppers if self.machine.live else ():
            stopper.request(DECIDED)

    def remove(self, *folders: Path | None) -> None:
        """Remove a turn's folders in this order, up to the first that cannot be removed.

        The last one stays longest: it reminds the next command to remove the rest.
        """
        if problem := remove(*filter(None, folders)):
            self.emit(Warned(problem))


def rules_of(team: Team, bounds: Bounds = UNBOUNDED) -> Rules:
    """Collect the engine's rules from a team file and the bounds of the run. A bound never raises a limit."""
    bounded = bounds.turns is not None and bounds.turns < team.limits.turns
    return Rules(
        ai=tuple(member.name for member in team.ai_members),
        humans=tuple(member.name for member in team.humans),
        lead=team.lead,
        max_turns=bounds.turns if bounded else team.limits.turns,
        max_seconds=team.limits.minutes * 60,
        max_tokens=team.limits.tokens,
        max_cost_usd=team.limits.cost_usd,
        max_stale=2 * team.limits.rounds,
        turns_limit="--turns" if bounded else "limits.turns",
        only=bounds.only,
    )
