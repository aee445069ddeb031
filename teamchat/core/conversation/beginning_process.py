"""The process that a person asks for: the kind or the team file's name of it, with the settings of both."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from teamchat.core.engine.process import DEFAULTS, MOST_ROUNDS, Kind, NamedProcess, Process, ProcessSettings
from teamchat.core.engine.processes.table import STRATEGIES, TAKES
from teamchat.core.errors import UnknownName, UsageError
from teamchat.core.routing.markers import Target
from teamchat.core.routing.names import fold
from teamchat.core.routing.requests import resolve
from teamchat.core.team.problems import nearest
from teamchat.core.team.team import Team
from teamchat.runners.untrusted_json import listed


def process_of(team: Team, name: str, given: ProcessSettings = DEFAULTS) -> Process:
    """The process of that name: a kind, or a name of the team file, whose settings the `given` ones replace.

    Raises `UnknownName` for a process or a member that is not there, and `UsageError` for what such a process does not
    take, for a member that is a person, and for a process that the team cannot run.
    """
    named = _named(team, name)
    settings = replace(named.settings, **{setting: getattr(given, setting) for setting in given.given})
    _check_taken(named, settings)
    if settings.rounds and settings.rounds > MOST_ROUNDS:
        raise UsageError(f"--rounds: expected at most {MOST_ROUNDS}, got {settings.rounds:,}")
    process = _made(team, named, settings)
    if problem := STRATEGIES[process.kind].check(process):
        raise UsageError(f"{named.name}: {problem}")
    return process


def process_names(team: Team) -> tuple[str, ...]:
    """The kinds, then the names of the team file."""
    return (*(kind.value for kind in STRATEGIES), *team.processes)


def _named(team: Team, name: str) -> NamedProcess:
    for kind in STRATEGIES:
        if fold(kind) == fold(name):
            return NamedProcess(kind.value, kind.value, DEFAULTS)
    for process in team.processes.values():
        if fold(process.name) == fold(name):
            return process
    raise UnknownName(f"there is no process {name!r}: {nearest(name, process_names(team))}", "teamchat run --help")


def _check_taken(named: NamedProcess, settings: ProcessSettings) -> None:
    takes = TAKES[named.kind]
    if unfit := [_option(setting) for setting in settings.given if setting not in takes]:
        kind = named.kind if named.name == named.kind else f"{named.name} ({named.kind})"
        raise UsageError(f"{kind} does not take {listed(*unfit)}; it takes {listed(*map(_option, takes))}")


def _option(setting: str) -> str:
    return f"--{setting}"


def _made(team: Team, named: NamedProcess, settings: ProcessSettings) -> Process:
    """The process with every default filled in."""
    kind, everybody = Kind(named.kind), tuple(member.name for member in team.ai_members)
    if not everybody:
        raise UsageError(f"the team {team.name!r} has no AI member")
    lists = {name: _several(team, name, getattr(settings, name)) for name in ("members", "workers")}
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
    )
    process = STRATEGIES[kind].begin(process, settings, team.limits.turns)
    involved = {*process.members, process.lead, process.planner, process.reducer, process.judge}
    return replace(process, excluded=tuple(name for name in everybody if name not in involved))


def _one(team: Team, setting: str, written: str | None) -> str | None:
    return None if written is None else _several(team, setting, (written,))[0]


def _several(team: Team, setting: str, written: Sequence[str]) -> tuple[str, ...]:
    """The AI members of these names or titles, in that order, each once."""
    found = resolve((), team.members, None, to=[Target((name,)) for name in written])
    if found.problems:
        problems = "; ".join(problem.message for problem in found.problems)
        raise UnknownName(f"{_option(setting)}: {problems}", "teamchat team")
    names = tuple(request.target for request in found.requests)
    people = {human.name for human in team.humans}
    if asked := [name for name in names if name in people]:
        raise UsageError(f"{_option(setting)}: {asked[0]} is a person; only AI members take part", "teamchat team")
    return names
