"""What a refused login says of where it is from, alive and in a replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.helpers import actors, notes
from tests.program import Result, run_here

SAID = "unexpected status 401 Unauthorized: no"
EVENTS: dict[str, dict[str, object]] = {
    "claude": {"type": "result", "subtype": "success", "is_error": True, "result": SAID, "api_error_status": 401},
    "codex": {"type": "turn.failed", "error": {"message": SAID}},
    "gemini": {"type": "result", "status": "error", "error": {"type": "Error", "message": SAID}},
}
KEYS = {"claude": "ANTHROPIC_API_KEY", "codex": "CODEX_API_KEY", "gemini": "GEMINI_API_KEY"}
FILES = {"claude": ".claude/.credentials.json", "codex": ".codex/auth.json", "gemini": ".gemini/oauth_creds.json"}
COMMANDS = {"claude": "claude auth login", "codex": "codex login", "gemini": "gemini"}
VALUE = "k3y-that-nobody-is-shown"
REASON = f"is not logged in, or the login was refused: {SAID}"

pytestmark = pytest.mark.parametrize("vendor", EVENTS)


def refusing(vendor: str, **keys: str) -> None:
    """A team of max, whose CLI has its login refused; `keys` are variables of the team file."""
    variables = {f"env.{name}": value for name, value in keys.items()}
    steps = ["reply", json.dumps(EVENTS[vendor]), "+", "exit-with", "1"]
    actors({"max": steps}, like=vendor, members={"max": variables})


def failed(*reason: str, resume: str) -> Result:
    return Result(11, "", notes(f"failed: max {'; '.join(reason)}; held: max", f"try: {resume}"))


def by_variable(name: str) -> Result:
    return failed(REASON, f"{name} is set and was refused: correct or unset it", resume="teamchat resume")


def test_a_variable_is_named_and_a_replay_names_it_too(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEYS[vendor], VALUE)
    refusing(vendor)
    assert run_here("send", "--quiet", "--record", "a.cassette", "Hi") == by_variable(KEYS[vendor])
    assert VALUE not in Path("a.cassette").read_text()
    monkeypatch.delenv(KEYS[vendor])
    replayed = run_here("replay", "--verify", "--speed", "0", "a.cassette")
    assert (replayed.code, replayed.err.count(f"; {KEYS[vendor]} is set and was refused: ")) == (0, 1), replayed.err


def test_a_variable_of_the_team_file_is_named(vendor: str) -> None:
    refusing(vendor, **{KEYS[vendor]: VALUE})
    assert run_here("send", "--quiet", "Hi") == by_variable(KEYS[vendor])


def test_a_variable_of_another_vendor_is_not(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in EVENTS.keys() - {vendor}:
        monkeypatch.setenv(KEYS[other], VALUE)
    refusing(vendor)
    login = f"{COMMANDS[vendor]} && teamchat resume"
    assert run_here("send", "--quiet", "Hi") == failed(REASON, resume=login)


def test_a_stored_login_is_called_one_and_a_replay_does_too(vendor: str, world: Path) -> None:
    file = world / "home" / FILES[vendor]
    file.parent.mkdir()
    file.write_text("{}")
    refusing(vendor)
    stored = failed(REASON, "its stored login was refused", resume=f"{COMMANDS[vendor]} && teamchat resume")
    assert run_here("send", "--quiet", "--record", "a.cassette", "Hi") == stored
    file.unlink()
    replayed = run_here("replay", "--verify", "--speed", "0", "a.cassette")
    assert (replayed.code, replayed.err.count("; its stored login was refused; ")) == (0, 1), replayed.err


def test_a_replay_takes_no_login_from_its_own_environment(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing(vendor)
    run_here("send", "--quiet", "--record", "a.cassette", "Hi")
    assert '"login":null' in Path("a.cassette").read_text().replace(" ", "")
    monkeypatch.setenv(KEYS[vendor], VALUE)
    replayed = run_here("replay", "--verify", "--speed", "0", "a.cassette")
    assert (replayed.code, KEYS[vendor] in replayed.err) == (0, False), replayed.err


def test_doctor_live_names_it(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEYS[vendor], VALUE)
    refusing(vendor)
    ran = run_here("doctor", "--live")
    assert ran.code == 11
    assert ran.out == f"✗ max answer  {REASON}; {KEYS[vendor]} is set and was refused: correct or unset it\n"
