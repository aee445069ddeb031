from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.routing.markers import scan
from teamchat.core.routing.requests import Hint, hints
from tests.core.routing.marker_texts import PATHOLOGICAL, grows_linearly, marked_up
from tests.trials import some

MEMBERS = ("max", "max-power", "sarah")


def noticed(text: str) -> tuple[Hint, ...]:
    return hints(text, scan(text, "human"), MEMBERS)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("NEXT: max", Hint(0, "NEXT: max", "[NEXT: max]")),
        ("Done.\nnext：Max, sarah.", Hint(6, "next：Max, sarah.", "[NEXT: Max, sarah]")),
        ("Over to NEXT: max + sarah", Hint(8, "NEXT: max + sarah", "[NEXT: max + sarah]")),
        ("**NEXT: max-power**", Hint(2, "NEXT: max-power", "[NEXT: max-power]")),
        ("NEXT: @max", Hint(0, "NEXT: @max", "[NEXT: max]")),
        ("NEXT: max, then nobody", Hint(0, "NEXT: max, then", "[NEXT: max]")),
        ("@max can you look?", Hint(0, "@max", "[NEXT: max]")),
        ("Hi\n  @max, @sarah: look", Hint(5, "@max, @sarah", "[NEXT: max, sarah]")),
        ("[NEXT max] look", Hint(0, "[NEXT max", "[NEXT: max]")),
        ("[NEXT:max look", Hint(0, "[NEXT:max look", "[NEXT: max]")),
        ("[NEXT:\nmax]", Hint(0, "[NEXT:", "[NEXT: ...]")),
        ("[FROM: kailai", Hint(0, "[FROM: kailai", "[FROM: ...]")),
        ("［NEXT：max］", Hint(0, "［NEXT：max］", "[NEXT: max]")),
        ("【drop: all】", Hint(0, "【drop: all】", "[DROP: all]")),
        ("［FROM：kai］", Hint(0, "［FROM：kai］", "[FROM: kai]")),
        ("［NEXT: @max, @sarah !P1］", Hint(0, "［NEXT: @max, @sarah !P1］", "[NEXT: max, sarah !P1]")),
        ("［TODO: ask @max］", Hint(0, "［TODO: ask @max］", "[TODO: ask @max]")),
        ("\\[NE\u200bXT: max] ［NEXT：max］", Hint(14, "［NEXT：max］", "[NEXT: max]")),
        ("[DROP: max", Hint(0, "[DROP: max", "[DROP: ...]")),
        ("[NE\u200bXT: max] Hi", Hint(0, "[NE\u200bXT: max]", "[NEXT: max]")),
        ("[\ufeffnext\u2060 : m\u00adax]", Hint(0, "[\ufeffnext\u2060 : m\u00adax]", "[NEXT: max]")),
        ("[NEXT\u202e: max]", Hint(0, "[NEXT\u202e: max]", "[NEXT: max]")),
        ("[N\x00EXT: max]", Hint(0, "[N\x00EXT: max]", "[NEXT: max]")),
        ("［T\U000e0041ODO: look］", Hint(0, "［T\U000e0041ODO: look］", "[TODO: look]")),
    ],
)
def test_a_near_miss_is_noticed_with_what_to_write(text: str, hint: Hint) -> None:
    assert tuple(replace(found, calls=None) for found in noticed(text)) == (hint,)
    assert not any(marker.counts for marker in scan(text, "human"))


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("[NEXT: max", "max"),
        ("[NEXT: nobody", ""),
        ("［NEXT: @max, sarah］", "max, sarah"),
        ("［NEXT: nobody］", ""),
        ("[NEXT max, sarah]", "max, sarah"),
        ("NEXT: max", "max"),
        ("@max look", "max"),
        ("[DROP: max", None),
        ("［DROP: max］", None),
    ],
)
def test_a_near_miss_of_next_says_whom_it_was_to_call(text: str, calls: str | None) -> None:
    assert [hint.calls for hint in noticed(text)] == [calls]


def test_in_a_near_miss_a_misspelt_name_becomes_the_closest_members() -> None:
    def guessed(text: str) -> list[tuple[str, str | None]]:
        found = hints(text, scan(text, "human"), MEMBERS, closest={"macks": "max", "sahra": "sarah"}.get)
        return [(hint.suggestion, hint.calls) for hint in found]

    assert guessed("NEXT: macks, @sahra") == [("[NEXT: max, sarah]", "max, sarah")]
    assert guessed("［NEXT: @macks］") == [("[NEXT: max]", "max")]
    assert guessed("@max macks") == [("[NEXT: max]", "max")]
    assert guessed("@macks, @sahra: look") == [("[NEXT: max, sarah]", "max, sarah")]
    assert guessed("@max, sahra: look") == [("[NEXT: max]", "max")]
    assert guessed("NEXT: nobody") == []


def test_who_was_perhaps_meant_is_looked_for_of_the_first_twenty_names() -> None:
    text = "\n".join(f"NEXT: macks{number}" for number in range(30))
    found = hints(text, scan(text, "human"), MEMBERS, closest=lambda _: "max")
    assert [hint.text for hint in found] == [f"NEXT: macks{number}" for number in range(20)]


@pytest.mark.parametrize(
    "text",
    [
        "[NEXT: max] [ next : sarah ]",
        "\\[NEXT: max] \\[NEXT max] \\[NEXT: max",
        "\\[NE\u200bXT: max] `[NE\u200bXT: max]` 👩\u200d🚀 [NEXT: max]",
        "ask @max about it",
        "max@example.org",
        "@nobody hello",
        "@maxim hello",
        "NEXT: we deploy",
        "[NEXT steps]",
        "CONTEXT: max",
        "`NEXT: max`",
        "```\n@max\n[NEXT: max\n```",
        "> NEXT: max",
        "［note］",
    ],
)
def test_prose_markers_code_and_quotes_give_no_hint(text: str) -> None:
    assert noticed(text) == ()


def test_the_same_near_miss_is_noticed_once_where_it_is_first_no_code() -> None:
    assert noticed("`NEXT: max` NEXT: max\n`NEXT: max`\nNEXT: max") == (Hint(12, "NEXT: max", "[NEXT: max]", "max"),)


def test_hints_come_in_the_order_of_the_text() -> None:
    assert [hint.text for hint in noticed("@max\n［NEXT: a］\nNEXT: max\n[NEXT max]\n[NEXT: x")] == [
        "@max",
        "［NEXT: a］",
        "NEXT: max",
        "[NEXT max",
        "[NEXT: x",
    ]


@given(
    marked_up()
    | st.lists(st.sampled_from(["[", "NEXT", ":", " ", "max", "@", ",", "］", "［", "\n", "`"])).map("".join)
)
def test_every_hint_tells_where_it_is_in_any_text(text: str) -> None:
    assert all(text.startswith(hint.text, hint.position) for hint in noticed(text))


@pytest.mark.parametrize("piece", some(PATHOLOGICAL, "[TEAM_TASK]\n", "[TODO: a] [DONE: 1] [DROP: b]", "`[NEXT: a]` "))
def test_noticing_takes_time_in_proportion_to_the_text(piece: str) -> None:
    assert grows_linearly(noticed, piece)
