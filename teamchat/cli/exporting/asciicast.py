"""An asciicast (version 2): the conversation as a terminal showed it, with a marker where each turn begins.

A pause keeps its length up to `max_pause`; the clock in the picture shows the real time.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator

from teamchat.cli.exporting.formats import ExportOptions
from teamchat.cli.exporting.screen import harmless, moments, shown_on
from teamchat.cli.output.terminal.surface import SIZE, TerminalSurface
from teamchat.core.transcripts.transcript import Transcript

FRAME_S = 0.1
LAST_S = 2.0  # how long the last frame stays
COLUMNS, ROWS = SIZE


class _Tape(io.RawIOBase):
    """Output for a terminal with its times: `at` by the recording's clock, `now` by the conversation's. In seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.at = self.now = 0.0
        self._lines: list[str] = []

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]
        self.put("o", bytes(data).decode("utf-8", "replace").replace("\n", "\r\n"))
        return len(data)

    def put(self, kind: str, text: str) -> None:
        self._lines.append(json.dumps([round(self.at, 3), kind, text], ensure_ascii=False) + "\n")

    def wait(self, seconds: float, most: float, moved: Callable[[], None]) -> None:
        """Let that time pass, in `most` seconds of the recording; `moved` is called for each frame."""
        frames = math.ceil(min(seconds, most) / FRAME_S)
        for _ in range(frames):
            self.at += min(seconds, most) / frames
            self.now += seconds / frames
            moved()

    def taken(self) -> list[str]:
        """Return the lines since the last call."""
        lines, self._lines = self._lines, []
        return lines


def write_cast(transcript: Transcript, options: ExportOptions) -> Iterator[str]:
    shown = harmless(transcript)
    head = {
        "version": 2,
        "width": COLUMNS,
        "height": ROWS,
        "timestamp": transcript.began_ms // 1000,
        "title": shown.title or shown.session,
        "env": {"TERM": "xterm-256color"},
    }
    yield json.dumps(head, ensure_ascii=False) + "\n"
    tape = _Tape()
    output = shown_on(TerminalSurface(tape, moves=True), shown, now=lambda: tape.now)
    for moment in moments(shown):
        tape.wait(moment.pause, options.max_pause, output.tick)
        if moment.marker:
            tape.put("m", moment.marker)
        output(moment.event)
        yield from tape.taken()
    output.close()
    tape.at += LAST_S
    tape.put("o", "")
    yield from tape.taken()
