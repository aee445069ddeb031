"""One HTML file to read and search anywhere: no network, no other file, and no text of the conversation can run.

Its Content-Security-Policy allows one style and one script, by their hashes.

Messages become HTML in which nothing can run: Markdown without HTML and images, links only to http.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from markdown_it import MarkdownIt
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from teamchat.cli.exporting.formats import (
    LONGEST_STEP,
    ExportOptions,
    changed_file,
    check_line,
    footer,
    spent_line,
    step_line,
    when,
)
from teamchat.cli.output.checks import in_lines
from teamchat.cli.output.lines import plural
from teamchat.cli.output.terminal.look import colours_of
from teamchat.cli.output.terminal.markdown import LEXERS, LONGEST_LINE
from teamchat.cli.output.terminal.output import ACCESS, NOT_BOUNDED
from teamchat.core.engine.processes.words import Result
from teamchat.core.messages import name_of
from teamchat.core.text.clean import visible
from teamchat.core.transcripts.transcript import MemberTurn, RanCheck, SaidEntry, Transcript, TranscriptStep
from teamchat.patterns import regex
from teamchat.runners.untrusted.json import one_line

LONGEST_OUTPUT = 20_000  # characters of a tool's output; JSON has all of it
WIDEST_BAR = 20  # steps, each a class of the style sheet: the policy allows no style of an element
_OWN_ID = regex(r"msg-[0-9]{1,18}")


def write(transcript: Transcript, options: ExportOptions) -> Iterator[str]:
    del options
    colours = colours_of(transcript.speakers)
    yield from _head(transcript, colours)
    for number, entry in enumerate(transcript.entries, 1):
        if isinstance(entry, RanCheck):
            yield _check(entry, number)
        else:
            yield from (
                _said(entry, number, colours) if isinstance(entry, SaidEntry) else _unanswered(entry, number, colours)
            )
    if transcript.result:
        yield from _result(transcript.result, colours)
    if transcript.merges:
        commands = "\n".join(map(escaped, transcript.merges))
        yield f'<article class="result"><header><h2>To be merged</h2></header><pre>{commands}</pre></article>\n'
    script = files("teamchat.cli.exporting").joinpath("page.js").read_text(encoding="utf-8")
    yield f"</main>\n<script>{script}</script>\n</body>\n</html>\n"


def _head(transcript: Transcript, colours: Mapping[str, int]) -> Iterator[str]:
    page = files("teamchat.cli.exporting")
    style = page.joinpath("page.css").read_text(encoding="utf-8") + styles() + _bar_styles() + _member_styles(colours)
    script = page.joinpath("page.js").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    title = escaped(transcript.title or transcript.session)
    said = plural(transcript.messages, "message")
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
    if transcript.spent:
        yield f'<p class="about">{escaped(spent_line(transcript.spent))}</p>\n'
    yield _legend(transcript, colours)
    if transcript.task:
        yield f'<div class="task" dir="auto"><b>Task</b> {rendered(transcript.task)}</div>\n'
    yield (
        '<div class="find" role="search" hidden><input id="search" type="search" placeholder="Search"'
        ' aria-label="Search the conversation" autocomplete="off"><output id="found"></output></div>\n<main>\n'
    )


def _legend(transcript: Transcript, colours: Mapping[str, int]) -> str:
    """Write who speaks: the CLI, the model and the access of each member."""
    people = {said.message.speaker.role_name for said in transcript.said if said.message.speaker.type == "human"}
    models: dict[tuple[str, str, str], dict[str, None]] = {}
    turns = (entry.turn if isinstance(entry, SaidEntry) else entry for entry in transcript.entries)
    for turn in turns:
        if isinstance(turn, MemberTurn):
            access = ACCESS[turn.access] if turn.bounded else NOT_BOUNDED
            known = models.setdefault((turn.member, turn.agent, access), {})
            known |= {turn.model: None} if turn.model else {}
    rows = [(name, "person", "", "") for name in transcript.speakers if name in people]
    rows += [(member, agent, ", ".join(known), access) for (member, agent, access), known in models.items()]
    if not rows:
        return ""
    cells = (
        f'<tr><th scope="row" dir="auto">{_who(name, colours)}</th>'
        + "".join(f"<td>{escaped(cell)}</td>" for cell in rest)
        + "</tr>\n"
        for name, *rest in rows
    )
    return f'<table class="legend">\n{"".join(cells)}</table>\n'


def _result(result: Result, colours: Mapping[str, int]) -> Iterator[str]:
    """Write the outcome of a process, its bars, and the lines that led to it. A bar is as wide as its share of ten."""
    kind, colon, outcome = result.title.partition(": ")
    yield f'<article class="result" id="result">\n<header><h2 dir="auto">{escaped(kind)}{colon}'
    yield f"<b>{escaped(outcome)}</b></h2></header>\n"
    most = max([1, *(bar.count for bar in result.bars)])
    if result.bars:
        yield '<table class="bars">\n'
    for bar in result.bars:
        share = f'<i class="w{round(bar.count * WIDEST_BAR / most)}"></i>'
        who = ", ".join(_who(name, colours) for name in bar.who)
        yield f'<tr><th scope="row" dir="auto">{escaped(bar.label)}</th><td class="bar">{share}</td>'
        yield f"<td>{bar.count:,}</td><td>{who}</td></tr>\n"
    if result.bars:
        yield "</table>\n"
    if result.lines:
        listed = "".join(f'<li dir="auto">{escaped(line)}</li>' for line in result.lines)
        yield f"<ul>{listed}</ul>\n"
    yield "</article>\n"


def _who(name: str, colours: Mapping[str, int]) -> str:
    return f'<span class="who c{colours[name]}">{escaped(name)}</span>' if name in colours else escaped(name)


def _said(said: SaidEntry, number: int, colours: Mapping[str, int]) -> Iterator[str]:
    message = said.message
    to = ", ".join(message.routing.resolved_addressees)
    who = f"<b>{escaped(name_of(message))}</b>" + (f" → {escaped(to)}" if to else "")
    place = message.id if _OWN_ID.fullmatch(message.id) else f"n{number}"
    tags = [*said.state, *(f"image {name}" for name in said.images)]
    yield _begin(place, who, message.timestamp, colours[message.speaker.role_name], said.undone, tags, message.id)
    if said.turn:
        yield _steps(said.turn)
    yield f'<div class="text" dir="auto">{rendered(said.shown)}</div>\n'
    if said.words:
        raw = escaped(message.content)
        yield f"<details><summary>as it was written</summary><pre>{raw}</pre></details>\n"
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


def _check(check: RanCheck, number: int) -> str:
    """Write a line, with the command, the changed files and the end of the output folded below it."""
    place, line = f"n{number}", escaped(check_line(check))
    marked = line if check.status == "green" else f'<span class="failed">{line}</span>'
    tag = ' <span class="tag">undone</span>' if check.undone else ""
    files = "".join(f"<li>{escaped(changed_file(file))}</li>" for file in check.files)
    files += f"<li>and {check.more_files:,} more</li>" if check.more_files else ""
    listed = f'<ul class="files">{files}</ul>' if files else ""
    more = len(check.output) - LONGEST_OUTPUT
    cut = f"({more:,} more characters before; teamchat export --format json has them)\n…" if more > 0 else ""
    output = f"<pre>{cut}{escaped(in_lines(check.output[-LONGEST_OUTPUT:]))}</pre>" if check.output.strip() else ""
    return (
        f'<article id="{place}" class="check{" undone" if check.undone else ""}">\n'
        f'<header><h2 dir="auto">{marked}{tag}</h2>'
        f'<a class="at" href="#{place}" title="check-{check.number}">{when(check.began_ms)}</a></header>\n'
        f"<details><summary><code>{escaped(one_line(check.command, LONGEST_STEP))}</code></summary>"
        f"{listed}{output}</details>\n</article>\n"
    )


def _begin(place: str, who: str, moment: int, colour: int, undone: bool, tags: list[str], name: str) -> str:
    listed = "".join(f' <span class="tag">{escaped(tag)}</span>' for tag in tags)
    return (
        f'<article id="{place}" class="c{colour}{" undone" if undone else ""}">\n'
        f'<header><h2 dir="auto">{who}{listed}</h2>'
        f'<a class="at" href="#{place}" title="{escaped(name)}">{when(moment)}</a></header>\n'
    )


def _steps(turn: MemberTurn) -> str:
    """Write the member's steps, folded; empty without any."""
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


