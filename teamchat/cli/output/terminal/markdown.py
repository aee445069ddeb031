"""Renders the blocks of a reply as lines with styles. It is imported with the first block: Rich takes a while."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import lru_cache
from io import StringIO

from markdown_it import MarkdownIt
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, ListItem, Markdown, TableElement
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSI_LIGHT, ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from teamchat.cli.output.terminal.blocks import MarkdownBlock
from teamchat.cli.output.terminal.look import Look
from teamchat.cli.output.terminal.wrap import TAB, cells, styled_cells, wrapped
from teamchat.core.text.clean import visible

CODE_INDENT = "  "
LONGEST_LINE = 200  # characters; a longer line of code is not highlighted: lexers may be slow
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
"""Colours among the 256 (those of `look.COLOURS`) in place of pale ones, which each terminal defines for itself."""
NARROW_COLUMN = 6  # columns of the screen that a column of a table needs


def rendered(block: MarkdownBlock, width: int, look: Look) -> list[str]:
    """Render a block in lines, none wider than `width`, without empty ones around. The text is harmless already."""
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
    """Build a parser without what would hide text: HTML, images, definitions of links, named characters."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return parser.disable(["image", "reference", "entity", "html_block", "html_inline", "autolink"])


@lru_cache(maxsize=1)
def _empty() -> _Markdown:
    """Build a Markdown to copy: each builds a parser that is not used here, and that takes as long as all the rest."""
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
    """Paint a line without spaces at its end."""
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


def _code(block: MarkdownBlock, width: int, look: Look) -> list[str]:
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
    """Highlight the lines of the code, and add an empty one behind them."""
    theme = _light() if light else Syntax.get_theme("ansi_dark")
    return list(Syntax("", lexer, theme=theme).highlight(code).split("\n", allow_blank=True))


@lru_cache(maxsize=1)
def _light() -> ANSISyntaxTheme:
    """Darken Rich's theme for a light background, whose cyan, green and yellow are hard to read on white."""
    return ANSISyntaxTheme({token: _darker(style) for token, style in ANSI_LIGHT.items()})


def _darker(style: Style) -> Style:
    number = DARKER.get(style.color.name) if style.color else None
    return style + Style(color=f"color({number})") if number else style


def _broken(line: Text, text: str, width: int) -> Iterator[Text]:
    """Break a line of code into pieces that fit, where `wrapped` breaks it."""
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
        block = MarkdownBlock("code", "", str(self.text), self.lexer_name)
        for line in _code(block, options.max_width, Look(styles=False, colours=False)):
            yield Text(line)


class _Heading(Heading):
    LEVEL_ALIGN = {f"h{level}": "left" for level in range(1, 7)}  # noqa: RUF012 (Rich's)


class _Item(ListItem):
    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        """Render the item with its number: ` 1. first`."""
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
