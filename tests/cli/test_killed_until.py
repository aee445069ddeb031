"""`run until`, killed at random: `resume` finishes it with what was verified, and nothing that ended runs again."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

from teamchat.core.errors import ExitCode
from tests.cli.test_killed import Life, Mortals
from tests.cli.test_killed import mortals as mortals  # noqa: PLC0414 (a fixture)

pytestmark = pytest.mark.long

LIVES = max(5, int(os.environ.get("DEATHS", "15")) // 100)  # `make crash` wants more
DEATHS_A_LIFE = 4
Count = Literal["writes", "calls"]
COUNTS: tuple[Count, ...] = ("writes", "calls")
TASK = "Make it right"
AGENT = """\
echo "$1" >> "$HOME/ran"
round=0; number=1
while IFS= read -r line; do
  case "$line" in *'"round": 1,'*) number=1 ;; *'"round": 2,'*) number=2 ;; *'"round": 3,'*) number=3 ;; esac
  case "$line" in *'round 2 of 3'*) round=2 ;; *'round 3 of 3'*) round=3 ;; esac
done
case "$1$round" in
sarah0) echo wrong > work.txt; echo "All done." ;;
sarah2) echo right > work.txt; echo "All done now." ;;
sarah3) echo "right, and commented" > work.txt; echo "1. changed" ;;
*) [ $number = 3 ] && say=PASS found= || { say=FAIL found='"It has no comment."'; }
   echo "{\\"round\\": $number, \\"verdict\\": \\"$say\\", \\"findings\\": [$found]}" ;;
esac
"""
TEAM = """\
[team]
name = "crew"
[[members]]
name = "kailai"
type = "human"
[[members]]
name = "sarah"
agent = "sarah"
access = "full"
[[members]]
name = "carol"
agent = "carol"
[agents.sarah]
command = ["sh", "agent.sh", "sarah"]
[agents.carol]
command = ["sh", "agent.sh", "carol"]
[checks.right]
command = "echo checked >> $HOME/checked; grep -q right work.txt"
env_keep = ["HOME"]
[checks.there]
command = ["test", "-e", "work.txt"]
"""
RUN = ("run", "until", "--do", "sarah", "--check", "right", "--check", "there", "--review", "carol", TASK)


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, which each life gets a copy of."""
    made = tmp_path_factory.mktemp("until") / "work"
    made.mkdir()
    for name, text in (("teamchat.toml", TEAM), ("agent.sh", AGENT)):
        (made / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=made, check=True)
    return made


def lived(folder: Path, mortals: Mortals, work: Path, count: Count, deaths: list[int]) -> Life:
    own = folder / "project"
    shutil.copytree(work, own)
    return Life(folder, mortals, count, deaths, work=own)


@pytest.fixture(scope="session")
def steps(mortals: Mortals, work: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[Count, int]:
    """How many steps the program takes of each kind in a run that nobody disturbs."""
    taken: dict[Count, int] = {}
    for count in COUNTS:
        life = lived(tmp_path_factory.mktemp(count), mortals, work, count, [])
        ran = mortals.ask(args=[*RUN, "--trust"], env=life.env, cwd=str(life.work), count=count, last=0)
        assert ran["code"] == 0, ran["err"]
        assert_verified(life)
        taken[count] = ran["steps"]
    return taken


def run_to_its_end(life: Life) -> None:
    code = life.run(*RUN)
    while code == -signal.SIGKILL:
        stored = (TASK,) in life.rows("SELECT content FROM messages")
        code = life.run("resume") if stored else life.run(*RUN)
    assert code in (ExitCode.DONE, ExitCode.USAGE)  # nothing is left to resume after a death at the very end


def assert_verified(life: Life) -> None:
    """Three rounds, and at the end both checks and the review on the tree that is there."""
    [(written,)] = life.rows("SELECT process FROM sessions")
    process = json.loads(written)
    assert process["over"] is True
    replies = [name for (name,) in life.rows("SELECT speaker_name FROM messages ORDER BY id")]
    assert replies == ["kailai", "sarah", "sarah", "carol", "sarah", "carol"]
    last = max(place for place, done in enumerate(process["done"]) if done["part"]["role"] == "doer")
    found = [done["finding"] for done in process["done"][last + 1 :]]
    final = {one["after"] for one in found[-3:]}
    assert len(final) == 1
    assert [one.get("status", one.get("passed")) for one in found[-3:]] == ["green", "green", True]
    assert life.work
    assert (life.work / "work.txt").read_text() == "right, and commented\n"
    assert life.rows("SELECT COUNT(*) FROM checks WHERE status = 'running'") == [(0,)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("seed", range(LIVES))
def test_a_killed_run_is_resumed_to_the_same_end(
    world: Path, mortals: Mortals, work: Path, steps: dict[Count, int], seed: int, count: Count
) -> None:
    chance = random.Random(f"{seed} {count}")  # noqa: S311 (no secret)
    deaths = [chance.randint(1, steps[count] // DEATHS_A_LIFE) for _ in range(DEATHS_A_LIFE)]
    life = lived(world / "life", mortals, work, count, deaths)
    run_to_its_end(life)

    assert life.died
    assert_verified(life)
    began = Counter(name for (name,) in life.rows("SELECT member FROM turns"))
    ended = Counter(name for (name,) in life.rows("SELECT member FROM turns WHERE status = 'done'"))
    assert ended == {"sarah": 3, "carol": 2}
    assert began.total() <= ended.total() + life.died
    cut_off = life.rows("SELECT COUNT(*) FROM checks WHERE status = 'not_run'")[0][0]
    assert cut_off <= life.died
    assert life.mortals.ask(settle=60.0) == []
    assert life.left == []
