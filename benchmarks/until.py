"""What a round of `run until` costs beside its turns and its check, in a git tree of 1,000 files.

Doer, check and reviewer are small scripts. Every round but the last one ends with a review that says no. What the rest
of a round takes is the time of two more rounds, without the seconds of the turns and checks in them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figure import Figure, Measures

FILES = 1_000
LEAST, MOST = 1, 5  # rounds
TRIES = 3
BOUND_MS = 300
TEAM = """\
[team.limits]
turns = 40
[[members]]
name = "sarah"
agent = "sarah"
access = "full"
[[members]]
name = "carol"
agent = "carol"
[agents.sarah]
command = ["/bin/sh", "doer.sh"]
[agents.carol]
command = ["/bin/sh", "reviewer.sh"]
"""
DOER = "cat > /dev/null; date +%s%N > work.txt; echo Done.\n"
REVIEWER = """\
number=$(grep -o '"round": [0-9]*' | tail -n 1 | grep -o '[0-9]*$')
echo '{"round": '$number', "verdict": "FAIL", "findings": ["Not yet."]}'
"""


def measures(_quick: bool) -> Measures:
    yield "round", round_of_until


def round_of_until() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        work = Path(name) / "work"
        project(work)
        run(work, name, LEAST)  # the first checkpoint of all reads every file
        times = [(run(work, name, MOST), run(work, name, LEAST)) for _ in range(TRIES)]
    more = MOST - LEAST
    walls = [(long[0] - short[0]) / more * 1000 for long, short in times]
    inside = [(long[1] - short[1]) / more * 1000 for long, short in times]
    best = min(range(TRIES), key=lambda number: walls[number] - inside[number])
    yield Figure(
        name="a round in 1,000 files", unit="ms", value=walls[best], floor=inside[best],
        floor_is="its turns and check", bound=BOUND_MS, by="difference",
    )  # fmt: skip


def project(work: Path) -> None:
    work.mkdir()
    for number in range(FILES):
        file = work / f"package{number % 20}" / f"module{number}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"number = {number}\n" * 40)
    for name, text in (("teamchat.toml", TEAM), ("doer.sh", DOER), ("reviewer.sh", REVIEWER)):
        (work / name).write_text(text)
    commit = ("-c", "user.name=kai", "-c", "user.email=kai@example.invalid", "commit", "-q", "-m", "first")
    for words in (("init", "-q"), ("add", "--all"), commit):
        subprocess.run(["git", *words], cwd=work, check=True)


def run(work: Path, home: str, rounds: int) -> tuple[float, float]:
    """The seconds of a whole run of so many rounds, and those of its turns and checks."""
    argv = [
        *(sys.executable, "-m", "teamchat", "run", "until", "--trust", "--new", "--json"),
        *("--do", "sarah", "--review", "carol", "--check", "true", "--rounds", str(rounds), "Go"),
    ]
    env = {"PATH": "/usr/bin:/bin", "HOME": home, "TEAMCHAT_HOME": f"{home}/state", "PYTHONPATH": str(Path.cwd())}
    began = time.monotonic()
    done = subprocess.run(argv, cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    wall = time.monotonic() - began
    result = json.loads(done.stdout.decode().splitlines()[-1])
    assert (result["code"], len(result["process"]["rounds"])) == (17, rounds), (result, done.stderr)
    return wall, float(result["process"]["seconds"])
