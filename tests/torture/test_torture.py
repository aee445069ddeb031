"""Agents that do their worst: no hang, no orphan, no false success, no traceback, and the next command works.

Each batch of agents runs in a mount and a process namespace of its own, on a file system of its own in memory, and
without any privilege (of a user called root there), so that nothing gets out. `make torture` runs all of `agents.py`,
`make test` those that are quick.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.program import ROOT
from tests.torture.agents import AGENTS

ALL = "TORTURE" in os.environ
BATCHES = 36 if ALL else 6  # each imports the whole program once
NAMES = [name for name, agent in AGENTS.items() if ALL or agent.quick]
CANNOT = 77
SETUP = f'mount -t tmpfs -o size=3g none "$0" || exit {CANNOT}; exec setpriv --bounding-set=-all --inh-caps=-all "$@"'


def unshared() -> list[str]:
    user = () if os.getuid() == 0 else ("--map-root-user",)
    return ["unshare", *user, "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", SETUP]


@pytest.fixture(scope="session")
def _namespaces(tmp_path_factory: pytest.TempPathFactory) -> None:
    if not (shutil.which("unshare") and shutil.which("setpriv")):
        pytest.skip("needs unshare and setpriv, of util-linux")
    tried = subprocess.run([*unshared(), tmp_path_factory.mktemp("tried"), "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"this system lets no test have namespaces: {tried.stderr.decode(errors='replace').strip()}")


def test_there_are_enough_of_them() -> None:
    assert len(AGENTS) >= 120
    assert sum(agent.quick for agent in AGENTS.values()) >= 60


@pytest.mark.usefixtures("_namespaces")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_teamchat_comes_through(batch: int, tmp_path: Path) -> None:
    names = NAMES[batch::BATCHES]
    ran = subprocess.run(
        [*unshared(), tmp_path, sys.executable, "-m", "tests.torture.inside", tmp_path, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {one["name"]: one["wrong"] for one in told if one["wrong"]} == {}
    assert [one["name"] for one in told] == names, ran.stderr