def _step(step: TranscriptStep) -> str:
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
    names = f'{line}<details><summary>{count}</summary><ul class="files">{listed}{more}</ul></details>\n'
    patch = "".join(_patch_lines(turn.patch)) if turn.patch else ""
    return f'{names}<details class="patch"><summary>patch</summary><pre>{patch}</pre></details>\n' if patch else names


def _patch_lines(patch: str) -> Iterator[str]:
    """Mark added and removed lines, but not the `+++` and `---` of a file's heading."""
    head = False
    for line in patch.split("\n"):
        head = (head and not line.startswith("@@")) or line.startswith("diff --git ")
        if head and line.startswith("index "):
            continue
        tag = None if head else {"+": "ins", "-": "del", "@": "b"}.get(line[:1])
        yield f"<{tag}>{escaped(line)}</{tag}>\n" if tag else f"{escaped(line)}\n"


def _bar_styles() -> str:
    return "".join(f".w{share} {{ width: {100 * share / WIDEST_BAR:g}%; }}\n" for share in range(1, WIDEST_BAR + 1))


def _member_styles(colours: Mapping[str, int]) -> str:
    return "".join(f".c{colour} {{ --who: {hexadecimal(colour)}; }}\n" for colour in sorted(set(colours.values())))


def hexadecimal(colour: int) -> str:
    """Convert a terminal colour of the 6×6×6 cube (16 to 231) to `#rrggbb`."""
    red, rest = divmod(colour - 16, 36)
    levels = (0, 95, 135, 175, 215, 255)
    return "#" + "".join(f"{levels[level]:02x}" for level in (red, *divmod(rest, 6)))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


