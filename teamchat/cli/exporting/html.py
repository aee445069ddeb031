"""One HTML file to read and search anywhere: no network, no other file, and nothing in what was said can run.

Its Content-Security-Policy allows one style and one script, by their hashes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.resources import files

from teamchat.cli.exporting.formats import Options
from teamchat.cli.exporting.rendering import escaped, rendered, styles
from teamchat.cli.exporting.words import changed_file, footer, step_line, when
from teamchat.cli.output.lines import plural
from teamchat.cli.output.terminal.look import colours_of
from teamchat.core.messages import name_of
from teamchat.core.transcripts.transcript import MemberTurn, Said, Step, Transcript
from teamchat.patterns import regex

LONGEST_OUTPUT = 20_000  # characters of a tool's output; JSON has all of it
_OWN_ID = regex(r"msg-[0-9]{1,18}")


def write(transcript: Transcript, options: Options) -> Iterator[str]:
    del options
    colours = colours_of(transcript.speakers)
    yield from _head(transcript, colours)
    for number, entry in enumerate(transcript.entries, 1):
        yield from _said(entry, number, colours) if isinstance(entry, Said) else _unanswered(entry, number, colours)
    script = files("teamchat.cli.exporting").joinpath("page.js").read_text(encoding="utf-8")
    yield f"</main>\n<script>{script}</script>\n</body>\n</html>\n"


def _head(transcript: Transcript, colours: Mapping[str, int]) -> Iterator[str]:
    page = files("teamchat.cli.exporting")
    style = page.joinpath("page.css").read_text(encoding="utf-8") + styles() + _member_styles(colours)
    script = page.joinpath("page.js").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    title = escaped(transcript.title or transcript.session)
    said = plural(len(list(transcript.said)), "message")
    yield (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<h1 dir="auto">{title}</h1>\n'
        f'<p class="about">{escaped(transcript.team)} · {when(transcript.began_ms)} · {said}</p>\n'
    )
    if transcript.task:
        yield f'<div class="task" dir="auto"><b>Task</b> {rendered(transcript.task)}</div>\n'
    yield (
        '<div class="find" role="search" hidden><input id="search" type="search" placeholder="Search"'
        ' aria-label="Search the conversation" autocomplete="off"><output id="found"></output></div>\n<main>\n'
    )


def _said(said: Said, number: int, colours: Mapping[str, int]) -> Iterator[str]:
    message = said.message
    to = ", ".join(message.routing.resolved_addressees)
    who = f"<b>{escaped(name_of(message))}</b>" + (f" → {escaped(to)}" if to else "")
    place = message.id if _OWN_ID.fullmatch(message.id) else f"n{number}"
    tags = (["undone"] if said.undone else []) + [f"image {name}" for name in said.images]
    yield _begin(place, who, message.timestamp, colours[message.speaker.role_name], said.undone, tags, message.id)
    if said.turn:
        yield _steps(said.turn)
    yield f'<div class="text" dir="auto">{rendered(message.content)}</div>\n'
    if said.turn:
        yield _end(said.turn)
    yield "</article>\n"


def _unanswered(turn: MemberTurn, number: int, colours: Mapping[str, int]) -> Iterator[str]:
    who = f'<b>{escaped(turn.member)}</b> <span class="failed">{escaped(turn.failure or turn.status)}</span>'
    tags = ["undone"] if turn.undone else []
    yield _begin(f"n{number}", who, turn.began_ms, colours[turn.member], turn.undone, tags, f"turn {turn.number}")
    yield _steps(turn)
    if turn.text.strip():
        text = f'<div class="text" dir="auto">{rendered(turn.text)}</div>'
        yield f"<details><summary>what it had written</summary>{text}</details>\n"
    yield _end(turn)
    yield "</article>\n"


def _begin(place: str, who: str, moment: int, colour: int, undone: bool, tags: list[str], name: str) -> str:
    listed = "".join(f' <span class="tag">{escaped(tag)}</span>' for tag in tags)
    return (
        f'<article id="{place}" class="c{colour}{" undone" if undone else ""}">\n'
        f'<header><h2 dir="auto">{who}{listed}</h2>'
        f'<a class="at" href="#{place}" title="{escaped(name)}">{when(moment)}</a></header>\n'
    )


def _steps(turn: MemberTurn) -> str:
    """What the member did, folded; empty if that is nothing."""
    if not turn.steps:
        return ""
    tools = [step for step in turn.steps if step.kind == "tool"]
    failed = sum(step.failed for step in tools)
    counts = [plural(len(tools), "tool call")] if tools else [plural(len(turn.steps), "step")]
    counts += [f'<span class="failed">{failed} failed</span>'] if failed else []
    denied = sum(step.kind == "denied" for step in turn.steps)
    counts += [f'<span class="failed">{denied} denied</span>'] if denied else []
    inner = "".join(map(_step, turn.steps))
    return f'<details class="steps"><summary>{", ".join(counts)}</summary>\n{inner}</details>\n'


def _step(step: Step) -> str:
    if step.kind == "said":
        return f'<div class="text" dir="auto">{rendered(step.text)}</div>\n'
    line = escaped(step_line(step))
    marked = f'<span class="failed">{line}</span>' if step.failed or step.kind in ("denied", "error") else line
    if step.kind != "tool" or not step.output.strip():
        return f'<p dir="auto">{marked}</p>\n'
    more = len(step.output) - LONGEST_OUTPUT
    cut = f"\n… ({more:,} more characters; teamchat export --format json has them)" if more > 0 else ""
    output = escaped(step.output[:LONGEST_OUTPUT]) + cut
    return f"<details><summary><code>{marked}</code></summary><pre>{output}</pre></details>\n"


def _end(turn: MemberTurn) -> str:
    line = f'<p class="end">{escaped(footer(turn))}</p>\n'
    if not turn.files:
        return line
    listed = "".join(f"<li>{escaped(changed_file(file))}</li>" for file in turn.files)
    more = f"<li>and {turn.more_files:,} more</li>" if turn.more_files else ""
    count = plural(len(turn.files) + turn.more_files, "changed file")
    return f'{line}<details><summary>{count}</summary><ul class="files">{listed}{more}</ul></details>\n'


def _member_styles(colours: Mapping[str, int]) -> str:
    return "".join(f".c{colour} {{ --who: {hexadecimal(colour)}; }}\n" for colour in sorted(set(colours.values())))


def hexadecimal(colour: int) -> str:
    """A colour of the cube of 216 among the 256 of a terminal, as `#rrggbb`."""
    red, rest = divmod(colour - 16, 36)
    levels = (0, 95, 135, 175, 215, 255)
    return "#" + "".join(f"{levels[level]:02x}" for level in (red, *divmod(rest, 6)))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"
