"""Progress on one line of stderr, which is removed at the end. Prints nothing if stderr is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status
from rich.text import Text


class Progress:
    """Shows what each member is doing."""

    def __init__(self) -> None:
        self.steps: dict[str, str] = {}
        self.status = Status("", console=Console(stderr=True)) if sys.stderr.isatty() else None

    def __call__(self, who: str, step: str | None) -> None:
        self.steps[who] = step or ""
        if self.status:
            self.status.update(Text(" · ".join(f"{who}: {step}" for who, step in self.steps.items() if step)))

    @contextmanager
    def shown(self) -> Iterator[None]:
        with self.status or _nothing():
            yield

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Clear the line while something else is printed."""
        if self.status:
            self.status.stop()
        yield
        if self.status:
            self.status.start()


@contextmanager
def _nothing() -> Iterator[None]:
    yield
