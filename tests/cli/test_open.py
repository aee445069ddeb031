"""`open`: a member's own session at the user's own terminal, and what the conversation knows of it."""

from __future__ import annotations

import json
import os
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from tests.cli.helpers import FILE, objects, refused, rows
from tests.hiding import undo
from tests.program import TIMEOUT_S, argv, cli, ended, run_here, start
from tests.terminals import Terminal

FAKE = Path(__file__).parent.parent / "fakes" / "terminal.py"
MEMBERS = {"max": "claude", "sarah": "codex", "carol": "gemini"}
KEYS = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "GEMINI_API_KEY": "g"}


def team(extra: str = 'memory = "resume"', *, trusted: bool = True) -> None:
    parts = ['[[members]]\nname = "kailai"\ntype = "human"']
    for name, like in MEMBERS.items():
        command = json.dumps([sys.executable, "-I", "-S", str(FAKE), like])
        parts.append(f'[[members]]\nname = "{name}"\nagent = "{name}-agent"\nmodel = "m-1"\ncwd = "in"\n{extra}')
        parts.append(f'[agents.{name}-agent]\ncommand = {command}\nlike = "{like}"')
    FILE.write_text("\n".join(parts) + "\n")
    Path("in").mkdir(exist_ok=True)
    if trusted:
        trust_store().grant(load(FILE))


@contextmanager
def opened(*args: str, env: dict[str, str] | None = None) -> Iterator[pexpect.spawn]:
    program, *rest = argv("open", *args)
    child = Terminal(
        program,
        rest,
        env={**os.environ, **(env or {})},
        dimensions=(24, 200),
        timeout=TIMEOUT_S,
        echo=False,
        encoding="utf-8",
    )
    try:
        yield child
    finally:
        child.close(force=True)


def left(child: pexpect.spawn, order: str) -> int | None:
    """The exit code of teamchat after this last line."""
    child.sendline(order)
    child.expect(pexpect.EOF)
    child.wait()
    code: int | None = child.exitstatus
    return code


def session_of(turn: int) -> object:
    return objects(run_here("show", str(turn), "--json"))[0]["vendor_session"]


@pytest.mark.parametrize(
    ("name", "flags"),
    [("max", "--resume SESSION"), ("sarah", "resume SESSION --no-daemon"), ("carol", "--resume SESSION")],
)
def test_the_terminal_is_the_members_own_cli_in_its_session_until_it_ends(name: str, flags: str) -> None:
    team()
    assert run_here("send", "--to", name, "Hi").code == 0
    session = str(session_of(1))
    with opened(name, env=KEYS) as child:
        child.expect_exact(f"opens {name}'s session {session}")
        words = flags.replace("SESSION", session).split()
        child.expect_exact(f"opened {json.dumps([*words, '--model', 'm-1'])}")
        child.sendline("cwd")
        child.expect_exact(f"in {Path.cwd()}/in")
        for vendor, key in zip(MEMBERS.values(), KEYS, strict=True):
            child.sendline(f"env {key}")
            child.expect_exact(f"{key} is {KEYS[key] if vendor == MEMBERS[name] else None}")
        child.sendline("env TMPDIR")
        child.expect_exact(f"TMPDIR is {os.environ['TEAMCHAT_HOME']}/temporary/open-")
        assert left(child, "exit 7") == 7


def test_the_next_turn_goes_on_with_the_session_and_its_receipt_says_that_it_moved_on() -> None:
    team()
    run_here("send", "--to", "max", "Hi")
    with opened("max") as child:
        child.expect_exact("opened")
        assert left(child, "exit 0") == 0
    said = run_here("log").out
    run_here("send", "--to", "max", "Go on")
    run_here("send", "--to", "max", "And on")
    shown = [run_here("show", turn).out for turn in "123"]
    assert [session_of(turn) for turn in (2, 3)] == [session_of(1)] * 2
    assert ["continued it by hand" in receipt for receipt in shown] == [False, True, False]
    assert run_here("log").out.startswith(said)
    assert said.count("msg-") == 2, "what is said by hand is no message"


