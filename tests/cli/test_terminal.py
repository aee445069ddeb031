"""What a person sees, and is asked, at a real terminal (a pty)."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from teamchat.cli.output.terminal.look import colours_of
from tests.cli.helpers import FILE, actors, queue, said, steady
from tests.program import TIMEOUT_S, Result, argv, run_here
from tests.runners.processes import Pids
from tests.scripted_team import Crew, crew
from tests.terminals import Terminal

WIDTH, HEIGHT = 80, 24
ESCAPE = "\x1b"
XTERM = "xterm-256color"
NAMES = ("kailai", "max", "sarah")
QUESTION = "Trust it? [y/N] "


@contextmanager
def terminal(*args: str, kind: str = "dumb", no_color: str = "") -> Iterator[pexpect.spawn]:
    """The program at a terminal of its own; one that is not dumb gets styles, and colours without NO_COLOR."""
    env = {**os.environ, "TERM": kind, "NO_COLOR": no_color}
    program, *rest = argv(*args)
    child = Terminal(
        program, rest, env=env, dimensions=(HEIGHT, WIDTH), timeout=TIMEOUT_S, echo=False, encoding="utf-8"
    )
    try:
        yield child
    finally:
        child.close(force=True)


def seen(child: pexpect.spawn) -> Result:
    """All that is still to come, with plain line ends, and how it ended."""
    child.expect(pexpect.EOF)
    text = str(child.before).replace("\r\n", "\n")
    child.wait()
    return steady(Result(child.exitstatus, text, ""))


def at_terminal(*args: str, kind: str = "dumb", no_color: str = "") -> Result:
    """What is shown, with the same time for every turn."""
    with terminal(*args, kind=kind, no_color=no_color) as child:
        ran = seen(child)
    return Result(ran.code, re.sub(r"^(\x1b\[2m)?  \d\.\d s", r"\1  0.0 s", ran.out, flags=re.MULTILINE), ran.err)


def claude(*steps: str) -> list[str]:
    """The steps of a turn of Claude Code that ends well."""
    return ["claude-init", *(word for step in steps for word in ("+", *step.split(" ", 1)))]


TURN = claude(
    "claude-delta One ",
    "claude-delta two.",
    "claude-text One two.",
    "claude-tool Bash",
    "claude-tool-end ok",
    "claude-delta Do",
    "claude-delta ne.",
    "claude-text Done.",
    "claude-result Done.",
)


def test_each_turn_is_a_block_of_its_text_its_tools_and_its_end() -> None:
    actors({"max": TURN, "sarah": ["claude-like", "Me. [NEXT: kailai]"]}, like="claude")
    assert at_terminal("send", "--no-input", "[NEXT: max, bob, sarah] Hi") == Result(
        9,
        "· session s1 begins\n"
        "· nobody is called 'bob'\n"
        "you → max, sarah   Hi\n"
        "\n"
        "▌ max   max-agent · read only (not proven)\n"
        "▌ One two.\n"
        "▌   ran     make test\n"
        "▌ Done.\n"
        "  0.0 s · 21 tokens · $0.00                                      teamchat show 1\n"
        "\n"
        "▌ sarah   sarah-agent · read only (not proven)\n"
        "▌ Me. [NEXT: kailai]\n"
        "▌ → kailai\n"
        "  0.0 s · 21 tokens · $0.00                                      teamchat show 2\n"
        "\n"
        "? sarah asks you\n"
        "  answer: teamchat send 'Your answer'\n",
        "",
    )


def test_text_is_shown_while_the_agent_still_speaks() -> None:
    actors({"max": claude("claude-delta One ", "hang")}, like="claude")
    with terminal("send", "Hi", kind=XTERM, no_color="1") as child:
        child.expect_exact("▌ One\r\n")
        child.sendintr()
        ended = seen(child)
    assert ended.code == 130
    assert "paused: max was interrupted" in ended.out
    assert "on hold: max" in ended.out
    assert "teamchat resume" in ended.out


def test_a_final_text_that_differs_replaces_what_was_streamed() -> None:
    said = ["claude-delta A draft.\n\nOf it", "claude-text The text.", "claude-result The text."]
    actors({"max": claude(*said)}, like="claude")
    shown = at_terminal("send", "Hi").out
    assert "\n▌ A draft.\n▌\n▌ Of it\n▌ · (the text above was replaced:)\n▌ The text.\n  0.0 s" in shown


def test_a_streamed_text_that_was_not_written_yet_is_replaced_without_a_word() -> None:
    actors({"max": claude("claude-delta A draft", "claude-text The text.", "claude-result The text.")}, like="claude")
    shown = at_terminal("send", "Hi").out
    assert "read only (not proven)\n▌ The text.\n  0.0 s" in shown


def test_a_reply_that_was_shown_before_another_text_is_shown_again() -> None:
    actors({"max": claude("claude-delta First.", "claude-text Second.", "claude-result First.")}, like="claude")
    shown = at_terminal("send", "Hi").out
    assert "\n▌ Second.\n▌ First.\n  0.0 s" in shown


def test_a_program_on_a_pipe_is_shown_line_by_line_and_no_line_is_cut() -> None:
    actors({"max": ["reply", f"first\n{'word ' * 30}\n", "+", "say", "no newline"]})
    assert at_terminal("send", "Hi").out == (
        "· session s1 begins\n"
        "you → max   Hi\n"
        "\n"
        "▌ max   max-agent · not bounded\n"
        "▌ first\n"
        f"▌ {' '.join(['word'] * 15)}\n"
        f"▌ {' '.join(['word'] * 15)}\n"
        "▌\n"
        "▌ no newline\n"
        f"  0.0 s{' ' * 58}teamchat show 1\n"
        "\n"
        "· not reported by max: tokens, denied actions\n"
    )


def test_why_it_stopped_is_told_at_the_end(world: Path) -> None:
    crew(world, {"max": [{"say": "half", "err": "no ideas", "exit": 3}, "May I? [NEXT: kailai]"], "sarah": []})
    failed = at_terminal("send", "[NEXT: max] Hi")
    assert failed.code == 1
    assert failed.out.endswith(
        f"▌ half\n  0.0 s{' ' * 58}teamchat show 1\n\n"
        "✗ max ended with exit code 3: no ideas\n  on hold: max\n  try: teamchat resume\n"
    )
    asked = at_terminal("resume", "--no-input")
    assert asked.code == 9
    assert asked.out.endswith("\n? max asks you\n  answer: teamchat send 'Your answer'\n")


def test_the_replies_of_a_group_are_blocks_in_the_order_of_the_names(world: Path) -> None:
    max_, sarah = str(world / "max"), str(world / "sarah")
    crew(
        world,
        {
            "max": [{"touch": max_, "wait": sarah, "say": "One\nline\n"}],
            "sarah": [{"touch": sarah, "wait": max_, "say": "Two"}],
        },
    )
    shown = at_terminal("send", "[NEXT: sarah + max] Hi")
    assert shown.code == 0
    end = "  0.0 s\n"
    assert re.sub(r" +teamchat show \d", "", shown.out).partition("Hi\n")[2] == (
        f"\n▌ sarah   sarah-agent · not bounded\n▌ Two\n{end}\n▌ max   max-agent · not bounded\n▌ One\n▌ line\n{end}"
        "\n· not reported by sarah, max: tokens, denied actions\n"
    )


class TestColours:
    def test_each_member_has_its_own_in_every_turn(self) -> None:
        actors({"max": TURN, "sarah": ["claude-like", "Me."]}, like="claude")
        shown = at_terminal("send", "[NEXT: max, sarah] Hi", kind=XTERM).out
        named = {name: f"{ESCAPE}[1;38;5;{colour}m{name}{ESCAPE}[0m   " for name, colour in colours_of(NAMES).items()}
        assert named["max"] in shown
        assert named["sarah"] in shown
        again = at_terminal("send", "[NEXT: sarah] Hi", kind=XTERM).out
        assert named["sarah"] in again

    def test_there_are_none_with_no_color(self) -> None:
        actors({"max": TURN, "sarah": ["claude-like", "[NEXT: kailai]"]}, like="claude")
        shown = at_terminal("send", "--no-input", "[NEXT: max, sarah] Hi", kind=XTERM, no_color="1")
        assert shown.code == 9
        assert set(re.findall(rf"{ESCAPE}\[([0-9;]*)m", shown.out)) <= {"", "0", "1", "2"}  # bold and dim are none

    def test_a_dumb_terminal_gets_no_sequence(self) -> None:
        actors({"max": TURN}, like="claude")
        assert ESCAPE not in at_terminal("send", "Hi").out

    def test_there_are_none_in_json_and_in_a_quiet_reply(self, world: Path) -> None:
        crew(world, {"max": ["One.", "Two."]})
        assert at_terminal("send", "--quiet", "Hi", kind=XTERM) == Result(0, "One.\n", "")
        assert ESCAPE not in at_terminal("send", "--json", "Hi", kind=XTERM).out


REPAINTING = [
    "\x1b[2J",
    "\x1b[1;1H",
    "\x1b]0;title\x07",
    "\x1b]52;c;ZXZpbA==\x1b\\",
    "\x9b2J",
    "\x1bc",
    "\x07",
    "\x08\x08",
]


def test_nothing_an_agent_says_can_write_over_the_screen() -> None:
    """Also where it comes in pieces, or in the name of a tool, or on stderr."""
    steps: list[str] = []
    for sequence in REPAINTING:
        name = sequence.replace("\x9b", "\x1b[")
        steps += ["claude-tool", f"Ba{name}sh", "+", "claude-tool-end", "ok", "+", "err", f"x{name}y", "+"]
    for sequence in REPAINTING:
        half, rest = sequence[:1], sequence[1:]
        steps += ["claude-delta", f"safe{half}", "+", "claude-delta", f"{rest}text\n", "+"]
    said = "".join(f"safe{sequence}text\n" for sequence in REPAINTING)
    actors({"max": [*steps, "claude-text", said, "+", "claude-result", said]}, like="claude")
    shown = at_terminal("send", "Hi").out
    assert shown.count("\n▌ safetext") == len(REPAINTING), shown
    assert not set(shown) & {chr(code) for code in (*range(0x0A), *range(0x0B, 0x20), *range(0x7F, 0xA0))}, shown
    assert not re.search(r"title|ZXZ", at_terminal("log").out)


def test_what_turns_the_direction_of_writing_is_shown_by_its_code(world: Path) -> None:
    """A reply could read as other words than it has; the store, `--json` and the next prompt keep it."""
    said_so = "pay \u202e001\u202c to \u2066me\u2069"
    made = crew(world, {"max": [said_so], "sarah": ["Yes."]}, like={"max": "claude"})
    shown = "pay \\u202e001\\u202c to \\u2066me\\u2069"
    assert f"\n▌ {shown}\n" in at_terminal("send", "[NEXT: max, sarah] Go").out
    for command in (["log"], ["show", "--prompt"], ["show", "--diff"], ["send", "--dry-run", "--to", "sarah", "x"]):
        seen_there = at_terminal(*command).out
        assert shown in seen_there
        assert not set(seen_there) & set("\u202e\u202c\u2066\u2069")
    assert said()[1] == ("max", said_so)
    assert said_so in made.prompts("sarah")[0]
    assert said_so in run_here("show", "--prompt").out


def test_what_stands_below_a_prompt_begins_a_line_of_its_own(world: Path) -> None:
    crew(world, {"max": ["Hi."]})
    run_here("send", "Go on")
    assert "\nGo on\n· system " in at_terminal("show", "--prompt").out
    assert run_here("show", "--prompt").out.endswith("\nGo on")


class TestTrust:
    @pytest.fixture
    def made(self, world: Path) -> Crew:
        made = crew(world, {"max": ["Here.", "Again."]})
        (world / "state" / "trust.json").unlink()
        return made

    def asked(self, child: pexpect.spawn, made: Crew) -> None:
        """The question tells what would run, before anything has."""
        child.expect_exact(QUESTION)
        before = str(child.before).replace("\r\n", "\n")
        assert before.startswith(f"{made.file} asks for more than read access:\n  max runs ")
        assert made.prompts("max") == []

    @pytest.mark.parametrize("answer", ["y", " YES "])
    def test_yes_runs_and_is_remembered(self, made: Crew, answer: str) -> None:
        with terminal("send", "--quiet", "Hi") as child:
            self.asked(child, made)
            child.sendline(answer)
            assert seen(child) == Result(0, "Here.\n", "")
        assert at_terminal("send", "--quiet", "Hi") == Result(0, "Again.\n", "")

    @pytest.mark.parametrize("answer", ["n", "", "yy"])
    def test_anything_else_runs_nothing(self, made: Crew, answer: str) -> None:
        with terminal("send", "Hi") as child:
            self.asked(child, made)
            child.sendline(answer)
            ended = seen(child)
        assert ended.code == 5
        assert ended.out.startswith(f"teamchat: {made.file} is not trusted yet; with it\n")
        assert made.prompts("max") == []
        assert run_here("sessions", "--json").out == ""
        assert run_here("send", "Hi").code == 5

    def test_the_question_about_a_changed_file_tells_what_changed(self, made: Crew) -> None:
        assert run_here("trust").code == 0
        made.file.write_text(made.file.read_text().replace('name = "max"', 'name = "max"\naccess = "full"'))
        with terminal("send", "--quiet", "Hi") as child:
            child.expect_exact(QUESTION)
            asked = str(child.before).replace("\r\n", "\n")
            child.sendline("y")
            assert seen(child) == Result(0, "Here.\n", "")
        why = f"{made.file} has changed since you trusted it:\n"
        assert asked == f"{why}  added access of max: does anything you may do\n"

    def test_the_question_lists_the_checks_and_says_what_they_run(self, made: Crew) -> None:
        made.file.write_text(
            f'{made.file.read_text()}[checks.tests]\ncommand = "make tests"\nenv = {{ KEY = "s3cret" }}\n'
        )
        with terminal("send", "--quiet", "Hi") as child:
            child.expect_exact(QUESTION)
            asked = str(child.before).replace("\r\n", "\n")
            child.sendline("y")
            assert seen(child) == Result(0, "Here.\n", "")
        note = "each runs files that a member has just written, with your rights and the network"
        assert asked.startswith(
            f"{made.file} asks for more than read access:\n  the team runs checks: {note}\n"
            "  the check tests runs make tests\n  the check tests runs with KEY=...\n  max runs "
        )

    def test_the_question_where_it_is_not_known_what_changed(self, made: Crew, world: Path) -> None:
        (world / "state" / "trust.json").write_text(json.dumps({str(made.file): ["0"]}))
        with terminal("send", "--quiet", "Hi") as child:
            child.expect_exact(QUESTION)
            asked = str(child.before).replace("\r\n", "\n")
            child.sendline("y")
            assert seen(child) == Result(0, "Here.\n", "")
        why = f"{made.file} has changed since you trusted it and asks for more than read access:\n"
        assert asked.startswith(f"{why}  max runs ")

    def test_the_end_of_input_is_no_yes(self, made: Crew) -> None:
        with terminal("send", "Hi") as child:
            self.asked(child, made)
            child.sendeof()
            assert seen(child).code == 5

    def test_ctrl_c_is_no_yes(self, made: Crew) -> None:
        with terminal("send", "Hi") as child:
            self.asked(child, made)
            child.sendintr()
            ended = seen(child)
        assert ended.code == 130
        assert "Traceback" not in ended.out
        assert made.prompts("max") == []

    def test_what_is_asked_can_not_repaint_the_question(self) -> None:
        FILE.write_text(
            '[[members]]\nname = "max"\nagent = "own"\n'
            '[agents.own]\ncommand = ["sh", "-c", "evil\\u001b[2K\\u001b[1A\\u202e"]\n'
        )
        with terminal("send", "Hi") as child:
            child.expect_exact(QUESTION)
            assert "evil\\x1b[2K\\x1b[1A\\u202e" in str(child.before)
            assert ESCAPE not in str(child.before)


def test_a_message_can_be_typed(world: Path) -> None:
    crew(world, {"max": ["Here."]})
    with terminal("send", "--quiet", "-") as child:
        child.expect_exact("· reading the message from standard input; Ctrl-D ends it\r\n")
        child.sendline("[NEXT: max] Hi")
        child.sendline("there")
        child.sendeof()
        assert seen(child) == Result(0, "Here.\n", "")
    assert said()[0] == ("kailai", "[NEXT: max] Hi\nthere\n")


def test_ctrl_c_at_a_terminal_reaches_everything_and_stops_it_once(pids: Pids) -> None:
    actors({"max": ["reply", "half", "+", "tool", "+", "hang"]})
    with terminal("send", "Hi") as child:
        child.expect_exact("▌ half\r\n")
        pids.await_count(4)
        child.sendintr()
        assert seen(child).code == 130
    assert pids.alive() == []
    assert queue() == [("max", "held")]


def test_a_terminal_that_is_closed_stops_it_and_loses_nothing(pids: Pids) -> None:
    actors({"max": ["reply", "half", "+", "tool", "+", "hang"]})
    with terminal("send", "Hi") as child:
        child.expect_exact("▌ half\r\n")
        pids.await_count(4)
        child.kill(signal.SIGHUP)
        child.wait()
        assert child.exitstatus == 143
    assert pids.alive() == []
    assert queue() == [("max", "held")]


def test_a_team_file_that_is_looked_at_does_not_write_to_the_terminal() -> None:
    FILE.write_text(
        '[[members]]\nname = "max"\nagent = "own"\nsystem_instruction = "Be\\u001b[2J brief"\n'
        '[agents.own]\ncommand = ["sh", "-c", "evil\\u001b[2J"]\n'
    )
    shown = at_terminal("send", "--dry-run", "Hi").out
    assert ESCAPE not in shown
    assert "Be brief" in shown


def test_a_summary_is_shown_as_it_is_written_and_told_from_a_reply(world: Path) -> None:
    crew(world, {"max": ["One."], "sarah": ["We said One."]}, like={"sarah": "claude"})
    assert run_here("send", "[NEXT: max] Hi").code == 0
    assert at_terminal("compact", "--member", "sarah") == Result(
        0,
        "\n"
        "▌ sarah   sarah-agent · summarises the conversation\n"
        "▌ We said One.\n"
        "▌ · summarised up to msg-1: teamchat show 2\n"
        "  0.0 s · 120 tokens · $0.25                                     teamchat show 2\n",
        "",
    )
