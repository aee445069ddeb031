"""Which message a turn answers: the newest of its own request, or a correction of it, and never other work."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teamchat.core.engine.events import HumanSpoke, Idle, ResumeMode, TurnEnded, Undone
from teamchat.core.engine.state import LastSaid, Route, RouteStatus
from tests.core.engine.driver import AI, Talk, wishes
from tests.trials import trials


@pytest.fixture
def talk() -> Talk:
    return Talk()


def answered(talk: Talk, name: str | None = None) -> str:
    """What the turn that is about to begin answers; with a name, what that member's waiting call would."""
    route = next(route for route in talk.state.queue if name in (None, route.target))
    return talk.state.answers(route)


def test_with_one_request_the_newest_message_is_answered(talk: Talk) -> None:
    talk.says("max", "sarah", "carol").replies().replies()
    assert (talk.speaking, answered(talk)) == ("carol", "msg-3")


def test_a_correction_is_answered_by_who_waits_for_the_draft(talk: Talk) -> None:
    """`[NEXT: max, sarah] Write it with tabs`, then `[NEXT: max] No: use spaces`."""
    talk.says("max", "sarah").replies().says("max")
    assert talk.speaking == "max"
    talk.replies()
    assert (talk.speaking, answered(talk)) == ("sarah", "msg-4")


def test_a_correction_that_comes_while_the_draft_is_written_counts_as_well(talk: Talk) -> None:
    talk.says("max", "sarah")
    number = talk.begins()
    talk.take(TurnEnded(talk.now, number, "msg-2"))
    talk.messages = 2
    talk.says("max").replies()
    assert (talk.speaking, answered(talk)) == ("sarah", "msg-4")


def test_a_correction_by_the_fallback_of_the_member_counts_as_well(talk: Talk) -> None:
    talk.says("max", "sarah").replies(speaker="carol").says("max").replies()
    assert (talk.speaking, answered(talk)) == ("sarah", "msg-4")


def test_other_work_of_another_member_is_not_answered(talk: Talk) -> None:
    talk.says("max", "sarah").replies().says("carol").replies()
    assert (talk.speaking, answered(talk)) == ("sarah", "msg-2")


def test_who_corrects_and_hands_over_is_answered_and_not_whom_it_calls(talk: Talk) -> None:
    talk.says("max", "sarah").replies().says("max").replies("carol!1").replies()
    assert (talk.speaking, answered(talk)) == ("sarah", "msg-4")


def test_a_member_that_another_member_calls_for_other_work_corrects_nothing(talk: Talk) -> None:
    talk.says("max", "sarah").replies().says("carol").replies("max!1").replies()
    assert (talk.speaking, answered(talk)) == ("sarah", "msg-2")


def test_a_call_that_never_began_answers_its_own_message(talk: Talk) -> None:
    talk.says("max").stop().says("max").replies().resume()
    assert (talk.speaking, answered(talk)) == ("max", "msg-1")


def test_two_requests_that_wait_for_one_member_are_two_answers(talk: Talk) -> None:
    talk.says("max").stop().says("max").stop().resume()
    assert answered(talk) == "msg-2"
    talk.replies()
    assert answered(talk) == "msg-1"


def test_who_waits_behind_a_question_answers_what_follows_from_the_answer(talk: Talk) -> None:
    talk.says("max", "sarah").replies("kailai!1").says("max")
    assert answered(talk, "sarah") == "msg-3"
    talk.replies()
    assert (talk.speaking, answered(talk)) == ("sarah", "msg-4")


def test_a_reply_to_a_question_by_another_member_belongs_to_the_work_as_well(talk: Talk) -> None:
    talk.says("max", "sarah").replies("kailai!1").says("carol").replies()
    assert (talk.speaking, answered(talk)) == ("sarah", "msg-4")


def test_a_message_before_the_question_is_other_work(talk: Talk) -> None:
    talk.says("max", "sarah").replies("kailai!1").says("carol!1", answers=False).replies()
    talk.says(answers=True)
    assert (talk.speaking, answered(talk)) == ("sarah", "msg-5")


def test_a_reply_of_markers_only_is_not_answered(talk: Talk) -> None:
    talk.says("max")
    talk.take(TurnEnded(talk.now, talk.begins(), "msg-2", wishes("sarah"), words=False))
    assert (talk.speaking, answered(talk)) == ("sarah", "msg-1")


