from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from teamchat.core.routing.markers import LONGEST_NAMES, Marker, MarkerKind, WhyNot, scan, strip_markers
from teamchat.core.routing.targets import Target, parse_targets
from tests.core.routing.marker_texts import PATHOLOGICAL, grows_linearly, marked_up
from tests.trials import some

NEXT, FROM, TEAM_TASK, DROP, TODO, DONE = MarkerKind


def counting(text: str, author: Literal["human", "ai"] = "human") -> list[Marker]:
    return [marker for marker in scan(text, author) if marker.counts]


def named(text: str) -> list[tuple[str, ...]]:
    """The names that the markers of a text ask to speak, group by group."""
    return [target.names for marker in counting(text) for target in marker.targets]


def reasons(text: str, author: Literal["human", "ai"] = "human") -> list[WhyNot | None]:
    return [marker.why_not for marker in scan(text, author)]


# What is obeyed, whom it names, and what is left of the text.
OBEYED = [
    ("[NEXT:max] Hi", [("max",)], "Hi"),
    ("Hi [NEXT: max]", [("max",)], "Hi"),
    ("[next：max] Hi", [("max",)], "Hi"),
    ("[ Next : max ] Hi", [("max",)], "Hi"),
    ("[\u3000NEXT\u00a0:\tmax] Hi", [("max",)], "Hi"),
    ("[NEXT: a, b] Hi", [("a",), ("b",)], "Hi"),
    ("[NEXT: a，b、c] Hi", [("a",), ("b",), ("c",)], "Hi"),
    ("[NEXT: a,, b,] Hi", [("a",), ("b",)], "Hi"),
    ("[NEXT:a] [NEXT:b] Hi", [("a",), ("b",)], "Hi"),
    ("[NEXT:a][NEXT:a] Hi", [("a",), ("a",)], "Hi"),
    ("[NEXT: a + b] Hi", [("a", "b")], "Hi"),
    ("[NEXT: a＋b, c] Hi", [("a", "b"), ("c",)], "Hi"),
    ("[NEXT: max + nobody] Hi", [("max", "nobody")], "Hi"),
    ("[NEXT: Max, nobody, sarah] Hi", [("Max",), ("nobody",), ("sarah",)], "Hi"),
    ("[NEXT: max-power] Hi", [("max-power",)], "Hi"),
    ("[NEXT: the architect] Hi", [("the architect",)], "Hi"),
    ("[NEXT: mаx] Hi", [("mаx",)], "Hi"),  # with a Cyrillic а: whose name it is, is another matter
    ("[NEXT: \u202emax\u202c] Hi", [("\u202emax\u202c",)], "Hi"),
    ("[NEXT: דוד] Hi", [("דוד",)], "Hi"),
    # A marker with nothing in it is a whole marker that asks for nothing.
    ("[NEXT:] Hi", [], "Hi"),
    ("[NEXT: ] Hi", [], "Hi"),
    ("[NEXT: , + ,] Hi", [], "Hi"),
    # The first ] ends a marker, whatever is in it.
    ("[NEXT: [max]] Hi", [("[max",)], "] Hi"),
    ("[NEXT: `max`] Hi", [("`max`",)], "Hi"),
    # Another marker's beginning ends an unclosed one.
    ("[NEXT: [NEXT: max] Hi", [("max",)], "[NEXT: Hi"),
    ("[NEXT: a [NEXT: b] c] Hi", [("b",)], "[NEXT: a c] Hi"),
    ("[NEXT: a\n[NEXT: b]", [("b",)], "[NEXT: a"),
    # Ordinary places.
    ("# Plan [NEXT:max]", [("max",)], "# Plan"),
    ("| a | [NEXT:max] |\n|---|---|", [("max",)], "| a | |\n|---|---|"),
    ("[see [NEXT:max] here](x)", [("max",)], "[see here](x)"),
    ("[NEXT:max](https://example.org)", [("max",)], "(https://example.org)"),
    ("[NEXT:max]`x`", [("max",)], "`x`"),
    ("- a\n- [NEXT:max]", [("max",)], "- a\n-"),
    ("    [NEXT:max] indented", [("max",)], "indented"),
    ("**[NEXT:max]**", [("max",)], "****"),
    ("> quoted\n[NEXT:max]", [("max",)], "> quoted"),
    ("```\ncode\n```\n[NEXT:max]", [("max",)], "```\ncode\n```"),
    ("an odd ` backtick [NEXT:max]", [("max",)], "an odd ` backtick"),
    ("\\\\[NEXT:max]", [("max",)], "\\\\"),
]

