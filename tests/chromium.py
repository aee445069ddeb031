"""A headless Chromium, told what to do over a pipe: opens pages, evaluates, and notes whatever runs or is fetched."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run", "--hide-scrollbars"),
    *("--disable-crash-reporter", "--disable-breakpad", "--disable-background-networking", "--disable-extensions"),
    *("--disable-component-update", "--disable-sync", "--no-proxy-server"),
)
ALARM = "ran"  # what hostile pages call if they can
NOTED = ("Page.javascriptDialogOpening", "Runtime.bindingCalled", "Log.entryAdded", "Runtime.exceptionThrown")


@dataclass
class Chromium:
    """`noted` is what ran, what was refused and what was fetched, since the last `visit`."""

    to: int
    back: Any
    session: str = ""
    noted: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    loaded: bool = False

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self.numbers)
        message = {
            "id": number,
            "method": method,
            "params": params,
            **({"sessionId": self.session} if self.session else {}),
        }
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        held = bytearray()
        while (byte := self.back.read(1)) != b"\0":
            assert byte, "Chromium has ended"
            held += byte
        message: dict[str, Any] = json.loads(held)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method in NOTED:
            self.noted.append(f"{method}: {json.dumps(params)[:300]}")
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith("file:"):
            self.noted.append(f"fetched {params['request']['url'][:300]}")

    def visit(self, page: Path, *, fragment: str = "") -> None:
        """Open a page and wait until it is loaded."""
        self.noted.clear()
        self.loaded = False
        self.call("Page.navigate", url=page.as_uri() + fragment)
        while not self.loaded:
            self._next()

    def evaluate(self, code: str) -> Any:
        """The value of JavaScript in the page, where its policy does not matter."""
        result = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")


@contextmanager
def chromium(folder: Path) -> Iterator[Chromium]:
    """A Chromium whose profile is in `folder`."""
    assert PROGRAM, "Chromium is not installed"
    read, to = os.pipe()
    back, write = os.pipe()
    command = [PROGRAM, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{read} 4>&{write}', "bash", *command],
            pass_fds=(read, write), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    os.close(read)
    os.close(write)
    try:
        with os.fdopen(back, "rb") as stream:
            browser = Chromium(to, stream)
            _attach(browser)
            yield browser
    finally:
        os.close(to)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _attach(browser: Chromium) -> None:
    pages = [target for target in browser.call("Target.getTargets")["targetInfos"] if target["type"] == "page"]
    target = pages[0]["targetId"] if pages else browser.call("Target.createTarget", url="about:blank")["targetId"]
    browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
        browser.call(f"{domain}.enable")
    browser.call("Runtime.addBinding", name=ALARM)
