"""The check that no test leaves a process behind, on small runs of pytest of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.leftovers import MARK, alive, marked
from tests.program import ROOT, TIMEOUT_S
from tests.runners.processes import eventually, lives

LEAVES = """
import subprocess
def test_something():
    print(subprocess.Popen(["setsid", "sleep", "61"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid)
"""


def run(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_small.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.leftovers", "--rootdir", ".", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_run_that_leaves_a_process_behind_fails_names_it_and_ends_it(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "conftest.py").write_text("from tests import leftovers\nleftovers.PATIENCE_S = 0.5\n")
    ran = run(tmp_path, LEAVES, *options)
    assert ran.returncode == 1
    assert "1 passed" in ran.stdout
    found = re.search(
        r"LEFT BEHIND: process (\d+) \((?:setsid )?sleep 61\), started by \S*test_small.py::test_something", ran.stdout
    )
    assert found, ran.stdout
    assert not lives(int(found[1]))


def test_a_run_that_leaves_nothing_behind_is_left_alone(tmp_path: Path) -> None:
    ran = run(tmp_path, LEAVES.replace("61", "0.1"))
    assert (ran.returncode, "LEFT" in ran.stdout) == (0, False), ran.stdout


def test_what_is_given_another_environment_can_carry_the_mark() -> None:
    with subprocess.Popen(["sleep", "62"], env=marked({"PATH": os.environ["PATH"]})) as child:
        try:
            # Popen returns when the program's streams are its own, a moment before Linux shows its environment.
            assert eventually(lambda: child.pid in [left.pid for left in alive(os.environ[MARK])])
        finally:
            child.send_signal(signal.SIGKILL)
