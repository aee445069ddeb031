"""The output of a turn's agent on the disk: while the turn runs, and after teamchat was killed.

Another process writes it. This one only reads, and stops neither the agent nor the removal of the files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from teamchat.core.store.turn_events import TimedEvent
from teamchat.core.store.turns import Turn
from teamchat.core.turn.kept_end import read_end
from teamchat.runners.agent_events import SHOWN_ONLY, AgentEvent, Done
from teamchat.runners.base import Verdict
from teamchat.runners.child.process import open_output, read_more
from teamchat.runners.child.running import BEGINS, FIRST_LINE, MAX_OUTPUT_BYTES
from teamchat.runners.child.supervisor import Framer, LineFramer, framer_of

UNKNOWN_END = -9  # the exit code of a process whose end nobody saw


def read_output(turn: Turn, folder: Path) -> tuple[Verdict, tuple[TimedEvent, ...]]:
    """Parse the output in the turn's folder with the runner's parser, as if its process had been killed now.

    A kept process writes the output of all its turns into one file. Of it, the turn has what follows the offset in its
    folder, up to the CLI's own terminal event. The stderr of such a process is in another folder, and is not read.
    """
    parser = turn.type.runner.parser()
    parser.longest = MAX_OUTPUT_BYTES  # the limit is only enforced where the turn runs
    begin = _begin(folder)
    events: list[AgentEvent] = []
    for line in _lines(folder, "stdout", begin, framer_of(parser)):
        events += (told := tuple(parser.feed(line)))
        if begin is not None and any(isinstance(event, Done) for event in told):
            break
    if begin is None:
        for line in _lines(folder, "stderr", None, LineFramer()):
            events += parser.feed_stderr(line)
    kept = tuple(TimedEvent(0.0, event) for event in events if not isinstance(event, SHOWN_ONLY))
    return parser.finish(UNKNOWN_END, ""), kept


def _lines(folder: Path, name: str, begin: int | None, framer: Framer) -> Iterator[bytes]:
    """Read the readable lines of a file of output, from that byte on."""
    left = MAX_OUTPUT_BYTES  # the limit of a running turn
    with contextlib.suppress(OSError), open_output(folder, name) as file:
        if begin is None:
            begin = len(FIRST_LINE) if file.read(len(FIRST_LINE)) == FIRST_LINE else 0
        file.seek(begin)
        while data := read_more(file, left):
            left -= len(data)
            yield from framer.push(data)
    yield from framer.flush()


def text_so_far(turn: Turn, folder: Path) -> str:
    """Return the text of an unfinished turn: what the agent has written so far, or all if only the end is unstored."""
    finished = read_end(folder)
    return finished.text if finished else read_output(turn, folder)[0].text


def _begin(folder: Path) -> int | None:
    """Return the byte at which the output of a kept process's turn begins; None for a process of its own."""
    try:
        with open_output(folder, BEGINS) as file:
            return int(file.read(20))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):  # not on the disk when the machine went down
        return 0
