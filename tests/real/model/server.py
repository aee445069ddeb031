"""A scripted model on loopback that speaks the protocols of the built-in CLIs and remembers every request.

Replies are data (`runners/scripted.py`). The vendor's `scripted.py` converts them to its wire format, `wire.py` sends
them or breaks them off, and this module chooses the next reply. The log of requests proves what a CLI forwarded. The
functions at the end read it. The module needs only the standard library, and no test framework.

Answers requests over HTTP: the choice of protocol, framing, and every way to break a reply off.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Protocol, Self

from teamchat.runners.base import Vendor
from tests.real.model.replies import Broken, Message, Reply, Request, VendorProtocol
from tests.real.model.table import PROTOCOLS

Script = Callable[[Request], Reply]


class ModelServer:
    """The server, running while its context is open. A vendor without a script answers "OK"."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        """Every request, oldest first, including those that ask for no turn."""
        self.closing = Event()
        self._scripts: dict[Vendor, Script] = {}
        self._http = HTTPServer(self)
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def script(self, vendor: Vendor, replies: Script | Iterable[Reply]) -> None:
        """Set what the vendor's model answers from now on: a function of the request, or replies in order.

        The last reply repeats, so a single reply makes a model that always says the same.
        """
        self._scripts[vendor] = replies if callable(replies) else _in_order(replies)

    def turns(self, vendor: Vendor) -> list[Request]:
        """The requests for a turn of that vendor's model, oldest first."""
        return [request for request in self.requests if request.vendor == vendor]

    def receive(self, request: Request) -> None:
        self.requests.append(request)

    def reply(self, vendor: Vendor, request: Request) -> Reply:
        script = self._scripts.get(vendor)
        return script(request) if script else Reply("OK")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _in_order(replies: Iterable[Reply]) -> Script:
    waiting = deque(replies)
    lock = Lock()

    def next_reply(_request: Request) -> Reply:
        with lock:
            return waiting.popleft() if len(waiting) > 1 else waiting[0]

    return next_reply


def system_text(request: Request) -> str:
    """All that the model received as its system text, blocks joined by a line end."""
    return _protocol(request).system_text(request.body)


def messages(request: Request) -> list[Message]:
    """Every block of text of the conversation, oldest first."""
    return _protocol(request).messages(request.body)


def prompt(request: Request) -> str:
    """The last text that the user sent, without Claude's own reminders.

    If a CLI read files into the prompt, their text follows it, and only `messages` has all of it.
    """
    own = [m.text for m in messages(request) if m.role == "user" and not m.text.startswith("<system-reminder>")]
    return own[-1] if own else ""


def tool_results(request: Request) -> list[str]:
    """What the tools returned to the model, oldest first."""
    return _protocol(request).tool_results(request.body)


def _protocol(request: Request) -> VendorProtocol:
    if request.vendor is None:
        raise ValueError(f"{request.method} {request.path} asks for no turn")
    return PROTOCOLS[request.vendor]


class Model(Protocol):
    """Chooses the replies. `closing` ends every wait."""

    closing: Event

    def receive(self, request: Request) -> None: ...

    def reply(self, vendor: Vendor, request: Request) -> Reply: ...


class HTTPServer(ThreadingHTTPServer):
    """Serves a model on a free port of 127.0.0.1."""

    daemon_threads = True

    def __init__(self, model: Model) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore the error: clients often disconnect."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HTTPServer

    def do_POST(self) -> None:
        vendor = next((name for name, protocol in PROTOCOLS.items() if protocol.claims(self.path)), None)
        request = self._receive(vendor)
        if vendor is None:
            self._send(200, b"{}")
            return
        reply = self.server.model.reply(vendor, request)
        protocol = PROTOCOLS[vendor]
        if reply.status != 200:
            retry = {} if reply.retry_after_s is None else {"retry-after": str(reply.retry_after_s)}
            self._send(reply.status, protocol.failure(reply.status, reply.message), retry)
        elif reply.ending != "complete" and not reply.text:
            self._break_off(protocol, reply)
        else:
            self._answer(protocol, request, reply)

    def do_GET(self) -> None:
        self._receive(None)
        if self.path.startswith("/v1/models"):
            self._send(200, b'{"data": [], "models": []}')
        else:  # 426: Codex then stops trying a websocket
            self._send(426 if self.path.startswith("/v1/responses") else 404, b"{}")

    def do_HEAD(self) -> None:
        self._receive(None)
        self._send(404, b"")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Print nothing: the model keeps the log."""

    def _receive(self, vendor: Vendor | None) -> Request:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, raw, vendor, time.monotonic())
        self.server.model.receive(request)
        return request

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, protocol: VendorProtocol, request: Request, reply: Reply) -> None:
        closing = self.server.model.closing
        try:
            whole = protocol.whole(request.body, reply, closing)
            if whole is not None:
                self._send(200, whole)
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for frame in protocol.stream(reply, closing):
                self._chunk(frame)
            self._chunk(b"")
        except Broken:
            self._break_off(protocol, reply)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _break_off(self, protocol: VendorProtocol, reply: Reply) -> None:
        self.close_connection = True
        if reply.ending == "stall":
            self.server.model.closing.wait()
        elif reply.ending == "reset":
            # A linger time of zero turns the close into a RST. Close the bare descriptor, or a FIN would be sent first.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.connection.detach())
        elif reply.text:
            with suppress(OSError):
                if reply.ending == "error":
                    self._chunk(protocol.mid_stream_error(reply.message))
                self._chunk(b"")
