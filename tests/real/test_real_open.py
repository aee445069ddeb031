"""`open` at the real CLIs: what a person says there by hand, only that member remembers."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pexpect
import pytest

from teamchat.runners.base import Vendor
from tests.program import ROOT
from tests.real.model.replies import Reply
from tests.real.model.server import messages
from tests.real.test_real_memory import kept
from tests.real.world import TIMEOUT_S, World, alive, tree

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
READY = "answer."  # of what was said before: the session is there
STYLE = re.compile(r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b\[[<>=?]*[0-9;]*[ ]?[a-zA-Z]")
QUESTIONS = {"\x1b[6n": "\x1b[1;1R", "\x1b[c": "\x1b[?62;c"}  # what a terminal answers: where the cursor is, what it is


def settle(user: World, vendor: Vendor) -> None:
    """What a user has answered long ago: no question of the first start, and a folder that is trusted."""
    home, folder = Path(user.env["HOME"]), str(user.cwd)
    match vendor:
        case "claude":
            file = home / ".claude.json"
            known = {"approved": [user.env["ANTHROPIC_API_KEY"][-20:]], "rejected": []}
            settings = {**json.loads(file.read_text()), "hasCompletedOnboarding": True, "customApiKeyResponses": known}
            settings.setdefault("projects", {}).setdefault(folder, {})["hasTrustDialogAccepted"] = True
            file.write_text(json.dumps(settings))
        case "codex":
            with (home / ".codex" / "config.toml").open("a") as config:
                config.write(f'\n[projects."{folder}"]\ntrust_level = "trusted"\n')
        case "gemini":
            (home / ".gemini" / "trustedFolders.json").write_text(json.dumps({folder: "TRUST_FOLDER"}))


@dataclass
class Screen:
    """A terminal that answers what programs ask it, and keeps all that was written to it."""

    child: pexpect.spawn
    text: str = ""
    answered: dict[str, int] = field(default_factory=dict)

    def until(self, condition: Callable[[], object], seconds: float = TIMEOUT_S) -> None:
        limit = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < limit, STYLE.sub(" ", self.text)[-2000:]
            try:
                self.text += self.child.read_nonblocking(100_000, 0.1)
            except pexpect.TIMEOUT:
                pass
            except pexpect.EOF:
                self.child.wait()
            self.answer()

    def press_until(self, key: str, condition: Callable[[], object]) -> None:
        """Press it every five seconds: a busy program may take it for a part of what came before it."""
        for _ in range(20):
            self.child.send(key)
            pressed = time.monotonic()
            self.until(lambda: condition() or time.monotonic() > pressed + 5)  # noqa: B023 (called at once)
            if condition():
                return
        raise AssertionError(STYLE.sub(" ", self.text)[-2000:])

    def answer(self) -> None:
        for question, reply in {**QUESTIONS, "existing": "\x1b[B\r"}.items():  # Codex: "2. Use existing model"
            asked = self.text.count(question)
            for _ in range(self.answered.get(question, 0), asked):
                self.child.send(reply)
            self.answered[question] = asked

    def shows(self, word: str) -> bool:
        return word in STYLE.sub(" ", self.text)


@pytest.mark.parametrize("vendor", VENDORS)
def test_what_is_said_by_hand_is_remembered_by_the_member_and_said_by_its_receipt(user: World, vendor: Vendor) -> None:
    name = user.member(vendor, 'memory = "resume"')
    user.server.script(vendor, [Reply("First answer.")])
    assert user("send", "First question.", "--to", name).code == 0
    settle(user, vendor)
    user.server.script(vendor, [Reply("By hand.")])
    env = {**user.env, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
    child = pexpect.spawn(
        sys.executable, ["-m", "teamchat", "open", name], cwd=str(user.cwd), env=env, dimensions=(40, 120),
        encoding="utf-8",
    )  # fmt: skip
    try:
        screen = Screen(child)
        screen.until(lambda: screen.shows(READY))
        ready = time.monotonic()
        screen.until(lambda: time.monotonic() > ready + 1)
        child.send("What is asked by hand.")
        time.sleep(0.5)  # what comes at once is taken for a paste, and its line end for a part of it
        asked = len(user.server.turns(vendor))
        screen.press_until("\r", lambda: len(user.server.turns(vendor)) > asked)
        # on the screen it is sooner than in the session, which `stop` would cut short
        screen.until(lambda: any("By hand." in file.read_text("utf-8") for file in kept(user, vendor)))
        seen = tree(child.pid)
        assert user("stop").code == 0
        screen.until(lambda: not child.isalive())
    finally:
        child.close(force=True)
    assert not any(alive(pid) for pid in seen)
    user.server.script(vendor, [Reply("Third answer.")])
    ran = user("send", "Third question.", "--to", name)
    assert ran.code == 0, ran.err
    whole = "\n".join(message.text for message in messages(user.last(vendor)))
    said = ("First question.", "First answer.", "What is asked by hand.", "By hand.", "Third question.")
    assert [whole.count(text) for text in said] == [1] * 5
    first, second = user.turns
    assert (first.vendor_session, first.opened) == (second.vendor_session, True)
    assert second.setup.opened
    assert second.outcome
    assert second.outcome.usage
    assert second.outcome.usage.input_tokens == 11, "what was used by hand is not the turn's"
    assert "continued it by hand" in user("show", "2").out
    assert "by hand" not in user("log").out
