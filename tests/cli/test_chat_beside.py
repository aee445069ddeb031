"""A chat beside another terminal: it shows what runs in its conversation there."""

from __future__ import annotations

import io
from pathlib import Path

from tests.cli.test_chat import chat, leave, line
from tests.program import ended, run_here, start
from tests.scripted_team import crew


def test_chat_shows_what_another_terminal_runs_in_its_conversation_and_sends_then(world: Path) -> None:
    go = world / "go"
    crew(world, {"max": ["One.", {"say": "Two.", "wait": str(go)}, "Three."]})
    assert run_here("send", "First").code == 0
    with chat(rows=40) as seen:
        with start("send", "From elsewhere") as other:
            seen.until(lambda text: "From elsewhere" in text and "starting" in text)
            line(seen, "And mine")
            seen.until(lambda text: "what you type is sent when it ends" in text)
            go.touch()
            assert ended(other).code == 0
        seen.until(lambda text: "Three." in text)
        text = seen.text
        assert leave(seen) == 0
    assert [text.count(said) for said in ("From elsewhere", "▌ Two.", "And mine", "▌ Three.")] == [1, 1, 1, 1]
    assert text.index("▌ Two.") < text.index("And mine") < text.index("▌ Three.")


def test_an_end_elsewhere_is_told_with_what_chat_can_do(world: Path) -> None:
    crew(world, {"max": ["One.", {"say": "half", "exit": 3}]})
    assert run_here("send", "First").code == 0
    with chat(rows=40) as seen:
        assert run_here("send", "From elsewhere").code == 1
        text = seen.until(lambda text: "/resume" in text)
        assert leave(seen) == 0
    assert "✗ max ended with exit code 3" in text


def test_a_chat_whose_message_another_one_has_sent_comes_to_rest(world: Path) -> None:
    go = world / "go"
    crew(world, {"max": ["One.", {"say": "Two.", "wait": str(go)}, "Three.", "Four.", "Five."]})
    assert run_here("send", "First").code == 0
    with chat(rows=40) as one, chat(rows=40) as other:
        line(one, "and")
        one.until(lambda text: "starting" in text or "writing" in text)
        line(one, "mine")
        line(other, "from the other")
        other.until(lambda text: "what you type is sent when it ends" in text)
        go.touch()
        for seen in (one, other):
            seen.until(lambda text: "▌ Four." in text)
        while other.text.count("─" * 20) == 0:
            other.read()
        for _ in range(20):
            other.read()
        other.child.logfile_read = io.StringIO()
        for _ in range(30):
            other.read()
        assert other.child.logfile_read.getvalue() == "", "it draws though nothing happens"
        assert leave(one) == leave(other) == 0
