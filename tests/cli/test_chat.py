"""`teamchat chat` at a real terminal: what stands on the screen while a person types and members work."""

from __future__ import annotations

import os
import signal
import stat
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from teamchat.cli.app import BEGINNING
from teamchat.cli.chatting.layout import ChatLines, Footer
from teamchat.cli.chatting.typing import AGAIN_S, STAYS
from teamchat.cli.startup.workspace import lock_file, store_file
from teamchat.core.files.session_lock import holder_of
from teamchat.runners.child.guardian import send_signal
from tests.cli.helpers import queue, select
from tests.program import Result, cli, run_here, start
from tests.runners.processes import eventually
from tests.screens import Screen, screen
from tests.scripted_team import Crew, crew
from tests.shell_team import repository, shell

ENTER, ESCAPE, UP, TAB = "\r", "\x1b", "\x1b[A", "\t"
CTRL_C, CTRL_D, CTRL_U = "\x03", "\x04", "\x15"
PROMPT = "›"


@contextmanager
def chat(*args: str, columns: int = 80, rows: int = 24, **env: str) -> Iterator[Screen]:
    with screen("chat", *args, columns=columns, rows=rows, env=env) as shown:
        shown.until(lambda text: PROMPT in text)
        yield shown


def types(shown: Screen, text: str) -> None:
    shown.child.send(text)


def line(shown: Screen, text: str) -> None:
    types(shown, text + ENTER)


def prompt_of(text: str) -> str:
    """The row with the prompt: the one above the last."""
    return next(iter(text.split("\n")[-2:-1]), "")


def stands(told: str, text: str) -> bool:
    """True if the text is on the screen, and the prompt below it."""
    return told in text and prompt_of(text).startswith(PROMPT)


def leave(shown: Screen) -> int:
    """Leave by Ctrl-D, once more if a turn was about to end: its reply is there before. Returns the exit code."""
    types(shown, CTRL_D)
    pressed = time.monotonic()
    while shown.read():
        asked = STAYS in shown.text
        if asked:
            shown.until(lambda text: STAYS not in text)
        if asked or time.monotonic() - pressed > AGAIN_S:  # it may have asked for less than a frame
            types(shown, CTRL_D)
            pressed = time.monotonic()
    shown.child.wait()
    return int(shown.child.exitstatus)


def said() -> list[str]:
    """Every message, as `max: Hello`."""
    rows = select("SELECT speaker_name, content FROM messages ORDER BY id")
    return [f"{name}: {content}" for name, content in rows]


def kept() -> list[object]:
    return [text for (text,) in select("SELECT text FROM unsent ORDER BY id")]


def slow(world: Path, crew_: Crew, member: str, *replies: str) -> None:
    """The member's first turn waits for the file `go`, and makes the file `began`."""
    first, *others = replies
    held = {"say": first, "touch": str(world / "began"), "wait": str(world / "go")}
    crew_.say(member, held, *others)


def begun(world: Path, shown: Screen) -> None:
    shown.until(lambda _: (world / "began").exists())


@pytest.fixture
def trio(world: Path) -> Crew:
    return crew(world, {"max": ["I did it.", "Yes."], "sarah": ["Looks right."], "carol": ["Fine."]})


# --- sending


def test_a_message_is_sent_and_its_reply_stands_above_the_prompt(trio: Crew) -> None:
    with chat() as shown:
        line(shown, "@max Add a --version option")
        text = shown.until(lambda text: "I did it." in text and PROMPT in text)
        assert "Add a --version option" in text
        assert leave(shown) == 0
    assert said() == ["kailai: Add a --version option", "max: I did it."]
    assert len(trio.prompts("max")) == 1


@pytest.mark.usefixtures("trio")
def test_a_leading_address_names_several_members() -> None:
    with chat() as shown:
        line(shown, "@max+sarah Look")
        shown.until(lambda text: "I did it." in text and "Looks right." in text)
        leave(shown)
    assert [name for (name,) in select('SELECT target FROM routes WHERE "group" = 0')] == ["max", "sarah"]


@pytest.mark.usefixtures("trio")
def test_a_text_that_only_looks_like_a_call_is_refused_and_stays_in_the_prompt() -> None:
    with chat() as shown:
        line(shown, "(NEXT: sarah) look")
        shown.until(lambda text: "✗" in text and f"{PROMPT} (NEXT: sarah) look" in text)
        assert leave_after_clearing(shown) == 0
    assert said_nothing()


@pytest.mark.usefixtures("trio")
def test_an_error_is_broken_at_words() -> None:
    with chat(columns=40) as shown:
        line(shown, "/shwo")
        told = "there is no command /shwo: did you mean /show? (a space before it sends it)"
        shown.until(lambda text: told in " ".join(text.split()))
        assert leave_after_clearing(shown) == 0


def leave_after_clearing(shown: Screen) -> int:
    types(shown, CTRL_U)
    return leave(shown)


