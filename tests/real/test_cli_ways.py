"""What each CLI does by itself where a good guess is wrong: docs/clis.md has the table.

A large output of a tool, two turns of one session at once, a prompt that comes late.
"""

from __future__ import annotations

import re
import subprocess
import time

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply
from tests.real.model.server import messages
from tests.real.model.table import MODELS, SELF_TESTS
from tests.real.world import TIMEOUT_S, World, wait_until

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini", "opencode")
LARGE = "head -c 2000000 large.txt"  # one line
SHOWN: dict[Vendor, tuple[range, range]] = {  # of its beginning, and of its end
    "claude": (range(1_500, 3_000), range(1)),
    "codex": (range(15_000, 25_000), range(15_000, 25_000)),
    "gemini": (range(7_000, 9_000), range(30_000, 33_000)),
    "opencode": (range(1), range(50_000, 52_000)),
}
AGAIN: dict[Vendor, list[str]] = {
    "claude": ["claude", "-p", "--model", MODELS["claude"], "--resume", "ID"],
    "codex": ["codex", "exec", "--skip-git-repo-check", "-m", MODELS["codex"], "resume", "ID", "-"],
    "gemini": ["gemini", "--skip-trust", "-m", MODELS["gemini"], "--resume", "ID"],
    "opencode": ["opencode", "run", "--model", MODELS["opencode"], "--session", "ID"],
}


def member(user: World, vendor: Vendor, extra: str) -> str:
    (user.cwd / ".git").mkdir(exist_ok=True)  # opencode asks nothing of a folder that is a project
    return user.member(vendor, extra)


@pytest.mark.parametrize("vendor", VENDORS)
def test_how_much_of_two_megabytes_a_model_is_shown(user: World, vendor: Vendor) -> None:
    (user.cwd / "large.txt").write_text("b" * 1_000_000 + "e" * 1_000_000)
    full = 'access = "full"' if vendor != "claude" else 'access = "edit"\nallow = ["head"]'  # which refuses it to root
    name = member(user, vendor, full)
    user.server.script(vendor, [Reply(tools=(SELF_TESTS[vendor].running(LARGE),)), Reply("Done.")])
    ran = user.json("send", "--trust", "Go", "--to", name)
    assert (ran.code, ran.result["text"]) == (0, "Done."), ran.err
    raw = user.last(vendor).raw
    beginning, end = (max(map(len, re.findall(rb"%b{50,}" % letter, raw)), default=0) for letter in (b"b", b"e"))
    assert (beginning in SHOWN[vendor][0], end in SHOWN[vendor][1]) == (True, True), (beginning, end)


@pytest.mark.parametrize("vendor", VENDORS)
def test_what_becomes_of_two_turns_of_one_session_at_once(user: World, vendor: Vendor) -> None:
    name = member(user, vendor, 'memory = "resume"')
    assert user("send", "--trust", "Question 1.", "--to", name).code == 0
    session = user.turns[-1].vendor_session or ""
    argv = [session if word == "ID" else word for word in AGAIN[vendor]]
    asked = len(user.server.turns(vendor))
    user.server.script(vendor, [Reply(("The", " first", "."), delay_s=4.0)])
    inputs = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with (
        subprocess.Popen(argv, cwd=user.cwd, env=dict(user.env), **inputs) as first  # type: ignore[call-overload]
    ):
        assert first.stdin
        first.stdin.write(b"Question 2.")
        first.stdin.close()
        first.stdin = None
        wait_until(lambda: len(user.server.turns(vendor)) > asked, TIMEOUT_S)
        user.server.script(vendor, [Reply("The second.")])
        second = subprocess.run(
            argv,
            cwd=user.cwd,
            env=dict(user.env),
            input=b"Question 3.",
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        first.communicate(timeout=TIMEOUT_S)
    refused = b"already has an active writer" in second.stderr + second.stdout
    user.server.script(vendor, [Reply("The last.")])
    subprocess.run(
        argv, cwd=user.cwd, env=dict(user.env), input=b"Question 4.", capture_output=True, timeout=TIMEOUT_S, check=True
    )
    whole = "\n".join(message.text for message in messages(user.last(vendor)))
    kept = tuple(f"Question {number}." in whole for number in (2, 3))
    expected = {
        "claude": (0, 0, False, (True, False)),  # the one that ended last
        "codex": (0, 1, True, (True, False)),
        "gemini": (0, 0, False, (True, True)),
        "opencode": (0, 0, False, (True, True)),
    }
    assert (first.returncode, second.returncode, refused, kept) == expected[vendor]


@pytest.mark.parametrize("vendor", VENDORS)
def test_what_a_cli_does_whose_prompt_comes_after_four_seconds(user: World, vendor: Vendor) -> None:
    argv = [word for word in AGAIN[vendor] if word not in ("--resume", "resume", "--session", "ID")]
    (user.cwd / ".git").mkdir()
    gives_up = {"claude": (1, b"Input must be provided"), "gemini": (42, b"No input provided via stdin")}
    user.server.script(vendor, [Reply("Done.")])
    inputs = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(argv, cwd=user.cwd, env=dict(user.env), **inputs) as process:  # type: ignore[call-overload]
        if vendor in gives_up:
            wait_until(lambda: process.poll() is not None)
        else:
            time.sleep(4)
        ended = process.poll()
        out, err = process.communicate(None if ended is not None else b"Go", timeout=TIMEOUT_S)
    if vendor in gives_up:
        code, words = gives_up[vendor]
        assert (ended, words in out + err) == (code, True)
    else:
        assert (ended, process.returncode, b"Done." in out) == (None, 0, True)