def test_ctrl_c_is_for_the_cli_alone() -> None:
    team()
    run_here("send", "--to", "max", "Hi")
    with opened("max") as child:
        child.expect_exact("opened")
        for _ in range(2):
            child.sendintr()
            child.expect_exact("interrupted")
        assert left(child, "exit 0") == 0


def test_a_cli_that_was_killed_is_told_as_a_shell_does() -> None:
    team()
    run_here("send", "--to", "max", "Hi")
    with opened("max") as child:
        child.expect_exact("opened")
        assert left(child, "die") == 137


def test_a_stopped_cli_gives_the_terminal_back_and_goes_on() -> None:
    team()
    run_here("send", "--to", "max", "Hi")
    shell = pexpect.spawn("/bin/bash", ["--norc", "--noprofile", "-i"], timeout=TIMEOUT_S, echo=False, encoding="utf-8")
    try:
        shell.sendline(" ".join(argv("open", "max")))
        shell.expect_exact("opened")
        shell.sendcontrol("z")
        shell.expect_exact("Stopped")
        shell.sendline("echo $((6*7))")
        shell.expect_exact("42")
        shell.sendline("fg")
        shell.expect_exact("open max")  # what is typed before that is still bash's
        shell.sendline("cwd")
        shell.expect_exact(f"in {Path.cwd()}/in")
        shell.sendline("exit 5")
        shell.expect_exact("bye")
        shell.sendline("echo code $?")
        assert shell.expect_exact("code 5") == 0
    finally:
        shell.close(force=True)


def test_nobody_else_runs_the_conversation_while_it_is_open() -> None:
    team()
    run_here("send", "--to", "max", "Hi")
    with opened("max") as child:
        child.expect_exact("opened")
        busy = cli("send", "--no-wait", "--to", "sarah", "Hi")
        assert (busy.code, "(teamchat open max)" in busy.err) == (13, True)
        with start("send", "--to", "sarah", "Hi") as waiting:
            assert waiting.stderr
            told = [waiting.stderr.readline().decode() for _ in range(2)]
            assert "waiting for process" in told[1]
            assert "(teamchat open max)" in told[1]
            assert left(child, "exit 0") == 0
            done = ended(waiting)
    assert (done.code, done.out) == (0, "sarah:\nHello.\n\n")


def test_what_ends_teamchat_ends_the_cli_first() -> None:
    team()
    run_here("send", "--to", "max", "Hi")
    with opened("max") as child:
        child.expect_exact("opened")
        assert cli("stop").code == 0
        child.expect_exact("bye")
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 44


def test_a_cli_that_is_stopped_leaves_the_terminal_as_it_was() -> None:
    team()
    run_here("send", "--to", "max", "Hi")
    with opened("max") as child:
        child.expect_exact("opened")
        before = termios.tcgetattr(child.child_fd)
        child.sendline("mess")
        child.expect_exact("messy")
        assert termios.tcgetattr(child.child_fd) != before
        assert cli("stop").code == 0
        child.expect_exact("bye")
        child.expect(pexpect.EOF)
        assert "\x1b7\x1b[?1049l\x1b[?25h" in child.before
        assert termios.tcgetattr(child.child_fd) == before


@pytest.mark.parametrize("order", ["mess", "seize"])
def test_a_shell_has_its_terminal_again_after_a_cli_is_stopped(order: str) -> None:
    team()
    run_here("send", "--to", "max", "Hi")
    shell = pexpect.spawn("/bin/sh", ["-i"], timeout=TIMEOUT_S, echo=False, encoding="utf-8")
    try:
        shell.sendline("echo $((6*7))")
        shell.expect_exact("42")
        before = termios.tcgetattr(shell.child_fd)
        shell.sendline(" ".join(argv("open", "max")))
        shell.expect_exact("opened")
        shell.sendline(order)
        shell.expect_exact({"mess": "messy", "seize": "seized"}[order])
        assert termios.tcgetattr(shell.child_fd) != before
        assert cli("stop").code == 0
        shell.expect_exact("\x1b[?1049l")
        shell.sendline("echo code $?")
        shell.expect_exact("code 44")
        assert termios.tcgetattr(shell.child_fd) == before
    finally:
        shell.close(force=True)


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["nobody"], "no member 'nobody' in team 'work' (there are: kailai, max, sarah, carol)"),
        (["kailai"], "kailai is a person, who has no session to open"),
        (["sarah"], "sarah has no session in conversation s1 yet"),
        (["max", "--session", "other"], "there is no session 'other' (sessions: s1)"),
    ],
)
def test_where_there_is_no_session_it_says_so(args: list[str], error: str) -> None:
    team()
    run_here("send", "--to", "max", "Hi")
    ran = run_here("open", *args)
    assert (ran.code, refused(ran)) == (4, error)


