"""`teamchat doctor --live`: one question to every member, only to read, and only where the team may run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teamchat.core.errors import ExitCode
from tests.cli.helpers import FILE, actors, objects
from tests.program import run_here


def test_every_member_is_asked_and_nothing_is_stored(world: Path) -> None:
    actors({"al": ["claude-like", "It is fine."], "bo": ["claude-like", "{prompt}"]}, like="claude")
    (world / "state" / "temporary").mkdir(parents=True)
    before = sorted(world.rglob("*"))
    ran = run_here("doctor", "--live", "--json")
    assert ran.code == 0, ran.out
    first, tried, second, _, result = objects(ran)
    assert (tried["member"], tried["what"], tried["state"], tried["value"]) == ("al", "access", "ok", "yes")
    assert (first["member"], first["what"], first["state"], first["value"]) == ("al", "answer", "ok", "It is fine.")
    assert (second["member"], second["value"]) == ("bo", "Reply with the one word OK. Use no tool…")
    assert result == {"v": 1, "type": "result", "code": 0, "outcome": "done"}
    assert "al, bo on your own logins, which costs" in ran.err
    assert sorted(world.rglob("*")) == before


def test_a_program_like_another_is_asked_to_write_with_read_access() -> None:
    actors({"al": ["claude-like", "OK"]}, like="claude", trusted=False)
    Path("fork").write_text('#!/bin/sh\ntouch probe.txt\nexec "$@"\n')
    Path("fork").chmod(0o755)
    FILE.write_text(FILE.read_text().replace("command = [", 'command = ["./fork", '))
    assert run_here("trust").code == 0
    ran = run_here("doctor", "--live")
    assert ran.code == ExitCode.NOT_TRUSTED
    assert "an order to write a file in an empty folder" in ran.err
    words = "was asked with access read to write a file, and wrote it: access does not bound it as it bounds claude"
    assert ran.out.splitlines()[1] == f"✗ al access  {words}"


def test_a_program_that_has_only_a_terminal_is_asked_there() -> None:
    loop = "while printf '> '; do read -r line || exit; echo got it; done"
    keys = 'transport = "pty"\nprompt_pattern = "> "'
    FILE.write_text(f'[[members]]\nname = "al"\nagent = "x"\n[agents.x]\ncommand = ["sh", "-c", "{loop}"]\n{keys}\n')
    assert run_here("trust").code == 0
    ran = run_here("doctor", "--live")
    assert (ran.code, "al answer  'got it' after" in ran.out) == (0, True)


@pytest.mark.parametrize("prompt", ["pipe", "argument"])
def test_a_program_gets_the_question_as_its_row_says(prompt: str, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(world / "config"))
    rows = world / "config" / "teamchat" / "agents"
    rows.mkdir(parents=True)
    script = world / "mine"
    script.write_text('#!/bin/sh\n[ -f /dev/stdin ] && [ -z "$1" ] && exit 1\necho "${1:-$(cat)}"\n')
    script.chmod(0o755)
    (rows / "mine.toml").write_text(f'command = ["{script}"]\nprompt = "{prompt}"\n')
    FILE.write_text('[[members]]\nname = "al"\nagent = "mine"\n')
    assert run_here("trust").code == 0
    assert "Reply with the one word OK" in run_here("doctor", "--live").out


def test_a_member_that_fails_gives_its_code_and_the_others_are_asked() -> None:
    actors({"al": ["exit-with", "3"], "bo": ["reply", "OK"]})
    ran = run_here("doctor", "--live")
    assert ran.code == ExitCode.MEMBER_FAILED
    assert ran.out.splitlines()[0] == "✗ al answer  ended with exit code 3"
    assert ran.out.splitlines()[1].startswith("✓ bo answer  'OK' after ")
    assert ran.out.splitlines()[1].endswith("tokens unknown")


@pytest.mark.parametrize(
    "said", ["error: unknown option '--bogus'", "error: unexpected argument '--bogus' found", "Unknown argument: bogus"]
)
def test_arguments_that_the_cli_does_not_take_are_named_as_such(said: str) -> None:
    members = {"al": {"args": ["--bogus"]}}
    actors({"al": ["err", said, "+", "exit-with", "1"], "bo": ["err", said, "+", "exit-with", "1"]}, members=members)
    lines = run_here("doctor", "--live").out.splitlines()
    assert [line[2:40] for line in lines] == [
        "al answer  its args are not taken: ended with"[:38],
        f"bo answer  ended with exit code 1: {said}"[:38],
    ]


def test_a_program_that_changes_while_others_are_asked_is_not_run() -> None:
    script = Path("bo.sh")
    script.write_text("#!/bin/sh\ntouch ran\n")
    actors({"al": ["touch", "x"], "bo": ["reply", "OK"]}, trusted=False)
    text = FILE.read_text()
    for name, command in (("al", ["sh", "-c", "echo '#' >> bo.sh; echo OK"]), ("bo", ["sh", "bo.sh"])):
        head, _, rest = text.partition(f"[agents.{name}-agent]\n")
        text = f"{head}[agents.{name}-agent]\ncommand = {json.dumps(command)}\n{rest.partition(chr(10))[2]}"
    FILE.write_text(text)
    assert run_here("trust").code == 0
    ran = run_here("doctor", "--live")
    assert (ran.code, Path("ran").exists()) == (ExitCode.NOT_TRUSTED, False), ran.err
    assert "bo.sh has changed" in ran.err


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
