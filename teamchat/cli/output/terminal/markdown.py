"""Renders the blocks of a reply as lines with styles. It is imported with the first block: Rich takes a while."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import lru_cache
from io import StringIO
from typing import Literal

from markdown_it import MarkdownIt
from msgspec import Struct
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, ListItem, Markdown, TableElement
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSI_LIGHT, ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from teamchat.cli.output.terminal.look import Look
from teamchat.cli.output.terminal.wrap import TAB, cells, styled_cells, wrapped
from teamchat.core.text.clean import visible
from teamchat.patterns import regex

# Cuts Markdown that streams into blocks that can be shown, each as soon as nothing that follows can change it.
#
# A block begins at the top level: a paragraph, a list item, a heading, a code fence. Nothing is lost: the texts of
# all blocks together are the text. A block that grows too long is given out in parts, which are shown as they are
# written; the parts of a code fence stay code. What follows `MOST` characters is no longer cut at blocks.

LONGEST = 8_000  # characters of a block that is read as Markdown, for which the time grows faster than the text
MOST = 200_000  # characters of one turn that are read as Markdown; the rest is shown as it was written
PER_BLOCK = 100  # characters that one more block counts as; to render one takes as long as 200 of prose
_FENCE = regex(r"( {0,3})(`{3,}|~{3,})[ \t]*([^\n]*)")
_ITEM = regex(r" {0,3}(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)")
_HEADING = regex(r" {0,3}#{1,6}(?:[ \t]|$)")

Kind = Literal["markdown", "code", "plain", "lines"]


class Block(Struct, frozen=True):
    """`text` is what was written; of code in a fence, `code` is what the fence holds, in that `language`.

    `lines` are whole lines, with those that are empty, or a part of a line that is too long.
    """

    kind: Kind
    text: str
    code: str = ""
    language: str = ""


class Blocks:
    """Takes text in pieces and gives blocks. `rest` is what is no complete block yet.

    With `by_lines` all text is given as `lines`, as soon as they are whole. `count` is how many characters were read as
    Markdown.
    """

    def __init__(self, *, by_lines: bool = False, count: int = 0) -> None:
        self.count = count
        self._by_lines = by_lines or count > MOST
        self._lines: list[str] = []  # of the block that is open
        self._size = 0
        self._tail: list[str] = []  # of a line that is not complete
        self._tail_size = 0
        self._fence = ""  # the characters that close the open one
        self._language = ""
        self._fresh = True  # the opening line of the fence is in this block
        self._gap = self._list = False

    def push(self, text: str) -> list[Block]:
        """The blocks that this piece completes."""
        done: list[Block] = []
        at = 0
        while not self._by_lines and (end := text.find("\n", at) + 1):
            line, at = text[at:end], end
            if self._tail:
                line = "".join((*self._tail, line))
                self._tail, self._tail_size = [], 0
            done += self._line(line)
        if self._by_lines:
            done, at = [*done, *self._whole_lines(text, at)], text.rfind("\n", at) + 1 or at
        self._tail.append(text[at:])
        self._tail_size += len(text) - at
        if self._tail_size > LONGEST:
            done += self._long()
        return done

    def flush(self) -> list[Block]:
        """The rest; what is pushed after it is another text."""
        line = "".join(self._tail)
        self._tail, self._tail_size = [], 0
        done = [*(self._line(line) if line else []), *self._cut()]
        self._fence, self._language, self._fresh = "", "", True
        return done

    def rest(self, longest: int) -> str:
        """The end of what is no complete block, of at least `longest` characters if there are as many."""
        parts, size = list[str](), 0
        for part in (*reversed(self._tail), *reversed(self._lines)):
            if size >= longest:
                break
            parts.append(part)
            size += len(part)
        return "".join(reversed(parts))

    def _whole_lines(self, text: str, at: int) -> Iterator[Block]:
        """The lines that the text from `at` on completes, and what is held."""
        end = text.rfind("\n", at) + 1
        tail = self._tail if end else []
        if lines := "".join((*self._lines, *tail, text[at:end])):
            yield Block("lines", lines)
        self._lines, self._size = [], 0
        if end:
            self._tail, self._tail_size = [], 0

    def _line(self, line: str) -> Iterator[Block]:
        if self._by_lines:
            yield Block("lines", line)
        elif self._fence:
            yield from self._in_fence(line)
        elif not line.strip():
            self._gap = True
            self._add(line)
        else:
            yield from self._text(line)
        if self._size > LONGEST:
            yield from self._cut()

    def _in_fence(self, line: str) -> Iterator[Block]:
        self._add(line)
        found = _FENCE.match(line)
        if found and not found[3].strip() and found[2].startswith(self._fence):
            yield from self._cut(closed=True)

    def _text(self, line: str) -> Iterator[Block]:
        item = bool(_ITEM.match(line))
        inside = self._list and line[:1] in " \t" and not (item and self._gap and line[:2] != "  ")
        if inside:
            self._gap = False
            self._add(line)
            return
        opens = _FENCE.match(line)
        if opens and opens[2][0] == "`" and "`" in opens[3]:
            opens = None
        heading = bool(_HEADING.match(line))
        if self._lines and (self._gap or opens or heading):
            yield from self._cut()
        self._list = item if not self._lines else self._list
        self._gap = False
        self._add(line)
        if opens:
            self._fence, self._language = opens[2], opens[3].split(" ")[0].strip()
        elif heading:
            yield from self._cut()

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line)

    def _long(self) -> Iterator[Block]:
        """What there is of a line that is too long to wait for its end, up to a space."""
        line = "".join(self._tail)
        at = line.rfind(" ", LONGEST // 2) + 1 or len(line)
        self._tail, self._tail_size = [line[at:]], len(line) - at
        self._add(line[:at])
        yield from self._cut()

    def _cut(self, *, closed: bool = False) -> Iterator[Block]:
        """The open block, if there is one."""
        kind: Kind = "lines" if self._by_lines else "plain" if self._size > LONGEST else "markdown"
        text = "".join(self._lines)
        self.count += len(text) + PER_BLOCK
        self._by_lines = self._by_lines or self.count > MOST
        lines, fresh = self._lines, self._fresh
        self._lines, self._size, self._gap = [], 0, False
        if self._fence:
            code = "".join(lines[1 if fresh else 0 : -1 if closed else None])
            block = Block("code", text, code, self._language)
            self._fresh = closed
            if closed:
                self._fence = self._language = ""
            if text:
                yield block
            return
        self._list = False
        if text:
            yield Block(kind, text)


CODE_INDENT = "  "
LONGEST_LINE = 200  # characters of a line of code that is highlighted: lexers may be slow
LEXERS = {
    **{
        name: name
        for name in (
            *("bash", "c", "console", "cpp", "csharp", "css", "diff", "docker", "go", "html", "ini", "java"),
            *("javascript", "json", "kotlin", "lua", "make", "php", "python", "ruby", "rust", "scss", "sql"),
            *("swift", "toml", "typescript", "xml", "yaml"),
        )
    },
    **dict.fromkeys(("js", "jsx"), "javascript"),
    **dict.fromkeys(("ts", "tsx"), "typescript"),
    **dict.fromkeys(("sh", "shell", "zsh"), "bash"),
    "py": "python",
    "yml": "yaml",
    "rs": "rust",
    "c++": "cpp",
    "rb": "ruby",
    "dockerfile": "docker",
    "makefile": "make",
    "patch": "diff",
    "golang": "go",
    "cs": "csharp",
}
"""Names that a code fence may have, and the lexer that highlights it. Other code is shown as it is."""
THEME = Theme(
    {
        "markdown.code": "bold",
        **{f"markdown.h{level}": "bold" for level in range(1, 7)},
        "markdown.link": "none",
        "markdown.link_url": "underline",
        "markdown.item.bullet": "none",
        "markdown.item.number": "none",
        "markdown.block_quote": "dim",
        "markdown.hr": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        "markdown.strong": "bold",
        "markdown.em": "italic",
    }
)
DARKER = {"cyan": 31, "bright_cyan": 31, "green": 64, "bright_green": 64, "yellow": 130, "bright_blue": 62}
"""Of the 256 colours, those of `look.COLOURS` in place of the pale ones, which a terminal chooses as it likes."""
NARROW_COLUMN = 6  # columns of the screen that a column of a table needs


def rendered(block: Block, width: int, look: Look) -> list[str]:
    """The lines of a block, none wider than `width`, without empty ones around. The text is harmless already."""
    if block.kind == "code":
        return _code(block, width, look)
    if block.kind == "markdown" and look.styles:
        lines = _trimmed(_markdown(block.text, width, look))
        if lines and max(map(styled_cells, lines)) <= width:
            return lines
    return _trimmed(list(wrapped(block.text, width)))


def _trimmed(lines: list[str]) -> list[str]:
    begin, end = 0, len(lines)
    while begin < end and not lines[begin].strip():
        begin += 1
    while end > begin and not lines[end - 1].strip():
        end -= 1
    return lines[begin:end]


@lru_cache(maxsize=4)
def _console(width: int) -> Console:
    return Console(
        file=StringIO(), width=width, height=100, force_terminal=True, color_system="256", legacy_windows=False,
        highlight=False, emoji=False, markup=False, theme=THEME,
    )  # fmt: skip


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Without what would hide text: HTML, images, definitions of links, named characters."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return parser.disable(["image", "reference", "entity", "html_block", "html_inline", "autolink"])


@lru_cache(maxsize=1)
def _empty() -> _Markdown:
    """Every Markdown of Rich makes a parser of its own, which is not used here and takes as long as all the rest."""
    return _Markdown("", hyperlinks=False)


def _markdown(text: str, width: int, look: Look) -> list[str]:
    source = copy(_empty())
    source.parsed = _parser().parse(text)
    for token in source.parsed:
        for child in token.children or ():
            if child.type == "softbreak":  # the lines of a program's plain text are lines
                child.type = "hardbreak"
            elif child.type == "code_inline":  # it is copied, and read where nothing is bold
                child.content = f"{child.markup}{child.content}{child.markup}"
    console = _console(width)
    lines = console.render_lines(source, console.options, pad=False)
    return [_painted(line, look) for line in lines]


def _painted(segments: list[Segment], look: Look) -> str:
    """A line without spaces at its end."""
    while segments and not segments[-1].text.strip():
        segments = segments[:-1]
    if segments:
        last = segments[-1]
        segments = [*segments[:-1], Segment(last.text.rstrip(), last.style)]
    return "".join(_paint(segment, look) for segment in segments if not segment.control)


def _paint(segment: Segment, look: Look) -> str:
    text = visible(segment.text).replace("\n", " ").replace("\t", " ")  # whatever the parser made of the text
    style = segment.style
    if not text or style is None or not look.styles:
        return text
    if not look.colours:
        style = style.without_color
    return style.render(text, color_system=ColorSystem.EIGHT_BIT)


def _code(block: Block, width: int, look: Look) -> list[str]:
    lexer = LEXERS.get(block.language.lower())
    code = block.code.expandtabs(TAB).rstrip()
    inside = width - len(CODE_INDENT)
    plain = code.split("\n")
    lines = (
        _highlighted(code, lexer, light=look.light)
        if lexer and look.colours and max(map(len, plain)) <= LONGEST_LINE
        else []
    )
    if len(lines) < len(plain):
        return [CODE_INDENT + line for line in wrapped(code, inside)]
    console = _console(inside)
    return [
        (CODE_INDENT + _painted(list(piece.render(console)), look)).rstrip()
        for line, text in zip(lines, plain, strict=False)
        for piece in ([line] if cells(text) <= inside else _broken(line, text, inside))
    ]


def _highlighted(code: str, lexer: str, *, light: bool) -> list[Text]:
    """The lines of the code, and an empty one behind them."""
    theme = _light() if light else Syntax.get_theme("ansi_dark")
    return list(Syntax("", lexer, theme=theme).highlight(code).split("\n", allow_blank=True))


@lru_cache(maxsize=1)
def _light() -> ANSISyntaxTheme:
    """Rich's theme for a light background, whose cyan, green and yellow can hardly be read on white."""
    return ANSISyntaxTheme({token: _darker(style) for token, style in ANSI_LIGHT.items()})


