"""The rules of members that speak at the same time (`[NEXT: a + b]`), one by one."""

from __future__ import annotations

import pytest

from teamchat.core.engine.events import (
    Deliver,
    GroupFailed,
    GroupRan,
    HumanAsked,
    Idle,
    Paused,
    PauseKind,
    Queued,
    ResumeMode,
    RunGroup,
    RunTurn,
)
from teamchat.core.engine.state import RouteStatus, Rules
from tests.core.engine.driver import AI, HUMANS, Talk

ALL = "max+sarah+carol"


@pytest.fixture
def talk() -> Talk:
    return Talk()


def test_a_group_speaks_at_the_same_time(talk: Talk) -> None:
    talk.says("max+sarah", "carol")
    assert isinstance(talk.ending, RunGroup)
    assert [(route.target, route.status) for route in talk.ending.routes] == [
        ("max", RouteStatus.RUNNING),
        ("sarah", RouteStatus.RUNNING),
    ]
    assert talk.queue == ["max running", "sarah running", "carol waiting"]


def test_nothing_follows_from_one_reply_of_a_group(talk: Talk) -> None:
    talk.says(ALL).answers("sarah")
    assert talk.actions == ()
    assert talk.queue == ["max running", "sarah answered", "carol running"]
    assert [route.answer for route in talk.state.queue] == [None, 1, None]


@pytest.mark.parametrize("order", [("max", "sarah", "carol"), ("carol", "sarah", "max"), ("sarah", "carol", "max")])
def test_replies_are_delivered_in_the_order_named_whoever_was_fastest(talk: Talk, order: tuple[str, ...]) -> None:
    assert talk.says(ALL).answers(*order).group_ends().delivering == ALL


def test_a_group_that_was_delivered_is_done(talk: Talk) -> None:
    talk.says("max+sarah", "carol").group_runs().delivers()
    assert talk.speaking == "carol"
    assert talk.queue == ["carol running"]


def test_what_a_group_asks_for_is_queued_in_its_order_behind_what_waits(talk: Talk) -> None:
    talk.says("max+sarah", "carol").group_runs().delivers(max="carol!3", sarah="max")
    assert [(action.route.target, action.route.by) for action in talk.actions if isinstance(action, Queued)] == [
        ("carol", "max"),
        ("max", "sarah"),
    ]
    assert talk.rest() == ["carol", "max", "carol"]


def test_one_turn_answers_all_messages_of_a_group_that_ask_for_the_same_member(talk: Talk) -> None:
    assert talk.says("max+sarah").group_runs().delivers(max="carol", sarah="carol").rest() == ["carol"]


def test_a_reply_of_a_group_can_drop_what_waits_but_no_reply_that_is_there(talk: Talk) -> None:
    talk.says("max").replies("max+sarah", "carol").group_runs().delivers(drops=("sarah", "carol"))
    assert talk.dropped == ["carol"]
    assert talk.actions[-1] == Idle()


def test_the_one_that_spoke_last_in_a_group_answers_who_names_nobody(talk: Talk) -> None:
    assert talk.says("max+sarah").group_runs().delivers().state.last_ai == "sarah"


def test_a_group_may_call_another_group(talk: Talk) -> None:
    assert talk.says("max").replies("sarah+carol").rest() == ["sarah+carol"]


@pytest.mark.parametrize(
    ("written", "order"),
    [
        (["carol", "max+sarah!1"], ["max+sarah", "carol"]),
        (["max+sarah!3", "carol"], ["carol", "max+sarah"]),
        (["max+sarah!3", "carol!3"], ["max+sarah", "carol"]),
    ],
)
def test_a_priority_goes_for_the_whole_group(talk: Talk, written: list[str], order: list[str]) -> None:
    assert talk.says(*written).rest() == order


def test_two_groups_of_one_message_are_two(talk: Talk) -> None:
    talk.rules = Rules(("max", "sarah", "carol", "al"), HUMANS)
    talk = Talk(talk.rules).says("max+sarah", "carol+al")
    assert talk.rest() == ["max+sarah", "carol+al"]


def test_groups_of_two_messages_are_two(talk: Talk) -> None:
    talk.says("max+sarah").group_runs().delivers(max="sarah+carol", sarah="max+carol")
    assert talk.rest() == ["sarah+carol", "max+carol"]


# --- people in groups


@pytest.mark.parametrize("written", ["kailai+max+sarah", "max+kailai+sarah", "max+sarah+kailai"])
def test_people_of_a_group_are_asked_one_by_one_and_the_agents_run_together(talk: Talk, written: str) -> None:
    talk.says(written, by="bob")
    if written.startswith("kailai"):
        assert isinstance(talk.ending, HumanAsked)
        assert talk.says().rest() == ["max+sarah"]
    else:
        talk.group_runs().delivers()
        assert isinstance(talk.ending, HumanAsked)
        assert talk.says().ending == Idle()


