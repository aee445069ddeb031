"""What the agent of a turn has written to the disk, as events: while the turn runs, and after teamchat was killed.

Another process writes it. This one only reads, and stops neither the agent nor the removal of the files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Literal

from msgspec import Struct

from teamchat.core.store.turns import Turn
from teamchat.core.turn.kept_end import read_end
from teamchat.runners.agent_events import AgentEvent, Done
from teamchat.runners.base import Verdict
from teamchat.runners.child.process import open_output, read_more
from teamchat.runners.child.running import BEGINS, FIRST_LINE, MAX_OUTPUT_BYTES
from teamchat.runners.child.supervisor import Framer, LineFramer, framer_of

UNKNOWN_END = -9  # the exit code of a process whose end nobody saw


class _Stream(Struct, frozen=True):
    name: Literal["out", "err"]
    file: BinaryIO
    framer: Framer


class TurnOutput:
    """The output of one turn in its folder, parsed as the runner does it.

    A kept process writes the output of all its turns into one file. Of it, the turn has what follows the offset in its
    folder, up to the CLI's own terminal event. The stderr of such a process is in another folder, and is not read.
    """

    def __init__(self, turn: Turn, folder: Path) -> None:
        self.parser = turn.type.runner.parser()
        self.parser.longest = MAX_OUTPUT_BYTES  # the limit is only enforced where the turn runs
        self._folder = folder
        self._files = ExitStack()
        self._streams: list[_Stream] = []
        self._left = MAX_OUTPUT_BYTES  # as this one
        self._kept = self._over = False

    def open(self) -> bool:
        """Open the files; False until the process has made them. An open file can be read after its removal."""
        if not self._streams and (out := self._opened("stdout")):
            begin = _begin(self._folder)
            self._kept = begin is not None
            if begin is None:
                begin = len(FIRST_LINE) if out.read(len(FIRST_LINE)) == FIRST_LINE else 0
            out.seek(begin)
            self._streams.append(_Stream("out", out, framer_of(self.parser)))
        if len(self._streams) == 1 and not self._kept and (err := self._opened("stderr")):
            self._streams.append(_Stream("err", err, LineFramer()))
        return bool(self._streams)

    def _opened(self, name: str) -> BinaryIO | None:
        try:
            return self._files.enter_context(open_output(self._folder, name))
        except OSError:
            return None

    def rest(self) -> Iterator[AgentEvent]:
        """All that is still to be read of a process that has ended."""
        self.open()
        while pieces := [(stream, data) for stream in self._streams if (data := self._more(stream.file))]:
            for stream, data in pieces:
                yield from self._parsed(stream, stream.framer.push(data))
        for stream in self._streams:
            yield from self._parsed(stream, stream.framer.flush())

    def _more(self, file: BinaryIO) -> bytes:
        if self._over or not self._left:
            return b""
        try:
            data = read_more(file, self._left)
        except OSError:
            return b""
        self._left -= len(data)
        return data

    def _parsed(self, stream: _Stream, lines: list[bytes]) -> Iterator[AgentEvent]:
        if stream.name == "err":
            yield from (event for line in lines for event in self.parser.feed_stderr(line))
        elif not self._kept:
            yield from self.parser.feed(*lines)
        else:
            for line in lines:
                if self._over:
                    return
                events = tuple(self.parser.feed(line))
                self._over = any(isinstance(event, Done) for event in events)
                yield from events

    def so_far(self) -> Verdict:
        """What the parser makes of it, as of a process that was killed by now. Nothing can be read after this."""
        return self.parser.finish(UNKNOWN_END, "")

    def close(self) -> None:
        self._files.close()
        self._streams.clear()


def text_so_far(turn: Turn, folder: Path) -> str:
    """The text of a turn that is not over: what the agent has written so far, or all if only the end is not stored."""
    if finished := read_end(folder):
        return finished.text
    output = TurnOutput(turn, folder)
    try:
        for _ in output.rest():
            pass
        return output.so_far().text
    finally:
        output.close()


def _begin(folder: Path) -> int | None:
    """The byte at which the output of a kept process's turn begins; None for a process of its own."""
    try:
        with open_output(folder, BEGINS) as file:
            return int(file.read(20))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):  # not on the disk when the machine went down
        return 0