def said_nothing() -> bool:
    return select("SELECT 1 FROM messages") == []


@pytest.mark.usefixtures("trio")
def test_lines_are_joined_by_escape_and_enter() -> None:
    with chat() as shown:
        types(shown, "@max one" + ESCAPE + ENTER + "two" + ENTER)
        shown.until(lambda text: "I did it." in text)
        leave(shown)
    assert said()[0] == "kailai: one\ntwo"


@pytest.mark.usefixtures("trio")
def test_a_paste_of_5000_lines_is_one_message() -> None:
    pasted = "\n".join(f"line {number}" for number in range(5000))
    with chat() as shown:
        types(shown, f"@max {ESCAPE}[200~{pasted}{ESCAPE}[201~")
        shown.until(lambda text: "[pasted: 5,000 lines]" in text)
        types(shown, ENTER)
        shown.until(lambda text: "I did it." in text)
        leave(shown)
    assert said()[0] == f"kailai: {pasted}"


# --- while members work


def test_what_is_typed_while_a_member_works_is_shown_as_queued_and_sent_after_the_turn(world: Path, trio: Crew) -> None:
    slow(world, trio, "max", "I did it.", "The test, too.")
    with chat() as shown:
        line(shown, "[NEXT: max, sarah] Write it")
        begun(world, shown)
        line(shown, "@max and a test")
        text = shown.until(lambda text: 'queued: "@max and a test"' in text)
        assert "↑ to edit" in text
        assert kept() == ["and a test"]
        (world / "go").touch()
        shown.until(lambda text: "Looks right." in text and 'queued: "' not in text)
        leave(shown)
        rows = shown.rows
    asked = [at for at, row in enumerate(rows) if row.startswith("you → max")]
    assert [rows[at - 1] == "" != rows[at - 2] for at in asked[1:]] == [True], "one empty line"
    assert said() == [
        "kailai: [NEXT: max, sarah] Write it",
        "max: I did it.",
        "kailai: and a test",
        "max: The test, too.",
        "sarah: Looks right.",
    ]


def test_what_members_do_stands_below_an_empty_line_unless_it_continues_a_text() -> None:
    assert ChatLines(live=("⠋ max  thinking",)).above == ["", "⠋ max  thinking"]
    assert ChatLines(live=("▌ I did", "⠋ max  writing")).above == ["▌ I did", "⠋ max  writing"]


@contextmanager
def edited(world: Path, trio: Crew) -> Iterator[Screen]:
    """A chat in which max works, "one" is queued, and "two", which was queued behind it, is edited in the prompt."""
    slow(world, trio, "max", "I did it.", "Yes.", "Yes again.")
    with chat() as shown:
        line(shown, "@max Write it")
        begun(world, shown)
        line(shown, "one")
        line(shown, "@sarah two")
        shown.until(lambda text: text.count("queued:") == 2)
        types(shown, UP)
        shown.until(lambda text: f"{PROMPT} @sarah two" in text)
        yield shown


def test_the_message_typed_last_moves_from_the_queue_into_the_prompt(world: Path, trio: Crew) -> None:
    with edited(world, trio) as shown:
        shown.until(lambda text: text.count("queued:") == 1)
        assert kept() == ["one", "two"], "it is kept until its new text is"
        types(shown, CTRL_U)
        shown.until(lambda _: kept() == ["one"])
        (world / "go").touch()
        shown.until(lambda text: "Yes" in text or "has nothing" in text or "queued:" not in text)
        leave(shown)
    assert "kailai: two" not in said()


def test_a_queued_message_that_is_edited_is_sent_as_it_is_then_and_once(world: Path, trio: Crew) -> None:
    with edited(world, trio) as shown:
        line(shown, " and three")
        shown.until(lambda _: kept() == ["one", "two and three"])
        (world / "go").touch()
        shown.until(lambda text: "Looks right." in text)
        assert leave(shown) == 0
    assert [text for text in said() if text.startswith("kailai")] == [
        "kailai: Write it", "kailai: one", "kailai: two and three",
    ]  # fmt: skip


def test_a_queued_message_that_is_edited_is_not_sent_meanwhile(world: Path, trio: Crew) -> None:
    with edited(world, trio) as shown:
        (world / "go").touch()
        shown.until(lambda text: "Yes." in text)
        assert kept() == ["two"]
        line(shown, "!")
        shown.until(lambda text: "Looks right." in text)
        assert leave(shown) == 0
    assert "kailai: two!" in said()


def test_a_queued_message_that_is_edited_survives_a_kill_and_the_next_chat_shows_it(world: Path, trio: Crew) -> None:
    with edited(world, trio) as shown:
        types(shown, " and thr")
        shown.until(lambda text: "two and thr" in text)
        shown.child.kill(signal.SIGKILL)
        shown.child.wait()
    assert kept() == ["one", "two"]
    (world / "go").touch()
    with chat() as shown:
        shown.until(lambda text: "still queued from before: 2 messages" in text and text.count("queued:") == 2)
        types(shown, UP)
        shown.until(lambda text: f"{PROMPT} @sarah two" in text)
        shown.child.kill(signal.SIGKILL)
        shown.child.wait()
    assert kept() == ["one", "two"]


