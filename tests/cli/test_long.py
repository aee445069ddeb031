"""Long texts: a pipe gets all of one, and a terminal its beginning."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from teamchat.cli.output.long import LONGEST, as_shown, in_margin
from teamchat.core.text.clean import visible
from tests.cli.helpers import objects, refused
from tests.cli.test_terminal import at_terminal
from tests.program import run_here
from tests.scripted_team import crew

PIECES = st.lists(
    st.sampled_from(
        ["a", "é", " ", "\n", "\n\n", "\t", "\u2028", "\u202e", "\x1b[31m", "\x1b", "[0m", "❤", "\u200d", "\ufe0f"]
    )
)
LINE_END = re.compile("[\n\u2028\u2029]")
TEXT = "word " * (LONGEST // 5)
REPLY = f"It begins. {TEXT}the end"


@given(st.text() | PIECES.map("".join))
def test_a_text_is_shown_with_its_lines_in_a_margin(text: str) -> None:
    shown = as_shown(text, "")
    assert shown == visible(text)
    assert in_margin(shown) == ("".join(f"  | {line}\n" for line in LINE_END.split(shown)[: lines(shown)]) or "\n")


def lines(text: str) -> int:
    """How many lines a text has; what ends in a line end has no empty line behind it."""
    return len(LINE_END.findall(text)) + (LINE_END.sub("\n", text)[-1:] not in ("", "\n"))


def test_log_cuts_a_long_message_at_a_terminal_alone(world: Path) -> None:
    crew(world, {"max": [REPLY]})
    assert run_here("send", "Hi").out == f"max:\n{REPLY}\n\n"
    seen = at_terminal("log", "-n", "1").out
    assert seen.endswith(f"\n… ({len(REPLY):,} bytes in all: teamchat log --full msg-2)\n\n")
    assert len(seen) < LONGEST + 200
    assert run_here("log", "-n", "1").out == f"msg-2 max (turn 1):\n{REPLY}\n\n"
    assert run_here("log", "--full", "msg-2").out == REPLY
    assert at_terminal("log", "--full", "msg-2").out == f"{REPLY}\n"
    assert objects(run_here("log", "--json"))[1]["text"] == REPLY


def test_show_cuts_a_long_partial_text_at_a_terminal_alone(world: Path) -> None:
    crew(world, {"max": [{"say": REPLY, "exit": 1}]})
    run_here("send", "Hi")
    head = "  partial text (never a message, never in a prompt):\n  | It begins. word"
    seen = at_terminal("show").out
    assert head in seen
    assert seen.endswith(f"\n  | … ({len(REPLY):,} bytes in all: teamchat show 1 --reply)\n")
    assert run_here("show").out.endswith(f"{head}{REPLY.removeprefix('It begins. word')}\n")
    assert run_here("show", "--reply").out == REPLY


def test_the_command_that_prints_all_is_for_the_session_that_was_named(world: Path) -> None:
    crew(world, {"max": [REPLY, {"say": REPLY, "exit": 1}]})
    run_here("send", "--new", "--session", "first", "Hi")
    run_here("send", "Hi")
    run_here("send", "--new", "Hi")
    log, show = at_terminal("log", "--session", "first").out, at_terminal("show", "--session=first").out
    assert ": teamchat log --full msg-2 --session first)\n" in log
    assert show.endswith(": teamchat show 2 --reply --session first)\n")


def test_show_has_all_that_a_turn_said(world: Path) -> None:
    crew(world, {"max": ["Hi \x1b[31mthere", {"say": "", "exit": 1}]})
    run_here("send", "Hi")
    assert run_here("show", "--reply").out == "Hi \x1b[31mthere"
    assert at_terminal("show", "--reply").out == "Hi there\n"
    run_here("send", "Hi")
    assert refused(run_here("show", "--reply")) == "turn 2 wrote no reply"


def test_a_message_that_is_not_there_is_refused(world: Path) -> None:
    crew(world, {"max": ["Hi"]})
    run_here("send", "Hi")
    assert refused(run_here("log", "--full", "msg-9")) == "session s1 has no message 'msg-9'"
    assert refused(run_here("log", "--full", "msg-1", "--json")) == "--full, --json, --follow and -n exclude each other"
