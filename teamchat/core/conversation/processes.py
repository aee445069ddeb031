"""Makes the process that a person begins, checks it, and finds the changes that its members make separately."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, nullcontext
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.checkpoint.find import find_repository, why_none
from teamchat.core.checkpoint.values import NoRepository
from teamchat.core.conversation.permission import check_runs_commands
from teamchat.core.engine.processes.table import STRATEGIES, TAKES
from teamchat.core.engine.state import State
from teamchat.core.engine.strategies import kind_in_words, strategy_of
from teamchat.core.engine.workflow import DEFAULTS, MOST_ROUNDS, Kind, NamedProcess, Process, ProcessSettings, Work
from teamchat.core.errors import UnknownName, UsageError
from teamchat.core.receipt import Outcome
from teamchat.core.routing.names import fold
from teamchat.core.routing.requests import resolve
from teamchat.core.routing.targets import Target
from teamchat.core.store.database import Database
from teamchat.core.store.routes import part_of
from teamchat.core.store.turns import Turn, turns_of_route
from teamchat.core.team.problems import nearest
from teamchat.core.team.team import Team
from teamchat.core.text.commands import quote
from teamchat.core.turn.caller import Caller
from teamchat.runners.untrusted.file_changes import FileChanges
from teamchat.runners.untrusted.json import listed


def check_process(state: State, process: Process) -> None:
    """Raise `UsageError` for a process that cannot begin: by its own rules, or because another one is not over.

    One that has to end by itself may not need more turns than the limit allows. Raises `NotTrusted` for one with
    checks in the turn of an agent that may not run any command.
    """
    if process.checks:
        check_runs_commands()
    if problem := strategy_of(process.kind).check(process):
        raise UsageError(f"{process.name or process.kind}: {problem}")
    rules, most = state.rules, strategy_of(process.kind).turns(process) or 0
    if process.kind is Kind.UNTIL and rules.max_turns is not None and most > rules.max_turns:
        limit = f"{rules.turns_limit} ({rules.max_turns:,})"
        fits = rules.max_turns // (most // process.rounds)
        fewer = f", or --rounds {fits}" if fits else ""
        more = f"--turns {most}" if rules.turns_limit == "--turns" else f"turns = {most} under [team.limits]"
        raise UsageError(
            f"{process.name or process.kind} may take {most:,} turns, more than {limit}: raise that to {more}{fewer}"
        )
    there = state.process
    if there and not there.over and any(route.part for route in state.queue):
        how, command = (
            ("answer it", "teamchat send 'Your answer'") if state.asked else ("continue it", "teamchat resume")
        )
        raise UsageError(
            f"the {there.name or kind_in_words(there.kind)} of {there.request} is not over; {how}, or drop it",
            f"{command}\nteamchat resume --drop",
        )


def need_worktrees(team: Team, state: Path, session: int | None, process: Process) -> None:
    """Raise `UsageError` if members that are to work apart cannot, or have changes that are not merged.

    Such changes would be compared and merged together with the changes of the process. `state` is the state folder.
    Blocks while git reads the worktrees.
    """
    step = strategy_of(process.kind).step(process)
    calls = [call for call in step.calls if call.part.apart] if step else []
    names = {call.target for call in calls}
    names |= {process.do} if process.worktree else set()
    writers = [member for member in team.ai_members if member.name in names and member.access != "read"]
    for member in writers:
        if missing := why_none(member.cwd):
            raise UsageError(
                f"{process.name or process.kind} has {member.name} work in a git worktree, and there is none for "
                f"{member.cwd}: {missing.reason}",
                missing.hint,
            )
    if session is None or not writers:
        return
    from teamchat.core.worktrees.records import find
    from teamchat.core.worktrees.remove import not_merged

    may_write = {member.name for member in writers}
    places = dict.fromkeys(call.part.called(call.target) for call in calls if call.target in may_write)
    places |= dict.fromkeys({process.do} if process.worktree else ())
    trees = [tree for place in places if (tree := find(state, session, place))]
    if lost := not_merged(state, trees):
        quoted = [quote(name) for name in lost]
        merging = [f"teamchat merge {name}" for name in quoted]
        removing = " && ".join(f"teamchat worktrees remove --force {name}" for name in quoted)
        problems = "; ".join(lost.values())
        raise UsageError(
            f"{problems}: they would be judged and merged with the new ones", "\n".join((*merging, removing))
        )


def work_of(db: Database, session: int, turn: Turn, outcome: Outcome | None) -> Work:
    """Collect the changes of the `turn` with that `outcome`, and of earlier turns that failed in the same part."""
    earlier = (other for other in turns_of_route(db, session, turn) if other.id != turn.id and other.undone is None)
    outcomes = [outcome, *(other.outcome for other in earlier)]
    all_changes = [known.changes for known in outcomes if known and isinstance(known.changes, FileChanges)]
    files = {file.path for changes in all_changes for file in changes.files}
    return Work(tuple(sorted(files)), max((changes.more for changes in all_changes), default=0))


def process_of(team: Team, name: str, given: ProcessSettings = DEFAULTS) -> Process:
    """Make the process of that name: a kind, or a name of the team file. The `given` settings replace its own.

    Raises `UnknownName` for a process or a member that is not there, and `UsageError` for what such a process does not
    take, for a member that is a person, and for a process that the team cannot run.
    """
    named = _named(team, name)
    settings = replace(named.settings, **{setting: getattr(given, setting) for setting in given.given})
    takes = TAKES[named.kind]
    if unfit := [_option(setting) for setting in settings.given if setting not in takes]:
        kind = named.kind if named.name == named.kind else f"{named.name} ({named.kind})"
        raise UsageError(f"{kind} does not take {listed(*unfit)}; it takes {listed(*map(_option, takes))}")
    if settings.rounds and settings.rounds > MOST_ROUNDS:
        raise UsageError(f"--rounds: expected at most {MOST_ROUNDS}, got {settings.rounds:,}")
    process = _made(team, named, settings)
    if problem := strategy_of(process.kind).check(process):
        raise UsageError(f"{named.name}: {problem}")
    return process


def process_names(team: Team) -> tuple[str, ...]:
    """List the kinds, then the names of the team file."""
    return (*(kind.value for kind in STRATEGIES), *team.processes)


def _named(team: Team, name: str) -> NamedProcess:
    for kind in STRATEGIES:
        if fold(kind) == fold(name):
            return NamedProcess(kind.value, kind.value, DEFAULTS)
    for process in team.processes.values():
        if fold(process.name) == fold(name):
            return process
    raise UnknownName(f"there is no process {name!r}: {nearest(name, process_names(team))}", "teamchat run --help")


def _option(setting: str) -> str:
    return f"--{setting}"


def _made(team: Team, named: NamedProcess, settings: ProcessSettings) -> Process:
    """Make the process with every default filled in."""
    kind, everybody = Kind(named.kind), tuple(member.name for member in team.ai_members)
    if not everybody:
        raise UsageError(f"the team {team.name!r} has no AI member")
    lists = {name: _several(team, name, getattr(settings, name)) for name in ("members", "workers")}
    if kind is Kind.BEST:  # one member may do the task several times
        lists["members"] = tuple(_several(team, "members", (name,))[0] for name in settings.members)
    ones = {name: _one(team, name, getattr(settings, name)) for name in ("lead", "planner", "reducer", "judge")}
    settings = replace(settings, **lists, **ones)
    process = Process(
        kind=kind,
        members=settings.members or everybody,
        lead=settings.lead or team.lead or everybody[0],
        name="" if named.name == named.kind else named.name,
        prompt=named.prompt,
        rounds=settings.rounds or 1,
        jobs=settings.jobs,
        quorum=settings.quorum,
    )
    if kind is Kind.UNTIL:
        process = _verified(team, process, settings)
    process = strategy_of(kind).begin(process, settings, team.limits.turns)
    involved = {*process.members, process.lead, process.planner, process.reducer, process.judge}
    return replace(process, excluded=tuple(name for name in everybody if name not in involved))


def _verified(team: Team, process: Process, settings: ProcessSettings) -> Process:
    """Return the process with its doer, checks and reviewers, and their fallbacks."""
    from teamchat.core.conversation.checking import process_checks
    from teamchat.core.team.checks import named_check, with_needs

    named = [named_check(team.checks, word) for word in dict.fromkeys(settings.check)]
    checks = with_needs(team.checks, named)
    do = _one(team, "do", settings.do) or ""
    review = _several(team, "review", settings.review)
    if do and team.member(do).access == "read":
        raise UsageError(f"{do} may only read, and cannot do the task: --do needs a member that may edit")
    fallbacks = {name: team.member(name).fallback for name in (do, *review) if name}
    return replace(
        process,
        do=do,
        lead=do or process.lead,
        checks=process_checks(checks),
        review=review,
        fallbacks={name: others for name, others in fallbacks.items() if others},
    )


def need_no_mapreduce(db: Database, caller: Caller | None, process: Process) -> None:
    """Raise `UsageError` for a process that verifies files which the other workers of a map-reduce change meanwhile."""
    if process.kind is not Kind.UNTIL or caller is None:
        return
    for record in caller.records:
        with nullcontext(db) if record.store == db.path else closing(Database(record.store, as_it_is=True)) as there:
            part = part_of(there, record.turn)
        if part and part.kind == Kind.MAPREDUCE:
            raise UsageError(
                f"{process.name or process.kind} cannot run in {record.called}, a part of a map-reduce: "
                "others change the files that it checks"
            )


def need_one_tree(team: Team, state: Path, process: Process) -> None:
    """Raise `UsageError` unless the doer, the checks and the reviewers of a process have their files in one git tree.

    Blocks while git looks for it.
    """
    if process.kind is not Kind.UNTIL:
        return
    named = process.name or process.kind
    members = [team.member(name) for name in (process.do, *process.review, *filter(None, (process.planner,)))]
    folders = {f"{member.name} works in": member.cwd for member in members}
    for process_check in process.checks:
        check = None if process_check.command else team.checks.get(process_check.name)
        folders[f"{process_check.name} runs in"] = team.root / check.folder if check else team.root
    if away := [member.name for member in members if member.host]:
        raise UsageError(
            f"{named} checks the files in your folder, and {away[0]} works on another machine: "
            "it needs a member without a host"
        )
    apart = [member.name for member in members if member.workspace == "worktree"]
    if apart and not process.worktree:
        raise UsageError(
            f"{named} checks the files in your folder, and {apart[0]} works in a worktree of its own: "
            'set workspace = "shared" for it, or have all of it done in one with --worktree'
        )
    tops: dict[Path, str] = {}
    for what, folder in folders.items():
        repository = find_repository(folder, state)
        if isinstance(repository, NoRepository):
            raise UsageError(
                f"{named} needs a git work tree, and {what} {folder}: {repository.reason}", repository.hint
            )
        tops.setdefault(repository.top, what)
    if len(tops) > 1:
        (top, first), (other, second) = list(tops.items())[:2]
        raise UsageError(f"{named} needs one git work tree for all: {first} {top}, and {second} {other}")


def _one(team: Team, setting: str, written: str | None) -> str | None:
    return None if written is None else _several(team, setting, (written,))[0]


def _several(team: Team, setting: str, written: Sequence[str]) -> tuple[str, ...]:
    """List the AI members with these names or titles, in that order, each once."""
    resolved = resolve((), team.members, None, to=[Target((name,)) for name in written])
    if resolved.problems:
        problems = "; ".join(problem.message for problem in resolved.problems)
        raise UnknownName(f"{_option(setting)}: {problems}", "teamchat team")
    names = tuple(request.target for request in resolved.requests)
    people = {human.name for human in team.humans}
    if asked := [name for name in names if name in people]:
        raise UsageError(f"{_option(setting)}: {asked[0]} is a person; only AI members take part", "teamchat team")
    return names