def test_a_session_that_remembers_what_was_taken_back_is_not_opened() -> None:
    team()
    for text in ("Hi", "Go on", "And on"):
        assert run_here("send", "--to", "max", text).code == 0
    undo(3)
    assert session_of(1) == session_of(3)
    ran = run_here("open", "max")
    told = "max's session remembers what was undone; its next turn begins another one"
    assert (ran.code, refused(ran)) == (4, told)
    assert ran.err.splitlines()[1] == "  try: teamchat send --to max 'Your message'"
    assert run_here("send", "--to", "max", "Go on").code == 0
    assert session_of(4) != session_of(3)
    with opened("max") as child:
        child.expect_exact(f"opens max's session {session_of(4)}")
        assert left(child, "exit 0") == 0


def test_an_older_session_is_opened_in_place_of_one_that_was_taken_back() -> None:
    team()
    assert run_here("send", "--to", "max", "Hi").code == 0
    trusted = FILE.read_text()
    FILE.write_text(trusted.replace('name = "max"', 'name = "max"\nsystem_instruction = "Be brief"'))
    assert run_here("send", "--trust", "--to", "max", "Go on").code == 0
    assert session_of(1) != session_of(2)
    undo(2)
    with opened("max") as child:
        child.expect_exact(f"opens max's session {session_of(1)}")
        assert left(child, "exit 0") == 0


FRESH = 'max\'s memory is fresh: its turns leave no session; give it memory = "resume" in the team file, and a turn'


def test_a_member_that_remembers_nothing_has_no_session() -> None:
    team("")
    run_here("send", "--to", "max", "Hi")
    ran = run_here("open", "max")
    assert (ran.code, refused(ran)) == (4, FRESH)


def test_a_program_that_has_no_sessions_has_none_to_open() -> None:
    FILE.write_text('[[members]]\nname = "al"\nagent = "echo"\n[agents.echo]\ncommand = ["echo", "Hi"]\n')
    run_here("send", "--trust", "Hi")
    ran = run_here("open", "al")
    assert (ran.code, refused(ran)) == (4, "al's program has no sessions to open")


def test_a_session_of_another_folder_is_not_this_members() -> None:
    team()
    run_here("send", "--to", "max", "Hi")
    FILE.write_text(FILE.read_text().replace('cwd = "in"', 'cwd = "."'))
    assert run_here("open", "max").code == 4


def test_without_a_terminal_nothing_is_opened() -> None:
    team()
    run_here("send", "--to", "max", "Hi")
    before = rows()
    ran = cli("open", "max")
    assert (ran.code, refused(ran)) == (2, "opening a session needs a terminal")
    assert rows() == before


def test_a_cli_that_is_not_there_any_more_is_named() -> None:
    team()
    run_here("send", "--to", "max", "Hi")
    FILE.write_text(FILE.read_text().replace(json.dumps(sys.executable), '"/bin/nowhere"'))
    ran = run_here("open", "max")
    why = "is not installed; install it, or change its command in the team file"
    assert (ran.code, refused(ran)) == (11, f"max's program '/bin/nowhere' {why}")


def test_opening_needs_the_trust_that_running_needs() -> None:
    team()
    run_here("send", "--to", "max", "Hi")
    trust_store().file.unlink()
    with opened("max") as child:
        child.expect_exact("Trust it? [y/N] ")
        assert left(child, "n") == 5
    with opened("max", "--trust") as child:
        child.expect_exact("opened")
        assert left(child, "exit 0") == 0
