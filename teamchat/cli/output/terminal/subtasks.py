"""The progress of a map-reduce: who planned it, a line for each subtask, and who merges the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from teamchat.cli.output.lines import plural
from teamchat.cli.output.terminal.doing import WAITS, Doing, sign, spent
from teamchat.cli.output.terminal.look import Look
from teamchat.cli.output.terminal.wrap import cells, cut
from teamchat.core.engine.process import Plan, Process
from teamchat.core.engine.processes.mapreduce import PLANNER, REDUCER, WORKER
from teamchat.core.engine.state import Route

OPEN, DONE, SKIPPED = "·", "✓", "-"
AROUND = 3  # lines besides those of the subtasks: the plan, those that are not shown, and the reducer


class _Row(Struct, frozen=True):
    """A subtask: what it is, who does it, and what that member does. The members of `failed` did it before."""

    number: int
    task: str
    member: str
    state: str
    doing: Doing | None = None
    failed: tuple[str, ...] = ()


class Subtasks(Struct):
    """The subtasks of the newest plan. `routes` are the calls of workers, by the numbers of their subtasks.

    The replies of `answered` came before the output began. Those of `failed` had other workers. `reducing` is the
    number of the reducer's call.
    """

    process: Process
    routes: dict[int, Route] = field(default_factory=dict)
    answered: frozenset[int] = frozenset()
    failed: dict[int, tuple[str, ...]] = field(default_factory=dict)
    reducing: int | None = None

    def moved(self, process: Process, calls: Sequence[Route]) -> None:
        """The process has got further, or is resumed with these calls."""
        self.process = process
        self.answered = frozenset(route.part.number for route in calls if route.part and route.answer is not None)
        for route in calls:
            self.called(route)

    def called(self, route: Route) -> None:
        """A worker is called for a subtask, or another one in its place, or the reducer."""
        if route.part is None or route.part.role not in (WORKER, REDUCER):
            return
        if route.part.role == REDUCER:
            self.reducing = route.number
            return
        number = route.part.number
        before = self.routes.get(number, route).target
        if before != route.target:
            self.failed[number] = (*self.failed.get(number, ()), before)
        self.routes[number] = route

    def lines(
        self, doing: Mapping[int, Doing], now: float, width: int, height: int, look: Look, colour: Callable[[str], int]
    ) -> list[str]:
        """At most `height` lines, none wider than `width`; only the plan while the results are merged.

        None before there is a plan, after the result, and while somebody speaks who is not in the process.
        """
        rows = list(self._rows(doing))
        merging = self.reducing in doing
        works = merging or not doing or any(one.number in doing for one in self.routes.values())
        if not rows or not works or self.process.of(REDUCER) or self.process.over:
            return []
        shown = [] if merging else _most_telling(rows, max(height - AROUND, 1))
        done = sum(row.state == DONE for row in rows)
        planner = self.process.of(PLANNER)[-1].member
        head = f"{planner} planned {plural(len(rows), 'subtask')}, {done} {'is' if done == 1 else 'are'} done"
        more = len(rows) - len(shown)
        return [
            cut(f"{DONE} {head}", width),
            *_drawn(shown, now, width, look, colour),
            *([look.dim(cut(f"  … {more} more", width))] if shown and more else []),
            *([] if merging else [look.dim(cut(f"{OPEN} {self.process.reducer} merges the results", width))]),
        ]

    def _rows(self, doing: Mapping[int, Doing]) -> Iterator[_Row]:
        plans = self.process.of(PLANNER)
        plan = plans[-1].finding if plans else None
        over = {one.part.number: one for one in self.process.of(WORKER)}
        for number, task in enumerate(plan.subtasks if isinstance(plan, Plan) else (), 1):
            if there := over.get(number):
                yield _Row(number, task, there.member, DONE if there.message else SKIPPED)
            elif (route := self.routes.get(number)) is None:
                yield _Row(number, task, "", OPEN)
            elif (now := doing.get(route.number)) is None and number in self.answered:
                yield _Row(number, task, route.target, DONE)
            else:
                yield _row(number, task, route, now, self.failed.get(number, ()))


def _row(number: int, task: str, route: Route, doing: Doing | None, failed: tuple[str, ...]) -> _Row:
    if doing is None or doing.what == WAITS:
        return _Row(number, task, route.target, OPEN, failed=failed)
    answered = doing.ended is not None and not doing.failed
    return _Row(number, task, doing.member, DONE if answered else "", doing, failed)


def _most_telling(rows: Sequence[_Row], most: int) -> list[_Row]:
    """The rows, of which those that nothing happens in are left out first."""
    if len(rows) <= most:
        return list(rows)
    order = sorted(rows, key=lambda row: (bool(row.state), row.state == DONE, row.number))
    return sorted(order[:most], key=lambda row: row.number)


def _drawn(rows: Sequence[_Row], now: float, width: int, look: Look, colour: Callable[[str], int]) -> Iterator[str]:
    numbers = len(str(max((row.number for row in rows), default=0)))
    names = min(max((cells(row.member) for row in rows), default=0), max(width // 4, 1))
    free = max(width - numbers - names - 5, 0)  # beside the sign and the spaces
    rights = [_right(row, now, min(width * 2 // 5, free)) for row in rows]
    right = max(map(cells, rights), default=0)
    room = free - (right + 3 if right else 0)
    for row, told in zip(rows, rights, strict=True):
        name, task = cut(row.member, names), cut(row.task, room)
        left = (
            f"{row.number:>{numbers}} {look.coloured(name, colour(row.member), bold=True)}{' ' * (names - cells(name))}"
        )
        gap = " " * (room - cells(task) + 3)
        mark = sign(row.doing, now, look, colour(row.member)) if row.doing else look.dim(row.state)
        styled = look.dim(task) if row.state == OPEN else task
        yield f"{mark} {left}  {styled}{gap}{look.dim(told)}".rstrip()


def _right(row: _Row, now: float, most: int) -> str:
    """Who has failed, what the member does, and for how long, in at most `most` columns."""
    failed = f"{', '.join(row.failed)} failed" if row.failed else ""
    words = row.doing.words(now) if row.doing and row.state != DONE else ""
    time = spent(row.doing, now) if row.doing else ""
    told = cut(", ".join(filter(None, (failed, words))), most - cells(time) - 3)
    return "   ".join(filter(None, (told, cut(time, most))))