def test_an_agent_in_a_group_with_people_runs_alone(talk: Talk) -> None:
    talk.says("max+bob+kailai")
    assert isinstance(talk.ending, RunTurn)
    talk.replies()
    assert isinstance(talk.ending, HumanAsked)
    assert talk.ending.route.target == "bob"
    assert isinstance(talk.says(by="bob").ending, HumanAsked)
    assert talk.says().state.queue == ()


# --- failures


def test_one_that_fails_does_not_take_the_others_replies(talk: Talk) -> None:
    talk.says(ALL, "max").group_runs(fails=["sarah"])
    assert talk.delivering == "max+carol"
    talk.delivers(max="sarah")
    assert isinstance(talk.ending, GroupFailed)
    assert [route.target for route in talk.ending.routes] == ["sarah"]
    assert not talk.ending.all_of_it
    assert talk.queue == ["sarah held", "max held", "sarah held"]


def test_resume_runs_only_who_failed(talk: Talk) -> None:
    talk.says(ALL).group_runs(fails=["sarah", "carol"]).delivers()
    assert talk.resume().speaking == "sarah+carol"
    assert talk.group_runs(fails=["sarah"]).delivers().resume().speaking == "sarah"
    assert talk.replies().ending == Idle()


def test_who_failed_answers_the_same_message_again(talk: Talk) -> None:
    talk.says("max+sarah").group_runs(fails=["max"]).delivers().resume()
    assert talk.running is not None
    assert (talk.running.target, talk.running.as_of, talk.running.attempt) == ("max", "msg-1", 1)


def test_who_could_not_even_begin_answers_the_message_that_the_others_had(talk: Talk) -> None:
    """Its program was missing, say: `sarah` has replied by the time it runs."""
    talk.says("max+sarah").answers("sarah").group_ends().delivers().resume()
    assert talk.running is not None
    assert (talk.running.target, talk.running.as_of, talk.running.attempt) == ("max", "msg-1", 0)


def test_a_group_of_which_all_fail_has_failed(talk: Talk) -> None:
    talk.says("max+sarah", "carol").group_runs(fails=["max", "sarah"])
    assert isinstance(talk.ending, GroupFailed)
    assert [route.target for route in talk.ending.routes] == ["max", "sarah"]
    assert talk.ending.all_of_it
    assert talk.queue == ["max held", "sarah held", "carol held"]
    assert talk.resume().rest() == ["max+sarah", "carol"]


def test_a_failure_is_told_even_if_a_mate_has_dropped_who_failed(talk: Talk) -> None:
    talk.says("max").replies("max+sarah", "carol").group_runs(fails=["sarah"]).delivers(drops=("sarah",))
    assert isinstance(talk.ending, GroupFailed)
    assert [route.target for route in talk.ending.routes] == ["sarah"]
    assert talk.queue == ["carol held"]


def test_skipping_goes_on_without_who_failed(talk: Talk) -> None:
    talk.says("max+sarah", "carol").group_runs(fails=["sarah"]).delivers().resume(ResumeMode.SKIP)
    assert talk.dropped == ["sarah"]
    assert talk.rest() == ["carol"]


# --- what is kept over a pause


def test_replies_are_kept_over_a_crash_and_only_the_missing_one_runs(talk: Talk) -> None:
    talk.says(ALL).answers("max", "carol").begins("sarah")
    assert talk.recover().queue == ["max held", "sarah held", "carol held"]
    talk.resume()
    assert talk.speaking == "sarah"
    assert talk.answers("sarah").group_ends().delivering == ALL
    assert isinstance(talk.ending, Deliver)
    assert [route.answer for route in talk.ending.routes] == [1, 3, 2]


def test_a_complete_group_is_delivered_after_a_crash(talk: Talk) -> None:
    """It died before the replies became messages."""
    talk.says("max+sarah").group_runs().recover()
    assert talk.queue == ["max held", "sarah held"]
    assert talk.resume().delivering == "max+sarah"


def test_a_complete_group_is_held_even_if_a_person_is_asked_behind_it(talk: Talk) -> None:
    """Or else the next message would be put before its replies."""
    talk.says("max").replies("kailai").says("sarah+carol", by="bob").group_runs().recover()
    assert talk.queue == ["sarah held", "carol held", "kailai asked"]
    assert talk.resume().delivering == "sarah+carol"


