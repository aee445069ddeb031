"""A recording of turns on hosts is played without database and worker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.workers.hosts import Lab, events

SPOKEN = [
    {"type": "system", "subtype": "init", "session_id": "5e55", "model": "scripted", "claude_code_version": "2.1.197"},
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "Recorded."}]}},
    {"type": "result", "subtype": "success", "is_error": False, "result": "Recorded.", "session_id": "5e55"},
]
NONE = {"TEAMCHAT_DATABASE": ""}


@pytest.mark.parametrize("like", ["plain", "claude"])
def test_a_recording_is_played_without_database_and_worker(lab: Lab, like: str, tmp_path: Path) -> None:
    host = lab.host("alpha")
    said = "\n".join(map(json.dumps, SPOKEN)) if like == "claude" else "Recorded."
    (host.folder / "said").write_text(said + "\n")
    host.offers({"writer": [host.agent(f"cat {host.folder}/said")]}, like=like)
    worker = host.worker().ready()
    lab.team('name = "max"\nagent = "writer"\nhost = "any"')
    cassette = tmp_path / "x.cassette"
    sent = lab.cli("send", "--record", str(cassette), "[NEXT:max] Hi")
    assert (sent.code, sent.out) == (0, "max:\nRecorded.\n\n"), sent.err
    worker.end()
    recorded = cassette.read_text()
    assert lab.database not in recorded
    assert str(lab.folder) not in recorded.replace(sent.out, "")
    played = lab.cli("replay", str(cassette), "--speed", "0", "--verify", env=NONE)
    assert played.code == 0, played.out + played.err
    again = lab.cli("replay", str(cassette), "--speed", "0", "--json", env=NONE)
    assert [events(again, kind)[0]["host"] for kind in ("turn_started", "turn_finished")] == ["alpha", "alpha"]
    assert lab.cli("test", str(cassette), env=NONE).code == 0


@pytest.mark.parametrize("begins", [True, False])
def test_a_recorded_turn_without_an_end_is_played_as_such(lab: Lab, begins: bool, tmp_path: Path) -> None:
    """Of a host that is not there, and of one that refuses the turn."""
    host = lab.host("alpha")
    host.offers({"writer": [host.agent("echo hello")]})
    if begins:
        host.worker().ready()
    (lab.project / "only-here").mkdir()
    lab.team('name = "max"\nagent = "writer"\nhost = "any"\ncwd = "only-here"')
    cassette = tmp_path / "x.cassette"
    sent = lab.cli("send", "--record", str(cassette), "[NEXT:max] Hi")
    assert sent.code != 0
    assert ("begins on alpha" in sent.err) is begins, sent.err
    assert str(lab.folder) not in cassette.read_text()
    played = lab.cli("replay", str(cassette), "--speed", "0", "--verify", env=NONE)
    assert played.code == 0, played.out + played.err
