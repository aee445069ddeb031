"""A scripted model on loopback that speaks the protocols of the built-in CLIs and remembers every request.

Replies are data (`runners/scripted.py`). The vendor's `scripted.py` converts them to its wire format, `wire.py` sends
them or breaks them off, and this module chooses the next reply. The log of requests proves what a CLI forwarded. The
functions at the end read it. The module needs only the standard library, and no test framework.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

from teamchat.core.doctor.scripted.wire import PROTOCOLS, HTTPServer
from teamchat.runners.base import Vendor
from teamchat.runners.scripted import Message, Reply, Request, VendorProtocol

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
