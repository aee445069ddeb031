"""The real program, killed at its writes and at random: what is said in the end is the same.

Its agents answer by what they read, never by how often they were asked. So the conversation is a function of what the
person says, and whatever differs from that of a run which nobody disturbed was lost, or done twice.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from shutil import copytree
from typing import Any, Literal

import pytest

from teamchat.core.errors import ExitCode
from tests.program import ROOT

MORTAL = ROOT / "tests" / "fakes" / "mortal.py"
DEATHS = int(os.environ.get("DEATHS", "40"))  # at random moments; `make crash` wants more
DEATHS_A_CASE = 10
STEPS_OF_EVERY_KIND = range(24, 80, 8 if "DEATHS" in os.environ else 16)  # each takes a second on a terminal
PARTS = 8  # in which the writes are tried
TRIED = range(PARTS) if "DEATHS" in os.environ else (2,)  # all of them with `make crash`

AGENT = """\
echo "$1" >> "$HOME/ran"
while IFS= read -r line; do :; done
case "$1 hears $line" in
"max hears begin") says="a plan [NEXT: sarah + carol + dora] [TODO: carry it out]" ;;
"sarah hears a plan") says="fine for sarah [TODO: tell bob] [DONE: 1]" ;;
"carol hears a plan") says="what does kailai say? [NEXT: kailai]" ;;
"dora hears a plan") says="dora wants to hear more [NEXT: max]" ;;
"sarah hears go on") says="more of it [NEXT: carol]" ;;
"max hears more of it") says="the sum of it" ;;
"carol hears the sum of it") says="carol is content [DONE: 2, 3]" ;;
*) exit 1 ;;
esac
printf %s "${says%% *}"
sleep 0.01
printf ' %s\\n' "${says#* }"
"""
KEPT_RUNNING = """\
import json, os, sys
for line in sys.stdin:
    with open(os.environ["HOME"] + "/ran", "a") as file:
        file.write("carol\\n")
    print(json.dumps({"type": "system", "subtype": "init", "session_id": "s"}), flush=True)
    hears = json.loads(line)["message"]["content"].rpartition("\\n")[2]
    text = "what does kailai say? [NEXT: kailai]" if hears == "a plan" else ""
    print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": text}), flush=True)