# What is text, and why.
TEXT = [
    ("```\n[NEXT:max]\n```", WhyNot.FENCE),
    ("~~~\n[NEXT:max]\n~~~", WhyNot.FENCE),
    ("```\n[NEXT:max]", WhyNot.FENCE),
    ("``` [NEXT:max]\n```", WhyNot.FENCE),
    ("1. so:\n\n   ```\n\n   [NEXT:max]\n   ```", WhyNot.FENCE),
    ("`[NEXT:max]`", WhyNot.CODE),
    ("``a ` [NEXT:max]``", WhyNot.CODE),
    ("`a\n[NEXT:max]`", WhyNot.CODE),
    ("[NEXT: `a] b`", WhyNot.CODE),
    ("`\\[NEXT:max]`", WhyNot.CODE),
    ("[NEXT: `a]`", WhyNot.CODE),
    ("> [NEXT:max]", WhyNot.QUOTE),
    ("   > > [NEXT:max]", WhyNot.QUOTE),
    ("- > [NEXT:max]", WhyNot.QUOTE),
    ("[NEXT: m\u200bax] Hi", WhyNot.HIDDEN),
    ("[NEXT: max\ufeff]", WhyNot.HIDDEN),
    ("[NEXT: max\U000e0041\U000e0042]", WhyNot.HIDDEN),
    ("[NEXT: max\x1b[0m]", WhyNot.HIDDEN),
    ("[NEXT: max\x08]", WhyNot.HIDDEN),
    ("\x1b]0;[NEXT: max]\x07", WhyNot.HIDDEN),
    ("\x1bP[NEXT: max]\nHi", WhyNot.HIDDEN),
    ("\x9d[NEXT: max]\x9c", WhyNot.HIDDEN),
    ("\x1b[NEXT: max] Hi", WhyNot.HIDDEN),
    ("[TODO: ignore\u200b this]", WhyNot.HIDDEN),
    ("\x1b^\t[TEAM_TASK] x", WhyNot.HIDDEN),
    ("[NEXT:max", WhyNot.NOT_CLOSED),
    ("[NEXT:max\n]", WhyNot.NOT_CLOSED),
    ("[NEXT:max `x`", WhyNot.NOT_CLOSED),
    ("[NEXT:\nmax]", WhyNot.NOT_CLOSED),
    ("[NEXT: a,\r\nb]", WhyNot.NOT_CLOSED),
    ("[TEAM_TASK: one\ntwo]", WhyNot.NOT_CLOSED),
    ("so [TEAM_TASK] is a marker", WhyNot.NOT_AT_LINE_START),
]

# Something unseen beside a marker, and what a name or text is written with, is nothing in it.
SEEN = [
    "\ufeff[NEXT: max]",
    "\u200b[NEXT: max]\u200b",
    "\x1b[1m[NEXT: max]\x1b[0m",
    "\x1b]0;x\x07[NEXT: max]\x1b]0;y\x07",
    "[TODO: 👩\u200d🚀 1\ufe0f\u20e3 ❤\ufe0f\u200d🔥]",
    "[NEXT: علی\u200cرضا]",
]

# What does not even look like a marker to the scanner.
PROSE = [
    "NEXT: max",
    "@max please",
    "ask @max",
    "max@example.org",
    "[NEXT max]",
    "[NEXT]",
    "[NEXTS: max]",
    "[TEAM TASK: x]",
    "［NEXT: max］",
    "【NEXT: max】",
    "[\nNEXT: max]",
    "[NEXT\n: max]",
    "[\u200bNEXT: max]",
    "[DROP]",
    "[FROM]",
    "[TEAM_TAſK: x]",
    "[CONTEXT]\n[MESSAGE]",
    "an array[0] and [a link](NEXT: max)",
]


