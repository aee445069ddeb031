"""Whatever is typed: an exit code of the table, one clear line, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from teamchat.cli.app import COMMANDS
from teamchat.core.errors import ExitCode
from tests.program import Result, run_here
from tests.scripted_team import Crew, crew
from tests.trials import trials

WORDS = [
    *COMMANDS, "Hi", "[NEXT: max] Hi", "[NEXT: nobody]", "[DROP: ALL]", "[TEAM_TASK]\nx", "", " ", "-", "--", "0", "-1",
    "9" * 25, "1e9", "max", "max+sarah", "kailai", "nope", ".", "/", "/dev/null", "~", "\\", "'", '"', "*", "\n",
    "\x1b[31m", "\udcff", "水", "x" * 5000, "--to", "--as", "--team", "--session", "--new", "--json", "--stream",
    "--quiet", "-q", "--timeout", "90s", "--trust", "--dry-run", "--retry", "--skip", "--drop", "-n", "--prompt",
    "--clear", "--help", "-h", "--version", "--nope", "-x", "--to=max", "--session=a b", "--session=", "--n",
    "--no-new", "-nq", "--system", "add", "done", "clear", "#1", "--all", "--history",
]  # fmt: skip
SLOW = {"demo", "replay", "doctor", "init"}  # commands that wait, or write here; they have tests of their own
words = st.sampled_from([word for word in WORDS if word not in SLOW]) | st.text(max_size=5)
commands = st.sampled_from([command for command in COMMANDS if command not in SLOW])
lines = st.lists(words, max_size=4) | st.builds(
    lambda command, rest: [command, *rest], commands, st.lists(words, max_size=4)
)


@pytest.fixture
def made(world: Path) -> Crew:
    """A team with much to say: the examples follow one another in one world."""
    return crew(world, {"max": ["Hi."] * 500, "sarah": [{"exit": 3}] * 500}, humans=("kailai", "bob"))


@pytest.mark.usefixtures("made")
@given(lines)
@example(["show", "9" * 25])
@example(["log", "-n", "9" * 25])
@example(["send", "--session", "\udcff", "Hi"])
@example(["task", "\udcff"])
@example(["send", "\udcff"])
@example(["send", "--to", "\udcff", "Hi"])
@example(["send", "--team", "x" * 5000, "Hi"])
@example(["log", "--team", "\udcff"])
@settings(max_examples=trials(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_arguments_end_in_a_code_of_the_table(arguments: list[str]) -> None:
    ran = run_here(*arguments)
    assert ran.code in set(ExitCode)
    assert "Traceback" not in ran.err
    assert_complaint(ran)


def assert_complaint(ran: Result) -> None:
    """A command that was refused says why in one line, and what to do in at most one more (the list of trust aside)."""
    complaints = [line for line in ran.err.splitlines() if line.startswith("teamchat: ")]
    assert len(complaints) <= 1
    if complaints and ran.code != ExitCode.NOT_TRUSTED:
        after = ran.err.split(complaints[0], 1)[1].splitlines()[1:]
        assert len(after) <= 1, ran.err
        assert ran.code != 0
