"""Running the members of a group: at the same time, except those that may write in the same folder.

Such members get worktrees of their own, unless the team file says `shared` of them or they work outside of git.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from teamchat.core.engine.state import Route
from teamchat.core.team.team import Member, Team
from teamchat.core.turn.events import ConversationEvent, Warned


async def run_together(
    team: Team,
    routes: tuple[Route, ...],
    speak: Callable[[Route], Awaitable[bool]],
    emit: Callable[[ConversationEvent], None],
    may_begin: Callable[[], bool],
    apart: frozenset[str] = frozenset(),
) -> tuple[int, ...]:
    """Let all routes speak. Returns the numbers of those that failed. A failed turn does not stop the others.

    The members of `apart` have worktrees of their own.

    A member that waits for another one speaks only if `may_begin` is true by then; else it has neither spoken nor
    failed. An error of `speak` cancels all others and is raised.
    """
    lines = in_lines(team, routes, apart)
    for line in lines:
        if len(line) > 1:
            *names, last = (route.target for route in line)
            together = f"{', '.join(names)} and {last}"
            emit(Warned(f"{together} may write in the same folder, so they speak one after the other"))

    async def in_turn(line: list[Route]) -> list[int]:
        spoken = [(route, await speak(route)) for route in line if route is line[0] or may_begin()]
        return [route.number for route, succeeded in spoken if not succeeded]

    tasks = [asyncio.create_task(in_turn(line)) for line in lines]
    try:
        return tuple(number for failed in await asyncio.gather(*tasks) for number in failed)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # no turn runs on after an error


def colliding(team: Team, routes: Sequence[Route]) -> frozenset[str]:
    """The members that need worktrees to speak at the same time, and of which the team file says nothing else."""

    def meets(member: Member, route: Route) -> bool:
        others = (theirs for other in routes if other is not route for theirs in _writers(team, other))
        return any(_touch(_place(member), _place(theirs)) for theirs in others)

    writers = ((member, route) for route in routes for member in _writers(team, route))
    return frozenset(member.name for member, route in writers if member.workspace is None and meets(member, route))


def in_lines(team: Team, routes: Iterable[Route], apart: frozenset[str] = frozenset()) -> list[list[Route]]:
    """The routes in lines that may run side by side. Members of one line may write in the same folder."""
    lines: list[list[Route]] = []
    for route in routes:
        touching = [line for line in lines if any(_collide(team, route, other, apart) for other in line)]
        for line in touching:
            lines.remove(line)
        lines.append(sorted((*(other for line in touching for other in line), route), key=_number))
    return sorted(lines, key=lambda line: line[0].number)


def _number(route: Route) -> int:
    return route.number


def _collide(team: Team, one: Route, other: Route, apart: frozenset[str]) -> bool:
    return any(
        _touch(_place(mine, apart), _place(theirs, apart))
        for mine in _writers(team, one)
        for theirs in _writers(team, other)
    )


def _touch(mine: Path, theirs: Path) -> bool:
    return mine.is_relative_to(theirs) or theirs.is_relative_to(mine)


def _writers(team: Team, route: Route) -> list[Member]:
    """The target and its fallbacks, as far as they may write; nobody if the target has left the team."""
    targets = [member for member in team.members if member.name == route.target]
    everybody = [*targets, *(team.member(name) for target in targets for name in target.fallback)]
    return [member for member in everybody if member.access != "read"]


def _place(member: Member, apart: frozenset[str] = frozenset()) -> Path:
    """Where a member writes: in its folder, or in a worktree that nobody else has."""
    if member.workspace == "worktree" or member.name in apart:
        return Path(f"the worktree of {member.name}")
    return Path(os.path.realpath(member.cwd))
