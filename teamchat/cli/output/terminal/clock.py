"""Calls a function ten times a second in a thread of its own, so that a busy event loop does not stop what moves."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from threading import Event, Thread

from teamchat.cli.output.terminal.doing import PER_S


class Clock:
    """The first `start` begins its thread, with `load`. It ends with `stop`, or if the function raises `OSError`."""

    def __init__(self, tick: Callable[[], None], load: Callable[[], None]) -> None:
        self._tick, self._load, self._ended = tick, load, Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        if self._thread is None and not self._ended.is_set():
            self._thread = Thread(target=self._run, daemon=True)
            with contextlib.suppress(RuntimeError):  # no thread can start: the lines change with the events
                self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    def _run(self) -> None:
        self._load()
        with contextlib.suppress(OSError):
            while not self._ended.wait(1 / PER_S):
                self._tick()
