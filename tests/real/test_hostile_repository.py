"""A member of each CLI works in a repository that tries all it can: nothing of it runs, and no model hears of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from teamchat.core.doctor.scripted.server import messages, tool_results
from teamchat.runners.base import Access
from teamchat.runners.scripted import Reply
from tests.real.hostile_repository import DIFF, plant, rewritten
from tests.real.test_tools import VENDORS, call
from tests.real.world import PANEL, World

pytestmark = pytest.mark.real
RACES = int(os.environ.get("RACES", "1"))  # how often all three start at once while files are written beside them


@pytest.mark.parametrize("access", ["read", "edit", "full"])
def test_nothing_runs_and_nothing_leaks(user: World, tmp_path: Path, access: Access) -> None:
    repository = tmp_path / "clone" / "repository"
    repository.parent.mkdir()
    planted = plant(repository)
    user.env = {**user.env, "IS_SANDBOX": "1"}  # else Claude refuses full to root
    user.team(PANEL.replace("agent =", f'cwd = "{repository}"\naccess = "{access}"\ngit = true\nagent ='))
    for vendor in VENDORS:
        asks = [Reply(tools=(call(vendor, "teamchat", tool),)) for tool in ("git_status", "git_diff")]
        user.server.script(vendor, [*asks, Reply("I looked.")])
    ran = user.json("send", "--trust", "[NEXT: max + sarah + carol] Look around", stdin=DIFF.encode())
    assert ran.code == 0, ran.err
    assert [len(user.server.turns(vendor)) for vendor in VENDORS] == [3, 3, 3]
    for vendor in VENDORS:
        status, diff = tool_results(user.last(vendor))
        assert " M notes.txt" in status
        assert "+not committed" in diff
    with rewritten(repository):
        for _ in range(RACES):
            assert user("send", "--trust", "[NEXT: max + sarah + carol] Once more").code == 0
    assert planted.sprung == []
    marked = {turn.member: turn.outcome.files_that_run for turn in user.turns[:3] if turn.outcome}
    assert marked == dict.fromkeys(("max", "sarah", "carol"), ())  # nobody wrote what other tools run
    assert "expressed a desire" not in "".join(message.text for message in messages(user.last("claude")))
    assert "explicitly selected" not in "".join(message.text for message in messages(user.last("gemini")))
    sent = [request.raw + repr(dict(request.headers)).encode() for request in user.server.requests]
    assert not [request for request in sent for secret in planted.secrets if secret.encode() in request]