MOST_RENDERED = 50_000  # characters; a longer text is not read as Markdown, which takes more than linear time
MOST_BRACKETS = 2_000  # brackets in a text read as Markdown: each may begin a link
MOST_HIGHLIGHTED = 50_000  # characters of code
MOST_NESTED = 60  # levels; Markdown beyond them would be left out
_HTTP = regex(r"https?://[^\s]+", re.IGNORECASE)
STYLES = {"light": "default", "dark": "github-dark"}


def rendered(text: str) -> str:
    """Render the text as HTML. A text that is too long or nested too deeply is shown unrendered."""
    shown = visible(text)
    if len(shown) > MOST_RENDERED or shown.count("[") > MOST_BRACKETS:
        return as_written(shown)
    tokens = _parser().parse(shown)
    if any(token.level >= MOST_NESTED for token in tokens):
        return as_written(shown)
    html: str = _parser().renderer.render(tokens, _parser().options, {})
    return html


def as_written(text: str) -> str:
    return f'<pre class="plain">{escaped(text)}</pre>'


def escaped(text: str) -> str:
    """Escape text for the content of an element or for a quoted attribute, with codes for invisible characters."""
    return escape(visible(text), quote=True)


def styles() -> str:
    """Write the colours of highlighted code, on light and on dark paper."""
    return "".join(
        f"@media (prefers-color-scheme: {scheme}) {{\n{_token_styles(style)}\n}}\n" for scheme, style in STYLES.items()
    )


def _token_styles(style: str) -> str:
    rules = HtmlFormatter(style=style).get_token_style_defs("pre code")
    return "\n".join(re.sub(r"background-color: [^;}]*;? ?", "", rule) for rule in rules)


@cache
def _parser() -> MarkdownIt:
    options = {"html": False, "breaks": True, "maxNesting": MOST_NESTED + 10, "highlight": _highlighted}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    # an image would be fetched; a definition and a named character would hide what was written
    parser.disable(["image", "reference", "entity"])
    parser.validateLink = lambda url: _HTTP.fullmatch(url) is not None  # type: ignore[method-assign]
    parser.add_render_rule("link_open", _link)
    return parser


def _link(renderer: Any, tokens: Sequence[Any], place: int, options: Any, env: Any) -> str:
    del env
    tokens[place].attrSet("rel", "noopener noreferrer")
    opening: str = renderer.renderToken(tokens, place, options, {})
    return opening


def _highlighted(code: str, language: str, attributes: str) -> str:
    """Highlight the code with spans for its colours; empty for code that is not highlighted."""
    del attributes
    lexer = LEXERS.get(language.lower())
    if not lexer or len(code) > MOST_HIGHLIGHTED or any(len(line) > LONGEST_LINE for line in code.split("\n")):
        return ""
    from pygments import highlight

    coloured: str = highlight(code, get_lexer_by_name(lexer, stripnl=False), HtmlFormatter(nowrap=True))
    return coloured
