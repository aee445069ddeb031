"""Short texts that several outputs share, such as the line at a turn's end and how a run ended."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from teamchat.assemblers.parts import SUMMARY
from teamchat.core.engine.state import Route, RouteStatus
from teamchat.core.engine.strategies import part_in_words
from teamchat.core.messages import Span
from teamchat.core.receipt import Outcome, Setup
from teamchat.core.routing.todos import Change
from teamchat.core.store.turns import Turn
from teamchat.core.text.clean import printable, visible
from teamchat.core.text.commands import quote
from teamchat.core.turn.run_events import Conclusion, GroupCompared, LessonsFound
from teamchat.runners.agent_events import Usage
from teamchat.runners.untrusted.file_changes import FileChange

if TYPE_CHECKING:
    from teamchat.core.store.lessons import Lesson
    from teamchat.core.store.summaries import Summary


def note(text: str) -> None:
    """Print one line of progress or warning on stderr."""
    print(f"· {text}", file=sys.stderr, flush=True)


def confirmed(question: str) -> bool:
    """Return whether the person at the terminal answers yes."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):  # Ctrl-D leaves the cursor behind the question
        print(file=sys.stderr)
    return answer.strip().lower() in ("y", "yes")


def duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def tokens(usage: Usage | None) -> str | None:
    """Write the number of tokens: `24k tokens`; None where it is unknown."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    return f"{short_number(usage.input_tokens + usage.output_tokens)} tokens"


def short_number(number: float) -> str:
    """Write the number in full up to four digits, else in thousands or millions."""
    if number < 10_000:
        return f"{round(number)}"
    return f"{round(number / 1000)}k" if number < 10_000_000 else f"{round(number / 1_000_000)}M"


def left_out(member: str, setup: Setup) -> str | None:
    """Say which history and layers a turn was not shown, and which limit cut them; None if it was shown everything.

    `max sees 12 of 40 messages, 1.2 MB left out (max_prompt_tokens)`
    """
    trimmed = setup.trimmed
    sees: list[str] = []
    if trimmed.history_messages:
        messages = sum(block.messages for block in setup.blocks)
        sees.append(f"{messages} of {messages + trimmed.history_messages} messages")
    if trimmed.layers:
        sees.append(f"no {', '.join(part_name(layer) for layer in trimmed.layers)}")
    if trimmed.long_messages:
        sees.append(f"{plural(trimmed.long_messages, 'long message')} without the middle")
    limits = [trimmed.limit, "max_message_tokens" if trimmed.long_messages else None]
    named = ", ".join(filter(None, limits))
    return f"{member} sees {', '.join(sees)}, {size(trimmed.bytes)} left out ({named})" if sees else None


def without_line(vendor: str, lost: Sequence[str]) -> str:
    """Say what the turn lacks: `without, against plain claude: git, web, MCP (2 servers)`."""
    return f"without, against plain {vendor}: {', '.join(lost)}"


def part_name(name: str) -> str:
    """Return the name of a prompt's part in docs/context.md."""
    return "summary" if name == SUMMARY else name.removesuffix("__context")


def size(number: int) -> str:
    """Write a size in bytes up to four digits, else in KB or MB."""
    if number < 10_000:
        return f"{number:,} bytes"
    return f"{number / 1000:.0f} KB" if number < 1_000_000 else f"{number / 1_000_000:.1f} MB"


def turn_line(member: str, setup: Setup, outcome: Outcome, *, unknown: bool = True) -> str:
    """Sum up a turn: `max · 2m14s · 3 files · 182k tokens · $0.41 · 0 denied`. Unknown values say so, except a cost.

    Without `unknown` tokens and denials that are unknown are left out. The number of secrets removed from its prompt
    comes last, if there were any.
    """
    parts = [member, "time unknown" if outcome.seconds is None else duration(outcome.seconds)]
    if outcome.files:
        changes = outcome.known_changes
        parts.append(plural(changes.count if changes else len(outcome.files), "file"))
    if spent := tokens(outcome.usage) or ("tokens unknown" if unknown else None):
        parts.append(spent)
    if outcome.usage and outcome.usage.cost_usd is not None:
        parts.append(f"${outcome.usage.cost_usd:.2f}")
    if outcome.denied is not None:
        parts.append(f"{len(outcome.denied)} denied")
    elif unknown:
        parts.append("denied unknown")
    if setup.redacted:
        parts.append(f"{plural(setup.redacted, 'secret')} redacted")
    return " · ".join(parts)


Receipt = Callable[[int | str], str]
"""The command that shows the receipt of a turn, or a whole message."""
SHOW: Receipt = "teamchat show {}".format


def compacted(turn: Turn, summary: Summary, receipt: Receipt = SHOW) -> str:
    """Say how far the summary reaches, and which command prints it."""
    return f"summarised up to {summary.through}: {receipt(turn.number)}"


