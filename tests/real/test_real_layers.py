"""What a team knows and has learned reaches the models of the real CLIs, as the receipt has it."""

from __future__ import annotations

import pytest

from teamchat.core.scripted.protocol import Vendor
from tests.real.world import MEMBERS, PANEL, World

pytestmark = pytest.mark.real
HEADINGS: dict[Vendor, tuple[str, str]] = {
    "claude": ("[EXPERIENCE]", "[KNOWLEDGE]"),
    "codex": ("[EXPERIENCE]", "[KNOWLEDGE]"),
    "gemini": ("Experience:", "Knowledge:"),
}


def test_every_vendors_model_is_told_what_the_team_knows_and_has_learned(user: World) -> None:
    (user.cwd / "docs").mkdir()
    (user.cwd / "docs" / "tokens.md").write_text("# Tokens\n\nThey expire after 水 hours.\n", encoding="utf-8")
    (user.cwd / "docs" / "other.md").write_text("# Other\n\n" + "filler " * 300, encoding="utf-8")
    user.team(PANEL + '\n[knowledge]\npaths = ["docs"]\nmax_tokens = 200\n')
    assert user("learn", "Run make lint").code == 0
    ran = user("send", "[NEXT: max, sarah, carol] When does a token expire?")
    assert ran.code == 0, ran.err
    for turn, (vendor, name) in enumerate(MEMBERS.items(), 1):
        asked = user.prompt(vendor)
        assert asked == user.shown(turn)[0]
        experience, knowledge = HEADINGS[vendor]
        assert f"{knowledge}\nFrom docs/tokens.md:1-3 (Tokens):\n# Tokens\n\nThey expire after 水 hours.\n\n" in asked
        assert asked.index(experience) < asked.index(": Run make lint\n") < asked.index(knowledge)
        receipt = user.receipt(turn)
        assert receipt["member"] == name
        assert receipt["setup"]["sources"] == {
            "experience__context": ["lesson 1"], "knowledge__context": ["docs/tokens.md:1-3"],
        }  # fmt: skip
