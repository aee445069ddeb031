"""The formats of `teamchat export`, in one table. A format's module is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import cast, get_args

from msgspec import Struct

from teamchat.cli.output.lines import duration, plural, short_number
from teamchat.cli.output.patch import MARKS, counted
from teamchat.cli.output.terminal.tools import action, mark
from teamchat.cli.startup.options import FormatName
from teamchat.core.errors import UsageError
from teamchat.core.messages import ConversationMessage, name_of
from teamchat.core.store.usage import UsageSums
from teamchat.core.text.clean import printable
from teamchat.core.transcripts.transcript import ChangedFile, MemberTurn, RanCheck, Transcript, TranscriptStep
from teamchat.runners.agent_events import ToolCall, ToolResult
from teamchat.runners.untrusted.json import one_line

FOLDER = "."  # every member's folder: a transcript's paths are relative already
LONGEST_STEP = 200  # characters
SAID = {
    "said": "{text}",
    "tool": "{tool}",
    "denied": "denied: {denied}",
    "question": "asked its user: {text}",
    "retry": "tried again: {text}",
    "note": "{text}",
    "error": "error: {text}",
}


def when(milliseconds: int) -> str:
    """Write a moment in local time; in milliseconds if it is too far away for a calendar."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000).strftime("%Y-%m-%d %H:%M")  # noqa: DTZ006 (of any TZ)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"


def heading(message: ConversationMessage) -> str:
    """Write the heading of a message: `kai → max, sarah`."""
    to = ", ".join(message.routing.resolved_addressees)
    return f"{name_of(message)} → {to}" if to else name_of(message)


def step_line(step: TranscriptStep) -> str:
    """Write a step on one line: `read notes/cli.py`, `ran pytest -q ✗ exit 1`."""
    call = ToolCall("", step.name, step.text)
    does = action(call, FOLDER)
    tool = f"{does.done} {does.what}".strip()
    denied = does.what if does.done == "ran" and does.what else tool
    line = one_line(SAID[step.kind].format(tool=tool, denied=denied, text=step.text), LONGEST_STEP)
    return f"{line} {mark(call, ToolResult('', step.output, failed=True))}" if step.failed else line


def footer(turn: MemberTurn) -> str:
    """Write `turn 2 · claude sonnet on gpu1 · 58s · 24k tokens · $0.11 · 3 files`. Unknown parts are left out."""
    used = (turn.input_tokens or 0) + (turn.output_tokens or 0)
    parts = [f"turn {turn.number}", f"{who_ran(turn)} on {turn.host}" if turn.host else who_ran(turn)]
    parts += [duration(turn.seconds)] if turn.seconds is not None else []
    parts += [f"{short_number(used)} tokens"] if used else []
    parts += [f"${turn.cost_usd:.2f}"] if turn.cost_usd is not None else []
    parts += [plural(len(turn.files) + turn.more_files, "file")] if turn.files else []
    return " · ".join(parts)


def who_ran(turn: MemberTurn) -> str:
    """Write `claude sonnet`: the CLI and its model, if that is known."""
    model = turn.model or turn.agent
    return model if turn.agent in model else f"{turn.agent} {model}"


def check_line(check: RanCheck) -> str:
    """Write `check tests: red, exit code 1 · 3.2 s · check-1`, and the number of files that the check changed."""
    name = check.name or one_line(check.command, LONGEST_STEP)
    why = f", {check.reason}" if check.reason else ""
    parts = [f"check {name}: {check.status.replace('_', ' ')}{why}"]
    parts += [f"{check.seconds:.1f} s"] if check.seconds is not None else []
    parts += [f"check-{check.number}"]
    parts += [plural(len(check.files) + check.more_files, "file")] if check.files else []
    return " · ".join(parts)


def changed_file(file: ChangedFile) -> str:
    """Write `M notes/cli.py +6 -1`, or the path alone where only the CLI's own report is known."""
    if file.what is None:
        return file.path
    return counted(file.path, file.added, file.removed, MARKS[file.what])


def spent_line(spent: UsageSums) -> str:
    """Write `5 turns · 2m10s · 40k tokens · $0.32 (2 of 5 turns report a cost)`."""
    shown = (
        (None if spent.seconds is None else duration(spent.seconds), spent.of_seconds, "time"),
        (None if spent.tokens is None else f"{short_number(spent.tokens)} tokens", spent.of_tokens, "tokens"),
        (None if spent.cost_usd is None else f"${spent.cost_usd:.2f}", spent.of_cost, "a cost"),
    )
    return " · ".join([plural(spent.turns, "turn"), *(_of(spent.turns, *figure) for figure in shown)])


def _of(turns: int, text: str | None, known: int, what: str) -> str:
    if text is None:
        return f"{what.removeprefix('a ')} unknown"
    return text if known == turns else f"{text} ({known:,} of {plural(turns, 'turn')} report {what})"


DEFAULT: FormatName = "md"


class ExportOptions(Struct, frozen=True):
    """Options of an export. `max_pause` is the longest pause of a `cast`, in seconds."""

    max_pause: float = 1.5


Write = Callable[[Transcript, ExportOptions], Iterator[str]]
_FORMATS: dict[FormatName, tuple[str, tuple[str, ...]]] = {
    "md": ("markdown.write", (".md", ".markdown")),
    "html": ("html.write", (".html", ".htm")),
    "json": ("as_json.write_object", (".json",)),
    "jsonl": ("as_json.write_lines", (".jsonl", ".ndjson")),
    "cast": ("asciicast.write_cast", (".cast",)),
    "svg": ("svg.write_svg", (".svg",)),
    "snapshot": ("as_json.write_snapshot", ()),
}
"""The module and function of each format in this folder, and the endings of files that are written in it by default."""


def writer(name: FormatName) -> Write:
    """Find the function that writes a transcript in that format, in pieces."""
    module, function = _FORMATS[name][0].split(".")
    return cast("Write", getattr(import_module(f"teamchat.cli.exporting.{module}"), function))


def format_for(name: FormatName | None, file: Path | None) -> FormatName:
    """Choose the format: the named one, else that of the file's ending, else Markdown. Raises `UsageError`."""
    if name is not None:
        return name
    if file is None:
        return DEFAULT
    ending = file.suffix.lower()
    format_name = next((known for known, (_, endings) in _FORMATS.items() if ending in endings), None)
    if format_name is None:
        names = ", ".join(get_args(FormatName))
        raise UsageError(
            f"no format has files that end like {printable(file.name)!r}: name one with --format ({names})"
        )
    return format_name
