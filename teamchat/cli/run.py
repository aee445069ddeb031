from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from teamchat.cli.send import AsOption, CutOption, DryRunOption, ExpandOption, FileOption, NewOption
from teamchat.cli.shared.complete import ai_members, processes
from teamchat.cli.shared.options import (
    JsonOption,
    NoInputOption,
    NotifyOption,
    NoWaitOption,
    QuietOption,
    RecordOption,
    SessionOption,
    StreamOption,
    TeamOption,
    TimeoutOption,
    TitleOption,
    TrustOption,
    TurnsOption,
    VerdictOption,
    words_of,
)
from teamchat.core.team.processes import MOST_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from teamchat.cli.shared.conversation import Work
    from teamchat.cli.shared.piped import PersonMessage
    from teamchat.core.cassette.writer import CassetteWriter, Cooling
    from teamchat.core.conversation.coordinator import ConversationCoordinator
    from teamchat.core.engine.process import Process
    from teamchat.core.engine.state import Bounds
    from teamchat.core.team.team import Team
    from teamchat.core.turn.events import Conclusion

EXAMPLE = "teamchat run debate 'Your question'"

Word = Annotated[
    str,
    typer.Argument(
        metavar="PROCESS",
        autocompletion=processes,
        show_default=False,
        help="sequential, hierarchical, mapreduce, debate, vote, best, or a name of the team file.",
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TASK]...", show_default=False, help="What is to be done; - or none reads standard input."),
]
MembersOption = Annotated[
    str | None,
    typer.Option(
        "--members",
        metavar="NAMES",
        autocompletion=ai_members,
        help="Who takes part, such as max,sarah (default: all AI members).",
    ),
]
RoundsOption = Annotated[
    int | None,
    typer.Option(
        "--rounds",
        metavar="N",
        min=1,
        max=MOST_ROUNDS,
        help="sequential: how often each speaks (1); debate: its rounds after the blind answers (1).",
    ),
]
LeadOption = Annotated[
    str | None,
    typer.Option(
        "--lead",
        metavar="NAME",
        autocompletion=ai_members,
        help="hierarchical: who hands out the work; debate: who sums it up (default: the team's lead).",
    ),
]
PlannerOption = Annotated[
    str | None,
    typer.Option(
        "--planner",
        metavar="NAME",
        autocompletion=ai_members,
        help="mapreduce: who splits the task (default: the lead).",
    ),
]
WorkersOption = Annotated[
    str | None,
    typer.Option(
        "--workers",
        metavar="NAMES",
        autocompletion=ai_members,
        help="mapreduce: who does the subtasks (default: all but the planner).",
    ),
]
ReducerOption = Annotated[
    str | None,
    typer.Option(
        "--reducer",
        metavar="NAME",
        autocompletion=ai_members,
        help="mapreduce: who merges the results (default: the lead).",
    ),
]
JudgeOption = Annotated[
    str | None,
    typer.Option(
        "--judge", metavar="NAME", autocompletion=ai_members, help="best: who picks the winner (default: the lead)."
    ),
]
OptionsOption = Annotated[
    str | None,
    typer.Option("--options", metavar="A,B,...", help="vote: what the members choose from."),
]
JobsOption = Annotated[int | None, typer.Option("--jobs", metavar="N", min=1, help="At most N turns at the same time.")]


