"""Builds the processes that a team file names."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from teamchat.core.check import Check
from teamchat.core.engine.processes.table import TAKES, takers
from teamchat.core.engine.workflow import NamedProcess, ProcessSettings
from teamchat.core.errors import UsageError
from teamchat.core.made import made_of
from teamchat.core.routing.names import fold
from teamchat.core.team.checks import named_check
from teamchat.core.team.problems import TeamFileProblem, check_each_once, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from teamchat.core.team.schema import ProcessTable
    from teamchat.core.team.team import Member

_LISTS, _ONES = ("members", "workers", "review"), ("planner", "reducer", "judge", "lead", "do")


def build_processes(
    tables: Mapping[str, ProcessTable], members: Iterable[Member], checks: Mapping[str, Check]
) -> Mapping[str, NamedProcess]:
    """Build the processes, by name; `checks` are the checks of the file. Raises `TeamFileProblem`."""
    ai = [member.name for member in members if member.type == "ai"]
    seen: dict[str, str] = {fold(kind): kind for kind in TAKES}
    for name in tables:
        if (taken := seen.setdefault(fold(name), name)) in TAKES:
            raise TeamFileProblem(f"processes {name!r}: expected another name, {taken} is a kind of process")
        if taken != name:
            raise TeamFileProblem(f"processes {name!r}: the same name as {taken!r} (case, - and _ are ignored)")
    return MappingProxyType({name: _process(name, table, ai, checks) for name, table in tables.items()})


def _process(name: str, table: ProcessTable, ai: list[str], checks: Mapping[str, Check]) -> NamedProcess:
    where = f"processes {name!r}"
    if unfit := sorted(table.model_fields_set - {"kind", "prompt", *TAKES[table.kind]}):
        kinds = " or ".join(f'"{kind}"' for kind in takers(unfit[0]))
        fits = f"expected only with kind = {kinds}" if kinds else "no kind of process takes it"
        raise TeamFileProblem(f"{where}: {unfit[0]}: {fits}")
    check_each_once(table.options, f"{where}: options")
    if len(table.options) == 1:
        raise TeamFileProblem(f"{where}: options: expected at least two, got one")
    lists = {key: _members(getattr(table, key), ai, f"{where}: {key}") for key in _LISTS}
    ones = {
        key: _member(written, ai, f"{where}: {key}") for key in _ONES if (written := getattr(table, key)) is not None
    }
    settings = made_of(ProcessSettings, table, check=_checks(table.check, checks, f"{where}: check"), **lists, **ones)
    return NamedProcess(name, table.kind, settings, table.prompt or "")


def _members(written: Iterable[str], ai: list[str], where: str) -> tuple[str, ...]:
    names = tuple(_member(name, ai, where) for name in written)
    check_each_once(names, where)
    return names


def _checks(written: Iterable[str], checks: Mapping[str, Check], where: str) -> tuple[str, ...]:
    """Return the names of the checks, and shell commands unchanged."""
    try:
        names = tuple(named_check(checks, word).name for word in written)
    except UsageError as error:
        raise TeamFileProblem(f"{where}: {error}") from None
    check_each_once(names, where)
    return names


def _member(written: str, ai: list[str], where: str) -> str:
    for name in ai:
        if fold(name) == fold(written):
            return name
    raise TeamFileProblem(f"{where}: no AI member {written!r}, {nearest(written, ai)}")