"""
ON_A_TERMINAL = """\
echo dora >> "$HOME/ran"
printf '>>> '
read -r line
case "$line" in *"a plan") echo 'dora wants to hear more [NEXT: max]' ;; esac
printf '>>> '
read -r line
"""
TEAM = '[team]\nname = "crew"\n[[members]]\nname = "kailai"\ntype = "human"\n' + "".join(
    f'[[members]]\nname = "{name}"\nagent = "{name}"\n[agents.{name}]\ncommand = ["sh", "agent.sh", "{name}"]\n'
    for name in ("max", "sarah", "carol", "dora")
)
OF_EVERY_KIND = (
    TEAM.replace('agent = "carol"', 'agent = "carol"\nmemory = "live"')
    .replace('["sh", "agent.sh", "carol"]', f'["{sys.executable}", "-I", "-S", "live.py"]\nlike = "claude"')
    .replace('["sh", "agent.sh", "dora"]', '["sh", "terminal.sh"]\ntransport = "pty"\nprompt_pattern = ">>> "')
)
ASKS = ("[NEXT: max] [TODO: make a plan] begin", ExitCode.HUMAN_ASKED)
ANSWERS = ("[NEXT: sarah] go on", ExitCode.DONE)
SAID = [
    ("kailai", ASKS[0]),
    ("max", "a plan [NEXT: sarah + carol + dora] [TODO: carry it out]"),
    ("sarah", "fine for sarah [TODO: tell bob] [DONE: 1]"),
    ("carol", "what does kailai say? [NEXT: kailai]"),
    ("dora", "dora wants to hear more [NEXT: max]"),
    ("kailai", ANSWERS[0]),
    ("sarah", "more of it [NEXT: carol]"),
    ("max", "the sum of it"),
    ("carol", "carol is content [DONE: 2, 3]"),
]
KEPT = {
    "messages": "SELECT message, speaker_name, content, routing, stands_for FROM messages ORDER BY id",
    "routes": """SELECT number, target, status, place, priority, "group", parent, "by", request, as_of
        FROM routes ORDER BY number""",
    "todo_changes": 'SELECT number, what, text, "by", message FROM todo_changes ORDER BY id',
    "sessions": "SELECT name, team, next_route, last_ai FROM sessions",
}
PLACES = {"HOME": "home", "TEAMCHAT_HOME": "state", "TMPDIR": "tmp"}


class Mortals:
    """Starts processes that die when they are told to: in the folder `work`, or in `of_every_kind`.

    There carol is kept running and dora is on a terminal.
    """

    def __init__(self, work: Path, of_every_kind: Path) -> None:
        self.work, self.of_every_kind = work, of_every_kind
        for folder, team in ((work, TEAM), (of_every_kind, OF_EVERY_KIND)):
            (folder / "teamchat.toml").write_text(team)
            (folder / "agent.sh").write_text(AGENT)
        (of_every_kind / "live.py").write_text(KEPT_RUNNING)
        (of_every_kind / "terminal.sh").write_text(ON_A_TERMINAL)
        self.server = subprocess.Popen(
            [sys.executable, str(MORTAL)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            text=True,
        )

    def ask(self, **request: object) -> Any:
        assert self.server.stdin
        assert self.server.stdout
        print(json.dumps(request), file=self.server.stdin, flush=True)
        return json.loads(self.server.stdout.readline())

    def close(self) -> None:
        self.server.communicate()


@pytest.fixture(scope="session")
def mortals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortals]:
    mortals = Mortals(tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("of_every_kind"))
    yield mortals
    mortals.close()


Kept = dict[str, list[tuple[Any, ...]]]


@dataclass
class Life:
    """A conversation in a world of its own. Each of `deaths` is how many steps go well until one process is killed."""

    folder: Path
    mortals: Mortals
    count: Literal["writes", "calls"] = "writes"
    deaths: list[int] = field(default_factory=list)
    died: int = 0
    work: Path | None = None

    def __post_init__(self) -> None:
        for name in PLACES.values():
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.env = {**os.environ, **{name: str(self.folder / place) for name, place in PLACES.items()}}

    def run(self, *args: str) -> int:
        last = self.deaths[0] if self.deaths else 0
        work = self.work or self.mortals.work
        ran = self.mortals.ask(args=[*args, "--trust"], env=self.env, cwd=str(work), count=self.count, last=last)
        if ran["code"] == -signal.SIGKILL:
            self.deaths.pop(0)
            self.died += 1
        elif self.deaths:
            self.deaths[0] -= ran["steps"]
        assert "Traceback" not in ran["err"], ran["err"]
        return int(ran["code"])

    def says(self, text: str, end: ExitCode) -> None:
        """A person says it, and does all that one can do who is told by nobody what was stored before the death."""
        code = self.run("send", text)
        while code == -signal.SIGKILL:
            stored = (text,) in self.rows("SELECT content FROM messages")
            code = self.run("resume") if stored else self.run("send", text)
        nothing_was_left = code == ExitCode.USAGE and end is ExitCode.DONE
        assert code == end or nothing_was_left

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        for store in self.folder.glob("state/workspaces/*/teamchat.db"):
            db = sqlite3.connect(store)
            try:
                return db.execute(sql).fetchall()
            except sqlite3.OperationalError:
                return []  # killed before it had its tables
            finally:
                db.close()
        return []

    @property
    def kept(self) -> Kept:
        """The conversation as it is stored, but for what a retry leaves."""
        return {name: self.rows(sql) for name, sql in KEPT.items()}

    @property
    def left(self) -> list[str]:
        """The files of turns that are over."""
        return [str(path) for place in ("tmp/teamchat-*", "state/*/*/turns/*") for path in self.folder.glob(place)]

    def assert_same_as(self, undisturbed: Kept) -> None:
        assert self.kept == undisturbed
        turns = self.rows("SELECT route, member, status, json_extract(setup, '$.attempt') FROM turns ORDER BY id")
        for number, target, status, *_ in undisturbed["routes"]:
            tried = [turn[1:] for turn in turns if turn[0] == number]
            failed = [(target, "interrupted", attempt) for attempt in range(1, len(tried))]
            assert tried == ([*failed, (target, "done", len(tried))] if status == "done" and target != "kailai" else [])
        ran = (self.folder / "home" / "ran").read_text().split()
        assert all(ran.count(name) <= sum(turn[1] == name for turn in turns) for name in set(ran))
        assert self.mortals.ask(settle=60.0) == []
        assert self.left == []


@dataclass
class Undisturbed:
    """A run that nobody disturbed: where it is when kailai is asked, and what it comes to in the end."""

    folder: Path
    asked: Kept
    done: Kept


@pytest.fixture(scope="session")
def undisturbed(mortals: Mortals, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    first, second = (tmp_path_factory.mktemp(name) for name in ("asked", "done"))
    Life(first, mortals).says(*ASKS)
    copytree(first, second, dirs_exist_ok=True)
    life = Life(second, mortals)
    life.says(*ANSWERS)
    assert [(name, content) for _, name, content, *_ in life.kept["messages"]] == SAID
    return Undisturbed(first, Life(first, mortals).kept, life.kept)


@pytest.mark.parametrize("part", TRIED)
def test_killed_around_any_write_of_the_first_message(
    world: Path, mortals: Mortals, undisturbed: Undisturbed, part: int
) -> None:
    for step in count(part + 1, PARTS):
        life = Life(world / str(step), mortals, "writes", [step])
        life.says(*ASKS)
        life.assert_same_as(undisturbed.asked)
        if not life.died:
            break
    assert step > 60


@pytest.mark.parametrize("part", TRIED)
def test_killed_around_any_write_of_the_answer(
    world: Path, mortals: Mortals, undisturbed: Undisturbed, part: int
) -> None:
    for step in count(part + 1, PARTS):
        copytree(undisturbed.folder, world / str(step))
        life = Life(world / str(step), mortals, "writes", [step])
        life.says(*ANSWERS)
        life.assert_same_as(undisturbed.done)
        if not life.died:
            break
    assert step > 40


@pytest.mark.parametrize("seed", range(DEATHS // DEATHS_A_CASE))
def test_killed_again_and_again_at_random(world: Path, mortals: Mortals, undisturbed: Undisturbed, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 (no secret)
    deaths = [chance.randint(1, chance.choice((100, 1000, 5000))) for _ in range(DEATHS_A_CASE)]
    for number in count():
        life = Life(world / str(number), mortals, "calls", deaths)
        life.says(*ASKS)
        life.says(*ANSWERS)
        life.assert_same_as(undisturbed.done)
        if not deaths:
            break


@pytest.mark.parametrize("step", STEPS_OF_EVERY_KIND)
def test_killed_over_members_of_every_kind(world: Path, mortals: Mortals, undisturbed: Undisturbed, step: int) -> None:
    life = Life(world / str(step), mortals, "writes", [step], work=mortals.of_every_kind)
    life.says(*ASKS)
    assert life.died
    life.assert_same_as(undisturbed.asked)
