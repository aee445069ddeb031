"""The keys that hands type out of habit: what they do, told on the screen, and not one request that nobody meant."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from teamchat.cli.chatting.keys import OF_OTHERS
from teamchat.cli.chatting.slash import WORKING
from teamchat.cli.chatting.typing import NEW_LINE, STAYS, STOPPED, UNDOES
from tests.cli.helpers import queue
from tests.cli.test_chat import CTRL_C, CTRL_D, CTRL_U, ENTER, ESCAPE, PROMPT, UP, begun, chat, leave, line, said, types
from tests.screens import Screen
from tests.scripted_team import Crew, crew

SLOW_S = 0.08  # between two bytes of a key over a slow line
ALONE_S = 0.1
SHIFT_ENTER = ("\x1b[27;2;13~", "\x1b[13;2u")
CTRL_B, CTRL_G, CTRL_J, CTRL_O, CTRL_R, CTRL_T, CTRL_V = "\x02", "\x07", "\n", "\x0f", "\x12", "\x14", "\x16"
SHIFT_TAB, ALT_ENTER = "\x1b[Z", "\x1b\r"


@pytest.fixture
def pair(world: Path) -> Crew:
    return crew(world, {"max": ["I did it."] + ["Yes."] * 9, "sarah": ["Looks right."] * 9})


def requests(made: Crew) -> int:
    return len(made.prompts("max")) + len(made.prompts("sarah"))


def slowly(shown: Screen, keys: str) -> None:
    """Type a key whose bytes come one by one. A machine that is busy may take so long that they are two keys."""
    for _ in range(20):
        at, late = time.monotonic(), False
        for number, byte in enumerate(keys):
            if number:
                time.sleep(SLOW_S / 2)
                late = late or time.monotonic() - at > ALONE_S / 2
                at = time.monotonic()
            shown.child.send(byte)
        if not late:
            return


def is_in(told: str, text: str) -> bool:
    return told in text


def told_or_refused(told: str, refused: int, text: str) -> bool:
    return told in text or text.count(WORKING) > refused


def command(shown: Screen, typed: str, told: str) -> str:
    """Type a command, and once more if a turn whose reply is there had not ended yet."""
    before = shown.text.count(WORKING)
    line(shown, typed)
    for refused in range(before, before + 20):
        if told in shown.until(partial(told_or_refused, told, refused)):
            break
        line(shown, typed)  # in place of the refused one, which is selected
    return shown.text


def empty(text: str) -> bool:
    """Whether the prompt is empty."""
    return any(row == PROMPT for row in text.split("\n"))


@pytest.mark.parametrize("columns", [80, 120])
def test_keys_at_a_prompt_where_nothing_runs(world: Path, pair: Crew, columns: int) -> None:
    editor = world / "editor"
    editor.write_text("#!/bin/sh\nprintf 'from the editor' > \"$1\"\n")
    editor.chmod(0o755)
    with chat(columns=columns, rows=40, EDITOR=str(editor), VISUAL="") as shown:
        shown.child.delaybeforesend = None
        line(shown, "@max Begin")
        shown.until(lambda text: "I did it." in text and f"{PROMPT}\n" in f"{text}\n")
        for new_line in (CTRL_J, "\\" + ENTER, *SHIFT_ENTER, ALT_ENTER):
            types(shown, f"one{new_line}two")
            shown.until(lambda text: f"{PROMPT} one\n  two" in text)
            types(shown, CTRL_C)
            shown.until(empty)
        for key, told in ((SHIFT_TAB, "s-tab"), (CTRL_V, "c-v"), (CTRL_B, "c-b")):
            types(shown, key)
            shown.until(partial(is_in, OF_OTHERS[told][: columns - 5]))
        types(shown, CTRL_T)
        shown.until(lambda text: "\n/todo" in text and empty(text))
        types(shown, CTRL_O)
        shown.until(lambda text: "\n/show" in text and empty(text))
        types(shown, CTRL_G)
        shown.until(lambda text: f"{PROMPT} from the editor" in text)
        types(shown, CTRL_C)
        shown.until(empty)
        types(shown, f"{CTRL_R}Begin")
        shown.until(lambda text: "search: Begin" in text)
        types(shown, ENTER)
        shown.until(lambda text: f"{PROMPT} @max Begin" in text and "search:" not in text)
        types(shown, CTRL_C)
        shown.until(empty)
        types(shown, f"{CTRL_R}Beg")
        shown.until(lambda text: "search: Beg" in text)
        types(shown, ESCAPE)
        shown.until(lambda text: "search:" not in text)
        types(shown, CTRL_C)
        shown.until(empty)
        slowly(shown, UP)
        shown.until(lambda text: f"{PROMPT} @max Begin" in text)
        types(shown, ESCAPE)  # with text it does nothing
        shown.until(partial(is_in, NEW_LINE))
        types(shown, ENTER)  # and Enter behind it, however slowly, sends nothing
        shown.until(lambda text: NEW_LINE not in text and f"{PROMPT} @max Begin" in text)
        types(shown, CTRL_C)
        shown.until(empty)
        types(shown, CTRL_C)
        shown.until(lambda text: "Ctrl-D leaves" in text)
        types(shown, ESCAPE)
        shown.until(lambda text: UNDOES in text)
        time.sleep(2 * ALONE_S)
        types(shown, ENTER)
        types(shown, ESCAPE)
        shown.until(lambda text: UNDOES in text)
        types(shown, ESCAPE)
        shown.until(lambda text: "Undo it? [y/N]" in text)
        types(shown, f"n{ENTER}")
        shown.until(lambda text: "nothing was done" in text and empty(text))
        types(shown, ESCAPE + ESCAPE)
        shown.until(lambda text: text.count("Undo it? [y/N]") >= 2)
        types(shown, f"y{ENTER}")
        shown.until(lambda text: "/redo restores it" in text and empty(text))
        assert requests(pair) == 1
        assert leave(shown) == 0
    assert shown.rows[-1] == "· teamchat chat continues; /resume runs what is on hold"


def working(world: Path, made: Crew) -> None:
    made.say("max", {"say": "so far", "touch": str(world / "began"), "hang": 600}, "Instead.", "Again.")


@pytest.mark.parametrize("columns", [80, 120])
def test_esc_stops_the_turn_and_what_is_typed_then_takes_its_place(world: Path, pair: Crew, columns: int) -> None:
    working(world, pair)
    with chat(columns=columns, rows=40) as shown:
        shown.child.delaybeforesend = None
        line(shown, "@max Write the parser")
        begun(world, shown)
        slowly(shown, UP)
        types(shown, CTRL_U)
        types(shown, "half a thought")
        shown.until(lambda text: f"{PROMPT} half a thought" in text)
        types(shown, CTRL_C)
        shown.until(empty)
        types(shown, CTRL_D)
        shown.until(lambda text: STAYS in text)
        time.sleep(3 * ALONE_S)
        assert requests(pair) == 1
        types(shown, ESCAPE)
        shown.until(lambda text: STOPPED[: columns - 5] in text and "\n  stopped after " in text)
        assert queue() == [("max", "held")]
        line(shown, "@max Write a lexer")
        text = shown.until(lambda text: "Instead." in text)
        flat = " ".join(text.split())
        assert "set aside: max for msg-1 'Write the parser'" in flat
        assert "to run it: /resume msg-1; to drop it: /resume --drop msg-1" in flat
        assert ("max", "aside") in queue()
        command(shown, "/resume", "Enter: none)")
        types(shown, ENTER)
        shown.until(lambda text: "nothing was run" in text and empty(text))
        assert requests(pair) == 2
        line(shown, "@sarah Look")
        text = shown.until(lambda text: "Looks right." in text)
        assert text.count("set aside: max") <= 1
        command(shown, "/resume msg-1", "Again.")
        shown.until(lambda text: "answers msg-1" in text)
        assert requests(pair) == 4
        assert leave(shown) == 0
    assert queue() == []
    assert said()[-1] == "max: Again."


def test_ctrl_d_twice_in_a_turn_leaves_and_says_how_to_come_back(world: Path, pair: Crew) -> None:
    working(world, pair)
    with chat() as shown:
        line(shown, "@max Write the parser")
        begun(world, shown)
        types(shown, CTRL_D)
        shown.until(lambda text: STAYS in text)
        types(shown, CTRL_D)
        rows = shown.to_the_end()
        assert shown.child.exitstatus == 130
    assert rows[-1].startswith("· teamchat chat continues")


@pytest.mark.usefixtures("pair")
def test_what_a_failure_holds_is_not_set_aside(world: Path) -> None:
    made = crew(world, {"max": [{"say": "no", "exit": 3}, "Yes."], "sarah": ["Looks right."]})
    with chat() as shown:
        line(shown, "@max Write the parser")
        shown.until(lambda text: "try: /resume" in text)
        assert "try: /resume --drop" in shown.text
        line(shown, "@sarah Look")
        shown.until(lambda text: "Looks right." in text)
        assert ("max", "held") in queue()
        assert len(made.prompts("max")) == 1
        assert leave(shown) == 0


def test_what_was_stopped_and_failed_when_it_was_resumed_is_not_set_aside(world: Path, pair: Crew) -> None:
    stopped = {"say": "so far", "touch": str(world / "began"), "hang": 600}
    pair.say("max", stopped, {"say": "no", "exit": 3})
    with chat() as shown:
        line(shown, "@max Write the parser")
        begun(world, shown)
        types(shown, ESCAPE)
        shown.until(lambda text: STOPPED[:70] in text)
        command(shown, "/resume", "exit code 3")
        shown.until(lambda text: text.count("try: /resume --drop") == 2 and "Ctrl-D" in text)
        line(shown, "@sarah Look")
        shown.until(lambda text: "Looks right." in text)
        assert ("max", "held") in queue()
        assert leave(shown) == 0
