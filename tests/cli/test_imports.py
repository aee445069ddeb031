"""What a command loads before and while it works: each module is time that scripts pay at every start."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.program import run_here

OWN = "teamchat"
HEAVY = frozenset(
    {
        *(
            "prompt_toolkit",
            "rich",
            "pygments",
            "markdown_it",
            "pexpect",
            "pydantic",
            "pydantic_core",
            "mcp",
            "dbos",
            "sqlalchemy",
        ),
        *("tomllib", "email", "http", "importlib.metadata", "multiprocessing"),
    }
)
AGENTS = frozenset({"asyncio", "concurrent.futures", "teamchat.runners.child.supervisor", "teamchat.core.turn.run"})
PROCESSES = frozenset({"teamchat.cli.run"})
UNUSED = PROCESSES | frozenset(
    {
        *("teamchat.core.checkpoint.take", "teamchat.core.checkpoint.git", "teamchat.core.worktrees.make"),
        *("teamchat.core.knowledge.index", "teamchat.core.conversation.lessons", "teamchat.core.cassette.format"),
        *("teamchat.runners.claude.runner", "teamchat.runners.terminal.runner", "teamchat.core.team.schema"),
        *("random", "tempfile", "termios", "teamchat.core.routing.markdown"),
    }
)
COMPLETING = {"_TEAMCHAT_COMPLETE": "complete_bash", "COMP_WORDS": "teamchat send --to m", "COMP_CWORD": "3"}
BUDGETS: Mapping[tuple[str, ...], tuple[int, frozenset[str]]] = {
    ("--version",): (17, HEAVY | AGENTS | {"msgspec", "sqlite3", "json"}),
    ("--help",): (17, HEAVY | AGENTS | {"msgspec", "sqlite3", "json"}),
    ("log", "-n", "20"): (96, HEAVY | AGENTS | UNUSED),
    ("status",): (96, HEAVY | AGENTS | UNUSED),
    ("show",): (109, HEAVY | AGENTS | UNUSED),
    ("sessions",): (95, HEAVY | AGENTS | UNUSED),
    ("send", "-q", "Hi"): (190, HEAVY | UNUSED),
    ("run", "sequential", "-q", "Hi"): (205, HEAVY | UNUSED - PROCESSES),
    ("resume",): (190, HEAVY | UNUSED),
    (): (54, HEAVY | AGENTS | UNUSED),
}
"""For each command the most modules of teamchat, and packages and modules that are not loaded; () completes a name."""


TEAM = """
[[members]]
name = "max"
agent = "hello"

[agents.hello]
command = ["sh", "-c", "cat > /dev/null; echo Hello"]
"""


@pytest.fixture
def _used() -> None:
    """A team outside a git repository that has been used before."""
    Path("teamchat.toml").write_text(TEAM)
    assert run_here("send", "--trust", "-q", "Hi").code == 0


def loaded(*args: str) -> set[str]:
    """The modules that the program loads in an interpreter of its own."""
    env = os.environ if args else {**os.environ, **COMPLETING}
    command = [sys.executable, "-X", "importtime", "-m", OWN, *args]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, check=False)
    assert ran.returncode == (2 if args == ("resume",) else 0), ran.stderr
    return set(re.findall(r"^import time: +\d+ \| +\d+ \| +([\w.]+)$", ran.stderr, re.MULTILINE))


@pytest.mark.usefixtures("_used")
@pytest.mark.parametrize("args", BUDGETS, ids=lambda args: " ".join(args) or "completion")
def test_a_command_loads_only_what_it_uses(args: tuple[str, ...]) -> None:
    most, unused = BUDGETS[args]
    found = loaded(*args)
    assert found & unused == set()
    own = sorted(name for name in found if name.partition(".")[0] == OWN)
    assert len(own) <= most, own
