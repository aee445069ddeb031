"""A conversation that a real CLI sums up, gone on with by new processes: what the model receives before and after."""

from __future__ import annotations

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply
from tests.real.model.server import messages
from tests.real.world import World

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
SUMMARY = "Both agreed on plan B."


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_model_gets_the_summary_in_place_of_what_it_covers(user: World, vendor: Vendor) -> None:
    name = user.member(vendor, 'system_instruction = "You are the one"')
    user.server.script(vendor, [Reply("Answer 1."), Reply("Answer 2."), Reply(SUMMARY), Reply("Answer 3.")])
    for number in (1, 2):
        assert user("send", f"Question {number}.", "--to", name).code == 0

    ran = user.json("compact", "--member", name)
    assert (ran.code, ran.result["text"]) == (0, SUMMARY), ran.err
    asked = user.prompt(vendor)
    assert "Summarise the conversation above" in asked
    assert [asked.count(text) for text in ("Question 1.", "Answer 1.", "Question 2.", "Answer 2.")] == [1, 1, 1, 0]
    assert "You are the one" not in asked + user.system(vendor)

    assert user("send", "Question 3.", "--to", name).code == 0
    whole = "\n".join(message.text for message in messages(user.last(vendor)))
    said = ("Question 1.", "Answer 1.", "Question 2.", "Answer 2.", "Question 3.")
    assert [whole.count(text) for text in said] == [1, 0, 1, 1, 1]
    assert whole.count(SUMMARY) == 1
    assert user.receipt(3)["summary"] == SUMMARY
    assert [user.receipt(number)["status"] for number in (1, 2, 3, 4)] == ["done"] * 4
