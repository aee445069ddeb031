"""What is left of a text without its edits, compared with the rule in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.routing.edits import Edit, without_edits

SPACES = [" ", "  ", "\t", "\u2028", "\u00a0", "\n", "\r", "\r\n"]
WORDS = ["a", "bc", *SPACES, "[NEXT: a]", "\\[NEXT: a]", "[TEAM_TASK]\n"]


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    """A text with edits anywhere in it, except inside a line end."""
    words = draw(st.lists(st.sampled_from(WORDS), max_size=30))
    ends = [0, *accumulate(map(len, re.findall(r"\r\n|(?s:.)", "".join(words))))]
    cuts = sorted(draw(st.lists(st.sampled_from(ends), max_size=12)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    return "".join(words), [Edit(start, end, draw(st.booleans())) for start, end in pairs if start < end]


@given(edited())
def test_a_text_loses_its_edits_line_by_line(case: tuple[str, list[Edit]]) -> None:
    assert without_edits(*case) == at_once(*case)


def at_once(text: str, changes: list[Edit]) -> str:
    """The rule in plain words: each line, joined with the next where an edit reaches over its end."""
    lines = "".join(_lines(text, changes))
    body = lines.rstrip()
    if not body:
        return ""
    spaces = len(body) - len(body.lstrip())
    begin = re.split(r"[\r\n]", lines[:spaces])[-1]
    return begin + body[spaces:] + re.split(r"[\r\n]", lines[len(body) :])[0]


def _lines(text: str, changes: list[Edit]) -> Iterator[str]:
    begin = 0
    for found in re.finditer(r"\r\n|\n|\r|\Z", text):
        if found.start() < begin or any(change.start <= found.start() < change.end for change in changes):
            continue
        inside = [change for change in changes if begin <= change.start < found.end()]
        yield _without(text[begin : found.start()], begin, found[0], inside)
        begin = found.end()


def _without(line: str, begin: int, line_end: str, changes: list[Edit]) -> str:
    gone = {at - begin for change in changes for at in range(change.start, change.end)}
    rest = "".join(sign for at, sign in enumerate(line) if at not in gone)
    first = next((change.start - begin for change in changes if change.tidy), None)
    if first is None:
        return rest + line_end
    lead = "".join(sign for at, sign in enumerate(line[:first]) if at not in gone)
    indentation = lead[: len(lead) - len(lead.lstrip())] if lead.strip() else ""
    tidied = indentation + re.sub(r"\s{2,}", " ", rest.strip())
    return tidied + line_end if tidied else ""
