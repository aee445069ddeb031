"""Work that a thread does, and that is waited for where its result is needed.

The standard library's `Future` takes 2 ms to load, because it logs.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """`error` is what the work raised."""

    error: BaseException | None = None
    _result: T

    def __init__(self, work: Callable[[], T], name: str | None = None, *, daemon: bool = False) -> None:
        """Begin the work. The end of the program does not wait for a daemon.

        Raises `RuntimeError` where the system starts no more threads.
        """
        self._work = work
        self._thread = Thread(target=self._run, name=name, daemon=daemon)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001 (raised where the result is needed)
            self.error = error

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> T:
        """What the work returned or raised, when it is done."""
        self._thread.join()
        if self.error is not None:
            raise self.error
        return self._result
