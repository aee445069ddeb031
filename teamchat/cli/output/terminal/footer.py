"""The lines that end a turn: the files that it changed, and what it took and cost."""

from __future__ import annotations

from collections.abc import Iterator

from teamchat.cli.output.lines import plural, tokens
from teamchat.cli.output.terminal.doing import clock
from teamchat.cli.output.terminal.tools import action, changed
from teamchat.cli.output.terminal.wrap import cells
from teamchat.core.receipt import Outcome, Setup
from teamchat.core.text.clean import printable
from teamchat.runners.events import Denied, ToolCall
from teamchat.runners.file_changes import FileChange

MOST_FILES = 8
INDENT = "  "
BETWEEN = " · "


def files_line(outcome: Outcome) -> str | None:
    """`3 files  notes/cli.py +6 −1  README.md +2`; None if none changed."""
    if not outcome.files:
        return None
    known = outcome.known_changes
    named = [_file(one) for one in known.files] if known else list(map(printable, outcome.files))
    count = known.count if known else len(outcome.files)
    more = count - len(named[:MOST_FILES])
    rest = [f"and {more} more"] if more > 0 else []
    return "  ".join([plural(count, "file"), *named[:MOST_FILES], *rest])


def _file(change: FileChange) -> str:
    if change.added is None or change.removed is None:
        return f"{printable(change.path)} {change.what}"
    gone = " deleted" if change.what == "deleted" else ""
    return f"{printable(change.path)} {changed((change.added, change.removed))}{gone}"


def footer_parts(setup: Setup, outcome: Outcome) -> list[str]:
    """`0:58`, `24k tokens`, `$0.11`, `1 command denied (git push)`. What is unknown says so, except a cost."""
    parts = ["time unknown" if outcome.seconds is None else clock(outcome.seconds), tokens(outcome.usage)]
    if outcome.usage and outcome.usage.cost_usd is not None:
        parts.append(f"${outcome.usage.cost_usd:.2f}")
    if outcome.denied is None:
        parts.append("denied unknown")
    elif outcome.denied:
        parts.append(_denied(outcome.denied, setup.cwd))
    if setup.redacted:
        parts.append(f"{plural(setup.redacted, 'secret')} redacted")
    return parts


def _denied(denied: tuple[Denied, ...], folder: str) -> str:
    first = action(ToolCall("", denied[0].tool, denied[0].detail), folder)
    noun = "command" if all(_runs(one, folder) for one in denied) else "action"
    what = first.what if noun == "command" else f"{first.done} {first.what}".strip()
    more = ", …" if len(denied) > 1 else ""
    return f"{plural(len(denied), noun)} denied ({what}{more})"


def _runs(one: Denied, folder: str) -> bool:
    return action(ToolCall("", one.tool, one.detail), folder).done == "ran"


def aligned(parts: list[str], right: str, width: int) -> Iterator[str]:
    """The parts from the left and `right` at the right margin, on as many lines as they need."""
    lines, line = list[str](), ""
    for part in parts:
        joined = f"{line}{BETWEEN}{part}" if line else INDENT + part
        if line and cells(joined) > width:
            lines.append(line)
            joined = INDENT + part
        line = joined
    gap = width - cells(line) - cells(right)
    yield from lines
    if not right:
        yield line
    elif gap >= 2:
        yield f"{line}{' ' * gap}{right}"
    else:
        yield line
        yield f"{INDENT}{right}"
