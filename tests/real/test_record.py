"""A conversation of the three real CLIs, recorded: it replays where no CLI is installed, and holds no key."""

from __future__ import annotations

import pytest

from tests.real.model.replies import Reply
from tests.real.world import PANEL, World

pytestmark = pytest.mark.real


def test_three_vendors_replay_without_any_cli(user: World) -> None:
    user.team()
    (user.cwd / "notes.txt").write_text("notes")
    user.server.script("claude", [Reply("See @notes.txt.\n[NEXT: sarah]")])
    user.server.script("codex", [Reply("Done, with dummy-openai-key.\n[NEXT: carol]")])
    user.server.script("gemini", [Reply(("All ", "go", "od.\n[NEXT: kailai]"))])
    assert user("send", "--record", "talk.cassette", "[NEXT:max] Go").code == 9
    assert user("send", "--record", "talk.cassette", "--to", "carol", "Once more").code == 9
    text = (user.cwd / "talk.cassette").read_text(encoding="utf-8")
    for name, value in user.env.items():
        if name.endswith("_KEY"):
            assert value not in text, name
    asked = len(user.server.requests)
    (user.cwd / "notes.txt").unlink()
    user.env = {**user.env, "PATH": "/usr/bin:/bin"}
    one, two = (user("replay", "--verify", "--speed", "0", "talk.cassette") for _ in range(2))
    assert one.code == 0, one.err
    assert (one.out, one.err) == (two.out, two.err)
    assert "carol:\nAll good.\n[NEXT: kailai]" in one.out
    assert len(user.server.requests) == asked
    user.team(PANEL.replace("You are Carol", "You are Caroline"))
    ran = user("replay", "--speed", "0", "--team", "./teamchat.toml", "talk.cassette")
    assert ran.code == 10
    assert "+You are Caroline" in ran.err
