"""The real program, killed while members work apart and a judge compares them: a resume completes it."""

from __future__ import annotations

import os
from itertools import count

import pytest

from tests.cli.helpers import objects
from tests.cli.test_killed import Mortals
from tests.cli.test_killed import mortals as mortals  # noqa: PLC0414 (a fixture)
from tests.cli.test_killed_undo import killed
from tests.cli.test_run_best import RUN, best, picking, prompts_of, team
from tests.cli.test_run_best import tree as tree  # noqa: PLC0414 (a fixture)
from tests.core.checkpoint.worktree import WorkTree
from tests.program import run_here

pytestmark = pytest.mark.long

EVERY = 29 if "DEATHS" in os.environ else 307


def test_a_killed_best_is_completed_by_resume_and_picks_the_same(tree: WorkTree, mortals: Mortals) -> None:
    works = {name: f"echo {name} > {name}.txt; rm -f mine.txt; echo Done." for name in ("max", "sarah", "carol")}
    team(tree.top, {**works, "kim": picking("sarah").replace("{prompts}", str(tree.top / "prompts"))})
    os.chdir(tree.top)
    users = (tree.top / "mine.txt").read_bytes()
    assert run_here(*RUN, "Go").code == 0
    wanted = prompts_of(tree.top, "kim")[-1]
    for step in count(1, EVERY):
        died = killed(mortals, step, *RUN, "--new", "Go")
        ran = run_here("resume", "--json")
        if ran.code == 2:  # nothing is waiting: it was killed before the task was stored, or after its end
            ran = run_here(*RUN, "--new", "--json", "Go")
        assert ran.code == 0, (step, ran)
        assert best(ran)["winner"] == "sarah", step
        assert prompts_of(tree.top, "kim")[-1] == wanted, step
        assert (tree.top / "mine.txt").read_bytes() == users
        assert {line["problem"] for line in objects(run_here("worktrees", "--json"))} == {None}
        if not died:
            break
    assert step > 400