def test_a_queued_message_that_is_edited_is_put_back_by_a_command(world: Path, trio: Crew) -> None:
    with edited(world, trio) as shown:
        types(shown, "\x01/task \x05")  # in front of it, and to its end
        line(shown, "")
        shown.until(lambda text: text.count("queued:") == 2)
        assert kept() == ["one", "two"]
        (world / "go").touch()
        shown.until(lambda text: "Looks right." in text)
        leave(shown)


def test_two_chats_edit_different_queued_messages_and_send_each_once(world: Path, trio: Crew) -> None:
    with edited(world, trio) as first, chat("--session", "s1") as second:
        second.until(lambda text: text.count("queued:") == 1)
        types(second, UP)
        second.until(lambda text: f"{PROMPT} one" in text)
        types(second, CTRL_U)
        second.until(lambda _: kept() == ["two"])  # which the first one edits
        first.child.kill(signal.SIGKILL)
        first.child.wait()
        (world / "go").touch()
        line(second, "@carol more")
        second.until(lambda text: "Fine." in text and text.count("queued:") == 1)
        assert kept() == ["two"]
        types(second, UP)
        second.until(lambda text: f"{PROMPT} @sarah two" in text)
        line(second, "")
        second.until(lambda text: "Looks right." in text)
        assert leave(second) == 0
    assert [text for text in said() if text.startswith("kailai")] == [
        "kailai: Write it", "kailai: more", "kailai: two",
    ]  # fmt: skip


def test_keys_are_echoed_while_a_reply_streams(world: Path, trio: Crew) -> None:
    slow(world, trio, "max", "I did it.")
    with chat() as shown:
        line(shown, "@max Write it")
        begun(world, shown)
        types(shown, "half a thought")
        shown.until(lambda text: f"{PROMPT} half a thought" in text)
        (world / "go").touch()
        shown.until(lambda text: "I did it." in text and f"{PROMPT} half a thought" in text)
        assert leave_after_clearing(shown) == 0


# --- Ctrl-C


@pytest.mark.usefixtures("trio")
def test_ctrl_c_at_the_prompt_clears_it_and_says_how_to_leave() -> None:
    with chat() as shown:
        types(shown, "no")
        shown.until(lambda text: f"{PROMPT} no" in text)
        types(shown, CTRL_C)
        shown.until(lambda text: f"{PROMPT} no" not in text)
        types(shown, CTRL_C)
        shown.until(lambda text: "Ctrl-D leaves" in text)
        assert leave(shown) == 0


def hanging(world: Path, trio: Crew) -> None:
    trio.say("max", {"say": "so far", "touch": str(world / "began"), "hang": 600}, "Again.")


def test_ctrl_c_stops_the_turn_and_those_behind_it_speak(world: Path, trio: Crew) -> None:
    hanging(world, trio)
    with chat() as shown:
        line(shown, "[NEXT: max, sarah] Write it")
        begun(world, shown)
        types(shown, CTRL_C)
        shown.until(lambda text: "Looks right." in text)
        assert eventually(lambda: queue() == [("max", "held")])
        leave(shown)


def test_ctrl_c_sends_what_was_typed_at_once(world: Path, trio: Crew) -> None:
    hanging(world, trio)
    with chat() as shown:
        line(shown, "@max Write it")
        begun(world, shown)
        line(shown, "@sarah Not so")
        shown.until(lambda text: "queued:" in text)
        types(shown, CTRL_C)
        shown.until(lambda text: "Looks right." in text)
        leave(shown)
    assert said() == ["kailai: Write it", "kailai: Not so", "sarah: Looks right."]


def test_a_second_ctrl_c_stops_the_queue_and_keeps_what_was_typed(world: Path, trio: Crew) -> None:
    trio.say("max", {"say": "so far", "touch": str(world / "began"), "hang": 600})
    trio.say("sarah", {"say": "so far", "touch": str(world / "second"), "hang": 600})
    with chat() as shown:
        line(shown, "[NEXT: max, sarah, carol] Write it")
        begun(world, shown)
        types(shown, CTRL_C)
        shown.until(lambda _: (world / "second").exists())
        line(shown, "wait")
        shown.until(lambda text: "queued:" in text)
        types(shown, CTRL_C)
        shown.until(lambda _: (world / "second").exists() and queue()[-1] == ("carol", "waiting"))
        types(shown, CTRL_C)
        shown.until(lambda text: "try: /resume" in text and "stopping" not in text)
        assert "running" not in str(queue())
        assert "waiting" not in str(queue())
        assert leave(shown) == 0


