"""The inputs that begin a run: a person's message, or the wish to continue calls on hold."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from teamchat.core.engine.events import ResumeMode
from teamchat.core.engine.workflow import Process
from teamchat.core.messages import Span
from teamchat.core.store.images import Image


class Message(Struct, frozen=True, kw_only=True):
    """A person's message; with a `process` it is the task of that process.

    `typed` are the spans of the text that the person typed. Text between them was pasted in several lines, and text
    behind the last one comes from a pipe or a file. `speaker` is `--as`, `to` is `--to`.
    """

    text: str
    typed: tuple[Span, ...] = ()
    speaker: str | None = None
    to: str | None = None
    images: tuple[Image, ...] = ()
    process: Process | None = None

    @property
    def typed_through(self) -> int:
        """The end of the typed part, with the text pasted into it."""
        return self.typed[-1][1] if self.typed else 0

    @property
    def pasted(self) -> tuple[Span, ...]:
        """The parts that were pasted in several lines."""
        return tuple((span[1], other[0]) for span, other in pairwise(self.typed))


class Resume(Struct, frozen=True):
    """Continue what is on hold, or `only` the routes of these numbers, or what waits for the `message`."""

    mode: ResumeMode = ResumeMode.RETRY
    only: tuple[int, ...] | None = None
    message: str | None = None


Input = Message | Resume


def typed_spans(through: int, pasted: Sequence[Span] = ()) -> tuple[Span, ...]:
    """Return the typed spans of a text: its first `through` characters, without the `pasted` parts."""
    begins = [0, *(end for _, end in pasted)]
    ends = [*(start for start, _ in pasted), through]
    return tuple(zip(begins, ends, strict=True)) if through else ()
