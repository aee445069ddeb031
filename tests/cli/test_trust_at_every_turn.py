"""Trust and the members' folders hold at every turn: one member cannot change what runs for another one, or where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from tests.cli.helpers import FILE, notes, queue, refused, steady, turn
from tests.program import Result, run_here

SARAH = "#!/bin/sh\necho Mine.\n"


def team(changes: str, sarah: str = "") -> Path:
    """Max does what `changes` says and calls sarah, whose program is a script; they are trusted. Returns the script."""
    script = Path("sarah.sh").absolute()
    script.write_text(SARAH)
    script.chmod(0o755)
    command = json.dumps(["/bin/sh", "-c", f"{changes}\necho '[NEXT: sarah] Go'"])
    FILE.write_text(
        f'[[members]]\nname = "kailai"\ntype = "human"\n[[members]]\nname = "max"\nagent = "one"\n'
        f'[[members]]\nname = "sarah"\nagent = "two"\n{sarah}\n'
        f'[agents.one]\ncommand = {command}\n[agents.two]\ncommand = ["./sarah.sh"]\n'
    )
    trust_store().grant(load(FILE))
    return script


def test_a_program_that_another_member_rewrote_does_not_run() -> None:
    script = team("printf 'touch ran\\necho Theirs.\\n' >> sarah.sh")
    ran = steady(run_here("send", "Go"))
    assert ran.code == 5
    changed = f"{FILE.absolute()} has changed since you trusted it: sarah.sh has changed"
    assert ran.err.endswith(notes(f"failed: {changed}; held: sarah", "try: teamchat trust && teamchat resume"))
    assert not Path("ran").exists()
    assert queue() == [("sarah", "held")]
    assert refused(run_here("resume")) == changed
    script.write_text(SARAH)
    assert run_here("resume", "--quiet") == Result(0, "Mine.\n", "")


@pytest.mark.parametrize("where", ["{world}/home", "other"])
def test_a_folder_that_another_member_replaced_is_not_worked_in(world: Path, where: str) -> None:
    other = Path(where.format(world=world)).absolute()
    for folder in (Path("sub"), other):
        folder.mkdir(exist_ok=True)
    script = team(f"rmdir sub; ln -s {other} sub", 'cwd = "sub"')
    script.write_text("#!/bin/sh\ntouch here\necho Mine.\n")
    trust_store().grant(load(FILE))
    ran = steady(run_here("send", "Go"))
    moved = f"sarah's folder was {Path('sub').absolute()} when this command began, and now is {other}"
    told = notes("session s1 begins", *turn("max", 1), f"failed: {moved}; held: sarah", "try: teamchat resume")
    assert ran == Result(5, "max:\n[NEXT: sarah] Go\n\n", told)
    assert list(other.iterdir()) == []
    assert queue() == [("sarah", "held")]


def test_a_group_whose_member_is_no_longer_trusted_pauses_with_5() -> None:
    team("echo '#' >> sarah.sh")
    FILE.write_text(FILE.read_text().replace('name = "max"', 'name = "max"\naccess = "full"'))
    FILE.write_text(FILE.read_text().replace('name = "sarah"', 'name = "sarah"\naccess = "full"'))
    trust_store().grant(load(FILE))
    ran = run_here("send", "--to", "max+sarah", "Go")  # one after the other: they write in the same folder
    assert ran.code == 5
    assert "sarah.sh has changed" in ran.err.splitlines()[-2]
    assert queue() == [("sarah", "held"), ("sarah", "held")]


def test_a_recording_of_it_is_played_back_as_it_was() -> None:
    team("echo '#' >> sarah.sh")
    assert run_here("send", "--record", "a.cassette", "Go").code == 5
    played = run_here("replay", "--speed", "0", "--verify", "a.cassette")
    assert (played.code, "sarah.sh has changed" in played.err) == (0, True), played.err


def test_a_member_that_writes_what_a_check_runs_ends_no_run() -> None:
    changed = ("Makefile", "check.sh", "tool.py")
    team("\n".join(f"echo changed > {name}" for name in changed))
    checks = {"a": "make", "b": "sh check.sh", "c": ["./check.sh"], "d": ["python3", "-m", "tool"]}
    for name in changed:
        Path(name).write_text("as it was\n")
        Path(name).chmod(0o755)
    with FILE.open("a") as file:
        file.writelines(f"[checks.{name}]\ncommand = {json.dumps(command)}\n" for name, command in checks.items())
    trust_store().grant(load(FILE))
    ran = run_here("send", "--quiet", "Go")
    assert (ran.code, ran.out) == (0, "Mine.\n")
    assert {Path(name).read_text() for name in changed} == {"changed\n"}