def test_each_run_counts_ctrl_c_anew_and_its_end_removes_what_was_said_of_it(world: Path, trio: Crew) -> None:
    again = {"say": "so far", "touch": str(world / "second"), "hang": 600}
    trio.say("max", {"say": "so far", "touch": str(world / "began"), "hang": 600}, again)
    with chat() as shown:
        line(shown, "@max Write it")
        begun(world, shown)
        types(shown, CTRL_C)
        shown.until(lambda text: "on hold: max" in text and "stopping" not in text)
        line(shown, "/send '[NEXT: max, sarah] Again'")
        shown.until(lambda _: (world / "second").exists())
        types(shown, CTRL_C)
        shown.until(lambda text: "Looks right." in text)
        assert leave(shown) == 0


# --- the screen


@pytest.mark.usefixtures("trio")
@pytest.mark.parametrize("columns", [40, 80, 120])
def test_the_prompt_stands_between_a_rule_and_what_the_conversation_has_cost(columns: int) -> None:
    with chat(columns=columns) as shown:
        *_, rule, prompt, footer = shown.rows
        assert rule == "─" * (columns - 1)
        assert prompt == PROMPT
        assert footer.startswith("  crew · new session")
        assert footer.endswith("/help  Ctrl-D")
        assert len(footer) < columns
        leave(shown)


def test_a_narrow_footer_drops_whole_parts_and_the_session_last() -> None:
    footer = Footer("blog", "slugs", "4 members", "61k tokens", "$0.32")
    assert footer.fitted(46) == "blog · slugs · 4 members · 61k tokens · $0.32"
    assert footer.fitted(44) == "blog · slugs · 61k tokens · $0.32"
    assert footer.fitted(32) == "slugs · 61k tokens · $0.32"
    assert footer.fitted(25) == "slugs · $0.32"
    assert [footer.fitted(columns) for columns in (12, 4, 0)] == ["slugs", "slu…", ""]


@pytest.mark.usefixtures("trio")
def test_a_resize_draws_the_prompt_again() -> None:
    with chat(columns=100) as shown:
        types(shown, "half a thought")
        shown.until(lambda text: "half a thought" in text)
        shown.resize(60, 20)
        shown.until(lambda text: f"{'─' * 59}\n{PROMPT} half a thought\n" in text)
        assert leave_after_clearing(shown) == 0


@pytest.mark.usefixtures("trio")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("@ma", "@max"),
        ("@max+sa", "@max+sarah"),
        ("[NEXT: ca", "[NEXT: carol"),
        ("/un", "/undo"),
        ("/retry --with sa", "/retry --with sarah"),
    ],
)
def test_tab_completes_members_and_commands(typed: str, completed: str) -> None:
    with chat() as shown:
        types(shown, typed + TAB)
        shown.until(lambda text: f"{PROMPT} {completed}" in text)
        assert leave_after_clearing(shown) == 0


# --- leaving and coming back


@pytest.mark.usefixtures("trio")
def test_a_new_conversation_gets_its_title() -> None:
    with chat("--new", "--title", "A  version option") as shown:
        line(shown, "@max Write it")
        shown.until(lambda text: "I did it." in text)
        leave(shown)
    assert select("SELECT title FROM sessions") == [("A version option",)]


@pytest.mark.usefixtures("trio")
@pytest.mark.parametrize("command", ["/run sequential --members max Write it", "/send --to max Write it"])
def test_a_command_may_begin_the_conversation_that_chat_continues(command: str) -> None:
    run_here("send", "--to", "sarah", "Hi")
    with chat("--new", "--title", "A version option") as shown:
        line(shown, command)
        shown.until(lambda text: "I did it." in text and "· s2 ·" in text)
        line(shown, asks := "@carol Look at it")
        if "Fine." not in shown.until(lambda text: "Fine." in text or f"› {asks}" in text):
            types(shown, ENTER)  # the command still had the terminal: what was typed then waits at the prompt
        shown.until(lambda text: "Fine." in text)
        leave(shown)
    assert select("SELECT title FROM sessions ORDER BY id") == [(None,), ("A version option",)]
    assert said()[2:] == ["kailai: Write it", "max: I did it.", "kailai: Look at it", "carol: Fine."]


@pytest.mark.usefixtures("trio")
def test_a_refused_command_begins_no_conversation() -> None:
    with chat("--new") as shown:
        line(shown, "/run sequentiel Write it")
        shown.until(lambda text: "did you mean 'sequential'?" in text)
        assert leave(shown) == 0
    assert select("SELECT name FROM sessions") == []


@pytest.mark.usefixtures("trio")
def test_a_title_for_a_conversation_that_continues_is_refused() -> None:
    run_here("send", "--to", "max", "Hi")
    with screen("chat", "--title", "Another") as shown:
        told = shown.to_the_end()
        assert shown.child.exitstatus == 2
    assert "--title is for a new session, and s1 continues" in "\n".join(told)


