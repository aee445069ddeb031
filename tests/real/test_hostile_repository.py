"""A member of each CLI works in a repository that tries all it can: nothing of it runs, and no model hears of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.core.scripted.server import messages
from teamchat.runners.base import Access
from tests.real.hostile_repository import DIFF, plant
from tests.real.world import PANEL, World

pytestmark = pytest.mark.real


@pytest.mark.parametrize("access", ["read", "edit", "full"])
def test_nothing_runs_and_nothing_leaks(user: World, tmp_path: Path, access: Access) -> None:
    repository = tmp_path / "clone" / "repository"
    repository.parent.mkdir()
    planted = plant(repository)
    user.env = {**user.env, "IS_SANDBOX": "1"}  # else Claude refuses full to root
    user.team(PANEL.replace("agent =", f'cwd = "{repository}"\naccess = "{access}"\nagent ='))
    ran = user.json("send", "--trust", "[NEXT: max + sarah + carol] Look around", stdin=DIFF.encode())
    assert ran.code == 0, ran.err
    assert [len(user.server.turns(vendor)) for vendor in ("claude", "codex", "gemini")] == [1, 1, 1]
    assert planted.sprung == []
    assert "expressed a desire" not in "".join(message.text for message in messages(user.last("claude")))
    assert "explicitly selected" not in "".join(message.text for message in messages(user.last("gemini")))
    sent = [request.raw + repr(dict(request.headers)).encode() for request in user.server.requests]
    assert not [request for request in sent for secret in planted.secrets if secret.encode() in request]
