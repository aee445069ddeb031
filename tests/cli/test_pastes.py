"""What is pasted into chat in several lines is text: no command, no marker, no call by `@`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from teamchat.cli.chatting.pastes import Pastes
from teamchat.cli.output.lines import fold_label, folded
from teamchat.core.store.images import LARGEST_IMAGE
from tests.cli.helpers import select
from tests.cli.test_chat import leave as leave_by_ctrl_d
from tests.images import png
from tests.program import run_here
from tests.screens import Screen, screen
from tests.scripted_team import Crew, crew

PROMPT, ENTER, CTRL_U, BACKSPACE, UP = "›", "\r", "\x15", "\x7f", "\x1b[A"
LOG = "line\n" * 200


# --- the parts of a text


def prompt() -> tuple[Buffer, Pastes]:
    buffer = Buffer(multiline=True)
    return buffer, Pastes(buffer)


def test_a_paste_of_several_lines_is_a_part_and_one_line_is_typed() -> None:
    buffer, pastes = prompt()
    buffer.insert_text("See ")
    pastes.insert("a\r\nb")
    buffer.insert_text(" and ")
    pastes.insert("[NEXT:max] Hi\n")
    assert pastes.whole() == ("See a\nb and [NEXT:max] Hi", ((4, 7),))


def test_a_long_one_is_folded_and_whole() -> None:
    buffer, pastes = prompt()
    buffer.insert_text("See ")
    pastes.insert(LOG)
    buffer.insert_text(" now")
    assert buffer.text == "See [pasted: 200 lines] now"
    assert pastes.whole() == (f"See {LOG} now", ((4, 4 + len(LOG)),))


def test_what_is_typed_around_a_label_leaves_it() -> None:
    buffer, pastes = prompt()
    pastes.insert(LOG)
    buffer.cursor_position = 0
    buffer.insert_text("[")
    assert pastes.whole() == (f"[{LOG}", ((1, 1 + len(LOG)),))


def test_a_backspace_removes_a_label_as_a_whole() -> None:
    buffer, pastes = prompt()
    buffer.insert_text("See ")
    pastes.insert(LOG)
    buffer.delete_before_cursor(1)
    assert (buffer.text, pastes.whole()) == ("See ", ("See ", ()))


def test_a_label_that_was_cut_is_whole_again_when_it_is_put_back() -> None:
    buffer, pastes = prompt()
    pastes.insert(LOG)
    buffer.save_to_undo_stack()
    buffer.document = Document("", 0)
    assert pastes.whole() == ("", ())
    buffer.insert_text("See [pasted: 200 lines]")
    assert pastes.whole() == (f"See {LOG}", ((4, 4 + len(LOG)),))


def test_two_long_ones_of_one_size_have_labels_of_their_own() -> None:
    buffer, pastes = prompt()
    pastes.insert(LOG)
    pastes.insert(LOG.replace("line", "other"))
    assert buffer.text == "[pasted: 200 lines][pasted: 200 lines, 2]"
    assert pastes.whole()[0] == LOG + LOG.replace("line", "other")


def test_a_part_follows_what_is_typed_before_and_removed_in_it() -> None:
    buffer, pastes = prompt()
    pastes.insert("[NEXT: max]\nx")
    buffer.cursor_position = 0
    buffer.insert_text("Look: ")
    assert pastes.whole()[1] == ((6, 19),)
    buffer.document = Document("Look: [NEXT: max]", 17)
    assert pastes.whole() == ("Look: [NEXT: max]", ((6, 17),))
    pastes.put("")
    assert pastes.whole() == ("", ())


def test_several_lines_at_once_are_pasted_wherever_they_come_from() -> None:
    buffer, pastes = prompt()
    buffer.document = Document("of the history\n[NEXT: max]", 3)
    assert pastes.whole()[1] == ((0, 26),)
    pastes.put("edited\n[NEXT: max]")
    assert pastes.whole() == ("edited\n[NEXT: max]", ())
    buffer.newline(copy_margin=False)
    assert pastes.whole()[1] == ()


edits = st.lists(
    st.tuples(
        st.sampled_from(["type", "paste", "long", "back", "move"]), st.text("ab[\n", max_size=3), st.integers(0, 40)
    ),
    max_size=12,
)


@given(edits=edits)
def test_whatever_is_edited_the_parts_are_in_order_and_within_the_text(edits: list[tuple[str, str, int]]) -> None:
    buffer, pastes = prompt()
    for kind, text, place in edits:
        match kind:
            case "type":
                for letter in text:
                    buffer.insert_text(letter)
            case "paste":
                pastes.insert(f"{text}\n{text}x")
            case "long":
                pastes.insert(f"{text}\n" * 30)
            case "back":
                buffer.delete_before_cursor(max(1, place % 3))
            case _:
                buffer.cursor_position = min(place, len(buffer.text))
        whole, parts = pastes.whole()
        ends = [end for part in parts for end in part]
        assert ends == sorted(ends)
        assert all(0 <= start < end <= len(whole) for start, end in parts)
        if not parts:
            assert whole == buffer.text


def test_a_text_is_shown_with_labels_for_its_long_parts() -> None:
    text = f"See {LOG} and a\nb"
    parts = ((4, 4 + len(LOG)), (len(text) - 3, len(text)))
    assert folded(text, parts) == f"See {fold_label(200)} and a\nb"


# --- images


def test_the_path_of_an_image_is_a_label_and_its_mention(tmp_path: Path) -> None:
    (tmp_path / "a b.png").write_bytes(png())
    (tmp_path / "big.png").write_bytes(png() + bytes(LARGEST_IMAGE))
    whole = f'@"{tmp_path}/a b.png" what?'
    told: list[str] = []
    buffer = Buffer(multiline=True)
    pastes = Pastes(buffer, told.append)
    for typed in (f"'{tmp_path}/a b.png'", f"{tmp_path}/a\\ b.png", f"file://{tmp_path}/a%20b.png"):
        pastes.insert(typed)
        buffer.insert_text("what?")
        assert (buffer.text, pastes.whole()) == ("[image: a b.png] what?", (whole, ()))
        pastes.put("")
    pastes.put(f"{whole}\nsee {whole}\n", ((len(whole), 2 * len(whole) + 6),))
    assert pastes.whole() == (f"{whole}\nsee {whole}\n", ((len(whole), 2 * len(whole) + 6),))
    assert buffer.text == f"[image: a b.png] what?\nsee {whole}\n"
    pastes.put("")
    pastes.insert(f"{tmp_path}/big.png")
    size = len(png()) + LARGEST_IMAGE
    assert told == [f"✗ big.png has {size:,} bytes, and an image may have {LARGEST_IMAGE:,}"]
    assert buffer.text == f"{tmp_path}/big.png"


def test_a_path_that_is_typed_by_a_drag_is_a_label_unless_it_stands_in_a_sentence(tmp_path: Path) -> None:
    for name in ("a b.png", "r.png"):
        (tmp_path / name).write_bytes(png())
    for typed, shown in (
        (f"'{tmp_path}/a b.png' {tmp_path}/r.png ", "[image: a b.png] [image: r.png] "),
        (f"look at {tmp_path}/r.png", f"look at {tmp_path}/r.png"),
        (f"{tmp_path}/gone.png", f"{tmp_path}/gone.png"),
    ):
        buffer, _pastes = prompt()
        for letter in typed:
            buffer.insert_text(letter)
        assert buffer.text == shown
    buffer, pastes = prompt()
    for letter in f"{tmp_path}/r.png ":
        buffer.insert_text(letter)
    buffer.delete_before_cursor()
    assert (buffer.text, pastes.whole()) == ("", ("", ()))


# --- in chat


@contextmanager
def chat(**env: str) -> Iterator[Screen]:
    with screen("chat", env=env) as shown:
        shown.until(lambda text: PROMPT in text)
        yield shown


def pastes(shown: Screen, text: str) -> None:
    shown.child.send(f"\x1b[200~{text}\x1b[201~")


def leave(shown: Screen) -> None:
    shown.child.send(CTRL_U)
    assert leave_by_ctrl_d(shown) == 0


@pytest.fixture
def trio(world: Path) -> Crew:
    return crew(world, {"max": ["I did it.", "Yes."], "sarah": ["Looks right."], "carol": ["Fine."]})


def said() -> list[tuple[object, ...]]:
    return select("SELECT speaker_name, content FROM messages ORDER BY id")


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        ("[NEXT: sarah] one\n[TEAM_TASK: x]", "'[NEXT: sarah]' and 1 more is text, no marker: it is in pasted text"),
        ("one\n[DROP: ALL]", "'[DROP: ALL]' is text, no marker: it is in pasted text"),
        ("[FROM: max]\nHi", "'[FROM: max]' is text, no marker: it is in pasted text"),
        ("@sarah look\n@carol too", "'@sarah' is text: it stands in what was pasted"),
        ("@planner look\nat this", ""),
        ("/quit\n/undo", "a paste of several lines holds no commands"),
        ("(NEXT: sarah)\nNEXT: carol", ""),
    ],
)
def test_a_paste_of_several_lines_goes_as_it_is_to_whom_no_paste_names(trio: Crew, text: str, noted: str) -> None:
    with chat() as shown:
        pastes(shown, text)
        shown.until(lambda seen: text.split("\n")[1] in seen)
        shown.child.send(ENTER)
        seen = shown.until(lambda seen: "I did it." in seen and PROMPT in seen)
        leave(shown)
    assert noted.split()[:3] == [] or " ".join(noted.split()[:5]) in " ".join(seen.split())
    assert said() == [("kailai", text), ("max", "I did it.")]
    assert text in trio.prompts("max")[0]
    assert select("SELECT task FROM sessions") == [(None,)]


def test_what_is_typed_around_a_paste_counts(trio: Crew) -> None:
    with chat() as shown:
        shown.child.send("@sarah See ")
        pastes(shown, "[NEXT: max] one\ntwo")
        shown.child.send(" [NEXT: carol]" + ENTER)
        shown.until(lambda seen: "Fine." in seen)
        leave(shown)
    assert [name for name, _ in said()] == ["kailai", "sarah", "carol"]
    assert "See [NEXT: max] one\ntwo" in trio.prompts("sarah")[0]
    assert trio.prompts("max") == []


def test_a_pasted_line_works_as_typed(trio: Crew) -> None:
    with chat() as shown:
        pastes(shown, "[NEXT:sarah] Hi\n")
        shown.child.send(ENTER)
        shown.until(lambda seen: "Looks right." in seen)
        leave(shown)
    assert trio.prompts("max") == []


def test_a_long_paste_is_folded_on_the_screen_and_whole_in_the_message(trio: Crew) -> None:
    with chat() as shown:
        shown.child.send("Look at ")
        pastes(shown, LOG)
        shown.until(lambda seen: f"{PROMPT} Look at [pasted: 200 lines]" in seen)
        shown.child.send(ENTER)
        seen = shown.until(lambda seen: "I did it." in seen)
        leave(shown)
    assert "you → max   Look at [pasted: 200 lines]" in seen
    assert "/show msg-1" in seen
    assert LOG.strip() in trio.prompts("max")[0]
    assert run_here("show", "msg-1").out == f"Look at {LOG}"


def test_a_queued_paste_is_folded_and_comes_back_as_one(world: Path, trio: Crew) -> None:
    trio.say("max", {"say": "so far", "touch": str(world / "began"), "wait": str(world / "go")}, "Yes.")
    with chat() as shown:
        shown.child.send("@max Write it" + ENTER)
        shown.until(lambda _: (world / "began").exists())
        shown.child.send("@sarah See ")
        pastes(shown, f"[NEXT: carol]\n{LOG}")
        shown.child.send(ENTER)
        shown.until(lambda seen: 'queued: "@sarah See [pasted: 201 lines]"' in seen)
        shown.child.send(UP)
        shown.until(partial(_stands, "@sarah See [pasted: 201 lines]"))
        shown.child.send(ENTER)
        shown.until(lambda seen: "queued:" in seen)
        (world / "go").touch()
        shown.until(lambda seen: "Looks right." in seen)
        leave(shown)
    assert trio.prompts("carol") == []
    assert "[NEXT: carol]" in trio.prompts("sarah")[0]


def _stands(text: str, seen: str) -> bool:
    return f"{PROMPT} {text}" in seen
