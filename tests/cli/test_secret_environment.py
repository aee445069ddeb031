"""Secrets in the environment of a run, with an agent that says all of its environment."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from teamchat.cli.startup.workspace import store_file
from teamchat.core.files.folders import state_dir
from tests.program import cli, run_here
from tests.scripted_team import crew

TEAM = """
[[members]]
name = "max"
agent = "printer"

[agents.printer]
command = ["sh", "-c", "cat > /dev/null; env; env >&2"]
"""
SECRETS = {
    "MYSQL_PWD": "correcthorse7",
    "SLACK_WEBHOOK_URL": "https://hooks.example.org/services/a1b2c3",
    "DATABASE_URL": "postgres://kai:batterystaple7@db.example.org/x",
}


def test_no_receipt_recording_or_export_has_a_secret_of_the_environment(world: Path) -> None:
    (world / "work" / "teamchat.toml").write_text(TEAM)
    cassette = world / "one.cassette"
    ran = cli("send", "--trust", "--record", cassette, "--to", "max", "Look", env=SECRETS)
    assert ran.code == 0, ran.err
    assert "correcthorse7" in ran.out, "the agent has them and says them"

    shown = json.loads(cli("show", "1", "--json").out.splitlines()[0])
    kept = {
        "receipt": json.dumps({key: value for key, value in shown.items() if key != "text"}),
        "recording": cassette.read_text(),
        **{how: cli("export", "--format", how, env=SECRETS).out for how in ("md", "json", "html")},
    }

    for where, text in kept.items():
        assert "max" in text, where
        for secret in ("correcthorse7", "services/a1b2c3", "batterystaple7"):
            assert secret not in text, where


def test_no_file_of_the_state_folder_has_a_secret_that_the_team_file_sets(world: Path) -> None:
    made = crew(world, {"max": ["Hello"]})
    team = made.file.read_text(encoding="utf-8")
    made.file.write_text(team.replace('name = "max"', 'name = "max"\nenv = { DB_PASSWORD = "correcthorse7" }'))

    assert run_here("send", "--trust", "--to", "max", "Hi").code == 0
    assert run_here("team").code == 0

    files = [file for file in state_dir().rglob("*") if file.is_file()]
    assert {store_file(Path.cwd()), state_dir() / "trust.json"} <= {*files}
    assert [file for file in files if b"correcthorse7" in file.read_bytes()] == []


@pytest.mark.parametrize("name", ["CONN", "COLOUR", "PATH", "NODE_OPTIONS", "GREETING"])
def test_a_receipt_has_a_value_of_the_team_file_as_a_digest_that_changes_with_it(world: Path, name: str) -> None:
    digests = []
    for value in ("a-77-value", "another-77-value", "a-77-value"):
        made = crew(world, {"max": ["Hi"] * 3})
        keys = f'"max-agent"\nenv = {{{name} = "{value}:/bin:/usr/bin"}}'
        made.file.write_text(made.file.read_text().replace('"max-agent"', keys))
        assert run_here("send", "--trust", "Look").code == 0
        receipt, told = run_here("show").out, run_here("send", "--dry-run", "Look").out
        assert "77-value" not in receipt + run_here("show", "--json").out + told
        [digest] = re.findall(rf"^  env  +{name}=(\(sha256 [0-9a-f]{{12}}\))$", receipt, re.MULTILINE)
        digests.append(digest)
    assert digests[0] == digests[2] != digests[1]