def test_a_chat_continues_the_session(trio: Crew) -> None:
    with chat() as shown:
        line(shown, "@max Write it")
        shown.until(lambda text: "I did it." in text)
        assert leave(shown) == 0
    with chat() as shown:
        assert "I did it." in shown.text
        line(shown, "Really?")
        shown.until(lambda text: "Yes." in text)
        leave(shown)
    assert "Write it" in trio.prompts("max")[1]


def test_leaving_while_a_member_works_stops_it_and_says_so(world: Path, trio: Crew) -> None:
    hanging(world, trio)
    with screen("chat") as shown:
        before = termios.tcgetattr(shown.child.child_fd)
        shown.until(lambda text: PROMPT in text)
        line(shown, "@max Write it")
        begun(world, shown)
        line(shown, "later")
        shown.until(lambda text: "queued:" in text)
        types(shown, CTRL_D)
        shown.until(lambda text: STAYS in text)
        types(shown, CTRL_D)
        rows = shown.to_the_end()
        assert termios.tcgetattr(shown.child.child_fd) == before
        assert shown.child.exitstatus == 130
    assert "1 message still queued; the next teamchat chat asks before it sends" in "\n".join(rows)
    assert "  try: teamchat resume" in map(str.rstrip, rows)
    assert queue() == [("max", "held")]


def test_a_killed_chat_loses_nothing(world: Path, trio: Crew) -> None:
    hanging(world, trio)
    with chat() as shown:
        line(shown, "@max Write it")
        begun(world, shown)
        line(shown, "@sarah And a test")
        shown.until(lambda text: "queued:" in text)
        os.kill(shown.child.pid, signal.SIGKILL)
        shown.to_the_end()
    assert kept() == ["And a test"]
    with chat() as shown:
        shown.until(partial(stands, "· still queued from before: 1 message; Enter sends what is queued"))
        assert 'queued: "@sarah And a test"' in shown.text
        types(shown, ENTER)
        shown.until(lambda text: "Looks right." in text)
        leave(shown)
    assert kept() == []
    assert said() == ["kailai: Write it", "kailai: And a test", "sarah: Looks right."]


def left_behind(world: Path, crew_: Crew) -> None:
    """A chat ends with a message that is still queued."""
    hanging(world, crew_)
    with chat() as shown:
        line(shown, "@max Write it")
        begun(world, shown)
        line(shown, "@sarah From before")
        shown.until(lambda text: "queued:" in text)
        types(shown, CTRL_D)
        shown.until(lambda text: STAYS in text)
        leave(shown)


@pytest.mark.parametrize("command", ["@carol Now", "/send --to carol Now", "/resume --skip"])
def test_what_an_earlier_chat_left_is_sent_only_when_a_person_asks(world: Path, trio: Crew, command: str) -> None:
    left_behind(world, trio)
    with chat() as shown:
        shown.until(partial(stands, "still queued from before"))
        line(shown, command)
        shown.until(lambda text: "Fine." in text if "Now" in command else prompt_of(text) == PROMPT)
        leave(shown)
    assert kept() == ["From before"]
    assert trio.prompts("sarah") == []


def test_what_an_earlier_chat_left_is_taken_back_by_up(world: Path, trio: Crew) -> None:
    left_behind(world, trio)
    with chat() as shown:
        shown.until(partial(stands, "still queued from before"))
        types(shown, UP)
        shown.until(lambda text: f"{PROMPT} @sarah From before" in text)
        assert leave_after_clearing(shown) == 0
    assert kept() == []
    assert trio.prompts("sarah") == []


def test_stop_from_another_terminal_ends_it_and_leaves_the_terminal_as_it_was(world: Path, trio: Crew) -> None:
    hanging(world, trio)
    with screen("chat") as shown:
        before = termios.tcgetattr(shown.child.child_fd)
        shown.until(lambda text: "Ctrl-D" in text)
        assert termios.tcgetattr(shown.child.child_fd) != before
        line(shown, "@max Write it")
        begun(world, shown)
        assert cli("stop").code == 0
        rows = shown.to_the_end()
        assert shown.child.exitstatus == 143
        assert termios.tcgetattr(shown.child.child_fd) == before
    assert "  try: teamchat resume" in map(str.rstrip, rows)
    assert queue() == [("max", "held")]


def test_an_agent_that_is_killed_is_a_failure_and_the_terminal_stays_as_it_was() -> None:
    shell(max="echo $$ > number; mv number pid; sleep 600", sarah=":")
    with screen("chat") as shown:
        before = termios.tcgetattr(shown.child.child_fd)
        shown.until(lambda text: PROMPT in text)
        line(shown, "@max Write it")
        shown.until(lambda _: Path("pid").exists())
        send_signal(int(Path("pid").read_text()), signal.SIGKILL)
        shown.until(lambda text: "✗" in text and "/resume" in text and prompt_of(text) == PROMPT)
        line(shown, "@sarah You?")
        shown.until(lambda text: "Done" in text)
        assert leave(shown) == 0
        assert termios.tcgetattr(shown.child.child_fd) == before


