"""The proof over the real CLIs, whole and spoiled; `doctor --live` with the scripted model as their login."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from teamchat.runners.base import Vendor
from tests.program import ROOT
from tests.real.model.replies import Reply
from tests.real.world import World

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
ROWS = ["version", "flags", "events", "stdin", "project", "servers", "mentions", "resume", "stop", "denials", "time"]
CLAUDES = [*ROWS[:7], "keywords", "resume", "stays", "later", *ROWS[8:]]  # it has keywords and can be kept running
GEMINIS = [*ROWS[:5], "dotenv", *ROWS[5:]]
OF: dict[Vendor, list[str]] = {"claude": CLAUDES, "codex": ROWS, "gemini": GEMINIS, "opencode": ROWS}
RENAMED = {
    "claude": ("result", "outcome"),
    "codex": ("turn.completed", "turn.done"),
    "gemini": ("result", "outcome"),
    "opencode": ("step_finish", "step_done"),
}


def proved(user: World) -> list[dict[str, Any]]:
    """The findings about the CLIs on the user's PATH, in a process of their own."""
    argv = [sys.executable, "-m", "tests.real.proof"]
    done = subprocess.run(argv, cwd=ROOT, env=user.env, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_pinned_clis_hold_in_every_row_soon(user: World) -> None:
    home = Path(user.env["HOME"])
    before = sorted(home.rglob("*"))
    began = time.monotonic()
    found = proved(user)
    assert time.monotonic() - began < 150  # less than a tenth of that on a machine that does nothing else
    states = {(row["member"], row["what"]): row["state"] for row in found}
    allowed = {("codex", "denials", "unknown"), *((vendor, "stop", "warning") for vendor in OF)}  # when it is busy
    assert list(states) == [(vendor, what) for vendor in OF for what in OF[vendor]]
    assert {(*key, state) for key, state in states.items() if state != "ok"} <= allowed, found
    assert sorted(home.rglob("*")) == before, "the user's home was touched"
    assert user.server.requests == [], "the user's own model was asked"


@pytest.mark.parametrize("vendor", OF)
def test_a_renamed_event_of_a_real_cli_is_named(user: World, tmp_path: Path, vendor: Vendor) -> None:
    old, new = RENAMED[vendor]
    real = shutil.which(vendor, path=user.env["PATH"])
    node = shutil.which("node", path=user.env["PATH"])
    assert real
    assert node
    folder = tmp_path / "stubs"
    folder.mkdir()
    # the row is of the first turn, so the later ones may fail at once
    begun = f'[ "$1" = --version ] || mkdir {shlex.quote(str(tmp_path / "begun"))} || exit 1'
    script = f'set -o pipefail\n{begun}\n{shlex.quote(real)} "$@" | sed -u \'s/"type":"{old}"/"type":"{new}"/\'\n'
    (folder / vendor).write_text(f"#!/bin/bash\n{script}")
    (folder / vendor).chmod(0o755)
    (folder / "node").symlink_to(node)
    user.env = {**user.env, "PATH": os.pathsep.join([str(folder), "/usr/bin", "/bin"])}
    (row,) = (row for row in proved(user) if row["member"] == vendor and row["what"] == "events")
    assert row["text"] == f"`{old}` never came; unknown ones came instead: `{new}`"


def test_live_asks_each_login_one_question_and_tells_what_it_cost(user: World) -> None:
    user.team()
    for vendor in VENDORS:
        user.server.script(vendor, [Reply("OK")])
    ran = user("doctor", "--live")
    assert ran.code == 0, ran.out + ran.err
    assert "asks max, sarah, carol on your own logins, which costs" in ran.err
    lines = ran.out.splitlines()
    assert [line.split()[:3] for line in lines] == [["✓", name, "answer"] for name in ("max", "sarah", "carol")]
    assert all("'OK' after " in line and "18 tokens" in line for line in lines)
    assert "$0." in lines[0]
    assert [len(user.server.turns(vendor)) for vendor in VENDORS] == [1, 1, 1]
    assert {user.prompt(vendor) for vendor in VENDORS} == {"Reply with the one word OK. Use no tools."}


def test_live_tells_a_rejected_login(user: World) -> None:
    user.member("claude")
    user.server.script("claude", [Reply(status=401, message="invalid x-api-key")])
    ran = user.json("doctor", "--live")
    assert ran.code == 11, ran.out
    assert ran.events[0]["state"] == "failed"
    assert ran.events[0]["text"].endswith("; ANTHROPIC_API_KEY is set and was refused: correct or unset it")
