"""The list of conversations: a table at a terminal, one line each elsewhere."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from teamchat.cli.output.lines import moment, plural
from teamchat.core.engine.state import Route, RouteStatus
from teamchat.core.store.checks import CheckRecord
from teamchat.core.store.listing import Listed
from teamchat.core.store.sessions import Session
from teamchat.core.text.clean import printable

StateName = Literal["running", "interrupted", "asks", "on hold", "waiting", "done", "empty"]
STATES: dict[RouteStatus, StateName] = {
    RouteStatus.RUNNING: "interrupted",  # no process runs it any more
    RouteStatus.ASKED: "asks",
    RouteStatus.HELD: "on hold",
    RouteStatus.WAITING: "waiting",
}
MOST_NAMES = 2  # the most members named for a state
LONGEST_NAME, LONGEST_STATE = 16, 26  # columns of the table
LEAST_TITLE = 12  # columns; with less each conversation takes several lines
CURRENT = "▸ "
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400


class SessionState(Struct, frozen=True):
    """The state of a conversation, and `words` about who is at work."""

    name: StateName
    words: str = ""

    def __str__(self) -> str:
        if self.name == "asks":
            return self.words
        if self.name == "done":
            return f"done ({self.words})" if self.words else "done"
        return f"{self.name}: {self.words}" if self.words else self.name


def state_of(listed: Listed, checks: Sequence[CheckRecord] = (), *, held: bool, now: float) -> SessionState:
    """Return the state of a conversation with its unfinished checks; `held`: a process runs it."""
    if checks:
        from teamchat.cli.output.checks import name_and_command  # few conversations have checks

        name, _ = name_and_command(checks[-1])
        if not held:
            return SessionState("interrupted", name)
        return SessionState("running", f"{name}, {clock(max(now - checks[-1].started_at, 0))}")
    waiting = [route for route in listed.queue if route.status is RouteStatus.WAITING]
    if held and (listed.running or waiting):
        return SessionState("running", _running(listed, now))
    if listed.running:
        return SessionState("interrupted", names(turn.member for turn in listed.running))
    for status, name in STATES.items():
        if routes := [route for route in listed.queue if route.status is status]:
            asks = status is RouteStatus.ASKED
            return SessionState(name, _asks(routes[0]) if asks else names(route.target for route in routes))
    return SessionState("done", listed.last.speaker) if listed.last else SessionState("empty")


def _running(listed: Listed, now: float) -> str:
    """Say who runs and for how long, `max, 0:42`, or who is next between two turns."""
    if not listed.running:
        return f"next {next(route.target for route in listed.queue if route.status is RouteStatus.WAITING)}"
    since = max(now - min(turn.started_at for turn in listed.running), 0)
    return f"{names(turn.member for turn in listed.running)}, {clock(since)}"


def _asks(route: Route) -> str:
    return f"{route.by} asks {route.target}"


def names(members: Iterable[str]) -> str:
    known = list(dict.fromkeys(members))
    more = len(known) - MOST_NAMES
    return ", ".join(known[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def clock(seconds: float) -> str:
    """Write a time in seconds as `0:42`, `12:05` or `1:00:05`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def age(then: float, now: float) -> str:
    """Say how long ago a time was: `just now`, `2 min ago`, `3 h ago`, `yesterday`, `4 days ago`.

    A time that is a week ago or more, or to come, is a date.
    """
    passed = now - then
    if -MINUTE_S < passed < MINUTE_S:
        return "just now"
    days = _day(now) - _day(then)
    if passed < 0 or days >= 7:
        return time.strftime("%Y-%m-%d", time.localtime(then))
    if passed < HOUR_S:
        return f"{int(passed / MINUTE_S)} min ago"
    if days == 0:
        return f"{int(passed / HOUR_S)} h ago"
    return "yesterday" if days == 1 else f"{days} days ago"