@pytest.mark.usefixtures("trio")
def test_another_terminal_may_send_in_between() -> None:
    with chat() as shown:
        line(shown, "@max Write it")
        shown.until(lambda text: "I did it." in text)
        assert eventually(lambda: holder_of(lock_file(Path.cwd(), 1)) is None)
        assert cli("send", "--to", "sarah", "And you?").code == 0
        leave(shown)


# --- questions


def test_a_question_is_answered_in_place(world: Path) -> None:
    crew(world, {"max": ["Which one? [NEXT: kailai]", "Good."]})
    with chat() as shown:
        line(shown, "Write it")
        shown.until(lambda text: "you → max" in prompt_of(text))
        line(shown, "The second")
        shown.until(lambda text: "Good." in text and prompt_of(text).startswith(PROMPT))
        leave(shown)
    assert queue() == []


# --- commands


@pytest.mark.usefixtures("trio")
def test_a_command_runs_with_the_session_of_the_chat() -> None:
    run_here("send", "--new", "--session", "first", "--to", "sarah", "Hi")
    with chat("--session", "first") as shown:
        run_here("send", "--new", "--session", "other", "--to", "carol", "Hi")
        line(shown, "/task A parser")
        shown.until(lambda text: "/task A parser" in text and prompt_of(text) == PROMPT)
        line(shown, "/task")
        shown.until(lambda text: text.count("A parser") >= 2)
        leave(shown)
    assert select("SELECT task FROM sessions WHERE name = 'first'") == [("A parser",)]


def test_what_diff_shows_in_chat_has_colours(tmp_path: Path) -> None:
    repository(tmp_path / "unused")
    shell(max="sed -i s/a/A/ app.py")
    run_here("send", "Go")
    with chat(rows=60) as shown:
        line(shown, "/diff")
        shown.until(lambda text: "+A = 1" in text and prompt_of(text) == PROMPT)
        assert [shown.colour(text) for text in ("@@ ", "-a = 1", "+A = 1")] == ["cyan", "red", "green"]
        leave(shown)


@pytest.mark.usefixtures("trio")
def test_the_errors_of_commands_are_lines_and_never_leave_chat() -> None:
    with chat() as shown:
        for typed, told in (
            ("/show 9", "has not begun"),
            ("/team --nonsense", "no such option: --nonsense"),
            ("/log 'x", "no closing quotation"),
            ("/shwo", "did you mean /show"),
        ):
            line(shown, typed)
            text = shown.until(partial(stands, told))
            types(shown, CTRL_U)
        assert "Traceback" not in text
        assert leave(shown) == 0


def test_a_command_runs_while_members_work(world: Path, trio: Crew) -> None:
    slow(world, trio, "max", "I did it.")
    with chat() as shown:
        line(shown, "@max Write it")
        begun(world, shown)
        line(shown, "/team")
        shown.until(lambda text: "carol-agent" in text)
        line(shown, "/resume")
        shown.until(lambda text: "members are working" in text)
        (world / "go").touch()
        shown.until(lambda text: "I did it." in text)
        assert leave(shown) == 0


def test_resume_shows_its_run_above_the_prompt_and_sends_what_is_typed(world: Path, trio: Crew) -> None:
    trio.say(
        "max",
        {"say": "no", "exit": 1},
        {"say": "Now.", "touch": str(world / "began"), "wait": str(world / "go")},
        "More.",
    )
    with chat() as shown:
        line(shown, "@max Write it")
        shown.until(lambda text: "/resume" in text)
        line(shown, "/resume")
        begun(world, shown)
        line(shown, "and more")
        shown.until(lambda text: "queued:" in text)
        (world / "go").touch()
        shown.until(lambda text: "More." in text and "queued:" not in text)
        assert leave(shown) == 0


@pytest.mark.usefixtures("trio")
def test_undo_asks_at_the_terminal() -> None:
    with chat() as shown:
        line(shown, "@max Write it")
        shown.until(lambda text: "I did it." in text)
        line(shown, "/undo")
        shown.until(lambda text: "Undo it? [y/N]" in text)
        line(shown, "y")
        shown.until(lambda text: "/undo" in text and prompt_of(text) == PROMPT)
        leave(shown)
    assert queue() == [("max", "held")]


@pytest.mark.usefixtures("trio")
def test_ctrl_c_at_the_question_of_a_command_returns_to_the_prompt() -> None:
    with chat() as shown:
        line(shown, "@max Write it")
        shown.until(lambda text: "I did it." in text)
        line(shown, "/undo")
        shown.until(lambda text: "Undo it? [y/N]" in text)
        types(shown, CTRL_C)
        shown.until(lambda text: prompt_of(text) == PROMPT)
        line(shown, "Really?")
        shown.until(lambda text: "Yes." in text)
        assert leave(shown) == 0