@pytest.mark.parametrize(("text", "names", "left"), OBEYED)
def test_a_marker_in_an_ordinary_place_names_who_is_next_and_is_removed(
    text: str, names: list[tuple[str, ...]], left: str
) -> None:
    assert named(text) == names
    assert strip_markers(text) == left


@pytest.mark.parametrize(("text", "why"), TEXT)
def test_a_marker_in_code_a_quote_or_unclosed_is_text(text: str, why: WhyNot) -> None:
    assert reasons(text) == [why]
    assert [(marker.targets, marker.task) for marker in scan(text, "human")] == [((), None)]
    assert strip_markers(text) == text


@pytest.mark.parametrize("text", SEEN)
def test_a_marker_that_people_see_whole_is_obeyed(text: str) -> None:
    assert reasons(text) == [None]


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_no_marker(text: str) -> None:
    assert scan(text, "human") == ()
    assert strip_markers(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\\[NEXT: a]", "[NEXT: a]"),
        ("say  \\[NEXT: a]  so", "say  [NEXT: a]  so"),
        ("\\\\\\[NEXT: a]", "\\\\[NEXT: a]"),
        ("\\[NEXT: a] [NEXT: b]", "[NEXT: a]"),
        ("\\[FROM: a] \\[TEAM_TASK] \\[DROP: ALL]", "[FROM: a] [TEAM_TASK] [DROP: ALL]"),
        ("\\[NEXT: a", "[NEXT: a"),
    ],
)
def test_an_escaped_marker_is_literal_text_and_loses_its_backslash(text: str, left: str) -> None:
    assert WhyNot.ESCAPED in reasons(text)
    assert strip_markers(text) == left


@pytest.mark.parametrize(
    ("written", "target"),
    [
        ("a", Target(("a",), 2)),
        ("a !P1", Target(("a",), 1)),
        ("a#p3", Target(("a",), 3)),
        ("a ！P1", Target(("a",), 1)),
        ("a ＃ｐ３", Target(("a",), 3)),
        ("a + b !P1", Target(("a", "b"), 1)),
        ("a !P1 + b", Target(("a", "b"), 1)),
        ("a !P3 + b !P1", Target(("a", "b"), 1)),
        ("a !P4", Target(("a !P4",), 2)),
        ("a P1", Target(("a P1",), 2)),
        ("a !P1 please", Target(("a !P1 please",), 2)),
    ],
)
def test_a_priority_follows_the_name_and_binds_its_group(written: str, target: Target) -> None:
    assert parse_targets(written) == (target,)
    assert counting(f"[NEXT: {written}]")[0].targets == (target,)


def test_a_priority_is_its_own_targets_only() -> None:
    assert parse_targets("a, b !P1, c") == (Target(("a",)), Target(("b",), 1), Target(("c",)))


@pytest.mark.parametrize("written", ["", " ", ",", "+", "!P1", "、 ，"])
def test_nobody_is_named_by_separators(written: str) -> None:
    assert parse_targets(written) == ()


def test_from_names_one_speaker_and_drop_names_any_number() -> None:
    speaker, drop, everything = counting("[FROM: Kai, Lai] [DROP: a, b + c !P1] [drop: ALL]")
    assert (speaker.kind, speaker.names) == (FROM, ("Kai, Lai",))
    assert (drop.kind, drop.names) == (DROP, ("a", "b", "c"))
    assert everything.names == ("ALL",)


