"""Messages that a person types while members work: kept at once, sent between two turns."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.engine.events import PauseKind
from teamchat.core.errors import ExitCode
from teamchat.core.messages import now_ms
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import remove_session
from teamchat.core.store.todos import todos_of
from teamchat.core.store.unsent import keep_unsent, remove_unsent, unsent_of
from teamchat.core.team.team import Limits
from teamchat.core.turn.run_events import Conclusion, ConversationEvent, MessageStored, TurnStarted
from tests.core.fake_conversation import Fails, Hangs, Stage, team_of

MESSAGES = int(os.environ.get("TYPED_MESSAGES", "40"))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Three plain agents and a person at the keyboard."""
    made = Stage(tmp_path, team_of(tmp_path, {"max": "plain", "sarah": "plain", "carol": "plain"}))
    made.types_ahead = True
    return made


def types(stage: Stage, text: str, to: str | None = None) -> int:
    return keep_unsent(stage.db, stage.session, text, None, to).id


def while_speaking(stage: Stage, **does: Callable[[], object]) -> None:
    """Do something as soon as the first turn of that member begins."""

    def hear(event: ConversationEvent) -> None:
        if isinstance(event, TurnStarted) and (now := does.pop(event.turn.member, None)):
            now()

    stage.hear = hear


def send_unsent(stage: Stage) -> Conclusion:
    return asyncio.run(stage.open().send_unsent())


def kept(stage: Stage) -> list[str]:
    return [unsent.text for unsent in unsent_of(stage.db, stage.session)]


def test_what_is_typed_during_a_turn_goes_out_after_it_and_before_those_who_wait(stage: Stage) -> None:
    while_speaking(stage, max=lambda: types(stage, "And a test"))
    end = stage.send("[NEXT: max, sarah] Write it")
    assert stage.spoke == ["max", "max", "sarah"]
    assert [line.partition(":")[0] for line in stage.said] == ["kailai", "max", "kailai", "max", "sarah"]
    assert stage.said[2] == "kailai: And a test"
    assert kept(stage) == []
    assert end.code is ExitCode.DONE


def test_it_is_addressed_like_any_message(stage: Stage) -> None:
    while_speaking(stage, max=lambda: types(stage, "[NEXT: carol] Check it\n[TODO: read it]"))
    stage.send("[NEXT: max] Write it")
    assert stage.spoke == ["max", "carol"]
    assert [item.added.text for item in todos_of(stage.db, stage.session).items.values()] == ["read it"]


def test_the_addressee_that_was_chosen_counts(stage: Stage) -> None:
    while_speaking(stage, max=lambda: types(stage, "Check it", to="carol+sarah"))
    stage.send("[NEXT: max] Write it")
    assert stage.spoke[0] == "max"
    assert sorted(stage.spoke[1:]) == ["carol", "sarah"]


def test_each_is_answered_before_the_next_one_goes_out(stage: Stage) -> None:
    while_speaking(stage, max=lambda: [types(stage, "one"), types(stage, "two", to="sarah")])
    stage.send("[NEXT: max] Write it")
    assert stage.spoke == ["max", "max", "sarah"]
    assert [line.partition(":")[0] for line in stage.said] == ["kailai", "max", "kailai", "max", "kailai", "sarah"]


def test_one_that_calls_nobody_does_not_keep_the_next_one_waiting(stage: Stage) -> None:
    while_speaking(stage, max=lambda: [types(stage, "[DROP: sarah]"), types(stage, "two", to="carol")])
    stage.send("[NEXT: max, sarah] Write it")
    assert stage.spoke == ["max", "carol"]


def test_what_was_removed_does_not_go_out(stage: Stage) -> None:
    def types_and_removes() -> None:
        assert remove_unsent(stage.db, types(stage, "no"))
        types(stage, "yes")

    while_speaking(stage, max=types_and_removes)
    stage.send("[NEXT: max] Write it")
    assert "kailai: no" not in stage.said
    assert "kailai: yes" in stage.said


def test_what_was_sent_cannot_be_removed(stage: Stage) -> None:
    typed: list[int] = []
    while_speaking(stage, max=lambda: typed.append(types(stage, "And a test")))
    stage.send("[NEXT: max] Write it")
    assert not remove_unsent(stage.db, typed[0])


def test_the_first_message_of_a_session_may_be_a_kept_one_and_sets_the_task(stage: Stage) -> None:
    types(stage, "[TEAM_TASK: a parser] [NEXT: max] Begin")
    send_unsent(stage)
    assert stage.spoke == ["max"]
    assert stage.open().manager.get_team_task() == "a parser"


def test_a_message_typed_before_a_question_does_not_answer_it(stage: Stage) -> None:
    stage.says = {"max": ["Which one? [NEXT: kailai]", "noted"]}
    while_speaking(stage, max=lambda: types(stage, "And a test"))
    end = stage.send("[NEXT: max] Write it")
    assert stage.spoke == ["max", "max"]
    assert (end.code, end.waiting_for) == (ExitCode.HUMAN_ASKED, "kailai")


def test_a_message_typed_after_the_question_answers_it(stage: Stage) -> None:
    stage.says = {"sarah": ["Which one? [NEXT: kailai]", "noted"]}
    stage.send("[NEXT: max, sarah] Write it")
    while now_ms() <= stage.log[-1].timestamp:
        time.sleep(0.001)  # nobody reads the question in less
    types(stage, "The second")
    end = send_unsent(stage)
    assert stage.spoke == ["max", "sarah", "sarah"]
    assert (end.code, stage.queue) == (ExitCode.DONE, [])