@pytest.mark.usefixtures("trio")
def test_help_lists_commands_and_a_question_mark_keys() -> None:
    with chat() as shown:
        line(shown, "/help")
        shown.until(lambda text: "/undo" in text and "? and Enter shows the keys" in text)
        line(shown, "/help stop")
        shown.until(partial(stands, "/stop  stops the turn that runs"))
        line(shown, "/help model")
        shown.until(partial(stands, "/model is /team"))
        line(shown, "?")
        shown.until(lambda text: "Ctrl-X Ctrl-E" in text and prompt_of(text) == f"{PROMPT} ?")
        assert leave_after_clearing(shown) == 0


# --- the rest


@pytest.mark.usefixtures("trio")
def test_the_text_is_edited_in_an_editor(world: Path) -> None:
    editor = world / "editor"
    editor.write_text('#!/bin/sh\nprintf "from the editor" >> "$1"\n')
    editor.chmod(0o755)
    with chat(EDITOR=str(editor), VISUAL="") as shown:
        types(shown, "typed, ")
        types(shown, "\x18\x05")
        shown.until(lambda text: f"{PROMPT} typed, from the editor" in text)
        assert leave_after_clearing(shown) == 0


@pytest.mark.usefixtures("trio")
def test_a_ctrl_d_typed_while_the_prompt_is_hidden_leaves(world: Path) -> None:
    editor = world / "editor"
    editor.write_text(f"#!/bin/sh\ntouch {world}/edits; until [ -e {world}/go ]; do sleep 0.05; done\n")
    editor.chmod(0o755)
    with chat(EDITOR=str(editor), VISUAL="") as shown:
        types(shown, "\x18\x05")
        shown.until(lambda _: (world / "edits").exists())
        types(shown, CTRL_D)
        (world / "go").touch()
        shown.to_the_end()
        assert shown.child.exitstatus == 0


@pytest.mark.usefixtures("trio")
def test_what_was_typed_is_remembered_for_the_next_chat_and_private() -> None:
    with chat() as shown:
        line(shown, "@max Write it")
        shown.until(lambda text: "I did it." in text)
        leave(shown)
    file = store_file(Path.cwd()).parent / "chat-history"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with chat() as shown:
        types(shown, UP)
        shown.until(lambda text: f"{PROMPT} @max Write it" in text)
        leave_after_clearing(shown)


@pytest.mark.parametrize(("background", "colour"), [("ffff/fafa/f0", "af5f00"), ("0000/2b2b/3636", "brown")])
def test_a_terminal_is_asked_whether_it_is_light_and_its_answer_is_not_typed(
    world: Path, background: str, colour: str
) -> None:
    crew(world, {"max": ["```python\n'word'\n```"]})
    with screen("chat", env={"TERM_PROGRAM": "WezTerm"}) as shown:
        shown.child.expect_exact("\x1b]11;?\x1b\\\x1b[c")
        types(shown, f"early\x1b]11;rgb:{background}\x1b\\\x1b[?65;1;9c")
        shown.until(lambda text: prompt_of(text) == "› early")
        types(shown, ENTER)
        shown.until(lambda text: "/show 1" in text)
        assert shown.colour("'word'") == colour
        leave(shown)


@pytest.mark.usefixtures("trio")
def test_teamchat_alone_is_chat_at_a_terminal_in_a_folder_with_a_team() -> None:
    with screen() as shown:
        shown.until(lambda text: "Ctrl-D" in text)
        assert leave(shown) == 0
    assert "Usage" in run_here().out


@pytest.mark.usefixtures("world")
def test_teamchat_alone_says_how_to_begin_in_a_folder_without_a_team() -> None:
    ran = run_here()
    assert ran == Result(2, f"{BEGINNING}\n", "")
    with screen() as shown:
        rows = shown.to_the_end()
    assert [row for row in rows if row] == (ran.out.splitlines())
    assert len(rows) == 6


@pytest.mark.usefixtures("trio")
def test_lines_pasted_before_the_prompt_is_there_are_one_text_and_not_sent() -> None:
    with screen("chat", env={"PYTHONNODEBUGRANGES": "1"}) as shown:  # a new interpreter, which begins after the text
        shown.child.delaybeforesend = None
        types(shown, "@max First line\nand a second one\n")
        shown.until(lambda text: "Enter sends it" in text)
        types(shown, ENTER)
        shown.until(lambda text: "you → max" in text)
        leave(shown)
    assert select("SELECT content FROM messages WHERE number = 1") == [("First line\nand a second one",)]


@pytest.mark.usefixtures("trio")
def test_chat_needs_a_terminal() -> None:
    assert cli("chat").code == 2


@pytest.mark.usefixtures("trio")
def test_chat_waits_for_another_process_that_runs_the_session(world: Path, trio: Crew) -> None:
    run_here("send", "--to", "carol", "Hi")
    slow(world, trio, "max", "I did it.")
    with start("send", "--to", "max", "Write it") as other:
        assert eventually((world / "began").exists)
        with chat() as shown:
            line(shown, "@sarah And you?")
            shown.until(lambda text: "what you type is sent when it ends" in text and "queued:" in text)
            (world / "go").touch()
            shown.until(lambda text: "Looks right." in text)
            leave(shown)
        other.wait()


