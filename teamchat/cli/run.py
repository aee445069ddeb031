from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import asdict, replace
from typer.core import TyperCommand
from typer.exceptions import TyperException

from teamchat.cli.running.request import Request, send_message
from teamchat.cli.startup.complete import ai_members, checks, doers, processes
from teamchat.cli.startup.options import Asking, Attached, NewPlace, OptionGroup, RunLimits, SendOutput, at_least
from teamchat.cli.startup.piped import read_message
from teamchat.cli.startup.typed import TYPED, line_of
from teamchat.cli.startup.workspace import begin_run, find_team, need_person
from teamchat.core.conversation.processes import process_of
from teamchat.core.engine.processes.mapreduce import OTHER_TURNS
from teamchat.core.engine.processes.table import TAKES
from teamchat.core.engine.state import Bounds
from teamchat.core.engine.strategies import strategy_of
from teamchat.core.engine.workflow import MOST_ROUNDS, Process, ProcessSettings
from teamchat.core.errors import UsageError
from teamchat.core.routing.names import fold
from teamchat.core.routing.requests import parse_to
from teamchat.core.team.build import on_hosts
from teamchat.core.team.problems import TeamFileProblem
from teamchat.core.team.team import Team
from teamchat.core.turn.run import rules_of

if TYPE_CHECKING:
    from collections.abc import Sequence


KIND = "teamchat.kind"  # the key of the process whose help is shown
EXAMPLE = "teamchat run debate 'Your question'"


def _naming(option: str, help_: str, metavar: str = "NAME") -> Any:
    """Make an option that names AI members."""
    return typer.Option(option, metavar=metavar, autocompletion=ai_members, help=help_)


Word = Annotated[
    str,
    typer.Argument(
        metavar="PROCESS",
        autocompletion=processes,
        show_default=False,
        help="sequential, hierarchical, mapreduce, debate, vote, best, until, or a name of the team file.",
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TASK]...",
        show_default=False,
        help="What is to be done. Without text, or with a final -, read standard input.",
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
        help="sequential: how often each speaks (1); debate: rounds after the blind answers (1); until: tries (3).",
    ),
]
LeadOption = Annotated[
    str | None,
    _naming("--lead", "hierarchical: who hands out the work; debate: who sums it up (default: the team's lead)."),
]
PlannerOption = Annotated[
    str | None,
    _naming("--planner", "mapreduce: who splits the task (default: the lead); until: who plans the work first."),
]
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
    int | None, typer.Option("--jobs", metavar="N", callback=at_least(1), help="At most N turns at the same time.")
]


DoOption = Annotated[
    str | None,
    typer.Option(
        "--do",
        metavar="NAME",
        autocompletion=doers,
        help="until: who does the task, until all checks are green and all reviewers agree.",
    ),
]
CheckOption = Annotated[
    list[str] | None,
    typer.Option(
        "--check",
        metavar="CHECK",
        autocompletion=checks,
        help="until: a check of the team file, or a shell command; --check once for each.",
    ),
]
ReviewOption = Annotated[
    list[str] | None, _naming("--review", "until: who reviews the work, such as carol,max.", metavar="NAMES")
]


QuorumOption = Annotated[
    int | None,
    typer.Option(
        "--quorum",
        metavar="N",
        callback=at_least(1),
        help="until: how many reviewers must pass; vote: how many must vote (default: all).",
    ),
]
WorktreeOption = Annotated[
    bool | None, typer.Option("--worktree", help="until: do it all in a worktree, which teamchat merge brings in.")
]


HostOption = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="NAME", help="Run all its turns on this host, or on any; --host once for each."),
]


class ProcessOptions(OptionGroup, frozen=True):
    panel = "The process"
    members: MembersOption = None
    rounds: RoundsOption = None
    lead: LeadOption = None
    planner: PlannerOption = None
    workers: WorkersOption = None
    reducer: ReducerOption = None
    judge: JudgeOption = None
    options: OptionsOption = None
    jobs: JobsOption = None
    do: DoOption = None
    check: CheckOption = None
    review: ReviewOption = None
    quorum: QuorumOption = None
    worktree: WorktreeOption = None

    @property
    def settings(self) -> ProcessSettings:
        lists = {name: names_of(f"--{name}", getattr(self, name)) for name in ("members", "workers", "review")}
        lists |= {"options": options_of(self.options), "check": tuple(self.check or ())}
        return ProcessSettings(**asdict(self) | lists)