def test_a_text_that_only_looks_like_a_call_stays_and_the_next_one_goes_out(stage: Stage) -> None:
    while_speaking(stage, max=lambda: [types(stage, "(NEXT: sarah) look"), types(stage, "two", to="carol")])
    end = stage.send("[NEXT: max] Write it")
    assert stage.spoke == ["max", "carol"]
    assert kept(stage) == ["(NEXT: sarah) look"]
    assert [warning for warning in stage.warnings if warning.startswith("not sent: ")]
    assert end.code is ExitCode.DONE


def test_it_resets_the_guards_and_the_others_go_on(stage: Stage) -> None:
    stage.team = replace(stage.team, limits=Limits(turns=1))
    while_speaking(stage, max=lambda: types(stage, "[DROP: nobody]"))
    end = stage.send("[NEXT: max, sarah] Write it")
    assert stage.spoke == ["max", "sarah"]
    assert end.code is ExitCode.DONE


def test_after_a_guard_without_a_message_the_rest_is_on_hold(stage: Stage) -> None:
    stage.team = replace(stage.team, limits=Limits(turns=1))
    end = stage.send("[NEXT: max, sarah] Write it")
    assert (stage.spoke, end.paused) == (["max"], PauseKind.TURNS)
    assert stage.queue == ["sarah held"]


def test_after_a_failure_it_stays(stage: Stage) -> None:
    stage.says = {"max": [Fails("", 1, "no")]}
    while_speaking(stage, max=lambda: types(stage, "And a test"))
    end = stage.send("[NEXT: max, sarah] Write it")
    assert end.code is ExitCode.MEMBER_FAILED
    assert kept(stage) == ["And a test"]


def test_a_stop_of_only_the_turn_lets_those_behind_it_speak(stage: Stage) -> None:
    stage.says = {"max": [Hangs("so far", lambda: stage.stopper.request(only_turn=True))]}
    end = stage.send("[NEXT: max, sarah, carol] Write it")
    assert stage.spoke == ["max", "sarah", "carol"]
    assert (end.code, stage.queue) == (ExitCode.DONE, ["max held"])


def test_a_stop_of_only_the_turn_sends_what_was_typed_at_once(stage: Stage) -> None:
    stage.says = {"max": [Hangs("so far", lambda: stage.stopper.request(only_turn=True)), "better"]}
    while_speaking(stage, max=lambda: types(stage, "Not so", to="max"))
    stage.answers = lambda _launch: "better" if len(stage.launched) > 1 else None
    stage.send("[NEXT: max, sarah] Write it")
    assert stage.spoke == ["max", "max", "sarah"]
    assert stage.queue == ["max held"]


def test_a_stop_of_only_the_turn_with_nothing_behind_it_ends_the_run(stage: Stage) -> None:
    stage.says = {"max": [Hangs("so far", lambda: stage.stopper.request(only_turn=True))]}
    end = stage.send("[NEXT: max] Write it")
    assert (end.code, stage.queue) == (ExitCode.INTERRUPTED, ["max held"])


def test_a_stop_of_only_the_turn_stops_a_whole_group(stage: Stage) -> None:
    def stop() -> None:
        if len(stage.launched) == 2:
            stage.stopper.request(only_turn=True)

    stage.says = {"max": [Hangs("a", stop)], "sarah": [Hangs("b", stop)]}
    stage.send("[NEXT: max + sarah, carol] Write it")
    assert sorted(stage.spoke[:2]) == ["max", "sarah"]
    assert stage.spoke[2:] == ["carol"]
    assert stage.queue == ["max held", "sarah held"]


def test_a_stop_of_the_queue_keeps_what_was_typed(stage: Stage) -> None:
    stage.says = {"max": [Hangs("so far", lambda: stage.stopper.request())]}  # noqa: PLW0108 (each run has another one)
    while_speaking(stage, max=lambda: types(stage, "And a test"))
    end = stage.send("[NEXT: max, sarah] Write it")
    assert (end.code, stage.queue) == (ExitCode.INTERRUPTED, ["max held", "sarah held"])
    assert kept(stage) == ["And a test"]


def test_a_run_without_a_keyboard_sends_no_kept_message(stage: Stage) -> None:
    stage.types_ahead = False
    types(stage, "And a test")
    stage.send("[NEXT: max] Write it")
    assert (stage.spoke, kept(stage)) == (["max"], ["And a test"])


def test_a_deleted_session_takes_its_kept_messages_with_it(stage: Stage) -> None:
    types(stage, "And a test")
    remove_session(stage.db, stage.session)
    assert unsent_of(stage.db, stage.session) == []


def test_no_message_is_lost_or_doubled_whenever_it_is_typed(stage: Stage) -> None:
    """`TYPED_MESSAGES=1000` types so many."""
    texts = [f"message {number}" for number in range(MESSAGES)]
    chance = random.Random(16)  # noqa: S311 (no secret)
    speaking = threading.Event()
    stage.hear = lambda event: speaking.set() if isinstance(event, TurnStarted | MessageStored) else None

    def type_them() -> None:
        own = Database(stage.db.path)
        for text in texts:
            speaking.wait(0.02)
            time.sleep(chance.uniform(0, 0.004))
            keep_unsent(own, stage.session, text, None, chance.choice([None, "max", "sarah"]))
        own.close()

    typing = threading.Thread(target=type_them)
    typing.start()
    while typing.is_alive() or kept(stage):
        send_unsent(stage)
    typing.join()
    sent = [message.content for message in stage.log if message.speaker.type == "human"]
    assert sent == texts
    assert len(stage.spoke) == len(texts)