def test_a_signal_ends_chat_and_keeps_what_is_queued_for_a_session_that_is_busy(world: Path, trio: Crew) -> None:
    run_here("send", "--to", "carol", "Hi")
    slow(world, trio, "max", "I did it.")
    with start("send", "--to", "max", "Write it") as other:
        assert eventually((world / "began").exists)
        with chat() as shown:
            for number in range(20):
                line(shown, f"@sarah Message {number}")
            shown.until(lambda text: "what you type is sent when it ends" in text and "Message 19" in text)
            os.kill(shown.child.pid, signal.SIGTERM)
            shown.to_the_end()
        (world / "go").touch()
        other.wait()
    assert shown.child.exitstatus == 143
    assert "20 messages still queued" in shown.text


@pytest.mark.usefixtures("trio")
def test_a_signal_that_ends_programs_ends_chat_and_leaves_the_terminal_as_it_was() -> None:
    with screen("chat") as shown:
        before = termios.tcgetattr(shown.child.child_fd)
        shown.until(lambda text: PROMPT in text)
        os.kill(shown.child.pid, signal.SIGTERM)
        shown.to_the_end()
        assert shown.child.exitstatus == 143
        assert termios.tcgetattr(shown.child.child_fd) == before


# --- lines that were meant as commands


@pytest.mark.usefixtures("trio")
@pytest.mark.parametrize("typed", ["/quti", "/review", "/demo", "/quit.", "/shwo 3"])
def test_a_mistyped_command_stays_selected_and_is_replaced_by_what_is_typed(typed: str) -> None:
    with chat() as shown:
        line(shown, typed)
        told = f"✗ {'/demo runs' if typed == '/demo' else 'there is no command'}"
        shown.until(lambda text: told in text and prompt_of(text) == f"{PROMPT} {typed}")
        types(shown, "x")
        shown.until(lambda text: prompt_of(text) == f"{PROMPT} x")
        assert leave_after_clearing(shown) == 0
    assert said_nothing()


@pytest.mark.usefixtures("trio")
def test_an_arrow_keeps_a_refused_text_for_editing() -> None:
    with chat() as shown:
        line(shown, "/quti")
        shown.until(lambda text: "✗ there is no command" in text and prompt_of(text) == f"{PROMPT} /quti")
        types(shown, "\x1b[D\x7f")
        shown.until(lambda text: prompt_of(text) == f"{PROMPT} /qui")
        types(shown, "\x05")  # to the end of the line
        assert leave_after_clearing(shown) == 0


@pytest.mark.usefixtures("trio")
@pytest.mark.parametrize("typed", ["/quit", "/exit"])
def test_quit_and_exit_leave(typed: str) -> None:
    with chat() as shown:
        line(shown, typed)
        shown.to_the_end()
        assert shown.child.exitstatus == 0
    assert said_nothing()


def test_stop_stops_what_runs_and_keeps_what_is_queued(world: Path, trio: Crew) -> None:
    hanging(world, trio)
    with chat() as shown:
        line(shown, "/stop")
        shown.until(partial(stands, "· nothing runs"))
        line(shown, "@max Write it")
        begun(world, shown)
        line(shown, "@sarah And a test")
        shown.until(lambda text: "queued:" in text)
        line(shown, "/stop")
        shown.until(partial(stands, "· your message is still queued: Enter sends it, ↑ takes it back"))
        leave(shown)
    assert queue() == [("max", "held")]
    assert kept() == ["And a test"]


@pytest.mark.usefixtures("trio")
def test_new_begins_another_conversation_with_the_next_message() -> None:
    with chat() as shown:
        line(shown, "@max One")
        shown.until(lambda text: "I did it." in text)
        line(shown, "/new Don't use packages")
        shown.until(partial(stands, "· the next message begins another conversation"))
        assert "new session" in shown.rows[-1]
        line(shown, "@sarah Two")
        shown.until(lambda text: "Looks right." in text)
        leave(shown)
    assert select("SELECT title FROM sessions ORDER BY id") == [(None,), ("Don't use packages",)]


@pytest.mark.usefixtures("trio")
@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/status", "I did it."),
        ("/cost", "max"),
        ("/model", "max"),
        ("/task Don't use packages", "the task of session"),
    ],
)
def test_words_of_other_programs_do_what_they_do_there(typed: str, told: str) -> None:
    with chat() as shown:
        line(shown, "@max One")
        shown.until(lambda text: "I did it." in text)
        line(shown, typed)
        shown.until(lambda text: told in text.partition(f"\n{typed}\n")[2] and prompt_of(text) == PROMPT)
        leave(shown)
    assert len(said()) == 2
