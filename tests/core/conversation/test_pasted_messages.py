"""Parts of a message that were pasted in several lines are text wherever the message is read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.cassette.format import Entry
from teamchat.core.conversation.inputs import Message, typed_spans
from teamchat.core.conversation.sessions.branch import branch
from teamchat.core.errors import NearMiss
from teamchat.core.routing.markers import WhyNot, read_markers
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import all_sessions
from teamchat.core.store.unsent import keep_unsent, unsent_of
from teamchat.core.turn.run_events import Conclusion
from tests.core.fake_conversation import Stage, team_of

PASTE = "[NEXT: sarah] one\n[TEAM_TASK: x]\n[DROP: ALL]"
TEXT = f"See {PASTE} [NEXT: carol]"
SPANS = ((4, 4 + len(PASTE)),)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path, team_of(tmp_path, {"max": "plain", "sarah": "plain", "carol": "plain"}))
    made.types_ahead = True
    return made


def send(stage: Stage, text: str, spans: tuple[tuple[int, int], ...]) -> Conclusion:
    async def run() -> Conclusion:
        return await stage.open().run_input(Message(text=text, typed=typed_spans(len(text), spans)))

    return asyncio.run(run())


@given(before=st.text("a [\n", max_size=5), behind=st.text("a ]\n", max_size=5))
def test_no_marker_of_a_pasted_part_counts_and_all_of_it_stays(before: str, behind: str) -> None:
    text = f"{before}{PASTE}{behind}"
    read = read_markers(text, "human", ((len(before), len(before) + len(PASTE)),))
    assert not [marker for marker in read.markers if marker.counts]
    assert [marker.why_not for marker in read.markers if marker.raw in PASTE] == [WhyNot.PASTED] * 3
    assert PASTE in read.stripped


def test_what_is_typed_around_it_counts(stage: Stage) -> None:
    send(stage, TEXT, SPANS)
    assert stage.spoke == ["carol"]
    assert f"See {PASTE}" in stage.prompts[0]
    assert "[NEXT: carol]" not in stage.prompts[0]
    assert stage.open().manager.get_team_task() is None
    assert stage.warnings == ["'[NEXT: sarah]' and 2 more is text, no marker: it is in pasted text"]


def test_the_queue_keeps_the_parts(stage: Stage) -> None:
    keep_unsent(stage.db, stage.session, TEXT, None, None, pasted=SPANS)
    assert unsent_of(stage.db, stage.session)[0].pasted == SPANS
    asyncio.run(stage.open().send_unsent())
    assert stage.spoke == ["carol"]
    assert stage.log[0].pasted == SPANS


def test_later_prompts_and_another_process_read_it_alike(stage: Stage) -> None:
    send(stage, TEXT, SPANS)
    send(stage, "[NEXT: max] And now?", ())
    assert f"See {PASTE}" in stage.prompts[1]
    assert SqliteLog(stage.db, stage.session).get("msg-1").pasted == SPANS


def test_a_branch_takes_no_task_from_it(stage: Stage) -> None:
    send(stage, TEXT, SPANS)
    assert branch(stage.db, all_sessions(stage.db)[0], "msg-2", "b").task is None


def test_what_looks_like_a_call_in_it_is_not_refused(stage: Stage) -> None:
    text = "(NEXT: sarah)\n@carol look\n@planner"
    send(stage, text, ((0, len(text)),))
    assert stage.spoke == ["max"]
    with pytest.raises(NearMiss):
        stage.open().address(Message(text=text, typed=typed_spans(len(text))))


def test_a_recording_has_the_parts() -> None:
    entry = Entry.model_validate({"human": {"text": TEXT, "typed": len(TEXT), "pasted": SPANS}})
    assert entry.human
    assert entry.human.pasted == SPANS
    assert Entry.model_validate(entry.model_dump(exclude_none=True, mode="json")).human == entry.human