def _darker(style: Style) -> Style:
    number = DARKER.get(style.color.name) if style.color else None
    return style + Style(color=f"color({number})") if number else style


def _broken(line: Text, text: str, width: int) -> Iterator[Text]:
    """A line of code in pieces that fit, broken where `wrapped` breaks it."""
    at = 0
    for piece in wrapped(text, width):
        body = piece.strip()
        begin = text.find(body, at)
        at = begin + len(body)
        indented = Text(piece[: len(piece) - len(piece.lstrip())], end="")
        yield indented.append_text(line[begin:at])


class _Code(CodeBlock):
    """Code in a list or a quote."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        block = Block("code", "", str(self.text), self.lexer_name)
        for line in _code(block, options.max_width, Look(styles=False, colours=False)):
            yield Text(line)


class _Heading(Heading):
    LEVEL_ALIGN = {f"h{level}": "left" for level in range(1, 7)}  # noqa: RUF012 (Rich's)


class _Item(ListItem):
    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        """` 1. first`."""
        width = len(str(last_number)) + 3
        lines = console.render_lines(self.elements, options.update(width=max(options.max_width - width, 1)))
        for place, line in enumerate(lines):
            yield Segment(f"{number}.".rjust(width - 1) + " " if place == 0 else " " * width)
            yield from line
            yield Segment("\n")


class _Rule(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("─" * min(options.max_width, 40), style="dim")


class _Table(TableElement):
    """A table whose words are never cut. One that has no room is shown row by row."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = self.header.row.cells if self.header and self.header.row else []
        rows = [[cell.content for cell in row.cells] for row in self.body.rows] if self.body else []
        if len(head) * NARROW_COLUMN > options.max_width:
            for cells_ in ([cell.content for cell in head], *rows):
                yield Text(" | ").join(cells_)
            return
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=True, header_style="bold")
        for cell in head:
            table.add_column(cell.content, overflow="fold")
        for row in rows:
            table.add_row(*row)
        yield table


class _Markdown(Markdown):
    elements = {  # noqa: RUF012 (Rich's)
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
        "hr": _Rule,
        "table_open": _Table,
        "list_item_open": _Item,
    }