FOLDED_LINES = 20  # a pasted part with more lines is folded


def fold_label(lines: int) -> str:
    """Return the label that stands for a long pasted part."""
    return f"[pasted: {lines:,} lines]"


def folded(text: str, pasted: Iterable[Span]) -> str:
    """Replace each long pasted part of the text with a label."""
    pieces, done = list[str](), 0
    for start, end in pasted:
        lines = text[start:end].rstrip("\n").count("\n") + 1
        if lines > FOLDED_LINES:
            pieces += [text[done:start], fold_label(lines)]
            done = end
    return "".join((*pieces, text[done:]))


BEGINS = {"reply": "begins", "summary": "summarises the conversation", "lessons": "looks for lessons"}


def begins(setup: Setup) -> str:
    """Say what a member does in a turn that begins, and on which host: `begins`, or `begins on gpu1`."""
    return f"{BEGINS[setup.purpose]}{f' on {setup.host}' if setup.host else ''}"


def found_lessons(found: LessonsFound, receipt: Receipt = SHOW) -> str:
    """Say how many lessons were found, and which command prints the whole answer."""
    number = plural(len(found.found), "new lesson") if found.found else "no new lesson"
    return f"found {number}: {receipt(found.turn.number)}"


def learned(lesson: Lesson) -> str:
    return f"lesson {lesson.number} is learned"


def plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def closing_lines(conclusion: Conclusion) -> list[str]:
    """Say how the run ended, and how to continue it. If everything is done, only an unmet verdict is told."""
    if conclusion.done:
        lines = [conclusion.reason] if conclusion.reason else []
    else:
        lines = [f"{_what(conclusion)}: {conclusion.reason}{_left(conclusion)}"]
    what = "answer" if conclusion.waiting_for else "try"
    return [*lines, *(f"{what}: {command}" for command in (conclusion.hint or "").splitlines())]


def _what(conclusion: Conclusion) -> str:
    if conclusion.waiting_for:
        return "waiting"
    return "paused" if conclusion.paused else "failed"


def _left(conclusion: Conclusion) -> str:
    names = ", ".join(counted(route.target for route in conclusion.held))
    return f"; held: {names}" if names else ""


def counted(names: Iterable[str]) -> Iterator[str]:
    """List each name once, with its number if it is there several times: `sarah (3)`."""
    counts = Counter(names)
    return (f"{name} ({number})" if number > 1 else name for name, number in counts.items())


def exact(prompt: bytes) -> bytes:
    """Return the bytes unchanged, but visible at a terminal: anybody may have written a prompt, and could deceive."""
    return visible(prompt.decode(errors="replace")).encode() if sys.stdout.isatty() else prompt


def called(route: Route) -> str:
    """Name the member whose turn waits or is dropped, and who called it, or what it does in a process."""
    if route.part:
        return f"{route.target}, {part_in_words(route.part)}, for {route.request}"
    return f"{route.target}, called by {route.by} in {route.parent}"


def gone(route: Route) -> str:
    """Say that the route has left the queue without a turn of its own."""
    if route.status is RouteStatus.JOINED:
        return f"one turn of {route.target} answers {route.by}'s call in {route.parent}, too"
    return f"dropped: {called(route)}"


def group_of(route: Route) -> object:
    """Return a value that is equal for routes of one group, and different for any others."""
    return route.number if route.group is None else (route.parent, route.group)


def refusal(route: Route, limit: int) -> str:
    """Say that the queue has no room for a member."""
    return f"{route.target} was not queued: {limit} are waiting already"


def todo_line(change: Change, where: str = "") -> str:
    """Say what happened to a todo, and where."""
    return f"todo {change.number} {change.what} by {change.by}{where}: {printable(change.text)}"


def compared_lines(compared: GroupCompared) -> list[str]:
    """Tabulate the files that a group's members have changed, a column each, and add what two of them both changed."""
    members = [difference.member for difference in compared.members]
    cells = {
        difference.member: {file.path: _cell(file) for file in difference.files} for difference in compared.members
    }
    paths = sorted({path for files in cells.values() for path in files})[:MOST_COMPARED]
    rows = [["side by side", *members], *([path, *(cells[name].get(path, "") for name in members)] for path in paths)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if more := len({path for files in cells.values() for path in files}) - len(paths):
        table.append(f"and {plural(more, 'file')} more: teamchat worktrees")
    clashes = [
        f"{' and '.join(conflict.members)} both changed {conflict.path} ({conflict.why})"
        for conflict in compared.conflicts
    ]
    merging = [] if compared.judged or compared.goes_on else [f"teamchat merge {quote(name)}" for name in members]
    return [*table, *clashes, *([f"bring one in: {', or '.join(merging)}"] if merging else [])]


MOST_COMPARED = 20


def _cell(file: FileChange) -> str:
    return file.what if file.added is None else f"+{file.added} −{file.removed}"


def moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
