"""Trust on the command line: nothing of a team file runs before it was given, and it is asked for once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import FILE, notes
from tests.program import Result, run_here
from tests.scripted_team import Crew, crew


@pytest.fixture
def made(world: Path) -> Crew:
    """A team that nobody has trusted yet."""
    made = crew(world, {"max": ["Here.", "Again.", "Once more.", "And more."]}, members={"max": {"access": "edit"}})
    (world / "state" / "trust.json").unlink()
    return made


def wants(made: Crew) -> tuple[str, ...]:
    command = made.file.read_text().partition("command = ")[2].splitlines()[0]
    runs = " ".join(word.strip('"') for word in command.strip("[]").split(", "))
    return f"max runs {runs}; its access is not enforced", f"max edits files in {made.file.parent}"


def not_trusted(made: Crew) -> str:
    lines = "".join(f"  {want}\n" for want in wants(made))
    return f"teamchat: {made.file} is not trusted yet; with it\n{lines}  try: teamchat trust\n"


@pytest.mark.parametrize("command", [("send", "Hi"), ("send", "--json", "Hi")])
def test_untrusted_nothing_runs_and_it_says_what_would_have(made: Crew, command: tuple[str, ...]) -> None:
    assert run_here(*command) == Result(5, "", not_trusted(made))
    assert made.prompts("max") == []
    assert run_here("sessions", "--json").out == ""


def test_what_only_looks_needs_none(made: Crew) -> None:
    dry = run_here("send", "--dry-run", "Hi")
    assert dry.code == 0
    assert "max would run: " in dry.out
    for command in ("team", "sessions"):
        assert run_here(command).code == 0
    assert run_here("log").code == 4  # there is nothing to see, but it may be looked for
    assert made.prompts("max") == []


def test_an_edited_instruction_never_asks_again_and_a_changed_command_does(made: Crew) -> None:
    assert run_here("trust").code == 0
    text = FILE.read_text()
    Path("max.md").write_text("Be brief.")
    FILE.write_text(text.replace('name = "max"', 'name = "max"\ninstruction_file = "max.md"'))
    assert run_here("send", "--quiet", "Hi").out == "Here.\n"
    Path("max.md").write_text("Be long.")
    assert run_here("send", "--quiet", "Hi").out == "Again.\n"
    FILE.write_text(text.replace('"-S"', '"-s"'))
    assert run_here("send", "Hi").code == 5
    FILE.write_text(text.replace('"edit"', '"full"'))
    assert run_here("send", "Hi") == Result(
        5,
        "",
        f"teamchat: {made.file} has changed since you trusted it: "
        f"access of max: edits files in {made.file.parent} → does anything you may do\n  try: teamchat trust\n",
    )
    FILE.write_text(text)
    assert run_here("send", "--quiet", "Hi").out == "Once more.\n"
    assert len(made.prompts("max")) == 3


def test_a_changed_script_of_a_trusted_command_asks_again(world: Path) -> None:
    script = world / "work" / "agent.sh"
    script.write_text("#!/bin/sh\necho Here.\n")
    script.chmod(0o755)
    FILE.write_text('[[members]]\nname = "max"\nagent = "own"\n[agents.own]\ncommand = ["./agent.sh"]\n')
    assert run_here("trust").code == 0
    assert run_here("send", "--quiet", "Hi").out == "Here.\n"
    script.write_text("#!/bin/sh\nrm -rf everything\n")
    changed = f"{FILE.absolute()} has changed since you trusted it: agent.sh has changed"
    assert run_here("send", "Hi") == Result(5, "", f"teamchat: {changed}\n  try: teamchat trust\n")


def test_trust_is_for_the_file_that_was_named(made: Crew, world: Path) -> None:
    other = Path("other.toml")
    other.write_text(made.file.read_text())
    assert run_here("trust", "--team", "./other.toml").code == 0
    assert run_here("send", "Hi").code == 5
    assert run_here("send", "--quiet", "--team", "other.toml", "Hi").out == "Here.\n"
    other.write_text(other.read_text().replace('"-S"', '"-s"'))
    assert run_here("send", "--team", "other.toml", "Hi").err.endswith(
        f"  try: teamchat trust --team {world}/work/other.toml\n"
    )


def test_a_pipe_is_never_asked(made: Crew) -> None:
    assert run_here("send", "Hi", stdin="y\n") == Result(5, "", not_trusted(made))


def test_what_changed_is_told_by_all_that_tell_of_trust(made: Crew) -> None:
    assert run_here("trust").code == 0
    FILE.write_text(FILE.read_text().replace('"edit"', '"full"\nenv = { MY_KEY = "sk-1" }'))
    changes = (
        "added env MY_KEY of max",
        f"access of max: edits files in {made.file.parent} → does anything you may do",
    )
    assert run_here("team").out.startswith(f"crew ({made.file}), changed since you trusted it: teamchat trust\n")
    assert f"{made.file} has changed since you trusted it: {'; '.join(changes)}\n" in run_here("doctor").out
    lines = [f"since you trusted it: {change}" for change in changes]
    lines += [wants(made)[0], "max runs with MY_KEY=...", "max does anything you may do", f"{made.file} is trusted"]
    assert run_here("trust") == Result(0, "", notes(*lines))
    assert run_here("trust") == Result(0, "", notes(*lines[2:]))
