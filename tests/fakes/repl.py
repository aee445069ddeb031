"""A small program that has nothing but a terminal: `repl.py WAY`. It prompts, reads a line, answers, and so on.

WAY is a function below, which answers a line its own way, well or badly. With AGENT_PIDS set, its pid and those of its
children are appended to that file.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

FOREVER_S = 600.0


def show(text: str | bytes) -> None:
    os.write(1, text if isinstance(text, bytes) else text.encode())


def record(pid: int) -> None:
    if path := os.environ.get("AGENT_PIDS"):
        with Path(path).open("a", encoding="ascii") as file:
            file.write(f"{pid}\n")


def upper(line: str) -> None:
    show(line.upper() + "\n")


def digest(line: str) -> None:
    show(f"{len(line)} {hashlib.sha256(line.encode()).hexdigest()}\n")


def echo(line: str) -> None:
    """As programs do that edit their lines themselves: `main` has switched the terminal to single keys for it."""
    show(f"\r\nyou said: {line}\r\n")


def late(line: str) -> None:
    """As `echo`, but busy when the first key comes."""
    echo(line)


def paste(line: str) -> None:
    """As `echo`, of what is pasted in brackets, and shown at once but late, in two halves."""
    show(f"\r\npasted: {line!r}\r\n")


def colours(line: str) -> None:
    show(f"\x1b]0;a title\x07\x1b[1;31mred\x1b[0m \x1b[38;5;12m{line}\x1b[m\n")


def repaint(_: str) -> None:
    for step in ("|", "/", "-"):
        show(f"\r{step} thinking\x1b[K")
        time.sleep(0.05)
    show("\r\x1b[Kone\r\ntwo\r\n\x1b[2A\x1b[2KOne\r\n\x1b[1B")


def quote(_: str) -> None:
    """Its own prompt, with a pause after it, in the middle of a line; and at the start of one, without."""
    show("type >>> ")
    time.sleep(0.8)
    show("to go on\n")
    show(">>> is my prompt\n")


def slow(_: str) -> None:
    for word in ("one ", "two ", "three\n"):
        show(word)
        time.sleep(0.5)


def pieces(_: str) -> None:
    for byte in "höflich 🎉\n".encode():
        show(bytes([byte]))
        time.sleep(0.01)


def unfinished(line: str) -> None:
    show(f"no line end after {line}")


def blank(_: str) -> None:
    show("\n")


def silent(_: str) -> None:
    show("half an answer\nand a half")
    time.sleep(FOREVER_S)


def dies(_: str) -> None:
    show("half an answer\nout of memory\n")
    sys.exit(3)


def leaves(_: str) -> None:
    sys.exit(0)


def killed(_: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def unnamed(_: str) -> None:
    os.kill(os.getpid(), 40)


def closes(_: str) -> None:
    for stream in (0, 1, 2):
        os.close(stream)
    time.sleep(FOREVER_S)


def deaf(line: str) -> None:
    """It ends neither at the end of file nor when it is hung up."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    upper(line)


def children(line: str) -> None:
    for session in (False, True):
        child = subprocess.Popen([sys.executable, "-I", "-S", "-c", SLEEPER], start_new_session=session)
        record(child.pid)
    upper(line)


def stubborn(_: str) -> None:
    """It ignores every polite signal, as a child of its own does that has cut every tie."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            record(os.getpid())
            show("half an answer\nand a half")
            time.sleep(FOREVER_S)
        os._exit(0)
    time.sleep(FOREVER_S)


def odd(_: str) -> None:
    """What is no UTF-8, NULs, and sequences that would reach the clipboard and the title."""
    show(b"a\xffb\xc3 \x00c \x1b]52;c;aGk=\x07\x1b]0;title\x1b\\ \x9bd\x1b[2m\n")


def endless_line(_: str) -> None:
    while True:
        show("x" * 100_000)


def flood(_: str) -> None:
    while True:
        show("\x1b[10000Gx\r\n" * 100)


def unread(_: str) -> None:
    """The prompt never comes, and nothing that is typed is read."""


def tty(_: str) -> None:
    size = os.get_terminal_size()
    shown = os.environ.get("COLUMNS"), os.environ["TERM"], [os.isatty(stream) for stream in (0, 1, 2)]
    leads = os.getsid(0) == os.getpid() == os.tcgetpgrp(0)
    show(f"{size.columns > 4096} {shown} {leads}\n")


SLEEPER = f"import signal, time; signal.signal(signal.SIGHUP, signal.SIG_IGN); time.sleep({FOREVER_S})"


def keys(busy_s: float = 0.0) -> str | None:
    """A line, key by key, each shown as it comes; None when it is told to end."""
    line = b""
    while (key := os.read(0, 1)) not in {b"\r", b"\x18", b"\x04"}:
        if not line:
            time.sleep(busy_s)
        line += key
        show(key)
    return None if key == b"\x04" else line.decode()


def pasted() -> str | None:
    """What stands in the brackets of a paste that Enter follows."""
    show("\x1b[?2004h")
    data = os.read(0, 1)
    while not data.endswith((b"\x1b[201~", b"\x04")):
        data += os.read(0, 1)
    if data == b"\x04":
        return None
    line = data.decode().removeprefix("\x1b[200~").removesuffix("\x1b[201~")
    shown = line.replace("\r", "\r\n")
    for half in (shown[:8], shown[8:]):
        time.sleep(0.4)
        show(half)
    os.read(0, 1)
    show("\x1b[?2004l")
    return line


def lines() -> str | None:
    line = sys.stdin.readline()
    return line.removesuffix("\n") if line else None


def main(way: str) -> None:
    record(os.getpid())
    answer: Callable[[str], None] = globals()[way]
    read = lines
    if way in {"echo", "late", "paste"}:
        import tty as modes

        modes.setraw(0)
        own: dict[str, Callable[[], str | None]] = {"echo": keys, "late": partial(keys, 0.4), "paste": pasted}
        read = own[way]
    show("Welcome.\r\n")
    if way == "unread":
        show("no prompt here: ")
        time.sleep(FOREVER_S)
    while True:
        show(">>> ")
        line = read()
        if line is None and way == "deaf":
            time.sleep(FOREVER_S)
        if line is None or line == "/bye":
            return
        answer(line)


if __name__ == "__main__":
    main(sys.argv[1])
