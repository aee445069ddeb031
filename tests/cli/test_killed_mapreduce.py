"""A map-reduce of 40 subtasks, killed at random: `resume` finishes it, and no worker that has finished runs again."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from teamchat.core.errors import ExitCode
from tests.cli.test_killed import Kept, Life, Mortals
from tests.cli.test_killed import mortals as mortals  # noqa: PLC0414 (a fixture)

pytestmark = pytest.mark.long

LIVES = int(os.environ.get("DEATHS", "15")) // 15  # `make crash` wants more
DEATHS_A_LIFE = 4
Count = Literal["writes", "calls"]
COUNTS: tuple[Count, ...] = ("writes", "calls")
SUBTASKS = [f"subtask-{number}" for number in range(1, 41)]
WORKERS = ("w1", "w2", "w3", "w4")
TASK = "Test everything"
AGENT = """\
echo "$1" >> "$HOME/ran"
while IFS= read -r line; do case "$line" in *"JSON list"*) plans=1 ;; esac; done
echo "$line" >> "$HOME/did"
case "$1$plans" in
lead1) cat plan ;;
lead) echo "all of it" ;;
*) echo "$1 did $line" ;;
esac
"""
TEAM = '[team]\nname = "crew"\n[team.limits]\nturns = 100\n[[members]]\nname = "kailai"\ntype = "human"\n' + "".join(
    f'[[members]]\nname = "{name}"\nagent = "{name}"\n[agents.{name}]\ncommand = ["sh", "agent.sh", "{name}"]\n'
    for name in ("lead", *WORKERS)
)
SAID = ["kailai", "lead", *WORKERS * 10, "lead"]


@dataclass
class Undisturbed:
    """A run that nobody disturbed: what it comes to, and how many steps the program takes of each kind."""

    work: Path
    kept: Kept
    steps: dict[Count, int]


@pytest.fixture(scope="session")
def undisturbed(mortals: Mortals, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    work = tmp_path_factory.mktemp("mapreduce")
    for name, text in (("teamchat.toml", TEAM), ("agent.sh", AGENT), ("plan", json.dumps(SUBTASKS))):
        (work / name).write_text(text)
    ends = []
    for count in COUNTS:
        life = Life(tmp_path_factory.mktemp(count), mortals, work=work)
        args = ["run", "mapreduce", TASK, "--trust"]
        ran = mortals.ask(args=args, env=life.env, cwd=str(work), count=count, last=0)
        assert ran["code"] == 0, ran["err"]
        ends.append((life.kept, ran["steps"]))
    [(kept, writes), (same, calls)] = ends
    assert kept == same
    assert [name for _, name, *_ in kept["messages"]] == SAID
    return Undisturbed(work, kept, {"writes": writes, "calls": calls})


def run_to_its_end(life: Life) -> None:
    """Begin the map-reduce, and resume it as often as it is killed."""
    code = life.run("run", "mapreduce", TASK)
    while code == -signal.SIGKILL:
        stored = (TASK,) in life.rows("SELECT content FROM messages")
        code = life.run("resume") if stored else life.run("run", "mapreduce", TASK)
    assert code in (ExitCode.DONE, ExitCode.USAGE)  # nothing is left to resume after a death at the very end


@pytest.mark.parametrize("seed", range(LIVES))
def test_a_killed_map_reduce_is_resumed_and_no_finished_worker_runs_again(
    world: Path, mortals: Mortals, undisturbed: Undisturbed, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 (no secret)
    for count in COUNTS:
        deaths = [chance.randint(1, undisturbed.steps[count] // DEATHS_A_LIFE) for _ in range(DEATHS_A_LIFE)]
        life = Life(world / count, mortals, count, deaths, work=undisturbed.work)
        run_to_its_end(life)

        assert life.died
        life.assert_same_as(undisturbed.kept)
        assert_nobody_ran_again_after_its_end(life)


def assert_nobody_ran_again_after_its_end(life: Life) -> None:
    """Each subtask ran once, and once more for each of its turns that a death cut off."""
    did = Counter((life.folder / "home" / "did").read_text().split("\n"))
    cut_off = "SELECT json_extract(part, '$.instead') FROM turns JOIN routes ON routes.number = turns.route"
    again = Counter(str(task) for (task,) in life.rows(f"{cut_off} WHERE turns.status = 'interrupted'"))
    for task in SUBTASKS:
        assert 1 <= did[task] <= 1 + again[task], task
    assert sum(again.values()) <= life.died * (len(WORKERS) + 1)