def test_replies_are_kept_when_it_is_stopped(talk: Talk) -> None:
    talk.says("max+sarah").answers("max").stop()
    assert talk.queue == ["max held", "sarah held"]
    assert talk.resume().speaking == "sarah"
    assert talk.group_runs().delivering == "max+sarah"


def test_skipping_after_a_crash_drops_who_is_missing_and_no_reply(talk: Talk) -> None:
    talk.says(ALL).answers("max", "carol").recover().resume(ResumeMode.SKIP)
    assert talk.dropped == ["sarah"]
    assert talk.delivering == "max+carol"


def test_dropping_drops_what_is_kept(talk: Talk) -> None:
    talk.says("max+sarah").answers("max").recover().resume(ResumeMode.DROP)
    assert talk.dropped == ["max", "sarah"]
    assert talk.ending == Idle()


def test_a_message_in_between_changes_nothing_for_who_is_missing(talk: Talk) -> None:
    talk.says("max+sarah").answers("max").recover().says("carol").replies().resume()
    assert talk.running is not None
    assert (talk.running.target, talk.running.as_of) == ("sarah", "msg-1")
    assert talk.group_runs().delivering == "max+sarah"


# --- guards


def test_a_group_counts_turn_by_turn() -> None:
    talk = Talk(Rules(AI, HUMANS, max_turns=3)).says("max+sarah", "carol", "max").group_runs().delivers().replies()
    assert isinstance(talk.ending, Paused)
    assert talk.ending.kind is PauseKind.TURNS


def test_of_a_group_only_as_many_run_as_the_guard_allows_and_the_others_after_it() -> None:
    talk = Talk(Rules(AI, HUMANS, max_turns=2)).says(ALL)
    assert talk.speaking == "max+sarah"
    talk.group_runs()
    assert talk.ending == Paused(PauseKind.TURNS, "2 turns since the last human message (limits.turns)")
    assert talk.queue == ["max held", "sarah held", "carol held"]
    assert talk.resume().speaking == "carol"
    assert talk.running is not None
    assert talk.running.as_of == "msg-1"
    assert talk.group_runs().delivering == ALL


def test_of_a_group_only_as_many_run_as_the_turns_before_it_have_left() -> None:
    talk = Talk(Rules(AI, HUMANS, max_turns=3)).says("max", ALL)
    assert talk.replies().speaking == "max+sarah"


def test_who_had_to_wait_for_others_of_its_group_until_a_guard_stopped_it_is_held_and_not_failed() -> None:
    talk = Talk(Rules(AI, HUMANS, max_tokens=5)).says(ALL).answers("max")
    talk.spends(5).take(GroupRan(talk.now))
    assert talk.ending == Paused(PauseKind.TOKENS, "5 tokens are spent (limits.tokens)")
    assert talk.queue == ["max held", "sarah held", "carol held"]
    assert talk.resume().speaking == "sarah+carol"
    assert [route.as_of for route in talk.running_all] == ["msg-1", "msg-1"]
    assert talk.group_runs().delivering == ALL


def test_one_that_fails_before_others_of_its_group_may_begin_is_held_with_them() -> None:
    talk = Talk(Rules(AI, HUMANS, max_tokens=5)).says(ALL).spends(5)
    talk.take(GroupRan(talk.now, (talk.begins("max"),)))
    assert isinstance(talk.ending, GroupFailed)
    assert ([route.target for route in talk.ending.routes], talk.ending.all_of_it) == (["max"], True)
    assert talk.queue == ["max held", "sarah held", "carol held"]


def test_who_failed_leaves_its_turn_to_another_of_the_group() -> None:
    talk = Talk(Rules(AI, HUMANS, max_turns=2)).says(ALL).group_runs(fails=["sarah"])
    assert talk.speaking == "carol"
    assert talk.group_runs().delivering == "max+carol"


def test_a_complete_group_is_delivered_whatever_the_guards_say() -> None:
    talk = Talk(Rules(AI, HUMANS, max_turns=2, max_seconds=1, max_tokens=1)).says("max+sarah")
    talk.spends(5)
    talk.now += 2
    assert talk.group_runs().delivering == "max+sarah"


def test_a_group_that_says_nothing_new_counts_as_one_reply() -> None:
    talk = Talk(Rules(AI, HUMANS, max_stale=2)).says(ALL).group_runs().delivers(new=[], max=ALL)
    assert talk.speaking == ALL
    talk.group_runs().delivers(new=[], max="sarah")
    assert isinstance(talk.ending, Paused)
    assert talk.ending.kind is PauseKind.LOOP


def test_a_group_in_which_one_says_something_new_says_something_new() -> None:
    talk = Talk(Rules(AI, HUMANS, max_stale=1)).says(ALL).group_runs().delivers(new=["carol"], max="sarah")
    assert talk.speaking == "sarah"
