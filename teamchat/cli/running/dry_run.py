"""`--dry-run` of `send` and `run`: the real code explains what would happen, in a transaction that is rolled back."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from teamchat.assemblers.truncation import approx_tokens
from teamchat.cli.output.lines import called, exact, group_of, plural, refusal, todo_line
from teamchat.cli.output.process_report import described
from teamchat.cli.output.receipt import block_lines, cut_lines, memory_in_words, short
from teamchat.cli.running.request import Request
from teamchat.cli.startup.typed import saying_what_to_type
from teamchat.cli.startup.workspace import calling, choose_session, open_store
from teamchat.core.context.layers.collector import LayerText
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.conversation.entry import check_message
from teamchat.core.conversation.inputs import Message
from teamchat.core.conversation.recovery import turns_dir
from teamchat.core.engine.events import Action, Dropped, Paused, Refused
from teamchat.core.engine.state import Bounds, Route, RouteStatus
from teamchat.core.engine.workflow import Process
from teamchat.core.errors import PromptTooLarge, TeamchatError
from teamchat.core.files.folders import state_dir
from teamchat.core.routing.markers import read_markers
from teamchat.core.store.database import Database
from teamchat.core.team.team import Team
from teamchat.core.text.clean import printable, visible
from teamchat.core.text.commands import command_of
from teamchat.core.turn.attempts import passed_over
from teamchat.core.turn.machine import Cooldowns
from teamchat.core.turn.run import Run
from teamchat.core.turn.run_events import ConversationEvent, TodoChanged, Warned
from teamchat.runners.child.supervisor import Stopper


def explain(request: Request) -> int:
    """Print markers, the order of speaking, and the first turn's prompt, command and environment.

    For a process begun by the message it describes the process, and prints this for all turns of its first step.
    """
    team, place, process = request.team, request.place, request.message.process
    explanation: list[str | bytes] = []  # printed afterwards: a pager must not keep the store locked
    try:
        with open_store(team.root) as db, saying_what_to_type(request.message), db.taken_back():
            chosen, begins = choose_session(db, team, place.session, new=place.new, title=place.title)
            explanation.extend(marker_lines(request.message.text))
            there = None if begins else chosen
            no_room = None
            try:
                check_message(team, db, there, request.checked, cut=request.cut, caller=calling())
            except PromptTooLarge as error:  # the calls are shown before it
                no_room = error
            events: list[ConversationEvent] = []
            coordinator = _coordinator(team, db, chosen.id, events.append, request.bounds)
            if process:
                explanation.append(f"{process.name or process.kind}: {described(process)}")
                explanation.extend(check_lines(team, process))
            explanation.extend(_explain(coordinator, events, request.sent, no_room))
    finally:  # prints the findings even before an error of `send`
        for part in explanation:
            shown = exact(part) if isinstance(part, bytes) else visible(part).encode(errors="backslashreplace")
            sys.stdout.buffer.write(shown + b"\n")
        sys.stdout.buffer.flush()
    return 0


def check_lines(team: Team, process: Process) -> Iterator[str]:
    """Say what teamchat would run between the turns of the process: `check tests: pytest -q, in /home/kai/notes`."""
    for required in process.checks:
        check = team.checks.get(required.name)
        if required.command or check is None:
            yield f"check: {printable(required.command)}, in {team.root}"
            continue
        command = check.command if isinstance(check.command, str) else command_of(*check.command)
        yield f"check {required.name}: {printable(command)}, in {team.root / check.folder}"


def _coordinator(
    team: Team, db: Database, session: int, emit: Callable[[ConversationEvent], None], bounds: Bounds
) -> ConversationCoordinator:
    folder, cooldowns = turns_dir(db), Cooldowns(state_dir() / "cooldowns.json")
    return ConversationCoordinator(
        Run(team, db, session, folder=folder, stopper=Stopper(), emit=emit, cooldowns=cooldowns, bounds=bounds)
    )


def _explain(
    coordinator: ConversationCoordinator,
    told: Sequence[ConversationEvent],
    message: Message,
    no_room: TeamchatError | None,
) -> Iterator[str | bytes]:
    team, process, addressed = coordinator.run.team, message.process, coordinator.address(message, refuse=False)
    at_work = replace(message, process=process.at_work) if process else message
    actions = coordinator.store(addressed, at_work)
    yield from (f"problem: {problem}" for problem in addressed.problems)
    yield from (f"problem: {event.text}" for event in told if isinstance(event, Warned))
    yield from (todo_line(event.change) for event in told if isinstance(event, TodoChanged))
    yield from queue_changes(actions)
    queue = [route for route in coordinator.state.queue if route.status is not RouteStatus.HELD]
    yield "speaking: " + (", then ".join(speaking_order(queue)) or "nobody")
    if coordinator.state.held:
        yield "on hold until teamchat resume: " + ", ".join(route.target for route in coordinator.state.held)
    yield from guards(team, coordinator)
    if no_room:
        raise no_room
    first = [route for route in queue if group_of(route) == group_of(queue[0])] if process else queue[:1]
    if queue and queue[0].target not in {human.name for human in team.humans}:
        yield from _compaction(coordinator, queue[0])
        for route in first:
            yield from _turn(team, coordinator, route)


def speaking_order(queue: list[Route]) -> list[str]:
    """List the members of the queue in order. The members of a group are joined by a plus."""
    groups: dict[object, list[Route]] = {}
    for route in queue:
        groups.setdefault(group_of(route), []).append(route)
    return [
        " + ".join(route.target for route in group) + {1: " (P1)", 3: " (P3)"}.get(group[0].priority, "")
        for group in groups.values()
    ]


def queue_changes(actions: tuple[Action, ...]) -> Iterator[str]:
    """List calls that the message drops from the queue, calls without room there, and the guard that pauses."""
    for action in actions:
        match action:
            case Dropped(route=route):
                yield f"dropped: {called(route)}"
            case Refused(route=route, limit=limit):
                yield f"problem: {refusal(route, limit)}"
            case Paused(reason=reason):
                yield f"paused: {reason}"


def guards(team: Team, coordinator: ConversationCoordinator) -> Iterator[str]:
    """Write the rest of each guard's limit."""
    limits, state = team.limits, coordinator.state
    yield f"guards: {state.rules.max_turns} turns and {limits.minutes:g} minutes for this message"
    if state.rules.only:
        yield "whom an answer calls is not called (--only)"
    if limits.tokens is not None:
        yield f"guards: {max(limits.tokens - state.tokens, 0):,} of {limits.tokens:,} tokens are left in this session"
    if limits.cost_usd is not None:
        left = max(limits.cost_usd - state.cost_usd, 0.0)
        yield f"guards: ${left:.2f} of ${limits.cost_usd:.2f} are left in this session"


