"""Telling a person who looks elsewhere that a run has ended: a bell, a notification of the desktop, a command.

A terminal gets a notification only if its environment says which of the two sequences (OSC 9, OSC 777) it knows. Any
other one, tmux and screen included, gets the bell alone, and `TERM=dumb` nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from teamchat.cli.output.lines import closing_lines, note
from teamchat.core.errors import ExitCode
from teamchat.core.store.rows import encoded
from teamchat.core.text.clean import printable
from teamchat.core.turn.lines import result_line
from teamchat.core.turn.run_events import Conclusion

AFTER_S = 20.0  # a run that ends earlier is still looked at
PATIENCE_S = 10.0  # the longest time for the command of `--notify`
LONGEST = 200  # characters of a notification
BELL = "\a"
OSC_9 = ("iTerm.app", "WezTerm", "ghostty")  # TERM_PROGRAM
OSC_777 = ("rxvt-unicode", "foot", "ghostty")  # beginnings of TERM


def tell(conclusion: Conclusion, session: str, seconds: float, command: str | None) -> None:
    """Tell that a run has ended after that many seconds, and run the `command` with its result.

    A person who stopped the run by Ctrl-C is there, and gets neither bell nor notification.
    """
    if seconds > AFTER_S and conclusion.code is not ExitCode.INTERRUPTED:
        ring(alert(conclusion, os.environ))
    if command:
        give(command, conclusion, session)


def alert(conclusion: Conclusion, env: Mapping[str, str]) -> str:
    """Return the bell, and the notification in the sequence that the terminal of this environment knows."""
    said = printable(next(iter(closing_lines(conclusion)), "done"))[:LONGEST]
    if env.get("TMUX") or env.get("STY"):
        return BELL
    if env.get("TERM_PROGRAM") in OSC_9 or env.get("TERM") == "xterm-kitty":
        return f"{BELL}\x1b]9;teamchat: {said}{BELL}"
    if env.get("TERM", "").startswith(OSC_777):
        return f"{BELL}\x1b]777;notify;teamchat;{said.replace(';', ',')}{BELL}"
    return BELL


def ring(sequence: str) -> None:
    """Write it to the terminal that is stdout or stderr, if there is one that is not `dumb`."""
    to = next(filter(_is_terminal, (sys.stdout, sys.stderr)), None)
    if to is None or os.environ.get("TERM", "dumb") == "dumb":
        return
    try:
        to.flush()
        os.write(to.fileno(), sequence.encode(errors="replace"))  # `chat` shows what is printed line by line
    except OSError:  # it has gone
        return


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:
        return False


def give(command: str, conclusion: Conclusion, session: str) -> None:
    """Run a shell command with the `result` of `--json` on its stdin. A note says that it failed."""
    from teamchat.runners.child.command import run_alone

    result = encoded(result_line(session, conclusion)) + b"\n"
    try:
        ran = run_alone(["/bin/sh", "-c", command], Path.cwd(), os.environ, PATIENCE_S, result)
    except (OSError, ValueError) as error:
        note(f"--notify failed: {error}")
        return
    except KeyboardInterrupt:
        note("--notify was interrupted")
        return
    if ran.code is None:
        note(f"--notify took longer than {PATIENCE_S:g} s and was ended")
    elif ran.code:
        said = ran.out.decode(errors="replace").strip().splitlines()[-1:]
        note(printable(": ".join([f"--notify failed with exit code {ran.code}", *said]))[:LONGEST])
