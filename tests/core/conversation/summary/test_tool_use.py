"""What is told of the tool calls of a message's turn to the one who summarises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.conversation.summary import MAX_BYTES, with_tool_calls
from teamchat.core.messages import ConversationMessage, Said
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import create_session
from teamchat.core.store.turn_events import TimedEvent
from teamchat.core.store.turns import end_turn, trace
from teamchat.runners.agent_events import AgentEvent, ToolCall, ToolResult
from tests.core.store.message_log_contract import MAX, draft
from tests.core.store.test_turns import OUTCOME, some_turn

HEAD = "\n\nTool calls of this turn:\n"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path / "teamchat.db")) as db:
        yield db


def turn(db: Database, *events: AgentEvent) -> int:
    session = create_session(db, "team", None).id
    begun = some_turn(db, session)
    end_turn(db, begun, "done", OUTCOME, trace(events=[TimedEvent(1.0, event) for event in events]))
    return begun.id


def message(turn: int | None) -> ConversationMessage:
    return replace(draft("Done.", MAX).stored_as("msg-2"), turn_id=turn)


def told(db: Database, *events: AgentEvent) -> str:
    (one,) = with_tool_calls(db, [Said(message(turn(db, *events)), "Done.")])
    return one.text


def test_each_call_is_a_line_with_its_end(db: Database) -> None:
    assert (
        told(
            db,
            ToolCall("1", "Bash", "make test"),
            ToolCall("2", "Read", "a\n\x1b[31mb"),
            ToolResult("2", "secret output"),
            ToolResult("1", "boom", failed=True),
            ToolCall("3", "Bash", "sleep 9"),
        )
        == f"Done.{HEAD}- Bash: make test (failed)\n- Read: a b (done)\n- Bash: sleep 9 (aborted)"
    )


def test_the_oldest_are_left_out_as_pairs_and_counted(db: Database) -> None:
    calls = [ToolCall(str(number), "Bash", f"run {number} " + "x" * 300) for number in range(50)]
    text = told(db, *calls, *(ToolResult(call.id, "out") for call in calls))
    lines = text.removeprefix(f"Done.{HEAD}").split("\n")
    assert lines[0] == f"- {51 - len(lines)} earlier calls are left out"
    assert [int(found[1]) for line in lines[1:] if (found := re.match(r"- Bash: run (\d+) x+ \(done\)", line))] == list(
        range(51 - len(lines), 50)
    )
    assert MAX_BYTES - 220 < sum(len(line) + 1 for line in lines[1:]) <= MAX_BYTES


def test_a_turn_without_calls_and_a_message_without_a_turn_stay_as_they_are(db: Database) -> None:
    assert told(db) == "Done."
    assert with_tool_calls(db, [Said(message(None), "Done.")]) == [Said(message(None), "Done.")]
