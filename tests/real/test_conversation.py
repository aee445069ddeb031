"""One conversation over the three real CLIs: order, context, hand-over, and the exact bytes that reach the models."""

from __future__ import annotations

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply
from tests.real.world import MEMBERS, World

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")


@pytest.mark.core
def test_three_members_speak_in_order_each_answering_the_one_before(user: World) -> None:
    user.team()
    for vendor, text in zip(VENDORS, ("I suggest A", "Technically B", "To sum up C"), strict=True):
        user.server.script(vendor, [Reply(text)])
    ran = user.json("send", "[NEXT:max] [NEXT:sarah] [NEXT:carol] Hi")
    assert (ran.code, ran.result["turns"]) == (0, 3), ran.err
    said = [(event["from"], event["text"]) for event in ran.events if event["type"] == "message"]
    assert said == [
        ("kailai", "[NEXT:max] [NEXT:sarah] [NEXT:carol] Hi"),
        ("max", "I suggest A"),
        ("sarah", "Technically B"),
        ("carol", "To sum up C"),
    ]
    assert user.prompt("claude").endswith("[MESSAGE]\nHi")
    assert "[CONTEXT]" not in user.prompt("claude")
    assert "[CONTEXT]\n- kailai -> max, sarah, carol: Hi\n\n" in user.prompt("codex")
    assert user.prompt("codex").endswith("[MESSAGE]\nI suggest A")
    assert "Conversation so far:\n- kailai: Hi\n- max: I suggest A\n\n" in user.prompt("gemini")
    assert user.prompt("gemini").endswith("User message:\nTechnically B")


@pytest.mark.parametrize("vendor", VENDORS)
def test_what_show_prints_is_what_reached_the_model(user: World, vendor: Vendor) -> None:
    user.member(vendor, 'system_instruction = "You are the one, \\u4f60\\u597d 🎉 \\"quoted\\" \'too\'"')
    ran = user.json("send", "Grüße, 世界 🌍\n\n\ttabs, $HOME, `ticks` and \\back\\slashes")
    assert ran.code == 0, ran.err
    text, system = user.shown(1), user.shown(1, "--system")
    assert user.prompt(vendor) == text
    assert "Grüße, 世界 🌍\n\n\ttabs, $HOME, `ticks` and \\back\\slashes" in text
    if vendor == "claude":
        assert user.system(vendor).count(system) == 1
        assert system.startswith("You are the one, 你好 🎉 \"quoted\" 'too'\n\n")
    else:
        assert system == ""
        assert "You are the one, 你好 🎉 \"quoted\" 'too'\n\n" in text


def test_a_chain_of_three_hand_overs(user: World) -> None:
    user.team()
    user.server.script("claude", [Reply("Plan.\n[NEXT: sarah]"), Reply("All done.")])
    user.server.script("codex", [Reply("Code.\n[NEXT: carol]")])
    user.server.script("gemini", [Reply("Review.\n[NEXT: max]")])
    ran = user.json("send", "[NEXT:max] Build it")
    assert ran.code == 0, ran.err
    assert [event["member"] for event in ran.events if event["type"] == "turn_started"] == [
        "max",
        "sarah",
        "carol",
        "max",
    ]
    assert ran.result["text"] == "All done."
    assert "- carol" not in user.prompt("claude")
    assert user.prompt("claude").endswith("[MESSAGE]\nReview.")
    assert "- kailai -> max: Build it\n- max -> sarah: Plan.\n- sarah -> carol: Code." in user.prompt("claude")


def test_without_a_team_file_the_installed_clis_are_the_team(user: World) -> None:
    for vendor in VENDORS:
        user.server.script(vendor, [Reply(f"{vendor} here")])
    ran = user.json("send", "[NEXT:claude] [NEXT:codex] [NEXT:gemini] Hi")
    assert ran.code == 0, ran.err
    said = [event["text"] for event in ran.events if event["type"] == "message"]
    assert said[1:] == ["claude here", "codex here", "gemini here"]


def test_text_streams_as_it_comes(user: World) -> None:
    user.member("claude")
    user.server.script("claude", [Reply(("one ", "two ", "three"), delay_s=0.2)])
    ran = user.json("send", "--stream", "Count")
    deltas = [event["text"] for event in ran.events if event["type"] == "text_delta"]
    assert "".join(deltas) == "one two three"
    assert len(deltas) == 3
    assert ran.result["text"] == "one two three"


@pytest.mark.core
@pytest.mark.parametrize("vendor", VENDORS)
def test_usage_is_what_the_cli_reports(user: World, vendor: Vendor) -> None:
    user.member(vendor)
    usage = user.json("send", "Hi").result["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (11, 7)
    assert (usage["cost_usd"] is not None) == (vendor == "claude")


@pytest.mark.parametrize("vendor", VENDORS)
def test_each_cli_sees_its_own_key_only(user: World, vendor: Vendor) -> None:
    user.member(vendor)
    user.json("send", "Hi")
    env = user.receipt(1)["setup"]["env"]
    keys = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY"}
    assert {name for name, value in env.items() if value is None} >= {
        keys[other] for other in VENDORS if other != vendor
    }
    assert keys[vendor] not in env


def test_members_are_named_after_the_panel(user: World) -> None:
    user.team()
    shown = user.json("team").result
    assert [member["name"] for member in shown["members"]] == ["kailai", *MEMBERS.values()]
    assert all(member["program"] for member in shown["members"][1:])
