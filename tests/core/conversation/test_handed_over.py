"""Messages that other processes hand over to the one that runs the session: it sends them between two turns."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from teamchat.core.conversation.following import Follower
from teamchat.core.conversation.inputs import Message
from teamchat.core.conversation.retelling import Retold
from teamchat.core.engine.events import ResumeMode
from teamchat.core.errors import ExitCode, NothingToResume, UnknownName
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import all_sessions
from teamchat.core.store.unsent import (
    Unsent,
    hand_over,
    handed_over_to,
    keep_unsent,
    remove_unsent,
    sent_as,
    taker_of,
    unsent_of,
)
from teamchat.core.turn.run_events import (
    Conclusion,
    ConversationEvent,
    MessageStored,
    Replied,
    TurnFinished,
    TurnStarted,
)
from teamchat.core.turn.run_file import RunFile, run_file
from tests.core.fake_conversation import Fails, Hangs, Stage, team_of

HERE = os.getpid()
MESSAGES = int(os.environ.get("HANDED_OVER", "40"))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path, team_of(tmp_path, {"max": "plain", "sarah": "plain", "carol": "plain"}))
    made.takes_over = True
    return made


def hands_over(stage: Stage, text: str, to: str | None = None, db: Database | None = None) -> Unsent | None:
    return hand_over(db or stage.db, stage.session, text, None, to, typed=len(text), taker=HERE)


def waits(stage: Stage, text: str, to: str | None = None) -> Unsent:
    """A message that an earlier run took and did not send."""
    return keep_unsent(stage.db, stage.session, text, None, to, handed_over=True)


def while_speaking(stage: Stage, **does: Callable[[], object]) -> None:
    """Do something as soon as the first turn of that member begins."""

    def hear(event: ConversationEvent) -> None:
        if isinstance(event, TurnStarted) and (now := does.pop(event.turn.member, None)):
            now()

    stage.hear = hear


def kept(stage: Stage) -> list[str]:
    return [unsent.text for unsent in unsent_of(stage.db, stage.session)]


def test_it_goes_out_before_the_next_turn(stage: Stage) -> None:
    got: list[Unsent | None] = []
    while_speaking(stage, max=lambda: got.append(hands_over(stage, "And a test", to="carol")))
    end = stage.send("[NEXT: max, sarah] Write it")
    assert stage.spoke == ["max", "carol", "sarah"]
    assert stage.said[2] == "kailai: And a test"
    assert end.code is ExitCode.DONE
    assert got[0]
    assert sent_as(stage.db, got[0].id) == "msg-3"
    assert kept(stage) == []


def test_nobody_takes_one_before_and_after_a_run_and_in_one_that_takes_none(stage: Stage) -> None:
    assert hands_over(stage, "Too early") is None
    stage.send("[NEXT: max] Write it")
    assert (taker_of(stage.db, stage.session), hands_over(stage, "Too late")) == (None, None)
    stage.takes_over = False
    got: list[Unsent | None] = []
    while_speaking(stage, max=lambda: got.append(hands_over(stage, "In between")))
    stage.send("[NEXT: max] Write it")
    assert got == [None]
    assert kept(stage) == []


def test_another_process_than_the_one_that_runs_takes_none(stage: Stage) -> None:
    def of_a_killed_one() -> None:
        assert hand_over(stage.db, stage.session, "Hi", None, None, typed=2, taker=HERE + 1) is None

    while_speaking(stage, max=of_a_killed_one)
    stage.send("[NEXT: max] Write it")
    assert stage.spoke == ["max"]


@pytest.mark.parametrize("reply", [Fails("", 1, "no"), "Which one? [NEXT: kailai]", "done"])
def test_after_a_run_nobody_takes_one_however_it_ended(stage: Stage, reply: Fails | str) -> None:
    stage.says = {"max": [reply]}
    stage.send("[NEXT: max] Write it")
    assert taker_of(stage.db, stage.session) is None


def test_after_a_failure_it_waits_for_the_next_run(stage: Stage) -> None:
    stage.says = {"max": [Fails("", 1, "no"), "better"]}
    stage.answers = lambda _launch: "better" if len(stage.launched) > 1 else None
    while_speaking(stage, max=lambda: hands_over(stage, "And a test", to="carol"))
    assert stage.send("[NEXT: max, sarah] Write it").code is ExitCode.MEMBER_FAILED
    assert kept(stage) == ["And a test"]
    stage.hear = lambda _: None
    assert stage.resume().code is ExitCode.DONE
    assert stage.spoke == ["max", "carol", "max", "sarah"]
    assert kept(stage) == []


def test_resume_sends_what_alone_waits(stage: Stage) -> None:
    waits(stage, "[NEXT: max] Begin")
    assert stage.resume().code is ExitCode.DONE
    assert stage.spoke == ["max"]
    with pytest.raises(NothingToResume):
        stage.resume()


def test_a_drop_drops_it_and_says_so(stage: Stage) -> None:
    waits(stage, "[NEXT: max] Begin")
    assert stage.resume(ResumeMode.DROP).code is ExitCode.DONE
    assert (stage.spoke, kept(stage)) == ([], [])
    assert stage.warnings == ["dropped before it was sent: '[NEXT: max] Begin'"]


def test_what_a_chat_keeps_is_not_for_other_runs(stage: Stage) -> None:
    keep_unsent(stage.db, stage.session, "And a test", None, "carol")
    stage.send("[NEXT: max] Write it")
    assert (stage.spoke, kept(stage)) == (["max"], ["And a test"])
    assert handed_over_to(stage.db, stage.session) == []


def test_a_chat_sends_both_in_order(stage: Stage) -> None:
    stage.types_ahead = True

    def both() -> None:
        hands_over(stage, "one", to="carol")
        keep_unsent(stage.db, stage.session, "two", None, "sarah")

    while_speaking(stage, max=both)
    stage.send("[NEXT: max] Write it")
    assert stage.spoke == ["max", "carol", "sarah"]


def test_the_result_of_a_run_is_not_that_of_another_process(stage: Stage) -> None:
    stage.says = {"max": ["mine"], "carol": ["theirs"]}
    while_speaking(stage, max=lambda: hands_over(stage, "And a test", to="carol"))
    coordinator = stage.open()

    async def run() -> Conclusion:
        return await coordinator.run_input(Message(text="[NEXT: max] Write it"))

    end = asyncio.run(run())
    assert stage.spoke == ["max", "carol"]
    assert end.text == "mine"
    assert coordinator.run.tally.said == "msg-1"


def test_the_result_of_a_process_that_sends_its_own_is_its_own(stage: Stage) -> None:
    stage.says = {"max": ["of the first"], "carol": ["mine"]}
    waits(stage, "[NEXT: max] Begin")
    own = waits(stage, "[NEXT: carol] Go on")
    waits(stage, "[NEXT: max] And then")
    coordinator = stage.open()
    end = asyncio.run(coordinator.send_unsent(own=own.id))
    assert stage.spoke == ["max", "carol", "max"]
    assert end.text == "mine"
    assert coordinator.run.tally.said == sent_as(stage.db, own.id)


def test_one_that_can_no_longer_be_sent_is_told_and_its_sender_is_refused(stage: Stage) -> None:
    own = waits(stage, "Go on", to="dora")
    with pytest.raises(UnknownName):
        asyncio.run(stage.open().send_unsent(own=own.id))
    assert kept(stage) == []
    waits(stage, "Go on", to="dora")
    assert stage.send("[NEXT: max] Write it").code is ExitCode.DONE
    assert kept(stage) == ["Go on"]
    assert [warning for warning in stage.warnings if warning.startswith("not sent: ")]


def test_one_that_was_taken_back_is_not_sent(stage: Stage) -> None:
    def both() -> None:
        unsent = hands_over(stage, "no")
        assert unsent
        assert remove_unsent(stage.db, unsent.id)

    while_speaking(stage, max=both)
    stage.send("[NEXT: max] Write it")
    assert "kailai: no" not in stage.said


def test_one_that_was_sent_cannot_be_taken_back(stage: Stage) -> None:
    own = waits(stage, "[NEXT: max] Begin")
    stage.resume()
    assert not remove_unsent(stage.db, own.id)
    assert sent_as(stage.db, own.id) == "msg-1"


def test_a_stop_takes_no_more(stage: Stage) -> None:
    stage.says = {"max": [Hangs("so far", lambda: stage.stopper.request())]}  # noqa: PLW0108 (each run has another one)
    while_speaking(stage, max=lambda: hands_over(stage, "And a test"))
    assert stage.send("[NEXT: max] Write it").code is ExitCode.INTERRUPTED
    assert kept(stage) == ["And a test"]


def test_an_agent_does_not_answer_for_a_person_who_typed_before_the_question(stage: Stage) -> None:
    stage.says = {"max": ["Which one? [NEXT: kailai]", "noted"]}
    while_speaking(stage, max=lambda: hands_over(stage, "And a test"))
    end = stage.send("[NEXT: max] Write it")
    assert stage.spoke == ["max", "max"]
    assert (end.code, end.waiting_for) == (ExitCode.HUMAN_ASKED, "kailai")


def follows_own(stage: Stage) -> Callable[[], tuple[list[ConversationEvent], Conclusion]]:
    """While max speaks, another process hands over "Mine" to carol. Returns what follows its replies after the run."""
    own: list[tuple[Unsent, Follower]] = []

    def hand() -> None:
        follower = Follower(stage.db, all_sessions(stage.db)[0], stage.team, stage.folder / "lock")
        unsent = hands_over(stage, "Mine", to="carol")
        assert unsent
        own.append((unsent, follower))

    def follow() -> tuple[list[ConversationEvent], Conclusion]:
        [(unsent, follower)] = own
        message = sent_as(stage.db, unsent.id)
        assert message
        follower.follow_only(message)
        events, retold = list[ConversationEvent](), Retold(stage.db, stage.session)
        for _ in range(200):
            for line in follower.look():
                if isinstance(line, Conclusion):
                    follower.close()
                    return events, line
                if event := retold.event(line):
                    events.append(event)
            time.sleep(0.02)
        raise AssertionError(stage.queue)

    while_speaking(stage, max=hand)
    file, hear = RunFile(run_file(stage.folder, stage.session), "s1"), stage.hear

    def tell(event: ConversationEvent) -> None:
        file(event)
        hear(event)

    stage.hear = tell
    return follow


def test_its_sender_follows_only_what_it_leads_to(stage: Stage) -> None:
    stage.says = {"max": ["of the first"], "carol": ["mine [NEXT: sarah]"], "sarah": ["other", "mine, too"]}
    follow = follows_own(stage)
    stage.send("[NEXT: max, sarah] Write it")
    assert stage.spoke == ["max", "carol", "sarah", "sarah"]
    events, end = follow()
    said = [event.message.content for event in events if isinstance(event, MessageStored | Replied)]
    assert said == ["Mine", "mine [NEXT: sarah]", "mine, too"]
    assert [event.turn.member for event in events if isinstance(event, TurnFinished)] == ["carol", "sarah"]
    assert (end.code, end.text, end.turns) == (ExitCode.DONE, "mine, too", 2)


@pytest.mark.parametrize(
    ("reply", "code"), [(Fails("", 1, "no"), ExitCode.MEMBER_FAILED), ("Which? [NEXT: kailai]", ExitCode.HUMAN_ASKED)]
)
def test_its_sender_has_the_exit_code_of_its_replies(stage: Stage, reply: Fails | str, code: ExitCode) -> None:
    stage.says = {"max": ["fine"], "carol": [reply]}
    follow = follows_own(stage)
    stage.send("[NEXT: max] Write it")
    assert follow()[1].code is code


def test_none_is_lost_or_doubled_whenever_it_is_handed_over(stage: Stage) -> None:
    """What nobody takes its sender sends by itself. `HANDED_OVER=1000` hands over so many."""
    chance = random.Random(41)  # noqa: S311 (no secret)
    texts = [f"message {number}" for number in range(MESSAGES)]
    stage.says = {"max": ["fine"] * 4000}
    refused: list[str] = []
    done = threading.Event()

    def hand() -> None:
        own = Database(stage.db.path)
        for text in texts:
            time.sleep(chance.uniform(0, 0.02))
            if hands_over(stage, text, to=chance.choice(["carol", "sarah", None]), db=own) is None:
                refused.append(text)
        own.close()
        done.set()

    handing = threading.Thread(target=hand)
    handing.start()
    rounds = 0
    while not done.is_set():
        stage.send(f"[NEXT: max] round {rounds}")
        rounds += 1
    handing.join()
    assert kept(stage) == []
    sent = [message.content for message in stage.log if message.content.startswith("message")]
    assert sorted([*sent, *refused]) == sorted(texts)
    assert sent == [text for text in texts if text in sent]
    assert len(sent) > len(texts) / 4
