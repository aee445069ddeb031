"""Agents that do their worst: no hang, no orphan, no false success, no traceback, and the next command works.

Each batch of agents runs in a mount and a process namespace of its own, on a file system of its own in memory, and
without any privilege (of a user called root there), so that nothing gets out. `make torture` runs all of `agents.py`,
`make test` a third of those that are quick.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.namespaces import CANNOT, apart, refusal, unshared
from tests.program import ROOT
from tests.torture.agents import AGENTS

ALL = "TORTURE" in os.environ
BATCHES = 36 if ALL else 2  # each imports the whole program once
NAMES = [name for name, agent in AGENTS.items() if ALL or agent.quick][:: 1 if ALL else 3]
SETUP = f'mount -t tmpfs -o size=3g none "$0" || exit {CANNOT}; exec setpriv --bounding-set=-all --inh-caps=-all "$@"'


@pytest.fixture(scope="session")
def _namespaces(tmp_path_factory: pytest.TempPathFactory) -> None:
    if why := refusal():
        pytest.skip(why)
    tried = subprocess.run(
        [*unshared(SETUP), tmp_path_factory.mktemp("tried"), "true"], capture_output=True, check=False
    )
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
        [*unshared(SETUP), tmp_path, sys.executable, "-m", "tests.torture.inside", tmp_path, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {one["name"]: one["wrong"] for one in told if one["wrong"]} == {}
    assert [one["name"] for one in told] == names, ran.stderr


@pytest.mark.parametrize("name", ["kills_everybody", "floods_its_output", "says_nothing"])
def test_an_agent_acts_in_no_namespace_but_that_of_its_play(name: str) -> None:
    """The shell in the place of a machine's first process survives, and so does what it has started."""
    script = 'sleep 60 & "$@"; echo "ended with $?"; kill $! && echo survived'
    ran = apart(script, sys.executable, str(ROOT / "tests" / "torture" / "agents.py"), name)
    assert ran.stdout == "ended with 98\nsurvived\n"
    assert "it runs only in the namespaces of tests/torture/inside.py" in ran.stderr


def test_a_play_is_the_first_process_of_its_namespace_or_nothing(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.torture.inside", tmp_path, "says_nothing"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode != 0
    assert ran.stdout == ""
    assert list(tmp_path.iterdir()) == []
    assert "the first process of a namespace" in ran.stderr
