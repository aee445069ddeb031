"""A CLI that a person can also talk to: `terminal.py LIKE ARGS...`, LIKE being claude, codex or gemini.

On a pipe it is a turn: it answers "Hello." in a session of its own, or the one it is told. At a terminal it says how it
was started, and then does a line at a time: `cwd`, `env NAME`, `exit CODE`, `mess`, `seize`, `die`. Ctrl-C is
answered and survived.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tty
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from scripted import spoken  # type: ignore[import-not-found]

LIKE, ARGS = sys.argv[1], sys.argv[2:]


def talk() -> None:
    signal.signal(signal.SIGINT, lambda *_: say("interrupted"))
    signal.signal(signal.SIGTERM, lambda *_: leave(44))
    say(f"opened {json.dumps(ARGS)}")
    for line in iter(sys.stdin.readline, ""):
        order, _, word = line.strip().partition(" ")
        match order:
            case "cwd":
                say(f"in {os.getcwd()}")
            case "env":
                say(f"{word} is {os.environ.get(word)}")
            case "exit":
                leave(int(word))
            case "mess":  # as a CLI that has the whole screen
                tty.setraw(0)
                say("\x1b[?1049h\x1b[?25lmessy")
            case "seize":  # as a shell that a CLI has started, which gives its jobs the terminal
                signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                os.setpgid(0, 0)
                os.tcsetpgrp(0, os.getpgrp())
                tty.setraw(0)
                say("\x1b[?1049hseized")
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)


def leave(code: int) -> None:
    say("bye")
    os._exit(code)


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())  # a signal may come in the middle of a print


def main() -> None:
    if sys.stdin.isatty():
        talk()
        return
    sys.stdin.read()
    session = next((word for flag, word in pairwise(ARGS) if flag in ("--resume", "resume")), f"{LIKE}-{os.getpid()}")
    print(spoken(LIKE, "Hello.", session), end="")


if __name__ == "__main__":
    main()