class RunCommand(TyperCommand):
    """`run KIND --help` shows the options of that kind alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with contextlib.suppress(TyperException):  # the parser below reports errors
            ctx.meta[KIND] = self.make_parser(ctx).parse_args([*args])[0].get("process")
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        takes = TAKES.get(fold(ctx.meta.get(KIND) or ""))
        settings, params = {*ProcessOptions.fields()}, self.params
        if takes is not None:
            self.params = [param for param in params if param.name in takes or param.name not in settings]
        try:
            super().format_help(ctx, formatter)
        finally:
            self.params = params


def run(
    process: Word,
    words: Words = None,
    *,
    settings: ProcessOptions,
    message: Attached,
    place: NewPlace,
    output: SendOutput,
    limits: RunLimits,
    asking: Asking,
    host: HostOption = None,
) -> int:
    """Have members work on a task by a fixed process.

    sequential: one after the other, and each sees what came before.
    hierarchical: the lead hands out work, and every reply goes back to it.
    mapreduce: a planner splits the task, workers do it, a reducer merges it.
    debate: all answer blind, then see the others' answers; the lead sums up.
    vote: all choose one of the options, blind.
    best: all do the whole task, blind and apart, and a judge picks one.
    until: one works until all checks are green and all reviewers agree.
    """
    team = find_team(place.team, limits.timeout)
    wanted = process_of(team, process, settings.settings)
    if output.verdicts and wanted.kind == "vote":
        from teamchat.cli.startup.verdict import check_options

        check_options(output.verdicts, wanted.options)
    if output.verdicts and wanted.kind == "until":
        raise UsageError("--verdict: until has exit codes of its own: 0, 16 (a check is red), 17 (a review is FAIL)")
    if not output.dry_run:
        begin_run(team, record=output.record, trust=limits.trust)
    if host:
        need_person("hosts are named")
        try:
            team = on_hosts(team, host, wanted.excluded)
        except TeamFileProblem as problem:
            raise UsageError(f"--host: {problem}") from None
    largest, judged = None if message.cut else team.max_bytes, bool(output.verdicts)
    task = read_message(
        words or (), largest, message.file or (), example=with_a_task(), judged=judged, timeout=limits.timeout
    )
    request = Request(
        team=team,
        message=replace(task, speaker=message.as_, process=wanted),
        place=place,
        bounds=limits.bounds,
        cut=message.cut,
        expand=message.expand,
    )
    if output.dry_run:
        from teamchat.cli.running.dry_run import explain

        return explain(request)
    notes = (*pausing(team, wanted, request.bounds), *reviewing(team, wanted))
    return send_message(request, output, wait=not limits.no_wait, ask=asking.ask, notes=notes)


def with_a_task() -> str:
    """Return the typed command with a task behind it; an example if that is too long for a line."""
    typed = TYPED.get()
    return (line_of(*typed, "Your task") if typed[:1] == ["run"] else None) or EXAMPLE


def names_of(option: str, written: Sequence[str] | None) -> tuple[str, ...]:
    """Parse the names of an option such as `max,sarah`, which may be given several times."""
    if not written:
        return ()
    names = tuple(name for target in parse_to(",".join(written)) for name in target.names)
    if not names:
        raise UsageError(f"{option} names nobody", "teamchat team")
    return names


def options_of(written: Sequence[str] | None) -> tuple[str, ...]:
    """Parse the options of a vote: one list of them, or each by itself, which may then contain commas."""
    if not written:
        return ()
    options = tuple(option.strip() for option in (written[0].split(",") if len(written) == 1 else written))
    if not all(options):
        raise UsageError(f"--options {','.join(written)!r}: expected options with a comma between them, such as yes,no")
    return options


def reviewing(team: Team, process: Process) -> tuple[str, ...]:
    """Notes if nobody of another vendor reviews the work, and on reviewers that are not bounded to reading."""
    if not process.review:
        return ()
    notes = []
    members = {name: team.member(name) for name in (process.do, *process.review)}
    vendors = {name: team.agent_of(member).type.name for name, member in members.items()}
    if len({*vendors.values()}) == 1 and team.agent_of(members[process.do]).type.runner.vendor:
        notes.append(f"only {vendors[process.do]} reviews what {vendors[process.do]} did: another vendor sees more")
    free = [name for name in process.review if not team.agent_of(members[name]).type.runner.vendor]
    if free:
        notes.append(f"{', '.join(free)}: nothing bounds to reading what this program does")
    return tuple(notes)


def pausing(team: Team, process: Process, bounds: Bounds) -> tuple[str, ...]:
    """Write a note if the process takes more turns than may run without a pause."""
    rules, turns = rules_of(team, bounds), strategy_of(process.kind).turns(process)
    if process.kind == "until":
        return ()  # it would be refused
    if process.kind == "mapreduce" and (process.jobs or 1) > 1:
        plan = f"a plan of {process.most:,} subtasks takes up to {process.most + OTHER_TURNS:,} turns"
        limit = f"{rules.turns_limit} is {rules.max_turns:,}" if rules.max_turns is not None else "nothing limits that"
        over = f"{process.jobs} run at a time, so as many may go over a limit of tokens, cost or minutes"
        return (f"{plan}, and {limit}; {over}",)
    if turns is None or rules.max_turns is None or turns <= rules.max_turns:
        return ()
    name, limit = process.name or process.kind, f"{rules.turns_limit} ({rules.max_turns})"
    return (f"{name} takes {turns:,} turns; {limit} pauses it: teamchat resume continues",)
