"""What each real CLI's model receives, turn by turn, from a member that remembers and from one that does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.core.scripted.protocol import Vendor
from teamchat.core.scripted.reply import Reply
from teamchat.core.scripted.server import messages
from tests.real.world import World

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
KINDS = [*((vendor, kind) for vendor in VENDORS for kind in ("fresh", "resume")), ("claude", "live")]
FILES = {
    "claude": ".claude/projects/**/*.jsonl",
    "codex": ".codex/sessions/**/*.jsonl",
    "gemini": ".gemini/tmp/**/*.jsonl",
}


def heard(user: World, vendor: Vendor) -> str:
    """Everything that the model was last given of the conversation."""
    return "\n".join(message.text for message in messages(user.last(vendor)))


def kept(user: World, vendor: Vendor) -> list[Path]:
    """The session files in the CLI's own folder."""
    return sorted(Path(user.env["HOME"]).glob(FILES[vendor]))


@pytest.mark.parametrize(("vendor", "kind"), KINDS)
def test_the_model_gets_every_message_once_on_every_turn(user: World, vendor: Vendor, kind: str) -> None:
    name = user.member(vendor, f'memory = "{kind}"\nsystem_instruction = "You are the one"', "context_window = 30")
    user.server.script(vendor, [Reply(f"Answer {number}.") for number in range(1, 6)])
    for number in range(1, 6):
        ran = user.json("send", f"Question {number}.", "--to", name)
        assert ran.code == 0, ran.err
        whole = heard(user, vendor)
        said = [f"Question {at}." for at in range(1, number + 1)] + [f"Answer {at}." for at in range(1, number)]
        # Codex and Claude repeat a system text that teamchat gives, never what was said
        assert {text: whole.count(text) for text in said} == dict.fromkeys(said, 1)
        prompt = user.prompt(vendor)
        assert ("Question 1." in prompt) == (kind == "fresh" or number == 1)
        given = user.receipt(number)["setup"]
        assert (given["resumes"] is not None) == (kind != "fresh" and number > 1)
    assert len({user.receipt(number)["vendor_session"] for number in range(1, 6)}) == (5 if kind == "fresh" else 1)
    if vendor != "gemini":  # which has no switch for it
        assert bool(kept(user, vendor)) == (kind != "fresh")


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_session_that_is_gone_is_replaced_with_the_whole_context(user: World, vendor: Vendor) -> None:
    name = user.member(vendor, 'memory = "resume"')
    assert user("send", "First question.", "--to", name).code == 0
    for file in kept(user, vendor):
        file.unlink()
    ran = user.json("send", "Second question.", "--to", name)
    assert ran.code == 0, ran.err
    assert "First question." in user.prompt(vendor)
    assert [user.receipt(number)["status"] for number in (1, 2, 3)] == ["done", "failed", "done"]
    assert any("begins a fresh one" in event["text"] for event in ran.events if event["type"] == "warning")


@pytest.mark.parametrize("vendor", VENDORS)
def test_usage_is_that_of_the_turn_alone(user: World, vendor: Vendor) -> None:
    name = user.member(vendor, 'memory = "resume"')
    usages = [user.json("send", f"Question {number}.", "--to", name).result["usage"] for number in (1, 2, 3)]
    assert [(usage["input_tokens"], usage["output_tokens"]) for usage in usages] == [(11, 7)] * 3