def _day(seconds: float) -> int:
    """Return the number of the local day."""
    local = time.localtime(seconds)
    return int((seconds + local.tm_gmtoff) // DAY_S)


def cost(session: Session) -> str:
    """Write the cost: `$0.32`, `≥$0.32` if the cost of some turns is unknown, and nothing if all are."""
    if session.cost_usd is None:
        return ""
    return f"{'≥' if session.turns_with_cost < session.turns else ''}${session.cost_usd:.2f}"


def plain_line(listed: Listed, state: SessionState) -> str:
    """Write everything in one line, which a script can search."""
    session = listed.session
    parts = [
        session.name,
        moment(session.used_at),
        str(state),
        f"{plural(session.messages, 'message')}, {plural(session.turns, 'turn')}",
        cost(session),
        session.team,
        f"branch of {listed.branch_of[0]} at {listed.branch_of[1]}" if listed.branch_of else "",
        called(session),
        listed.title,
    ]
    return "  ".join(printable(part) for part in parts if part)


def table(
    rows: Sequence[tuple[Listed, SessionState]], current: Collection[int], width: int, now: float
) -> Iterator[str]:
    """Tabulate the conversations in at most `width` columns, with a mark at those whose id is in `current`.

    Where little room remains for titles, each conversation takes several lines.
    """
    from rich.cells import cell_len

    marks = [CURRENT if listed.session.id in current else "  " for listed, _ in rows]
    names = _column([listed.session.name for listed, _ in rows], LONGEST_NAME)
    titles = [_title(listed) for listed, _ in rows]
    facts = [_facts(listed, state, now) for listed, state in rows]
    aligned = ["  ".join(row) for row in zip(*_columns(facts), strict=True)]
    rest = max(map(cell_len, map("".join, zip(marks, names, aligned, strict=True))))
    room = width - rest - 4
    if room >= LEAST_TITLE:
        for mark, name, title, fact in zip(marks, names, _column(titles, room), aligned, strict=True):
            yield f"{mark}{name}  {title}  {fact}".rstrip()
        return
    for mark, name, title, row in zip(marks, names, titles, facts, strict=True):
        yield fitted(f"{mark}{name}  {printable(title)}", width).rstrip()
        yield from (f"    {line}" for line in _wrapped(row, width - 4))


def called(session: Session) -> str:
    """Name the turn whose agent began the session; empty if a person began it."""
    by = session.caller
    return f"begun in turn {by.turn} of {by.session} by {by.member}" if by else ""


def _title(listed: Listed) -> str:
    of = f"branch of {listed.branch_of[0]}" if listed.branch_of else ""
    notes = ", ".join(filter(None, (of, called(listed.session))))
    return f"{listed.title} ({notes})" if notes else listed.title


def _facts(listed: Listed, state: SessionState, now: float) -> list[str]:
    """Return age, state, messages and cost."""
    runs = state.name == "running"
    when = "running" if runs else age(listed.session.used_at, now)
    return [when, state.words if runs else str(state), plural(listed.session.messages, "message"), cost(listed.session)]


def _columns(facts: Sequence[Sequence[str]]) -> list[list[str]]:
    """Align the facts, column by column."""
    ages, states, counts, costs = ([row[at] for row in facts] for at in range(4))
    digits, wide = max(count.index(" ") for count in counts), max(map(len, costs))
    counts = [" " * (digits - count.index(" ")) + count for count in counts]
    shown = [_column(ages), _column(states, LONGEST_STATE), _column(counts)]
    return [*shown, [text.rjust(wide) for text in costs]] if wide else shown


def _wrapped(parts: Iterable[str], width: int) -> Iterator[str]:
    """Wrap the parts into lines of at most `width` columns."""
    from rich.cells import cell_len

    line = ""
    for part in filter(None, map(printable, parts)):
        if line and cell_len(f"{line}  {part}") > width:
            yield line
            line = ""
        line = fitted(f"{line}  {part}" if line else part, width)
    yield line


def _column(cells: Sequence[str], longest: int | None = None) -> list[str]:
    """Pad the cells to the width of the widest, and cut them to `longest` columns."""
    from rich.cells import cell_len, set_cell_size

    shown = [printable(cell) for cell in cells]
    width = max(map(cell_len, shown))
    width = width if longest is None else min(width, longest)
    return [set_cell_size(fitted(cell, width), width) for cell in shown]


def fitted(text: str, width: int) -> str:
    """Cut the text with `…` if it has more than `width` columns."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"
