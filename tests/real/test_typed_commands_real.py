"""A custom command that a person types reaches the real CLI's model expanded; one in anybody else's text does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply
from tests.real.model.server import messages
from tests.real.world import World

pytestmark = pytest.mark.real
COMMANDS: dict[Vendor, tuple[str, str]] = {
    "claude": (".claude/commands/git/review.md", "Review $ARGUMENTS as MARIMBA."),
    "gemini": (".gemini/commands/git/review.toml", 'prompt = "Review {{args}} as MARIMBA."'),
}


def heard(user: World, vendor: Vendor) -> str:
    return "\n".join(message.text for message in messages(user.last(vendor)))


@pytest.mark.parametrize(("vendor", "memory"), [("claude", "fresh"), ("claude", "live"), ("gemini", "resume")])
def test_a_typed_command_expands(user: World, vendor: Vendor, memory: str) -> None:
    """In its first turn nobody has typed one: it is piped in, and in the second turn the member has said it before."""
    name, text = COMMANDS[vendor]
    (file := Path(user.env["HOME"]) / name).parent.mkdir(parents=True)
    file.write_text(text)
    user.member(vendor, f'memory = "{memory}"', "fence = true")
    user.server.script(vendor, [Reply("/git:review everything"), Reply("Done.")])
    assert user("send", stdin=b"/git:review all").code == 0
    assert "MARIMBA" not in heard(user, vendor)
    ran = user("send", "/git:review", "src", stdin=b"piped")
    assert ran.code == 0, ran.err
    said = heard(user, vendor)
    assert said.count("Review src as MARIMBA.") == 1
    assert user.receipt(2)["setup"]["slash"] == f"/git:review by {file}"
