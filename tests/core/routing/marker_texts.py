"""Texts for tests of the marker grammar: random Markdown, and what a slow scanner would drown in."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

from hypothesis import strategies as st

PATHOLOGICAL = [
    "[",
    "`",
    "` `` ``` ```` ````` ",
    "\\",
    " ",
    "\n",
    "[ ",
    "\\`",
    "[NEXT:",
    "[NEXT: a]",
    "[NEXT: a]\n",
    "\\[NEXT: a]",
    "[TEAM_TASK]\n",
    "[NEXT: a\n",
    "```\n",
    "~~~\n",
    "> ",
    "> \n",
    "- ",
    "1. ",
    "- \n",
    " \t",
    "`[NEXT: a]` ",
    "NEXT: max ",
    "@max\n",
    "［NEXT:",
    "[\u200b",
    "[NE\u200bXT: a] ",
    "[NEXT max",
    "@sarah, ",
    "# x\n",
    "    x\n",
    "- x\n",
    "> x\n\n",
    "-=*_ ",
    "[NEXT: [NEXT: a] ",
    "[TODO: a] [DONE: 1] [DROP: b]",
]
"""Repeated many times."""

_FEW, _MANY = 2_000, 16_000


def grows_linearly(run: Callable[[str], object], piece: str) -> bool:
    """Whether eight times the text takes about eight times as long, not 64 times (the best of some tries)."""
    return any(_seconds(run, piece * _MANY) < 24 * _seconds(run, piece * _FEW) + 0.05 for _ in range(5))


def _seconds(run: Callable[[str], object], text: str) -> float:
    begun = process_time()
    run(text)
    return process_time() - begun


@st.composite
def marked_up(draw: st.DrawFn) -> str:
    """Lines of fences, lists, quotes, backticks and words `W1W`, each word once."""
    words = 0
    lines: list[str] = []
    for kind in draw(st.lists(st.sampled_from(["blank", "fence", "text", "text", "text"]), max_size=10)):
        if kind == "blank":
            lines.append("")
        elif kind == "fence":
            signs = draw(st.sampled_from(["```", "~~~", "````", "```py", "~~~ a"]))
            lines.append(draw(st.sampled_from(["", "  ", "   "])) + signs)
        else:
            line = draw(st.sampled_from(["", " ", "   ", "    ", "- ", "* ", "1. ", "  - ", "> ", "# "]))
            for piece in draw(st.lists(st.sampled_from(["`", "``", "\\", "\\`", "x ", " "]), min_size=1, max_size=4)):
                line += f"{piece}W{words}W"
                words += 1
            lines.append(line)
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines)
