"""docs/images/demo.svg: what `teamchat demo` prints at a terminal. `make picture` writes it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pexpect

from teamchat.cli.exporting.svg import drawn

COLUMNS, ROWS = 100, 60
TYPED = "$ teamchat demo"


def printed(speed: float = 1.0) -> str:
    """The demo's output at a terminal with colours, up to the words on what to try next."""
    with TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        demo = ["-m", "teamchat", "demo", "--speed", str(speed)]
        program = pexpect.spawn(sys.executable, demo, dimensions=(ROWS, COLUMNS), env=environment, encoding="utf-8")
        text: str = program.read()
        program.close()
    return settled(text.replace("\r\n", "\n")).split("\n\nThat was a recording")[0]


def settled(text: str) -> str:
    """What stands on the terminal at the end, without the changing lines that were drawn below it and erased again."""
    *drawn, end = re.split(r"\r\x1b\[([0-9]+)A\r\x1b\[J", text)
    kept = (before.rsplit("\n", int(lines))[0] for before, lines in zip(drawn[::2], drawn[1::2], strict=True))
    return "".join((*kept, end))


def svg() -> str:
    return drawn(f"{TYPED}\n{printed()}", COLUMNS, "teamchat")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(svg(), encoding="utf-8")