@pytest.mark.parametrize(
    ("text", "todos", "left"),
    [
        ("[TODO: write it] Hi", ["write it"], "Hi"),
        ("Hi [todo：write it]", ["write it"], "Hi"),
        ("[ Todo : write\u2028 it  now ]", ["write it now"], ""),
        ("a [TODO: one] b [TODO: two] c", ["one", "two"], "a b c"),
        ("[TODO: one][TODO: one]", ["one", "one"], ""),
        ("[TODO: use a[0] now]", ["use a[0"], "now]"),
        ("[TODO: run `it`] Hi", ["run `it`"], "Hi"),
        ("- a\n- [TODO: b]\n- c", ["b"], "- a\n-\n- c"),
        ("[TODO: 修复登录，然后测试]", ["修复登录，然后测试"], ""),
        ("[TODO: max !P1 + sarah, bob]", ["max !P1 + sarah, bob"], ""),
        ("[TODO:] [TODO: ...] [TODO: ✓] Hi", ["", "", ""], "Hi"),
        ("[TEAM_TASK] Build [TODO: one] on", ["one"], "on"),
        ("`[TODO: a]` \\[TODO: b]", [], "`[TODO: a]` [TODO: b]"),
        ("> [TODO: a]", [], "> [TODO: a]"),
        ("```\n[TODO: a]\n```", [], "```\n[TODO: a]\n```"),
        ("[TODO: one\ntwo]", [], "[TODO: one\ntwo]"),
        ("[TODO] TODO: a [TODO a] [TODOS: a] ［TODO: a］", [], "[TODO] TODO: a [TODO a] [TODOS: a] ［TODO: a］"),
    ],
)
@pytest.mark.parametrize("author", ["human", "ai"])
def test_a_todo_is_one_line_of_text(text: str, todos: list[str], left: str, author: Literal["human", "ai"]) -> None:
    if author == "human" or "TEAM_TASK" not in text:
        assert [marker.todo for marker in counting(text, author) if marker.kind is TODO] == todos
        assert strip_markers(text, author=author) == left


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("[DONE: 1]", ("1",)), ("[done：1，#3、x]", ("1", "#3", "x")), ("[DONE: 1 + 3]", ("1", "3")), ("[DONE:]", ())],
)
def test_done_names_what_is_to_be_closed(text: str, numbers: tuple[str, ...]) -> None:
    (marker,) = counting(text, "ai")
    assert (marker.kind, marker.names) == (DONE, numbers)
    assert strip_markers(f"So. {text}") == "So."


@pytest.mark.parametrize(
    ("text", "task", "left"),
    [
        ("[TEAM_TASK: Design it] Hi", "Design it", "Hi"),
        ("Hi [team_task：Design it]", "Design it", "Hi"),
        ("[TEAM_TASK: use a[0] now]", "use a[0", "now]"),
        ("[TEAM_TASK] Design it", "Design it", ""),
        ("[TEAM_TASK]\nDesign it\n\n  well\n", "Design it\n\n  well", ""),
        ("Hello\n  [TEAM_TASK]\nDesign it\n[NEXT: max] Go", "Design it", "Hello\nGo"),
        ("[TEAM_TASK] Design it. [NEXT: max] Go", "Design it.", "Go"),
        ("[TEAM_TASK]\n`[NEXT: a]`\n\\[NEXT: b]\n[NEXT: c\n[NEXT: d]", "`[NEXT: a]`\n[NEXT: b]\n[NEXT: c", ""),
        ("[TEAM_TASK] a\n[NEXT: b] \\[NEXT: c]", "a", "[NEXT: c]"),
        ("[TEAM_TASK]", "", ""),
        ("[TEAM_TASK:] Hi", "", "Hi"),
    ],
)
def test_a_task_is_in_the_brackets_or_reaches_up_to_the_next_marker(text: str, task: str, left: str) -> None:
    assert [marker.task for marker in counting(text) if marker.kind is TEAM_TASK] == [task]
    assert strip_markers(text) == left


def test_a_block_holds_what_is_behind_its_brackets() -> None:
    (block, _) = counting("[TEAM_TASK] Design it [NEXT: max]")
    assert (block.raw, block.body) == ("[TEAM_TASK] Design it ", " Design it ")


