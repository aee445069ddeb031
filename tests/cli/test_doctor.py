"""`teamchat doctor` as a user runs it, with small programs in place of the CLIs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from teamchat.core.errors import ExitCode
from tests.installed import install, program
from tests.program import Result, cli, run_here
from tests.real.clis import PINNED

FILE = Path("teamchat.toml")
TEAM = '[[members]]\nname = "kailai"\ntype = "human"\n\n[[members]]\nname = "max"\nagent = "claude"\n'


def rows(ran: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.out.splitlines()]


def row(ran: Result, member: str | None, what: str) -> dict[str, Any]:
    (found,) = (row for row in rows(ran)[:-1] if (row["member"], row["what"]) == (member, what))
    return found


def test_a_team_that_can_run(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = install(world, monkeypatch, "claude")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    FILE.write_text(TEAM)
    ran = cli("doctor")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[:3] == [
        f"✓ max program {folder}/claude",
        f"✓ max version {PINNED['claude']}, proven",
        "✓ max login   ANTHROPIC_API_KEY is set",
    ]
    assert lines[3].startswith("· max access  read: reads files;")
    assert lines[4].startswith("· max reads   CLAUDE.md of its folder")
    assert lines[5] == f"✓ max folder  {world}/work"
    assert lines[6].startswith(f"✓     store   {world}/state/workspaces/work-")
    assert lines[7] == f"✓     team    {world}/work/teamchat.toml, needs no trust"
    assert [line.split()[:2] for line in lines[8:]] == [["✓", "python"], ["✓", "sqlite"]]
    assert "sk-secret" not in ran.out


def test_a_member_that_can_not_run_is_exit_11_and_says_what_to_type() -> None:
    FILE.write_text(TEAM)
    ran = run_here("doctor")
    assert ran.code == ExitCode.AGENT_UNAVAILABLE
    assert "✗ max program 'claude' is not installed\n  try: npm install -g @anthropic-ai/claude-code\n" in ran.out


def test_a_missing_login_is_exit_11(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(world, monkeypatch, "claude")
    FILE.write_text(TEAM)
    ran = run_here("doctor")
    assert ran.code == ExitCode.AGENT_UNAVAILABLE
    assert "\n  try: claude auth login\n" in ran.out


@pytest.mark.parametrize("version", ["9.9.9", "0.0.1", "none"])
def test_another_version_is_a_warning_only(world: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    folder = install(world, monkeypatch)
    program(folder / "claude", f"echo {version}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    FILE.write_text(TEAM)
    ran = run_here("doctor")
    assert ran.code == 0
    assert [line[:13] for line in ran.out.splitlines() if line.startswith("!")] == ["! max version"]


def test_a_broken_team_file_is_exit_2() -> None:
    FILE.write_text("[team]\nnam = 1\n")
    ran = run_here("doctor")
    assert ran.code == ExitCode.USAGE
    assert "team: nam: unknown key" in ran.out
    assert "python" in ran.out


def test_no_such_team_is_exit_4() -> None:
    ran = run_here("doctor", "--team", "nobody")
    assert (ran.code, ran.out) == (ExitCode.UNKNOWN_NAME, "")


def test_json_is_one_check_a_line_and_the_result(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = install(world, monkeypatch, "claude")
    FILE.write_text(TEAM)
    ran = run_here("doctor", "--json")
    assert ran.code == ExitCode.AGENT_UNAVAILABLE
    assert [row["type"] for row in rows(ran)] == ["check"] * 10 + ["result"]
    assert row(ran, "max", "program") == {
        "v": 1,
        "type": "check",
        "member": "max",
        "what": "program",
        "state": "ok",
        "text": f"{folder}/claude",
        "value": f"{folder}/claude",
        "hint": None,
        "code": 0,
    }
    assert (row(ran, "max", "login")["state"], row(ran, "max", "login")["code"]) == ("failed", 11)
    assert rows(ran)[-1] == {"v": 1, "type": "result", "code": 11, "outcome": "agent_unavailable"}


def test_programs_are_asked_at_the_same_time(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = install(world, monkeypatch)
    for name in ("claude", "codex", "gemini"):
        all_asked = f"[ -e {world}/claude.asked -a -e {world}/codex.asked -a -e {world}/gemini.asked ]"
        program(folder / name, f"touch {world}/{name}.asked; until {all_asked}; do sleep 0.02; done; echo 1.2.3")
    assert run_here("doctor").out.count("1.2.3, ") == 3


def test_what_a_team_file_says_can_not_rewrite_the_screen() -> None:
    FILE.write_text('[[members]]\nname = "al"\nagent = "x"\n[agents.x]\ncommand = ["no\\u001b[2Jthing"]\n')
    ran = run_here("doctor")
    assert ran.code == ExitCode.AGENT_UNAVAILABLE
    assert "\x1b" not in ran.out
    assert "thing" in ran.out


WATCHED = """
import os, sys
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)  # forked processes write there, too
sys.addaudithook(lambda event, args: os.write(log, f"{args[0]}\\n".encode()) if event == "open" else None)
from teamchat.cli.app import run
sys.exit(run(sys.argv[2:]))
"""
LOGINS = (
    *(".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".gemini/gemini-credentials.json"),
    *(".local/share/opencode/auth.json", ".netrc", ".git-credentials", ".ssh/id_ed25519", ".aws/credentials"),
)


def test_no_file_that_holds_a_login_is_opened(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by what looks at logins nor by a turn, which may fail."""
    clis = ("claude", "codex", "gemini")
    install(world, monkeypatch, *clis)
    home, log = world / "home", world / "opened"
    for name in LOGINS:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("{}")
    for words in (["doctor"], ["team"], *(["send", "--new", "--to", name, "Hi"] for name in clis), ["export"]):
        ran = subprocess.run(
            [sys.executable, "-c", WATCHED, str(log), *words],
            capture_output=True,
            text=True,
            env=os.environ,
            check=False,
        )
        assert "Traceback" not in ran.stderr
        assert words[0] not in ("doctor", "team", "export") or ran.returncode == 0, ran
        assert words[0] != "doctor" or ran.stdout.count(" is there\n") == 3, ran
    opened = {Path(path).name for path in log.read_text(errors="replace").splitlines()}
    assert ".claude.json" in opened
    assert opened & {Path(name).name for name in LOGINS} == set()


@pytest.mark.parametrize("text", ["{broken", "[]", '{"a": 1,}', "{" + '"a":[' * 9000])
def test_settings_for_which_gemini_does_not_start_are_named(
    world: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    install(world, monkeypatch, "gemini")
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    project = Path(".gemini") / "settings.json"
    project.parent.mkdir()
    project.write_text(text)
    member = '[[members]]\nname = "carol"\nagent = "gemini"\n'
    FILE.write_text(member)
    assert cli("doctor").code == 0  # which it does not look at
    FILE.write_text(f"{member}project_settings = true\n")
    ran = run_here("doctor", "--json")
    assert ran.code == ExitCode.AGENT_UNAVAILABLE
    assert row(ran, "carol", "settings")["text"].startswith(f"{world}/work/.gemini/settings.json cannot be read: ")
    users = world / "home" / ".gemini" / "settings.json"
    users.parent.mkdir()
    users.write_text("/* mine */ {} // all of it\n")
    project.write_text("\ufeff{}", "utf-8")
    assert run_here("doctor").code == 0
    users.write_text(text)
    assert row(run_here("doctor", "--json"), "carol", "settings")["value"] == str(users)