def test_a_message_of_markers_only_has_what_was_said_before_answered(talk: Talk) -> None:
    talk.says("max").replies()
    talk.take(
        HumanSpoke(talk.now, "msg-3", "kailai", wishes("sarah"), answers=False, before=LastSaid((), "msg-2", ("max",)))
    )
    assert answered(talk) == "msg-2"
    talk.messages = 3
    talk.says("max").replies()
    assert (talk.speaking, answered(talk)) == ("sarah", "msg-5")


def test_the_last_of_a_group_is_answered(talk: Talk) -> None:
    talk.says("max+sarah", "carol").group_runs().delivers()
    assert (talk.speaking, answered(talk)) == ("carol", "msg-3")


def test_all_of_a_group_answer_the_same_correction(talk: Talk) -> None:
    talk.says("max", "sarah+carol").replies().says("max").replies()
    assert {talk.state.answers(route) for route in talk.running_all} == {"msg-4"}


def test_an_undone_turn_answers_what_it_answered_whatever_was_said_since(talk: Talk) -> None:
    talk.says("max", "sarah").replies()
    before = talk.state
    talk.replies().take(Undone(talk.now, before, {2: "msg-2"}))
    talk.says("max").replies().resume()
    assert (talk.speaking, answered(talk)) == ("sarah", "msg-2")


def test_a_call_behind_an_undone_turn_answers_the_new_reply(talk: Talk) -> None:
    talk.says("max", "sarah")
    before = talk.state
    talk.replies().replies().take(Undone(talk.now, before, {1: "msg-1"}))
    talk.says("carol").replies().resume()
    assert (talk.speaking, answered(talk)) == ("max", "msg-1")
    talk.replies()
    assert (talk.speaking, answered(talk)) == ("sarah", "msg-6")


def test_the_others_of_an_undone_group_answer_the_same(talk: Talk) -> None:
    talk.says("max+sarah")
    before = talk.state
    talk.group_runs(fails=["sarah"]).take(Undone(talk.now, before, {1: "msg-1"}))
    assert [route.as_of for route in talk.state.queue] == ["msg-1", "msg-1"]


def test_what_was_said_for_a_request_is_forgotten_with_its_last_call(talk: Talk) -> None:
    talk.says("max", "sarah").replies().replies()
    assert (talk.ending, talk.state.last_said) == (Idle(), ())
    talk.says("max").stop().resume(ResumeMode.DROP)
    assert talk.state.last_said == ()


@dataclass
class Logged:
    message: str
    speaker: str
    request: str
    by_person: bool = False


def by_the_rule(route: Route, log: list[Logged]) -> str:
    """The rule word by word, over everything that was said."""
    newest = [one for one in log if one.request == route.request][-1]
    if newest.speaker in AI:
        since = log[log.index(newest) + 1 :]
        again = [one for one in since if one.speaker == newest.speaker and one.by_person]
        newest = (again or [newest])[-1]
    return newest.message


steps = st.lists(
    st.tuples(
        st.sampled_from(["says", "replies", "replies", "replies", "fails", "resume"]),
        st.lists(st.sampled_from([*AI, "max!1", "carol!3"]), max_size=2, unique=True),
    ),
    max_size=25,
)


@settings(max_examples=trials(200), deadline=None)
@given(steps)
def test_any_conversation_answers_by_the_rule(script: list[tuple[str, list[str]]]) -> None:
    talk, log = Talk(), list[Logged]()
    for step, names in script:
        running = talk.running
        if step == "says" and names:
            talk.says(*names)
            log.append(Logged(f"msg-{talk.messages}", "kailai", f"msg-{talk.messages}"))
        elif step == "resume" and talk.state.held:
            talk.resume()
        elif step == "replies" and running:
            others = [name for name in names if name.partition("!")[0] != running.target]
            talk.replies(*others)
            by_person = running.parent == running.request
            log.append(Logged(f"msg-{talk.messages}", running.target, running.request, by_person))
        elif step == "fails" and running:
            talk.fails()
        for route in talk.state.queue:
            if route.as_of is None and route.status is not RouteStatus.ASKED:
                assert talk.state.answers(route) == by_the_rule(route, log)
