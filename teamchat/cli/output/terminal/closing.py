"""How a run ended, at a terminal: why it stopped, who is on hold, and the commands that continue it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby

from teamchat.cli.output.lines import counted, group_of
from teamchat.cli.output.terminal.look import Look
from teamchat.cli.output.terminal.wrap import wrapped
from teamchat.core.engine.state import Route
from teamchat.core.text.clean import printable, visible
from teamchat.core.turn.events import Conclusion

INDENT = "  "


def closing_report(conclusion: Conclusion, width: int, look: Look) -> Iterator[str]:
    """The result of a process. What belongs to a line is below it, further to the right."""
    if conclusion.process is None:
        return
    from teamchat.cli.output.process_report import report_lines

    for line in report_lines(conclusion.process):
        first, *more = wrapped(printable(line), width)
        yield first if line.startswith(INDENT) else look.bold(first)
        yield from more


def closing(conclusion: Conclusion, people: Collection[str], width: int, look: Look) -> Iterator[str]:
    """The lines of an end that is not the normal one. Commands are not broken, so that they can be pasted."""
    if conclusion.done:
        yield from ([look.warn(visible(conclusion.reason))] if conclusion.reason else [])
    else:
        yield from _stopped(conclusion, people, width, look)
    does = "answer" if conclusion.waiting_for else "try"
    for command in (conclusion.hint or "").splitlines():
        yield f"{INDENT}{does}: {look.bold(visible(command))}"


def _stopped(conclusion: Conclusion, people: Collection[str], width: int, look: Look) -> Iterator[str]:
    first, *more = wrapped(visible(_what(conclusion, people)), width - len(INDENT))
    style = look.bad if _failed(conclusion) else look.warn
    yield style(first)
    yield from (f"{INDENT}{style(line)}" for line in more)
    if conclusion.held:
        yield from (f"{INDENT}{line}" for line in wrapped(f"on hold: {on_hold(conclusion.held)}", width - len(INDENT)))


def _failed(conclusion: Conclusion) -> bool:
    return not (conclusion.waiting_for or conclusion.paused)


def _what(conclusion: Conclusion, people: Collection[str]) -> str:
    reason = conclusion.reason or ""
    if conclusion.waiting_for:
        asked = f" asks {conclusion.waiting_for}"
        alone = reason.endswith(asked) and len(people) == 1
        return f"? {reason.removesuffix(asked)} asks you" if alone else f"? {reason}"
    return f"✗ {reason}" if _failed(conclusion) else f"paused: {reason}"


def on_hold(routes: Collection[Route]) -> str:
    """`max + sarah (2), then carol`."""
    groups = (" + ".join(counted(route.target for route in group)) for _, group in groupby(routes, group_of))
    return visible(", then ".join(groups))