def test_a_marker_of_names_is_so_long_and_no_longer() -> None:
    assert reasons(f"[NEXT: {'x' * (LONGEST_NAMES - 8)}]") == [None]
    assert reasons(f"[NEXT: {'x' * (LONGEST_NAMES - 7)}]") == [WhyNot.TOO_LONG]


def test_a_block_ends_where_the_next_block_begins() -> None:
    assert [marker.task for marker in counting("[TEAM_TASK] a\n[TEAM_TASK] b\n")] == ["a", "b"]


def test_from_and_team_task_are_text_in_an_agents_message() -> None:
    text = "[TEAM_TASK]\nDesign it\n[FROM: kailai]\n[TEAM_TASK: x] [NEXT: max] [DROP: sarah]"
    assert [marker.kind for marker in counting(text, "ai")] == [NEXT, DROP]
    assert set(reasons(text, "ai")) == {None, WhyNot.HUMANS_ONLY}
    assert strip_markers(text, author="ai") == "[TEAM_TASK]\nDesign it\n[FROM: kailai]\n[TEAM_TASK: x]"


def test_a_prompt_quoted_by_an_agent_stays_as_it_is() -> None:
    prompt = "[SYSTEM]\nYou are Sarah\n\n[TEAM_TASK]\nDesign it\n\n[CONTEXT]\n- kailai -> max: Hi\n\n[MESSAGE]\nGo on"
    assert strip_markers(prompt, author="ai") == prompt


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a  b\tc   [NEXT:x]   d  ", "a b\tc d"),
        ("  [NEXT:x]  Hi", "Hi"),
        ("1. a\n   - b  c [NEXT:x]\n   - d", "1. a\n   - b c\n   - d"),
        ("a\n[NEXT:x]\nb", "a\nb"),
        ("a\n\n[NEXT:x]\n\nb", "a\n\n\nb"),
        ("a\r\n[NEXT:x]\r\nb [NEXT:y]\r\nc", "a\r\nb\r\nc"),
        ("a\r[NEXT:x]\rb", "a\rb"),
        ("a  b\rc  d\r[NEXT:x] e", "a  b\rc  d\re"),
        ("a [NEXT:x]\n[NEXT:y] b", "a\nb"),
        ("\r\r  a", "  a"),
        ("\r[NEXT:x]\n", ""),
        ("\ra \r\r", "a "),
        ("[NEXT:x] [NEXT:y]\nHi", "Hi"),
        ("\n \n  a\n\n", "  a"),
        ("def f():\n    return  1\n\n\n# end\t\n", "def f():\n    return  1\n\n\n# end\t"),
        ("[NEXT:x]\n\n    code  here\n\n", "    code  here"),
        (" \n\t", ""),
        ("", ""),
    ],
)
def test_stripping_tidies_only_the_lines_that_held_a_marker(text: str, left: str) -> None:
    assert strip_markers(text) == left


def test_ten_thousand_markers_all_count() -> None:
    text = "[NEXT: a] " * 10_000
    assert len(counting(text)) == 10_000
    assert strip_markers(text) == ""


# Any text, with what the grammar looks for in it far more often than chance would have it.
PIECES = [
    "[NEXT: ",
    "[TEAM_TASK]",
    "[TEAM_TASK: ",
    "[FROM:",
    "[DROP:",
    "[TODO:",
    "[done : ",
    "]",
    "[",
    "a",
    "b, ",
    "+",
    "!P1",
    "x y",
    "：",
    "\\",
]
PIECES += ["x y", "`", "```", "> ", "- ", "  ", "\t", "\n", "\r\n", "\r"]
texts = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | marked_up() | st.text()
authors: st.SearchStrategy[Literal["human", "ai"]] = st.sampled_from(["human", "ai"])


@given(texts, authors)
def test_every_marker_tells_where_it_is_in_any_text(text: str, author: Literal["human", "ai"]) -> None:
    found = scan(text, author)
    assert all(text[marker.start : marker.end] == marker.raw for marker in found)
    assert all(marker.body in marker.raw and marker.raw.startswith("[") for marker in found)
    assert all(one.start < two.start for one, two in pairwise(found))
    assert all(one.end <= two.start for one, two in pairwise(marker for marker in found if marker.counts))


