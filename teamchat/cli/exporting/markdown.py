"""Readable Markdown. Messages are quoted, so that nothing in them can pass for another speaker's heading."""

from __future__ import annotations

from collections.abc import Iterator

from teamchat.cli.exporting.formats import (
    LONGEST_STEP,
    ExportOptions,
    changed_file,
    check_line,
    footer,
    heading,
    spent_line,
    step_line,
    when,
)
from teamchat.cli.output.checks import in_lines
from teamchat.core.engine.processes.words import Result
from teamchat.core.text.clean import printable, visible
from teamchat.core.transcripts.transcript import MemberTurn, RanCheck, SaidEntry, Transcript
from teamchat.patterns import regex
from teamchat.runners.untrusted.json import one_line

BLOCK, WIDEST_BAR = "█", 12
MOST_LINES, LONGEST_LINE = 20, 500  # lines of a check's output, and characters of a line
SPECIAL = regex(r"[\\`*_\[\]<>~&|]|^[#+\-=:](?=.)|(?<=^\d)[.)]")


def write(transcript: Transcript, options: ExportOptions) -> Iterator[str]:
    del options
    yield f"# {_plain(transcript.session)}\n\n"
    yield f"Team {_plain(transcript.team)}, begun {when(transcript.began_ms)}.\n"
    if transcript.spent:
        yield f"\n{_plain(spent_line(transcript.spent))}\n"
    if transcript.task:
        yield f"\nThe task:\n\n{_quoted(transcript.task)}\n"
    for entry in transcript.entries:
        if isinstance(entry, RanCheck):
            yield from _check(entry)
        else:
            yield from _said(entry) if isinstance(entry, SaidEntry) else _unanswered(entry)
    if transcript.result:
        yield from _result(transcript.result)
    if transcript.merges:
        yield "\nTo be merged:\n\n"
        yield from (f"    {printable(command)}\n" for command in transcript.merges)


def _result(result: Result) -> Iterator[str]:
    """Write the outcome of a process, a table of its bars, and the lines that led to it."""
    yield f"\n## {_plain(result.title)}\n\n"
    if result.bars:
        yield "| | | | |\n|---|---|---:|---|\n"
        most = max(1, *(bar.count for bar in result.bars))
        for bar in result.bars:
            block = BLOCK * -(-bar.count * WIDEST_BAR // most)
            yield f"| {_plain(bar.label)} | {block} | {bar.count} | {_plain(', '.join(bar.who))} |\n"
        yield "\n"
    yield from (f"- {_plain(line)}\n" for line in result.lines)


def _said(said: SaidEntry) -> Iterator[str]:
    message = said.message
    yield f"\n## {_plain(heading(message))}\n\n"
    facts = [_plain(message.id), when(message.timestamp)]
    facts += said.state
    facts += [f"image {_plain(name)}" for name in said.images]
    yield f"{' · '.join(facts)}\n\n"
    if said.turn:
        yield from _steps(said.turn)
    yield f"{_quoted(said.shown)}\n"
    if said.turn:
        yield from _end(said.turn)


def _unanswered(turn: MemberTurn) -> Iterator[str]:
    yield f"\n## {_plain(turn.member)}: {_plain(turn.failure or turn.status)}\n\n"
    yield f"{when(turn.began_ms)}{' · undone' if turn.undone else ''}\n\n"
    yield from _steps(turn)
    if turn.text.strip():
        yield f"What it had written:\n\n{_quoted(turn.text)}\n"
    yield from _end(turn)


def _check(check: RanCheck) -> Iterator[str]:
    """Write the line of a check, and the last lines of its output."""
    yield f"\n## {_plain(check_line(check))}\n\n"
    yield f"{when(check.began_ms)}{' · undone' if check.undone else ''}\n\n"
    if check.name:
        yield f"- {_plain('ran ' + one_line(check.command, LONGEST_STEP))}\n"
    yield from (f"- {_plain(changed_file(file))}\n" for file in check.files)
    yield f"- and {check.more_files:,} more files\n" if check.more_files else ""
    lines = visible(in_lines(check.output)).strip("\n").split("\n")
    left_out = len(lines) - MOST_LINES
    if check.output.strip():
        yield "\nIt wrote" + (f" (the last {MOST_LINES} of {len(lines):,} lines):" if left_out > 0 else ":")
        quoted = "\n".join(f">     {line[:LONGEST_LINE]}".rstrip() for line in lines[-MOST_LINES:])
        yield f"\n\n{quoted}\n"  # a code block, in which nothing is Markdown


def _steps(turn: MemberTurn) -> Iterator[str]:
    lines = [step_line(step) for step in turn.steps]
    yield from (f"- {_plain(line)}\n" for line in lines)
    if lines:
        yield "\n"


def _end(turn: MemberTurn) -> Iterator[str]:
    yield f"\n{_plain(footer(turn))}\n"
    if turn.files:
        yield "\n"
        yield from (f"- {_plain(changed_file(file))}\n" for file in turn.files)
        yield f"- and {turn.more_files:,} more files\n" if turn.more_files else ""


def _plain(text: str) -> str:
    """Escape one line of text so that Markdown shows it unchanged."""
    return SPECIAL.sub(lambda found: f"\\{found[0]}", printable(text).strip())


def _quoted(text: str) -> str:
    """Quote a text of somebody on its lines. Markdown in it stays Markdown."""
    return "\n".join(f"> {line}" if line else ">" for line in visible(text).strip().splitlines())
