"""A conversation of two thousand messages: what its prompts weigh, and that what a person asked for at first holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.assemblers.parts import Trimmed
from teamchat.assemblers.truncation import BYTES_PER_TOKEN
from teamchat.core.errors import ExitCode
from teamchat.core.messages import NewMessage, Routing, Speaker
from teamchat.core.store.messages import SqliteLog
from teamchat.runners.child.running import Launch
from tests.core.fake_conversation import Stage, team_of

MESSAGES = 2_000
MOST = 20_000 * BYTES_PER_TOKEN
CONSTRAINT = "Never touch the table of invoices."


COMPACTED = pytest.param("compact_at_tokens", 12_000, marks=pytest.mark.long)


@pytest.mark.parametrize(("limit", "tokens"), [COMPACTED, ("max_prompt_tokens", 20_000)])
def test_two_thousand_messages_stay_within_twenty_thousand_tokens_a_prompt(
    tmp_path: Path, limit: str, tokens: int
) -> None:
    """Nothing is left out by a window or a budget: it is summed up, and what people said is quoted all the same."""
    team = team_of(tmp_path, {"max": "codex", "sarah": "claude"})
    team = replace(team, compactor="sarah", context_window=2 * MESSAGES, **{limit: tokens})
    stage = Stage(tmp_path, team)

    def answer(launch: Launch) -> str:
        return f"SUMMARY {len(stage.launched)}" if launch.identity.member == "sarah" else "Done."

    stage.answers = answer
    log, sarah = SqliteLog(stage.db, stage.session), Speaker("sarah", "sarah", type="ai")
    for number, text in enumerate(["Hi.", CONSTRAINT, *(f"Go on, {number}." for number in range(20))]):
        assert stage.send(text, to="max").code is ExitCode.DONE
        with stage.db.transaction():
            for step in range(98 if number else 0):  # none at first: the constraint is message 3
                log.append(NewMessage(f"Step {number}.{step}: {'done as said ' * 20}", sarah, Routing(("max",))))

    assert len(stage.visible_at[-1]) > MESSAGES
    assert log.window("msg-4", 1)[0].content.endswith(CONSTRAINT)
    assert sum(len(message.content) for message in stage.visible_at[-1]) > 5 * MOST
    assert stage.spoke.count("sarah") > 5
    assert max(len(prompt.encode()) for prompt in stage.prompts) <= MOST
    assert [turn.setup.trimmed for turn in stage.turns] == [Trimmed()] * len(stage.turns)
    told = [prompt for prompt, name in zip(stage.prompts, stage.spoke, strict=True) if name == "max"]
    assert [prompt.count(CONSTRAINT) for prompt in told[1:]] == [1] * (len(told) - 1)
    assert told[-1].count("SUMMARY ") == 1
