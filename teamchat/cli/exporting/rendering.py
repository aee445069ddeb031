"""Renders what somebody said as HTML in which nothing can run: Markdown without HTML and images, links only to http."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from teamchat.cli.output.terminal.markdown import LEXERS, LONGEST_LINE
from teamchat.core.text.clean import visible
from teamchat.patterns import regex

MOST_RENDERED = 50_000  # characters of a text that is read as Markdown, for which the time grows faster than the text
MOST_BRACKETS = 2_000  # of such a text: each may begin a link
MOST_HIGHLIGHTED = 50_000  # characters of code
MOST_NESTED = 60  # levels; Markdown beyond them would be left out
_HTTP = regex(r"https?://[^\s]+", re.IGNORECASE)
STYLES = {"light": "default", "dark": "github-dark"}


def rendered(text: str) -> str:
    """The text as HTML. One that is too long or nested too deeply is shown as it was written."""
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
    """Text for the content of an element or for a quoted attribute, with the codes of what nobody would see."""
    return escape(visible(text), quote=True)


def styles() -> str:
    """The colours of highlighted code, on light and on dark paper."""
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
    """The code with spans for its colours; empty for what is not highlighted."""
    del attributes
    lexer = LEXERS.get(language.lower())
    if not lexer or len(code) > MOST_HIGHLIGHTED or any(len(line) > LONGEST_LINE for line in code.split("\n")):
        return ""
    from pygments import highlight

    coloured: str = highlight(code, get_lexer_by_name(lexer, stripnl=False), HtmlFormatter(nowrap=True))
    return coloured