def run(
    process: Word,
    words: Words = None,
    members: MembersOption = None,
    rounds: RoundsOption = None,
    lead: LeadOption = None,
    planner: PlannerOption = None,
    workers: WorkersOption = None,
    reducer: ReducerOption = None,
    judge: JudgeOption = None,
    options: OptionsOption = None,
    jobs: JobsOption = None,
    as_: AsOption = None,
    team: TeamOption = None,
    session: SessionOption = None,
    new: NewOption = False,
    title: TitleOption = None,
    cut: CutOption = False,
    file: FileOption = None,
    expand: ExpandOption = False,
    as_json: JsonOption = False,
    stream: StreamOption = False,
    quiet: QuietOption = False,
    turns: TurnsOption = None,
    timeout: TimeoutOption = None,
    trust: TrustOption = False,
    no_wait: NoWaitOption = False,
    notify: NotifyOption = None,
    no_input: NoInputOption = False,
    record: RecordOption = None,
    verdict: VerdictOption = None,
    dry_run: DryRunOption = False,
) -> int:
    """Have members work on a task by a fixed process.

    sequential: one after the other, and each sees what came before.
    hierarchical: the lead hands out work, and every reply goes back to it.
    mapreduce: a planner splits the task, workers do it, a reducer merges it.
    debate: all answer blind, then see the others' answers; the lead sums up.
    vote: all choose one of the options, blind.
    best: all do the whole task, blind and apart, and a judge picks one.
    """
    from contextlib import nullcontext

    from msgspec.structs import replace

    from teamchat.cli.output.lines import note
    from teamchat.cli.shared.answering import Answering
    from teamchat.cli.shared.piped import read_message
    from teamchat.cli.shared.showing import OutputOptions
    from teamchat.cli.shared.typed import saying_what_to_type
    from teamchat.cli.shared.workspace import begun, choose_session, find_team, need_trust, open_store
    from teamchat.core.conversation.beginning_process import process_of
    from teamchat.core.conversation.processes import check_task
    from teamchat.core.engine.state import Bounds
    from teamchat.core.store.sessions import current_session
    from teamchat.core.team.processes import ProcessSettings
    from teamchat.core.turn.ahead import begun_for

    show, bounds = OutputOptions(as_json, stream, quiet, notify), Bounds(turns)
    verdicts = words_of(verdict)
    found = find_team(team, timeout)
    wanted = process_of(
        found,
        process,
        ProcessSettings(
            members=names_of("--members", members),
            rounds=rounds,
            planner=planner,
            workers=names_of("--workers", workers),
            reducer=reducer,
            judge=judge,
            lead=lead,
            options=options_of(options),
            jobs=jobs,
        ),
    )
    if not dry_run:
        if record:
            from teamchat.cli.shared.recorder import check_recording

            check_recording(record)
        need_trust(found, give=trust)
    ahead = None if dry_run else begun_for(found)
    message = read_message(words or (), None if cut else found.max_bytes, file or (), example=EXAMPLE)
    sent = replace(message, typed=len(message.text)) if expand else message
    with open_store(found.root) as db, saying_what_to_type(message):
        if dry_run:
            from teamchat.cli.shared.dry_run import explain

            return explain(
                found,
                db,
                session,
                sent,
                new=new,
                title=title,
                speaker=as_,
                to=None,
                typed=0,
                cut=cut,
                bounds=bounds,
                process=wanted,
            )
        current = None if new else current_session(db, session)
        check_task(found, db, current, message.text, wanted, speaker=as_, cut=cut, images=message.images)
        chosen, begins = choose_session(db, found, session, new=new, title=title)
        if not quiet:
            note(f"session {chosen.name} " + ("begins" if begins else "continues (--new starts another)"))
        if paused := pausing(found, wanted, bounds):
            note(paused)

        def write_input(writer: CassetteWriter, cooling: Cooling) -> None:
            writer.human(sent.text, as_, None, cooling, sent.images, sent.typed, bounds, wanted)

        answering = Answering(
            team=found,
            db=db,
            session=chosen,
            show=show,
            bounds=bounds,
            wait=not no_wait,
            record=record,
            speaker=as_,
            no_input=no_input,
            verdict=verdicts,
        )
        with begun(db, chosen) if begins else nullcontext():
            return answering.run(running(sent, wanted, speaker=as_), write_input, ahead)


def running(message: PersonMessage, process: Process, *, speaker: str | None) -> Work:
    """Send the task, and follow its process."""

    def work(coordinator: ConversationCoordinator) -> Awaitable[Conclusion]:
        return coordinator.run_process(
            message.text, process, speaker=speaker, images=message.images, typed=message.typed
        )

    return work


def names_of(option: str, written: str | None) -> tuple[str, ...]:
    """The names of an option such as `max,sarah`."""
    if written is None:
        return ()
    from teamchat.core.errors import UsageError
    from teamchat.core.routing.requests import parse_to

    names = tuple(name for target in parse_to(written) for name in target.names)
    if not names:
        raise UsageError(f"{option} names nobody", "teamchat team")
    return names


def options_of(written: str | None) -> tuple[str, ...]:
    """The options of a vote."""
    if written is None:
        return ()
    from teamchat.core.errors import UsageError

    options = tuple(option.strip() for option in written.split(","))
    if not all(options):
        raise UsageError(f"--options {written!r}: expected options with a comma between them, such as yes,no")
    return options


def pausing(team: Team, process: Process, bounds: Bounds) -> str | None:
    """A note if the process takes more turns than may run without a pause."""
    from teamchat.core.engine.processes.table import STRATEGIES
    from teamchat.core.turn.run import rules_of

    rules, turns = rules_of(team, bounds), STRATEGIES[process.kind].turns(process)
    if turns is None or rules.max_turns is None or turns <= rules.max_turns:
        return None
    name = process.name or process.kind
    return f"{name} takes {turns:,} turns; {rules.turns_limit} ({rules.max_turns}) pauses it: teamchat resume continues"
