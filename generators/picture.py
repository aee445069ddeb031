"""Pictures of terminals in docs/images/: the recorded chat, others of scripts, the demo. `make picture` draws them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pexpect

from generators.chatting import instead, sessions
from generators.screen import Terminal
from teamchat.cli.exporting.svg import drawn

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
CHAT = ROOT / "examples" / "chat.cast"
SHIP = ROOT / "examples" / "ship" / "ship.cassette"
WIDTHS = (80, 120)  # of the demo's pictures, in columns
ROWS = 80
TYPED = "$ teamchat demo --recorded"
QUEUED = "↑ to edit"  # what chat shows while a message is queued


def printed(columns: int, speed: float = 1.0) -> str:
    """What stands on a terminal after the demo, up to the words on what to try next."""
    return _shown(columns, "demo", "--recorded", "--speed", str(speed)).split("\n\nThat was a recording")[0]


def until(columns: int) -> str:
    """What stands on a terminal after the recorded `run until`, from the first check on."""
    shown = _shown(columns, "replay", str(SHIP), "--speed", "0")
    lines = shown.split("\n")
    first = next(number for number, line in enumerate(lines) if "check tests" in line)
    return "\n".join(lines[first:])


def _shown(columns: int, *words: str) -> str:
    """What stands on a terminal after a command of teamchat."""
    with TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        argv = ["-m", "teamchat", *words]
        program = pexpect.spawn(sys.executable, argv, dimensions=(ROWS, columns), env=environment, encoding="utf-8")
        terminal = Terminal(columns, ROWS)
        terminal.feed(program.read())
        program.close()
    return terminal.styled


def chat_with_a_queued_message() -> str:
    """What the recorded chat shows while members work and a message is queued."""
    frames = [styled for text, styled in _frames(CHAT) if QUEUED in text]
    return frames[len(frames) // 2].lstrip("\n")


def _frames(cast: Path) -> Iterator[tuple[str, str]]:
    """The screen after each event of a recording, plain and with colours."""
    head, *events = map(json.loads, cast.read_text(encoding="utf-8").splitlines())
    terminal = Terminal(head["width"], head["height"])
    for _, kind, written in events:
        if kind == "o":
            terminal.feed(written)
            yield terminal.text, terminal.styled


def chat() -> str:
    columns = json.loads(CHAT.read_text(encoding="utf-8").partition("\n")[0])["width"]
    return drawn(chat_with_a_queued_message(), columns, "teamchat chat")


def demo(columns: int, speed: float = 1.0) -> str:
    return drawn(f"{TYPED}\n{printed(columns, speed)}", columns, "teamchat")


PICTURES: Mapping[str, Callable[[], str]] = {
    "chat.svg": chat,
    "chat-instead.svg": lambda: drawn(instead(80), 80, "teamchat chat"),
    "chat-sessions.svg": lambda: drawn(sessions(80), 80, "teamchat chat"),
    "until.svg": lambda: drawn(until(80), 80, "teamchat run until"),
    **{f"demo-{width}.svg": partial(demo, width) for width in WIDTHS},
}


def write(name: str) -> None:
    (IMAGES / name).write_text(PICTURES[name](), encoding="utf-8")


if __name__ == "__main__":
    with ThreadPoolExecutor() as pool:
        list(pool.map(write, sys.argv[1:] or PICTURES))
