"""A member of each CLI works in a repository that tries all it can: nothing of it runs, and no model hears of it.

Every command that starts a CLI runs in a clone, for each CLI at each access. `HOSTILE=all` runs them all, and else each
CLI has one access and some of the commands.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from teamchat.core.errors import ExitCode
from teamchat.runners.base import Access, Vendor
from teamchat.runners.opencode.project import NAMES
from tests.real import clis
from tests.real.hostile_repository import DIFF, PROMISED, Planted, plant, rewritten, without
from tests.real.model.replies import Reply
from tests.real.model.server import messages, tool_results
from tests.real.test_tools import call
from tests.real.world import World

pytestmark = pytest.mark.real
ACCESSES: tuple[Access, ...] = ("read", "edit", "full")
COMMANDS = ("team", "send", "retry", "resume", "run", "doctor")
SAMPLE: tuple[tuple[Vendor, Access, tuple[str, ...]], ...] = (
    ("claude", "edit", ("team", "send", "retry")),
    ("codex", "full", ("send", "doctor")),
    ("gemini", "read", ("send", "run")),
    ("opencode", "edit", ("send", "resume")),
)
EVERY = tuple((vendor, access, COMMANDS) for vendor in clis.VENDORS for access in ACCESSES)
CASES = EVERY if os.environ.get("HOSTILE") == "all" else SAMPLE
PLANTED = 300  # items at least


def test_the_repository_tries_a_lot(tmp_path: Path) -> None:
    planted = plant(tmp_path / "clone" / "repository")
    assert len(planted.traps) + len(planted.texts) >= PLANTED
    assert planted.sprung == []


@pytest.fixture
def planted(user: World, tmp_path: Path) -> Planted:
    """The clone, in which the user works."""
    planted = plant(tmp_path / "clone" / "repository")
    user.cwd = planted.folder
    user.env = {**user.env, "PYTHONSAFEPATH": "1"}  # as in the installed program, where no module is of the folder
    return planted


@pytest.mark.parametrize(("vendor", "access", "commands"), CASES)
def test_no_command_runs_anything_of_a_clone_and_no_model_hears_of_it(
    user: World, planted: Planted, programs: str, vendor: Vendor, access: Access, commands: tuple[str, ...]
) -> None:
    others = [folder for folder in programs.split(os.pathsep) if f"/{vendor}-" not in folder]
    path = os.pathsep.join(folder for folder in user.env["PATH"].split(os.pathsep) if folder not in others)
    user.env = {**user.env, "PATH": path, "IS_SANDBOX": "1"}  # else Claude refuses full to root
    user.member(vendor, f'access = "{access}"\n{"" if vendor == "opencode" else "git = true"}')
    if vendor == "opencode":
        ran = user("send", "--trust", "Hi")
        assert ran.code == ExitCode.NOT_TRUSTED
        assert "opencode runs the plugins that" in ran.err
        assert user.server.turns(vendor) == []
        without(planted.folder, NAMES)
    for command in commands:
        RUNS[command](user, vendor, planted)
        assert planted.sprung == [], command
        assert planted.heard(user.server.requests, PROMISED[vendor]) == set(), command
    assert "expressed a desire" not in told(user, vendor)  # what Claude says of a subagent that is asked for
    assert "explicitly selected" not in told(user, vendor)  # and Gemini
    assert [turn.outcome.files_that_run for turn in user.turns[:1] if turn.outcome] == [()]


def team(user: World, vendor: Vendor, planted: Planted) -> None:
    del vendor, planted
    assert user("team").code == 0


def send(user: World, vendor: Vendor, planted: Planted) -> None:
    del planted
    asks = [] if vendor == "opencode" else [Reply(tools=(call(vendor, "teamchat", tool),)) for tool in GIT]
    user.server.script(vendor, [*asks, Reply("I looked.")])
    ran = user.json("send", "--trust", "Look around", stdin=DIFF.encode())
    assert ran.code == 0, ran.err
    if asks:
        status, diff = tool_results(user.last(vendor))
        assert " M notes.txt" in status
        assert "+not committed" in diff


def retry(user: World, vendor: Vendor, planted: Planted) -> None:
    del vendor, planted
    ran = user("retry", "--yes", "--force")
    assert ran.code == 0, ran.err


def resume(user: World, vendor: Vendor, planted: Planted) -> None:
    del planted
    user.server.script(vendor, [Reply(status=401, message="no")])
    assert user("send", "And now?").code == ExitCode.AGENT_UNAVAILABLE
    user.server.script(vendor, [Reply("Yes.")])
    ran = user("resume")
    assert ran.code == 0, ran.err


def run(user: World, vendor: Vendor, planted: Planted) -> None:
    """Run a process while the project's `.env` is written again and again."""
    user.server.script(vendor, [Reply("Done.")])
    with rewritten(planted.folder):
        ran = user("run", "sequential", "Look once more", "--trust")
    assert ran.code == 0, ran.err


def doctor(user: World, vendor: Vendor, planted: Planted) -> None:
    del planted
    asked = len(user.server.requests)
    assert vendor in user("doctor").out
    assert len(user.server.requests) == asked


RUNS: Mapping[str, Callable[[World, Vendor, Planted], None]] = {
    "team": team,
    "send": send,
    "retry": retry,
    "resume": resume,
    "run": run,
    "doctor": doctor,
}
GIT = ("git_status", "git_diff")


def told(user: World, vendor: Vendor) -> str:
    return "".join(message.text for message in messages(user.last(vendor)))
