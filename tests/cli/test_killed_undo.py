"""The real program, killed at the writes of undo and redo: the same command again completes what it began.

`DEATHS=1` kills it at each write.
"""

from __future__ import annotations

import os
import signal
from itertools import count
from pathlib import Path

import pytest

from tests.cli.helpers import objects, refused
from tests.cli.test_killed import Mortals
from tests.cli.test_killed import mortals as mortals  # noqa: PLC0414 (a fixture)
from tests.core.checkpoint.worktree import WorkTree
from tests.program import run_here
from tests.shell_team import repository, shell

EVERY = 1 if "DEATHS" in os.environ else 13
WORK = (
    "rm -r tests; sed -i s/a/A/ app.py; printf '\\000\\377' > b.bin; chmod +x run.sh; ln -s app.py link; mkdir d z;"
    " echo z/ >> .gitignore; echo precious > z/new"
)


@pytest.fixture
def tree(tmp_path: Path) -> WorkTree:
    return repository(tmp_path / "unused")


def killed(mortals: Mortals, step: int, *args: str) -> bool:
    """Run the program to its end, or to its death before that write; then wait for what it has left."""
    ran = mortals.ask(args=args, env=dict(os.environ), cwd=str(Path.cwd()), count="writes", last=step)
    assert "Traceback" not in ran["err"], ran["err"]
    assert mortals.ask(settle=60.0) == []
    assert ran["code"] in {0, -signal.SIGKILL}, ran["err"]
    return bool(ran["code"] == -signal.SIGKILL)


def said() -> list[object]:
    return [message["text"] for message in objects(run_here("log", "--json"))]


def test_whoever_was_killed_completes_it(tree: WorkTree, mortals: Mortals) -> None:
    shell(max=WORK)
    before = tree.files()
    assert run_here("send", "Go").code == 0
    after = tree.files()
    for step in count(1, EVERY):
        died = [
            _in_two(mortals, step, "undo", "1", "--yes"),
            (tree.files(), said()) == (before, ["Go"]),
            _in_two(mortals, step, "redo", "--yes"),
            (tree.files(), said()) == (after, ["Go", "Done"]),
        ]
        assert died[1::2] == [True, True], step
        if not (died[0] or died[2]):
            break
    assert step > 60
    tree.git("fsck", "--strict")


def _in_two(mortals: Mortals, step: int, *args: str) -> bool:
    died = killed(mortals, step, *args)
    if died:
        again = run_here(*args)
        assert again.code in {0, 2}, again.err  # 2: it had done all that there was to do
    return died


def test_nothing_is_said_or_run_until_it_is_completed(tree: WorkTree, mortals: Mortals) -> None:
    shell(max="echo 1 >> app.py")
    before = tree.files()
    run_here("send", "Go")
    after = tree.files()
    wanted = before, ["Go", "Done"]
    assert any(killed(mortals, step, "undo", "--yes") and (tree.files(), said()) == wanted for step in count(25))
    for command in ("send Hi", "resume", "redo --yes", "compact --member max"):
        ran = run_here(*command.split())
        assert (ran.code, ran.err.splitlines()[-1]) == (2, "  try: teamchat undo 1"), command
    assert run_here("undo", "--yes").code == 0
    begun = "  try: teamchat redo\n"
    steps = (step for step in count(1) if killed(mortals, step, "redo", "--yes"))
    assert any(run_here("undo", "--dry-run").err.endswith(begun) for _ in steps)
    assert said() == ["Go"]
    for command in ("send Hi", "resume", "undo --yes"):
        assert run_here(*command.split()).err.splitlines()[-1] == "  try: teamchat redo", command
    assert run_here("redo", "--yes").code == 0
    assert tree.files() == after
    assert refused(run_here("redo", "--yes"))
    assert said() == ["Go", "Done"]
