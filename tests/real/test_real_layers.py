"""What all members share beside the history reaches the models of the real CLIs, as the receipt has it."""

from __future__ import annotations

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply
from tests.real.world import MEMBERS, PANEL, World

pytestmark = pytest.mark.real
HEADINGS: dict[Vendor, tuple[str, str, str]] = {
    "claude": ("[EXPERIENCE]", "[KNOWLEDGE]", "[TODO]"),
    "codex": ("[EXPERIENCE]", "[KNOWLEDGE]", "[TODO]"),
    "gemini": ("Experience:", "Knowledge:", "To do:"),
}
BEFORE = "- 1 (kailai): plan it\n- 2 (kailai): build it\n0 done."
AFTER = "- 2 (kailai): build it\n- 3 (max): prüfe 水\n1 done."
TODO: dict[Vendor, str] = {"claude": BEFORE, "codex": AFTER, "gemini": AFTER}


def test_every_vendors_model_is_told_what_the_team_knows_has_learned_and_has_to_do(user: World) -> None:
    (user.cwd / "docs").mkdir()
    (user.cwd / "docs" / "tokens.md").write_text("# Tokens\n\nThey expire after 水 hours.\n", encoding="utf-8")
    (user.cwd / "docs" / "other.md").write_text("# Other\n\n" + "filler " * 300, encoding="utf-8")
    user.team(PANEL + '\n[knowledge]\npaths = ["docs"]\nmax_tokens = 200\n')
    assert user("learn", "Run make lint").code == 0
    user.server.script("claude", [Reply("Planned. [DONE: 1] [TODO: prüfe 水]")])
    question = "When does a token expire? [TODO: plan it] [TODO: build it]"
    ran = user.json("send", f"[NEXT: max, sarah, carol] {question}")
    assert ran.code == 0, ran.err
    for turn, (vendor, name) in enumerate(MEMBERS.items(), 1):
        asked = user.prompt(vendor)
        assert asked == user.shown(turn)
        experience, knowledge, todo = HEADINGS[vendor]
        assert f"{knowledge}\nFrom docs/tokens.md:1-3 (Tokens):\n# Tokens\n\nThey expire after 水 hours.\n\n" in asked
        assert asked.index(experience) < asked.index(": Run make lint\n") < asked.index(knowledge)
        assert asked.count(f"{todo}\n{TODO[vendor]}") == asked.count(todo) == 1
        receipt = user.receipt(turn)
        assert receipt["member"] == name
        assert receipt["setup"]["sources"] == {
            "experience__context": ["lesson 1"], "knowledge__context": ["docs/tokens.md:1-3"],
        }  # fmt: skip
    changes = [(event["type"], event["number"], event["by"]) for event in ran.events if "todo" in event["type"]]
    by_kailai = [("todo_added", 1, "kailai"), ("todo_added", 2, "kailai")]
    assert changes == [*by_kailai, ("todo_done", 1, "max"), ("todo_added", 3, "max")]
    assert user("todo").out == "[ ] 2  build it  (kailai)\n[ ] 3  prüfe 水  (max)\n"
