from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from teamchat.cli.send import AsOption, CutOption, DryRunOption, ExpandOption, FileOption, NewOption
from teamchat.cli.shared.complete import ai_members, processes
from teamchat.cli.shared.options import (
    MOST_COUNTED,
    AskOption,
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
    WindowOption,
    asks,
    words_of,
)
from teamchat.core.engine.process import MOST_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from teamchat.core.engine.process import Process, ProcessSettings
    from teamchat.core.engine.state import Bounds
    from teamchat.core.team.team import Team

EXAMPLE = "teamchat run debate 'Your question'"


def _naming(option: str, help_: str, metavar: str = "NAME") -> Any:
    """An option that names AI members."""
    return typer.Option(option, metavar=metavar, autocompletion=ai_members, help=help_)


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
    typer.Argument(
        metavar="[TASK]...",
        show_default=False,
        help="What is to be done; none, or a - at its end, demands standard input.",
    ),
]
MembersOption = Annotated[
    list[str] | None,
    _naming("--members", "Who takes part, such as max,sarah (default: all AI members).", metavar="NAMES"),
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
    _naming("--lead", "hierarchical: who hands out the work; debate: who sums it up (default: the team's lead)."),
]
PlannerOption = Annotated[str | None, _naming("--planner", "mapreduce: who splits the task (default: the lead).")]
WorkersOption = Annotated[
    list[str] | None,
    _naming("--workers", "mapreduce: who does the subtasks (default: all but the planner).", metavar="NAMES"),
]
ReducerOption = Annotated[str | None, _naming("--reducer", "mapreduce: who merges the results (default: the lead).")]
JudgeOption = Annotated[str | None, _naming("--judge", "best: who picks the winner (default: the lead).")]
OptionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--options", metavar="A,B,...", help="vote: what the members choose from; or --options once for each choice."
    ),
]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", metavar="N", min=1, max=MOST_COUNTED, help="At most N turns at the same time.")
]


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
    window: WindowOption = None,
    timeout: TimeoutOption = None,
    trust: TrustOption = False,
    no_wait: NoWaitOption = False,
    notify: NotifyOption = None,
    ask: AskOption = False,
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
    from teamchat.cli.shared.piped import read_message
    from teamchat.cli.shared.request import Request
    from teamchat.cli.shared.showing import OutputOptions
    from teamchat.cli.shared.workspace import begin_run, find_team
    from teamchat.core.engine.process import ProcessSettings
    from teamchat.core.engine.state import Bounds

    verdicts, ask = words_of(verdict), asks(ask, no_input)
    found = find_team(team, timeout)
    settings = ProcessSettings(
        members=names_of("--members", members),
        rounds=rounds,
        planner=planner,
        workers=names_of("--workers", workers),
        reducer=reducer,
        judge=judge,
        lead=lead,
        options=options_of(options),
        jobs=jobs,
    )
    wanted = _process_for(found, process, settings, verdicts)
    if not dry_run:
        begin_run(found, record=record, trust=trust)
    request = Request(
        team=found,
        message=read_message(
            words or (), None if cut else found.max_bytes, file or (), example=EXAMPLE, judged=bool(verdicts)
        ),
        bounds=Bounds(turns, window=window),
        session=session,
        new=new,
        title=title,
        speaker=as_,
        cut=cut,
        expand=expand,
        process=wanted,
    )
    if dry_run:
        from teamchat.cli.shared.dry_run import explain

        return explain(request)
    return request.carry_out(
        OutputOptions(as_json, stream, quiet, notify),
        wait=not no_wait,
        record=record,
        ask=ask,
        verdict=verdicts,
        notes=pausing(found, wanted, request.bounds),
    )


def _process_for(team: Team, word: str, settings: ProcessSettings, verdicts: Sequence[str]) -> Process:
    """The process of that kind or name. Raises `UsageError`, also if no option of a vote can meet the verdicts."""
    from teamchat.core.conversation.processes import process_of

    process = process_of(team, word, settings)
    if verdicts and process.kind == "vote":
        from teamchat.cli.shared.verdict import check_options

        check_options(verdicts, process.options)
    return process


def names_of(option: str, written: Sequence[str] | None) -> tuple[str, ...]:
    """The names of an option such as `max,sarah`, which may be given several times."""
    if not written:
        return ()
    from teamchat.core.errors import UsageError
    from teamchat.core.routing.requests import parse_to

    names = tuple(name for target in parse_to(",".join(written)) for name in target.names)
    if not names:
        raise UsageError(f"{option} names nobody", "teamchat team")
    return names


def options_of(written: Sequence[str] | None) -> tuple[str, ...]:
    """The options of a vote: one written list of them, or each by itself, which may then have commas in it."""
    if not written:
        return ()
    from teamchat.core.errors import UsageError

    options = tuple(option.strip() for option in (written[0].split(",") if len(written) == 1 else written))
    if not all(options):
        raise UsageError(f"--options {','.join(written)!r}: expected options with a comma between them, such as yes,no")
    return options


def pausing(team: Team, process: Process, bounds: Bounds) -> tuple[str, ...]:
    """A note if the process takes more turns than may run without a pause."""
    from teamchat.core.engine.processes.table import STRATEGIES
    from teamchat.core.turn.run import rules_of

    rules, turns = rules_of(team, bounds), STRATEGIES[process.kind].turns(process)
    if turns is None or rules.max_turns is None or turns <= rules.max_turns:
        return ()
    name, limit = process.name or process.kind, f"{rules.turns_limit} ({rules.max_turns})"
    return (f"{name} takes {turns:,} turns; {limit} pauses it: teamchat resume continues",)