def _compaction(coordinator: ConversationCoordinator, route: Route) -> Iterator[str]:
    """Note if the conversation is long enough to be summarised first."""
    if member := coordinator.summariser.due(route.as_of):
        said = coordinator.summariser.pending(route.as_of)
        size = approx_tokens(sum(coordinator.manager.quoted_bytes(message.text) for message in said))
        yield f"before that, {member.name} would summarise {plural(len(said), 'message')} (about {size:,} tokens);"
        yield "the prompt below does not have that summary"


def _turn(team: Team, coordinator: ConversationCoordinator, route: Route) -> Iterator[str | bytes]:
    target = team.member(route.target)
    member = coordinator.attempts.order(route, target)[0]
    yield "" if member is target else f"\n{passed_over(target, member)}"
    placed = coordinator.run.looked_at(member, route)
    turn = coordinator.attempts.plan(route, placed)
    if placed is member and coordinator.run.has_worktree(member, route):
        yield f"it gets a worktree of {turn.setup.cwd} before its turn"
    if member.host:
        yield f"{member.name} would run on {member.hosts}, with the command and the environment of its host"
        yield f"for {turn.setup.cwd}, access {turn.setup.access}: if its host offers it"
    else:
        yield f"{member.name} would run: {printable(shlex.join(short(word) for word in turn.command.argv))}"
        yield f"in {turn.setup.cwd}, access {turn.setup.access}: {turn.setup.access_note}"
    if turn.setup.memory != "fresh":
        yield f"memory {memory_in_words(turn.setup)}"
    for name, value in () if member.host else turn.setup.env.items():
        yield f"without {name}" if value is None else f"with {name}={value}"
    if turn.prompt.system_text:
        yield f"\nits system text ({turn.setup.system_bytes:,} bytes):\n{turn.prompt.system_text}"
    if turn.setup.slash:
        yield f"command: {turn.setup.slash}"
    yield from (f"shows the image {name}" for name in turn.setup.images)
    yield from (f"cut: {line}" for line in cut_lines(turn.setup.trimmed))
    yield "\nits parts:\n" + "\n".join(f"  {line}" for line in block_lines(turn.setup))
    for name, source in turn.prompt.gathered.items():
        if source.excerpts or source.note:
            yield f"\nits {name.removesuffix('__context')}:\n" + "\n".join(f"  {line}" for line in source_lines(source))
    yield f"\nits standard input ({turn.setup.stdin_bytes:,} bytes):"
    yield turn.prompt.prepared.stdin


def source_lines(told: LayerText) -> Iterator[str]:
    """List the parts of a layer with size and reason, and the parts left out."""
    for part in told.excerpts:
        yield f"{part.name}  {approx_tokens(part.bytes):,} tokens  {part.why}"
    if told.note:
        yield told.note


def marker_lines(text: str) -> list[str]:
    """List every marker with its position, and whether it counts or why not."""
    return [
        f"{marker.raw.splitlines()[0]} at {marker.start}: "
        + ("counts" if marker.why_not is None else f"text, it is {marker.why_not}")
        for marker in read_markers(text, "human").markers
    ]
