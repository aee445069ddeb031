"""Nothing that failed is taken for success, and nothing is waited for longer than the member's own clocks."""

from __future__ import annotations

import time

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply
from tests.real.world import World, alive, tree

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
KEYS = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY"}


@pytest.mark.parametrize(
    ("vendor", "reply"),
    [
        ("claude", Reply(status=400, message="bad request")),  # is_error
        ("claude", Reply("")),
        ("claude", Reply("half a rep", ending="close")),
        ("codex", Reply(status=400, message="bad request")),  # turn.failed
        ("codex", Reply("")),
        ("gemini", Reply(status=400, message="bad request")),
        ("gemini", Reply("")),  # exit 0 without text
        ("gemini", Reply("half a rep", ending="error")),  # status: error with exit 0
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.status} {value.text!r} {value.ending}",
)
def test_a_failure_is_no_success(user: World, vendor: Vendor, reply: Reply) -> None:
    name = user.member(vendor, 'timeout = "40s"\nstall = "15s"')
    user.server.script(vendor, [reply])
    ran = user.json("send", "Hi")
    assert ran.code in (1, 3), (ran.out, ran.err)
    assert ran.result["reason"].startswith(name)
    assert [event["from"] for event in ran.events if event["type"] == "message"] == ["kailai"]
    assert [route["target"] for route in ran.result["held"]] == [name]
    assert user("send", "--dry-run", "again").out.count("half a rep") == 0  # partial text is in no prompt


@pytest.mark.core
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_rejected_login_is_told_at_once(user: World, vendor: Vendor) -> None:
    user.member(vendor)
    user.server.script(vendor, [Reply(status=401, message="invalid x-api-key")])
    began = time.monotonic()
    ran = user("send", "Hi")
    assert ran.code == 11, ran.err
    assert time.monotonic() - began < 120  # Claude alone would try again for three minutes
    assert "is not logged in, or the login was refused: " in ran.err
    assert f"; {KEYS[vendor]} is set and was refused: correct or unset it; held: " in ran.err
    assert ran.err.endswith("try: teamchat resume\n")


@pytest.mark.parametrize("vendor", VENDORS)
def test_no_login_at_all(user: World, vendor: Vendor) -> None:
    user.member(vendor)
    keys = {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"}
    user.env = {name: value for name, value in user.env.items() if name not in keys}
    ran = user("send", "Hi")
    assert ran.code == 11, (ran.out, ran.err)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_stall_ends_by_the_members_clock_and_keeps_the_partial_text(user: World, vendor: Vendor) -> None:
    for stall in ("3s", "12s", "48s"):  # until that is enough for it to come to its answer
        user.member(vendor, f'stall = "{stall}"')
        user.server.script(vendor, [Reply("half a rep", ending="stall")])
        ran = user("send", "--new", "Hi")
        assert ran.code == 3, ran.err
        assert f"was silent for {stall[:-1]} s (stall)" in ran.err
        shown = user("show").out
        if vendor == "codex" or "half a rep" in shown:  # Codex prints whole messages only
            break
    assert vendor == "codex" or "half a rep" in shown
    user.member(vendor)
    user.server.script(vendor, [Reply("whole reply")])
    ran = user("resume", "--quiet")
    assert (ran.code, ran.out) == (0, "whole reply\n"), ran.err
    assert "attempt 2" in user("show").out


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    ("clock", "reply", "reason"),
    [
        ('first_byte = "0.05s"', Reply("late"), "wrote nothing in its first 0.05 s (first_byte)"),
        (
            'timeout = "4s"',
            Reply("on and ", delay_s=0.2, ending="endless"),
            "was still running after 4 s (its timeout)",
        ),
    ],
    ids=["first_byte", "timeout"],
)
def test_each_clock_ends_a_real_cli_with_all_its_processes(
    user: World, vendor: Vendor, clock: str, reply: Reply, reason: str
) -> None:
    name = user.member(vendor, clock)
    user.server.script(vendor, [reply])
    with user.start("send", "Hi") as process:
        seen: set[int] = set()
        while process.poll() is None:
            seen |= tree(process.pid)
            time.sleep(0.1)
        assert process.stderr
        err = process.stderr.read().decode()
    assert process.returncode == 3, err
    assert f"{name} {reason}" in err
    assert [pid for pid in seen if alive(pid)] == []
    user.member(vendor)
    user.server.script(vendor, [Reply("whole reply")])
    ran = user("resume", "--quiet")
    assert (ran.code, ran.out) == (0, "whole reply\n"), ran.err
    assert "attempt 2" in user("show").out


def test_a_failing_member_keeps_the_rest_of_the_queue(user: World) -> None:
    user.team()
    user.server.script("codex", [Reply(status=400, message="no")])
    ran = user.json("send", "[NEXT:max,sarah,carol] Hi")
    assert ran.code == 1
    assert [route["target"] for route in ran.result["held"]] == ["sarah", "carol"]
    skipped = user.json("resume", "--skip")
    assert skipped.code == 0, skipped.err
    assert [event["member"] for event in skipped.events if event["type"] == "turn_started"] == ["carol"]


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_missing_cli_is_named_with_its_install_line(user: World, vendor: Vendor) -> None:
    user.member(vendor)
    user.env = {**user.env, "PATH": "/usr/bin:/bin"}
    ran = user("send", "Hi")
    assert ran.code == 11
    assert "npm install -g" in ran.err
    assert len(ran.err.strip().splitlines()) <= 4
    assert "Hi" in user("log").out
