"""A proxy of a PostgreSQL's socket, whose network can be cut: what is sent then arrives when it is mended, or never."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.engine import make_url

from tests.workers.postgres import PORT

LOOK_S = 0.05
PIECE = 1 << 16


class Proxy:
    """Connects each client with the server, until `cut`. `url` leads through it. `proxied` makes one."""

    def __init__(self, folder: Path, url: str) -> None:
        there = make_url(url)
        self._server = f"{there.query['host']}/.s.PGSQL.{PORT}"
        self.url = there.update_query_dict({"host": str(folder)}).render_as_string(hide_password=False)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{folder}/.s.PGSQL.{PORT}")
        self._listener.listen(64)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._cut, self._ends = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def cut(self) -> None:
        """Let nothing pass in either direction. No connection is closed."""
        self._cut.set()

    def mend(self) -> None:
        self._cut.clear()

    def close(self) -> None:
        self._ends.set()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            with contextlib.suppress(OSError):
                key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def _serve(self) -> None:
        while not self._ends.is_set():
            if self._cut.is_set():
                self._ends.wait(LOOK_S)
                continue
            for key, _ in self._selector.select(LOOK_S):
                if key.fileobj is self._listener:
                    self._connect()
                else:
                    self._pass_on(key.fileobj, key.data)  # type: ignore[arg-type]

    def _connect(self) -> None:
        client, _ = self._listener.accept()
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._server)
        except OSError:
            client.close()
            server.close()
            return
        self._selector.register(client, selectors.EVENT_READ, server)
        self._selector.register(server, selectors.EVENT_READ, client)

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        try:
            data = one.recv(PIECE)
            if data:
                other.sendall(data)
        except OSError:
            data = b""
        if not data:
            for end in (one, other):
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(end)
                end.close()


@contextmanager
def proxied(folder: Path, url: str) -> Iterator[Proxy]:
    """A proxy with its socket in that folder, whose path is short."""
    folder.mkdir()
    proxy = Proxy(folder, url)
    try:
        yield proxy
    finally:
        proxy.close()
