"""What chat shows in real conversations of small scripts, for the pictures of docs/chat.md."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pexpect

from generators.screen import Terminal

ROWS = 30
WAIT_S = 20.0
TEAM = """\
[team]
name = "parser"
lead = "max"

[[members]]
name = "kai"
type = "human"

[[members]]
name = "max"
agent = "script"

[[members]]
name = "sarah"
agent = "script"

[agents.script]
command = ["sh", "-c", '''
case "$(cat)" in
  *lexer*) echo "The lexer is in lexer.py: numbers, names and signs. Tests pass." ;;
  *docs*) echo "README.md says how to run it." ;;
  *) sleep 60 ;;
esac
''']
"""


class Chat:
    """`teamchat chat` at a terminal of so many columns."""

    def __init__(self, folder: Path, columns: int, *, dark: bool = True) -> None:
        theme = {"TEAMCHAT_THEME": "dark" if dark else "light"}
        self.env = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "LANG": "C.UTF-8", **theme}
        self.folder, self.columns = folder, columns

    def runs(self, *args: str) -> None:
        pexpect.run(f"{sys.executable} -m teamchat {' '.join(args)}", cwd=self.folder, env=self.env)

    def begin(self) -> None:
        self.terminal = Terminal(self.columns, ROWS)
        self.child = pexpect.spawn(
            sys.executable, ["-m", "teamchat", "chat"], cwd=self.folder, env=self.env,
            dimensions=(ROWS, self.columns), encoding="utf-8",
        )  # fmt: skip

    def types(self, keys: str, until: str) -> None:
        """Type the keys, and wait until this stands on the screen."""
        self.child.send(keys)
        end = time.monotonic() + WAIT_S
        while until not in " ".join(self.terminal.text.split()):
            if time.monotonic() > end:
                raise TimeoutError(f"{until!r} does not come:\n{self.terminal.text}")
            self.read()
        self.read(1.0)

    def read(self, seconds: float = 0.1) -> None:
        """Show what is written in this time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            with contextlib.suppress(pexpect.TIMEOUT):
                self.terminal.feed(self.child.read_nonblocking(65536, left))


@contextmanager
def chat(columns: int, *, dark: bool = True) -> Iterator[Chat]:
    with TemporaryDirectory() as home:
        folder = Path(home) / "parser"
        folder.mkdir()
        (folder / "teamchat.toml").write_text(TEAM, encoding="utf-8")
        made = Chat(folder, columns, dark=dark)
        made.runs("trust")
        try:
            yield made
        finally:
            made.child.close(force=True)


def instead(columns: int, *, dark: bool = True) -> str:
    """A turn is stopped with Esc, and the next message takes its place."""
    with chat(columns, dark=dark) as shown:
        shown.begin()
        shown.types("", "max answers")
        shown.types("Write the parser\r", "starting")
        shown.types("\x1b", "stopped:")
        shown.types("Begin with the lexer\r", "Tests pass.")
        return shown.terminal.styled


def sessions(columns: int, *, dark: bool = True) -> str:
    """Another conversation is chosen from inside."""
    with chat(columns, dark=dark) as shown:
        shown.runs("send", "--new", "'Begin with the lexer'")
        shown.runs("send", "--new", "--title", "'Docs of the parser'", "'Write the docs'")
        shown.begin()
        shown.types("", "›")
        shown.types("/sessions\r", "Open which conversation?")
        return shown.terminal.styled
