"""A new user with one agent CLI, or all of them: `init`, then `send`."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from teamchat.runners.base import Vendor
from tests.real.world import World

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")


def only(user: World, tmp_path: Path, vendors: tuple[Vendor, ...]) -> None:
    """A PATH on which no other agent CLI is."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in (*vendors, "node"):
        found = shutil.which(program, path=user.env["PATH"])
        assert found, program
        (folder / program).symlink_to(found)
    user.env = {**user.env, "PATH": os.pathsep.join([str(folder), "/bin"]), "LOGNAME": "kai"}


@pytest.mark.parametrize("vendors", [*((vendor,) for vendor in VENDORS), VENDORS], ids="+".join)
def test_two_commands_to_the_first_stored_reply(user: World, tmp_path: Path, vendors: tuple[Vendor, ...]) -> None:
    only(user, tmp_path, vendors)
    began = time.monotonic()
    made = user("init")
    assert made.code == 0, made.err
    ran = user.json("send", "[NEXT:writer] Say hello")
    assert ran.code == 0, (ran.result, ran.err)
    assert time.monotonic() - began < 120
    assert ran.result["text"] == "OK"
    assert "kai -> writer" in user("log").out
    assert user("doctor").code == 0


def test_the_recommended_next_step_works_as_printed(user: World, tmp_path: Path) -> None:
    only(user, tmp_path, ("claude",))
    made = user("init")
    (step,) = (line for line in (made.out + made.err).splitlines() if "next:" in line)
    assert "teamchat send '[NEXT:" in step
