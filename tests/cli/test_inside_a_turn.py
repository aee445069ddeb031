"""A teamchat that an agent runs in its turn: how deep, with what, and what becomes of it."""

from __future__ import annotations

import json
import shlex
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from teamchat.cli.shared.workspace import store_file, trust_store
from teamchat.core.team.find import load
from teamchat.core.turn.caller import VARIABLE
from tests.program import ROOT, argv, cli, run_here

TEAMCHAT = shlex.join(argv())
LEVELS = 6
KEPT = f'PATH="$PATH" PYTHONPATH={ROOT} HOME="$HOME" TEAMCHAT_HOME="$TEAMCHAT_HOME" TMPDIR="$TMPDIR" LC_ALL=C.UTF-8'
BARE = f"env -i {KEPT}"
LOWER = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_RTTIME, (10**9, 10**9)); os.execvp(*LINE)"
FORKED = "import os, sys; (os.fork() and os._exit(0)); os.setsid(); (os.fork() and os._exit(0)); os.execvp(*LINE)"
FORMS = {
    "as it is": "{}",
    "env -u": f"env -u {VARIABLE} {{}}",
    "env -i": f"{BARE} {{}}",
    "setsid": f"setsid --wait {BARE} {{}}",
    "nohup": f"nohup {BARE} {{}} & wait",
    "double fork": f"export P=$$; {{fork}} /bin/sh -c '{BARE} {{}}; touch ../over.$P'; "
    "while [ ! -e ../over.$P ]; do sleep 0.05; done",
    "another state folder": f"{BARE.replace('$TEAMCHAT_HOME', '$PWD/../other')} {{}}",
    "another token": f"env {VARIABLE}=tct_0123456789abcdef0123456789abcdef@/nowhere {{}}",
    "a lower limit": f"{{lower}} {BARE} {{}}",
}
"""Ways in which an agent starts a program, most of which take from it what says that it is in a turn."""


def python(script: str) -> str:
    """The beginning of a command line that has Python run the rest of it."""
    return shlex.join([sys.executable, "-c", script.replace("LINE", "(sys.argv[1], sys.argv[1:])")])


def team(limits: str = "", members: str = "", **scripts: str) -> Path:
    """A team whose members run shell scripts. It is trusted. Returns the folder of what they write."""
    world = Path.cwd().parent
    parts = [f'[team]\n[team.limits]\n{limits}\n[[members]]\nname = "kailai"\ntype = "human"']
    for name, script in scripts.items():
        file = world / f"{name}.sh"
        file.write_text(f"cat > /dev/null\n{script}\necho Done\n")
        parts.append(f'[[members]]\nname = "{name}"\nagent = "{name}-agent"\n{members}')
        parts.append(f"[agents.{name}-agent]\ncommand = {json.dumps(['/bin/sh', str(file)])}")
    (file := Path("teamchat.toml")).write_text("\n".join(parts))
    trust_store().grant(load(file.absolute()))
    return world


def inner(*words: str, form: str = "as it is") -> str:
    """A line of a shell that runs teamchat in that form and keeps its exit code and what it printed."""
    line = FORMS[form].format(" ".join([*argv(), *words]), fork=python(FORKED), lower=python(LOWER))
    return f"( {line} ) > ../out.$$ 2> ../err.$$; echo $? >> ../codes"


def store() -> sqlite3.Connection:
    return sqlite3.connect(f"file:{store_file(Path.cwd())}?mode=ro", uri=True)


def select(sql: str) -> list[tuple[object, ...]]:
    with closing(store()) as db:
        return db.execute(sql).fetchall()


def errors(world: Path) -> str:
    return "".join(file.read_text() for file in sorted(world.glob("err.*")))


@pytest.mark.parametrize("form", FORMS)
def test_a_chain_of_six_levels_ends_after_two_turns(form: str) -> None:
    world = team(max=f"echo turn >> ../turns; {inner('send', '--new', 'Deeper', form=form)}")
    assert cli("send", "Go").code == 0
    assert (world / "turns").read_text() == "turn\n" * 2
    assert "teamchat: no turn may begin here, inside of turn 1 of s1 (max): limits.depth = 1" in errors(world)
    assert select("SELECT COUNT(*) FROM sessions") <= [(2,)]  # nothing of the third one is stored


@pytest.mark.parametrize("command", [("send", "Hi"), ("run", "sequential", "Hi"), ("resume",), ("retry", "--yes")])
def test_past_the_bound_a_command_says_so_in_one_line_and_stores_nothing(command: tuple[str, ...]) -> None:
    world = team("depth = 0", max=inner(*command))
    assert cli("send", "Go").code == 0
    assert (world / "codes").read_text() == "7\n"
    assert (
        errors(world)
        == "teamchat: no turn may begin here, inside of turn 1 of s1 (max): limits.depth = 0 is left there\n"
    )
    assert select("SELECT COUNT(*) FROM sessions") == [(1,)]


@pytest.mark.parametrize(
    "command",
    [("log",), ("show",), ("sessions",), ("team",), ("--version",), ("todo",), ("usage",), ("send", "--dry-run", "Hi")],
)
def test_a_command_that_runs_no_turn_works_at_any_depth(command: tuple[str, ...]) -> None:
    deeper = inner("send", "--new", "Deeper")
    world = team(max=f"if [ -e ../once ]; then {inner(*command)}; else touch ../once; {deeper}; fi")
    assert cli("send", "Go").code == 0
    assert (world / "codes").read_text() == "0\n0\n", errors(world)


def test_raising_the_depth_needs_trust_and_lowering_it_none() -> None:
    team("depth = 2", max="true")
    trust_store().file.unlink()
    assert "the team has depth = 2 as a limit (1 by default)" in run_here("send", "Hi").err
    team("depth = 0", max="true")
    trust_store().file.unlink()
    assert "depth" not in run_here("send", "Hi").err


def test_with_a_depth_of_two_a_chain_ends_after_three_turns() -> None:
    world = team("depth = 2", max=f"echo turn >> ../turns; {inner('send', '--new', 'Deeper')}")
    assert cli("send", "Go").code == 0
    assert (world / "turns").read_text() == "turn\n" * 3
