"""Random keys and resizes in chat: no traceback, and the terminal is left as it was.

`KEYS=10000` presses so many, `SEED=2` others.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import random
import shlex
import termios
import time
from pathlib import Path

import pexpect
import pytest

from tests.cli.helpers import select
from tests.program import TIMEOUT_S, argv
from tests.runners.processes import eventually
from tests.screens import Screen, screen
from tests.scripted_team import crew
from tests.terminals import Terminal

KEYS = int(os.environ.get("KEYS", "300"))
SEED = int(os.environ.get("SEED", "16"))
ESCAPE = "\x1b"
PRESSED = (
    *"abc def @[]/:+,\"'`äß漢👩‍👩‍👧 שלום",
    *(f"{ESCAPE}[{letter}" for letter in "ABCDHFZ"),
    *(f"{ESCAPE}[{number}~" for number in range(1, 7)),
    *(f"{ESCAPE}{letter}" for letter in "bfd\r\x7f."),
    *(chr(code) for code in range(1, 32) if chr(code) not in "\x04\x1a\x1c"),  # which leave, suspend and quit
    "\x7f",
    "\t",
    "\r",
    "\x18\x05",
    f"{ESCAPE}[200~pasted\nlines\n{ESCAPE}[201~",
    f"{ESCAPE}[<0;3;4M",
    f"{ESCAPE}[?1;2c",
)
LINES = (
    "@max Hi\r",
    "[NEXT: sarah, max] Go on\r",
    "[NEXT: max + sarah] Both\r",
    "/log\r",
    "/help\r",
    "/undo\r",
    "/resume\r",
    "/todo add this\r",
    "/task A parser\r",
    "\x03",
)


def press(shown: Screen, chance: random.Random) -> None:
    kind = chance.random()
    if kind < 0.02:
        shown.resize(chance.randint(1, 200), chance.randint(1, 60))
    elif kind < 0.12:
        shown.child.send(chance.choice(LINES))
    else:
        shown.child.send(chance.choice(PRESSED))


@pytest.mark.timeout(60 + KEYS)
def test_no_key_and_no_resize_breaks_chat(world: Path) -> None:
    made = crew(world, {"max": [], "sarah": []})
    for name in ("max", "sarah"):
        replies = [{"say": "One\n\n```py\nx = 1\n```\n| a | b |\n|---|---|\n| 1 | 2 |\n", "hang": 0.05}] * 5
        made.say(name, *replies, {"say": "no", "exit": 1}, *["Fine."] * KEYS)
    chance = random.Random(SEED)  # noqa: S311 (no secret)
    written: list[str] = []
    with screen("chat", env={"EDITOR": "true", "VISUAL": ""}) as shown:
        before = termios.tcgetattr(shown.child.child_fd)
        shown.until(lambda text: "›" in text)
        shown.child.delaybeforesend = None
        shown.child._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a terminal echoes halves of letters
        for number in range(KEYS):
            assert alive(shown, chance, written), f"chat ended at key {number}: {''.join(written)[-9000:]}"
        shown.resize(80, 24)
        leave(shown, written)
        assert "Traceback" not in "".join(written)
        assert shown.child.exitstatus in (0, 130)
        assert termios.tcgetattr(shown.child.child_fd) == before
    assert "".join(written).rfind("\x1b[?2004h") < "".join(written).rfind("\x1b[?2004l"), "pastes are still in brackets"
    assert select("SELECT COUNT(*) FROM messages")[0] > (0,)


def alive(shown: Screen, chance: random.Random, written: list[str]) -> bool:
    """Press a key, and keep what is written. False if chat has ended."""
    try:
        press(shown, chance)
        written.append(output(shown))
    except (pexpect.EOF, OSError):
        with contextlib.suppress(pexpect.EOF, OSError):
            while last := output(shown, 1.0):
                written.append(last)
        return False
    return True


def output(shown: Screen, seconds: float = 0.002) -> str:
    try:
        return str(shown.child.read_nonblocking(1 << 20, seconds))
    except pexpect.TIMEOUT:
        return ""


def leave(shown: Screen, written: list[str]) -> None:
    """Answer what is asked with no, stop what runs, and leave."""
    end = time.monotonic() + TIMEOUT_S
    try:
        while time.monotonic() < end:
            for key in ("\r", "\x03", "\x15", "\x0b", "\x03", "\x04"):
                shown.child.send(key)
                written.append(output(shown, 0.05))
    except (pexpect.EOF, OSError):
        pass
    shown.child.wait()


def test_ctrl_z_and_fg_leave_a_prompt_that_takes_keys(world: Path) -> None:
    crew(world, {"max": ["Yes."]})
    env = {**os.environ, "TERM": "xterm-256color", "PS1": "ready> "}
    shell = Terminal("/bin/bash", ["--norc", "--noprofile", "-i"], env=env, timeout=TIMEOUT_S, encoding="utf-8")

    def takes_keys() -> bool:
        return not termios.tcgetattr(shell.child_fd)[3] & termios.ICANON

    try:
        shell.expect_exact("ready> ")
        shell.sendline(shlex.join(argv("chat")))
        shell.expect_exact("Ctrl-D")
        for _ in range(3):
            assert eventually(takes_keys)
            shell.send("\x1a")
            shell.expect_exact("ready> ")
            shell.sendline("fg")
            shell.expect_exact("Ctrl-D")
        assert eventually(takes_keys)
        shell.send("\x04")
        shell.expect_exact("ready> ")
    finally:
        shell.close(force=True)