@given(texts, authors)
def test_only_markers_that_count_say_something(text: str, author: Literal["human", "ai"]) -> None:
    silent = [marker for marker in scan(text, author) if not marker.counts]
    assert all(not marker.targets and not marker.names for marker in silent)
    assert all(marker.task is None and marker.todo is None for marker in silent)


@given(texts, authors)
def test_lines_without_a_marker_stay_byte_for_byte(text: str, author: Literal["human", "ai"]) -> None:
    touched: set[int] = set()
    for marker in scan(text, author):
        if marker.counts or marker.why_not is WhyNot.ESCAPED:
            first = len(re.findall(r"\r\n|\n|\r", text[: marker.start]))
            touched.update(range(first, first + len(re.findall(r"\r\n|\n|\r", marker.raw)) + 1))
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    kept = [line for number, line in enumerate(lines) if number not in touched]
    while kept and not kept[0].strip():
        kept.pop(0)
    while kept and not kept[-1].strip():
        kept.pop()
    stripped = strip_markers(text, author=author)
    at = 0
    for line in kept:
        wanted = line if line is not kept[-1] else line.rstrip("\r\n")
        at = stripped.find(wanted, at)
        assert at >= 0
        at += len(wanted)


@given(texts, authors)
def test_a_text_without_markers_only_loses_blank_lines_at_its_ends(text: str, author: Literal["human", "ai"]) -> None:
    assume(not any(marker.counts or marker.why_not is WhyNot.ESCAPED for marker in scan(text, author)))
    stripped = strip_markers(text, author=author)
    begin = text.find(stripped)
    assert begin >= 0
    assert not (text[:begin] + text[begin + len(stripped) :]).strip()
    assert not stripped or text[:begin].endswith(("\r", "\n")) or not begin
    assert not stripped or stripped.strip()


@given(texts, authors)
def test_stripping_again_changes_nothing_where_no_marker_came_to_be(text: str, author: Literal["human", "ai"]) -> None:
    stripped = strip_markers(text, author=author)
    assume(not any(marker.counts or marker.why_not is WhyNot.ESCAPED for marker in scan(stripped, author)))
    assert strip_markers(stripped, author=author) == stripped


@given(st.lists(st.tuples(st.sampled_from(["", "a", "a b", "- c"]), st.sampled_from(["", "[NEXT: x]"])), max_size=8))
def test_no_marker_is_left_of_plain_lines(lines: list[tuple[str, str]]) -> None:
    stripped = strip_markers("\n".join(f"{words} {marker}" for words, marker in lines))
    assert "[" not in stripped
    assert strip_markers(stripped) == stripped


@given(st.text(alphabet="a,+!#P1 ，、＋", max_size=40))
def test_targets_have_names_without_separators(body: str) -> None:
    for target in parse_targets(body):
        assert target.names
        assert all(name == name.strip() and name and not set(name) & set(",，、+＋") for name in target.names)


@pytest.mark.parametrize("piece", some(PATHOLOGICAL, "[TEAM_TASK]\n", "[TODO: a] [DONE: 1] [DROP: b]", "`[NEXT: a]` "))
def test_scanning_and_stripping_take_time_in_proportion_to_the_text(piece: str) -> None:
    assert grows_linearly(strip_markers, piece)


@pytest.mark.parametrize(
    "text", ["[" * 1_000_000, "`" * 1_000_000, "[NEXT: " + "a" * 1_000_000, "\\" * 999_999 + "[NEXT:a]"]
)
def test_a_million_characters_are_read(text: str) -> None:
    assert len(strip_markers(text)) >= 999_998


def test_a_byte_order_mark_at_the_beginning_is_text_before_a_marker() -> None:
    assert [marker.targets for marker in counting("\ufeff[NEXT: a] Hi")] == [(Target(("a",)),)]
    assert reasons("\ufeff[TEAM_TASK]\nDo it") == [WhyNot.NOT_AT_LINE_START]
