"""`teamchat doctor --live`: one question to every member, only to read, and only where the team may run."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.core.errors import ExitCode
from tests.cli.scene import FILE, actors, objects
from tests.program import run_here


def test_every_member_is_asked_and_nothing_is_stored(world: Path) -> None:
    actors({"al": ["claude-like", "It is fine."], "bo": ["claude-like", "{prompt}"]}, like="claude")
    before = sorted(world.rglob("*"))
    ran = run_here("doctor", "--live", "--json")
    assert ran.code == 0, ran.out
    first, second, result = objects(ran)
    assert (first["member"], first["what"], first["state"], first["value"]) == ("al", "answer", "ok", "It is fine.")
    assert (second["member"], second["value"]) == ("bo", "Reply with the one word OK. Use no tool…")
    assert result == {"v": 1, "type": "result", "code": 0, "outcome": "done"}
    assert "al, bo on your own logins, which costs" in ran.err
    assert sorted(world.rglob("*")) == before


def test_a_member_that_fails_gives_its_code_and_the_others_are_asked() -> None:
    actors({"al": ["exit-with", "3"], "bo": ["reply", "OK"]})
    ran = run_here("doctor", "--live")
    assert ran.code == ExitCode.MEMBER_FAILED
    assert ran.out.splitlines()[0] == "✗ al answer  ended with exit code 3"
    assert ran.out.splitlines()[1].startswith("✓ bo answer  'OK' after ")
    assert ran.out.splitlines()[1].endswith("tokens unknown")


def test_an_untrusted_team_is_not_asked() -> None:
    actors({"al": ["reply", "OK"]}, trusted=False)
    ran = run_here("doctor", "--live")
    assert ran.code == ExitCode.NOT_TRUSTED
    assert "not trusted" in ran.err


def test_a_missing_program_is_exit_11() -> None:
    FILE.write_text('[[members]]\nname = "max"\nagent = "claude"\n')
    ran = run_here("doctor", "--live")
    assert ran.code == ExitCode.AGENT_UNAVAILABLE
    assert "is not installed\n  try: npm install -g @anthropic-ai/claude-code" in ran.out


@pytest.mark.parametrize("option", [(), ("--live",)])
def test_a_folder_that_is_not_there_or_cannot_be_is_exit_11(option: tuple[str, ...]) -> None:
    for cwd in ("gone", "a" * 300):
        Path("teamchat.toml").write_text(
            f'[[members]]\nname = "al"\nagent = "cat"\ncwd = "{cwd}"\n[agents.cat]\ncommand = ["cat"]\n'
        )
        run_here("trust")
        ran = run_here("doctor", *option)
        assert (ran.code, f"there is no {Path.cwd()}/{cwd}\n" in ran.out) == (11, True), ran


def test_without_team_and_cli_it_says_so() -> None:
    ran = run_here("doctor", "--live")
    assert ran.code == ExitCode.AGENT_UNAVAILABLE
    assert "no agent CLI is installed" in ran.err
