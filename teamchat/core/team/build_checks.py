"""Builds the checks that a team file defines."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from teamchat.core.check import Check
from teamchat.core.made import made_of
from teamchat.core.routing.names import fold
from teamchat.core.team.checks import circle_of
from teamchat.core.team.problems import TeamFileProblem, check_each_once, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from teamchat.core.team.schema import CheckTable

    Program = Callable[[str, str], str]  # Takes the program as it is written, and where.


def build_checks(tables: Mapping[str, CheckTable], program: Program) -> Mapping[str, Check]:
    """Build the checks, by name. Raises `TeamFileProblem`."""
    names: dict[str, str] = {}
    for name in tables:
        if (taken := names.setdefault(fold(name), name)) != name:
            raise TeamFileProblem(f"checks {name!r}: the same name as {taken!r} (case, - and _ are ignored)")
    checks = {name: _check(name, table, program, names) for name, table in tables.items()}
    if circle := circle_of(checks):
        raise TeamFileProblem(f"checks {circle[0]!r}: needs: a circle: {', '.join(circle)}")
    return MappingProxyType(checks)


def _check(name: str, table: CheckTable, program: Program, names: Mapping[str, str]) -> Check:
    return made_of(
        Check,
        table,
        name=name,
        command=_command(table.command, program, f"checks {name!r}: command[0]"),
        timeout_s=table.timeout,
        folder="" if table.folder == "." else table.folder,
        needs=_needs(name, table, names),
        expect=table.expect or "",
    )


def _command(written: str | list[str], program: Program, where: str) -> str | tuple[str, ...]:
    return written if isinstance(written, str) else (program(written[0], where), *written[1:])


def _needs(name: str, table: CheckTable, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the needed checks, as their own tables spell them."""
    where = f"checks {name!r}: needs"
    others = {key: other for key, other in names.items() if other != name}
    for written in table.needs:
        if fold(written) == fold(name):
            raise TeamFileProblem(f"{where}: expected other checks, got {written!r} itself")
        if fold(written) not in others:
            raise TeamFileProblem(f"{where}: no check {written!r}, {nearest(written, others.values())}")
    needs = tuple(others[fold(written)] for written in table.needs)
    check_each_once(needs, where)
    return needs
