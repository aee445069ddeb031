"""The engine's rules, one by one. `tests/core/engine/decide/test_properties.py` has what is true of every sequence."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from teamchat.core.engine.decide import asker_gone, default_target
from teamchat.core.engine.draft import MAX_WAITING
from teamchat.core.engine.events import (
    Dropped,
    HumanAsked,
    HumanSpoke,
    Idle,
    NotCalled,
    NotDropped,
    Paused,
    PauseKind,
    PutAside,
    Queued,
    Refused,
    Released,
    ResumeMode,
    RunTurn,
    TurnBegan,
    TurnFailed,
)
from teamchat.core.engine.state import Route, RouteStatus, Rules, State
from tests.core.engine.driver import AI, HUMANS, Talk, wishes


@pytest.fixture
def talk() -> Talk:
    return Talk()


# --- who speaks next


def test_members_speak_in_the_order_in_which_they_are_named(talk: Talk) -> None:
    assert talk.says("max", "sarah", "carol").rest() == ["max", "sarah", "carol"]


def test_a_message_that_asks_for_nobody_leaves_the_conversation_idle(talk: Talk) -> None:
    talk.says()
    assert talk.actions == (Idle(),)
    assert talk.state.queue == ()


def test_a_reply_without_next_lets_the_queue_go_on(talk: Talk) -> None:
    talk.says("max", "sarah").replies()
    assert talk.speaking == "sarah"
    assert talk.replies().actions == (Idle(),)


@pytest.mark.parametrize(
    ("message", "reply", "order"),
    [
        (["max", "sarah"], ["carol"], ["max", "sarah", "carol"]),
        (["max", "sarah"], ["carol!2"], ["max", "sarah", "carol"]),
        (["max", "sarah"], ["carol!1"], ["max", "carol", "sarah"]),
        (["max", "sarah!3"], ["carol"], ["max", "carol", "sarah"]),
        (["max", "sarah!3"], ["carol!3"], ["max", "sarah", "carol"]),
        (["max!3", "sarah", "carol!1"], [], ["carol", "sarah", "max"]),
        (["max!1", "sarah!1"], ["carol!1"], ["max", "sarah", "carol"]),
    ],
)
def test_what_an_agent_names_goes_behind_within_its_priority(
    talk: Talk, message: list[str], reply: list[str], order: list[str]
) -> None:
    talk.says(*message)
    first = talk.speaking
    assert [first, *talk.replies(*reply).rest()] == order


@pytest.mark.parametrize(
    ("waiting", "message", "order"),
    [
        (["sarah"], ["carol", "max"], ["carol", "max", "sarah"]),
        (["sarah!1"], ["carol"], ["sarah", "carol"]),
        (["sarah!1"], ["carol!1"], ["carol", "sarah"]),
        (["sarah"], ["carol!3"], ["sarah", "carol"]),
        (["sarah!3"], ["carol!3", "max!3"], ["carol", "max", "sarah"]),
    ],
)
def test_what_a_person_names_goes_ahead_as_a_block_within_its_priority(
    talk: Talk, waiting: list[str], message: list[str], order: list[str]
) -> None:
    """The queue has something to be ahead of only while a person is asked."""
    talk.says("max").replies("kailai!1", *waiting)
    assert talk.says(*message).rest() == order


def test_a_route_says_who_asked_for_it_in_which_message_and_for_which_request(talk: Talk) -> None:
    talk.says("max").replies("sarah!1")
    assert talk.ending == RunTurn(Route("msg-2", "max", "msg-1", 2, "sarah", 1, status=RouteStatus.RUNNING))
    assert talk.actions[0] == Queued(Route("msg-2", "max", "msg-1", 2, "sarah", 1))


def test_one_that_answers_in_place_of_another_is_who_asks_and_who_spoke(talk: Talk) -> None:
    talk.says("max").replies("carol", speaker="sarah")
    assert isinstance(talk.ending, RunTurn)
    assert talk.ending.route.by == "sarah"
    assert talk.state.last_ai == "sarah"


def test_a_turn_that_begins_fixes_what_it_answers_and_counts_the_attempt(talk: Talk) -> None:
    talk.says("max", "sarah")
    before = talk.state.queue[1]
    talk.take(TurnBegan(talk.now, 1, "msg-1"))
    assert talk.actions == ()
    assert (talk.state.queue[0].as_of, talk.state.queue[0].attempt) == ("msg-1", 1)
    assert talk.state.queue[1] == before


# --- how much may wait


def crowd(size: int) -> Rules:
    return Rules(tuple(f"a{number}" for number in range(size)), HUMANS)


def test_fifty_may_wait_and_what_is_over_is_refused() -> None:
    rules = crowd(52)
    talk = Talk(rules).says(*rules.ai)
    assert talk.refused == ["a50", "a51"]
    assert len(talk.state.queue) == MAX_WAITING == 50
    assert talk.actions[-2] == Refused(Route("msg-1", "kailai", "msg-1", 52, "a51"), 50)


def test_one_more_may_wait_while_one_runs_and_the_most_urgent_is_refused_like_others() -> None:
    rules = crowd(55)
    talk = Talk(rules).says(*rules.ai[:50]).replies("a51", "a52!1", "a53")
    assert [action.route.target for action in talk.actions if isinstance(action, Queued)] == ["a51"]
    assert talk.refused == ["a52", "a53"]


def test_what_is_held_or_asked_counts() -> None:
    rules = crowd(52)
    talk = Talk(rules).says("kailai", *rules.ai[:48], by="bob").says("a50", "a51", by="bob")
    assert talk.refused == ["a51"]
    assert len(talk.stop().state.held) == 49
    assert talk.says("a50").refused == []
    assert len(talk.fails().state.held) == 50
    assert talk.says("a51").refused == ["a51"]


def test_numbers_of_refused_routes_are_not_used_again() -> None:
    rules = crowd(52)
    talk = Talk(rules).says(*rules.ai).replies("a51")
    assert max(route.number for route in talk.state.queue) == 53


def test_room_is_made_by_what_is_done() -> None:
    rules = crowd(52)
    talk = Talk(rules).says(*rules.ai).replies("a50").replies("a51")
    assert talk.refused == []
    assert len(talk.state.queue) == 50


def test_what_waits_for_a_message_already_is_not_queued_again(talk: Talk) -> None:
    talk.says("max", "sarah")
    talk.take(HumanSpoke(talk.now, "msg-1", "kailai", wishes("sarah", "carol", "max")))
    assert [action.route.target for action in talk.actions if isinstance(action, Queued)] == ["carol"]


def test_one_turn_answers_two_messages_that_wait_for_a_member_behind_each_other(talk: Talk) -> None:
    assert talk.says("max", "sarah").replies("sarah").rest() == ["sarah"]


def test_a_member_waits_for_two_messages_where_another_member_is_between_them(talk: Talk) -> None:
    assert talk.says("max", "sarah", "carol").replies("sarah").rest() == ["sarah", "carol", "sarah"]


# --- drop


def test_drop_takes_the_named_members_out(talk: Talk) -> None:
    talk.says("max").replies("max", "sarah", "carol").replies(drops=("sarah",))
    assert talk.dropped == ["sarah"]
    assert talk.rest() == ["carol"]


def test_drop_all_takes_everything_out(talk: Talk) -> None:
    talk.says("max").replies("max", "sarah", "carol").replies(drops=None)
    assert talk.dropped == ["sarah", "carol"]
    assert talk.ending == Idle()


def test_drop_comes_before_next(talk: Talk) -> None:
    talk.says("max").replies("max", "sarah", "carol").replies("sarah", drops=None)
    assert talk.dropped == ["sarah", "carol"]
    assert talk.rest() == ["sarah"]


@pytest.mark.parametrize("drops", [("sarah", "carol"), None])
def test_an_agent_drops_only_what_agents_have_queued(talk: Talk, drops: tuple[str, ...] | None) -> None:
    talk.says("max", "sarah", "carol").replies("carol").replies(drops=drops)
    assert talk.dropped == ["carol"]
    kept = [
        (action.route.target, action.route.by, action.agent)
        for action in talk.actions
        if isinstance(action, NotDropped)
    ]
    assert kept == [("carol", "kailai", "sarah")]
    assert talk.rest() == ["carol"]


def test_what_an_agent_has_queued_that_has_left_the_team_stays_too(talk: Talk) -> None:
    talk.says("max", "sarah").replies("carol")
    talk.state = replace(talk.state, rules=Rules(("sarah", "carol"), HUMANS))
    assert talk.replies(drops=None).dropped == []
    assert talk.rest() == ["carol"]


def test_drop_takes_out_what_is_held_and_who_is_asked(talk: Talk) -> None:
    talk.says("max", "sarah").fails()
    assert talk.says(drops=("max",)).dropped == ["max"]
    talk.says("carol").replies("kailai").says(by="bob", drops=("kailai",))
    assert talk.queue == ["sarah held"]


def test_drop_reaches_a_turn_that_has_not_begun(talk: Talk) -> None:
    talk.says("max", "sarah").says(drops=None)
    assert talk.dropped == ["max", "sarah"]
    assert talk.queue == []


def test_a_person_who_speaks_between_two_turns_goes_before_the_turn_that_was_to_begin(talk: Talk) -> None:
    talk.says("max", "sarah").replies().says("carol")
    assert talk.queue == ["carol running", "sarah waiting"]
    assert talk.rest() == ["carol", "sarah"]


def test_a_person_who_speaks_between_two_turns_calls_no_member_away(talk: Talk) -> None:
    talk.says("max", "sarah").replies().says()
    assert talk.queue == ["sarah running"]


def test_what_is_released_speaks_and_what_was_held_before_stays_held(talk: Talk) -> None:
    talk.says("max").fails().says("sarah", "carol").fails()
    assert talk.queue == ["sarah held", "carol held", "max held"]
    talk.take(Released(talk.now, (3,)))
    assert talk.queue == ["carol running", "sarah held", "max held"]
    talk.replies()
    assert isinstance(talk.ending, Idle)
    assert talk.queue == ["sarah held", "max held"]


# --- people


def test_a_person_who_is_named_pauses_the_queue(talk: Talk) -> None:
    talk.says("max").replies("kailai", "sarah")
    assert talk.ending == HumanAsked(Route("msg-2", "max", "msg-1", 2, "kailai", status=RouteStatus.ASKED))
    assert talk.queue == ["kailai asked", "sarah waiting"]


def test_after_the_answer_the_queue_goes_on(talk: Talk) -> None:
    talk.says("max").replies("kailai", "sarah").says("carol")
    assert talk.rest() == ["carol", "sarah"]
    assert talk.state.queue == ()


def test_an_answer_that_asks_for_nobody_still_lets_the_queue_go_on(talk: Talk) -> None:
    assert talk.says("max").replies("kailai", "sarah").says().rest() == ["sarah"]


def test_what_another_person_says_is_no_answer(talk: Talk) -> None:
    talk.says("max").replies("kailai", "sarah").says("carol", by="bob")
    assert talk.speaking == "carol"
    assert talk.replies().ending == HumanAsked(Route("msg-2", "max", "msg-1", 2, "kailai", status=RouteStatus.ASKED))


def test_a_message_of_markers_only_routes_and_leaves_the_question_open(talk: Talk) -> None:
    talk.says("max").replies("kailai", "sarah").says("carol", answers=False)
    assert talk.queue == ["carol running", "kailai asked", "sarah waiting"]
    assert talk.replies().ending == HumanAsked(Route("msg-2", "max", "msg-1", 2, "kailai", status=RouteStatus.ASKED))
    assert talk.says().rest() == ["sarah"]


def test_a_question_can_be_dropped_without_a_word(talk: Talk) -> None:
    talk.says("max").replies("kailai", "sarah").says(drops=("kailai",), answers=False)
    assert talk.dropped == ["kailai"]
    assert talk.rest() == ["sarah"]


def test_everybody_who_is_asked_can_answer_whatever_the_order(talk: Talk) -> None:
    """The second question stands ahead of the first; answering the first must not be lost."""
    talk.says("max").replies("kailai", "sarah").says("carol", by="bob").replies("bob!1")
    assert talk.queue == ["bob asked", "kailai asked", "sarah waiting"]
    assert default_target(talk.state, "kailai") == "max"
    assert talk.says().queue == ["bob asked", "sarah waiting"]
    assert talk.says(by="bob").rest() == ["sarah"]


def test_an_answer_is_to_one_question(talk: Talk) -> None:
    talk.says("max", "sarah").replies("kailai!1").says().replies("kailai")
    assert isinstance(talk.ending, HumanAsked)
    assert talk.says().ending == Idle()


def test_a_person_may_ask_another_one(talk: Talk) -> None:
    talk.says("bob", "max")
    assert isinstance(talk.ending, HumanAsked)
    assert talk.says(by="bob").rest() == ["max"]


# --- whom a message without names goes to


def test_who_asked_answers_a_message_that_names_nobody(talk: Talk) -> None:
    talk.rules = Rules(AI, HUMANS, lead="carol")
    talk.state = State(talk.rules)
    talk.says("max").replies("sarah").replies("kailai")
    assert default_target(talk.state, "kailai") == "sarah"
    assert default_target(talk.state, "bob") == "carol"


def test_else_the_lead_answers(talk: Talk) -> None:
    talk.rules = Rules(AI, HUMANS, lead="carol")
    talk.state = State(talk.rules)
    talk.says("max").replies()
    assert default_target(talk.state, "kailai") == "carol"


def test_else_the_agent_that_spoke_last(talk: Talk) -> None:
    talk.says("max", "sarah").replies().replies()
    assert default_target(talk.state, "kailai") == "sarah"


def test_an_agent_whose_turn_failed_has_not_spoken(talk: Talk) -> None:
    talk.says("max", "sarah").replies().fails()
    assert default_target(talk.state, "kailai") == "max"


def test_else_the_first_agent_of_the_team() -> None:
    assert default_target(State(Rules(AI, HUMANS)), "kailai") == "max"


def test_a_question_of_a_person_is_answered_by_the_lead() -> None:
    talk = Talk(Rules(AI, HUMANS, lead="carol")).says("bob")
    assert default_target(talk.state, "bob") == "carol"


def test_nobody_answers_who_has_left_the_team(talk: Talk) -> None:
    talk.says("max").replies("kailai")
    talk.state = State(Rules(("sarah",), HUMANS), talk.state.queue, last_ai="max")
    assert default_target(talk.state, "kailai") == "sarah"
    assert default_target(talk.state, "bob") == "sarah"


def test_without_agents_nobody_answers() -> None:
    assert default_target(State(Rules((), HUMANS)), "kailai") is None


def test_who_asked_and_has_left_the_team_is_known(talk: Talk) -> None:
    talk.says("max").replies("kailai")
    assert asker_gone(talk.state, "kailai") is None
    state = replace(talk.state, rules=Rules(("sarah",), HUMANS))
    assert asker_gone(state, "kailai") == "max"
    assert asker_gone(state, "bob") is None
    assert asker_gone(replace(state, rules=Rules(("M-A_X",), HUMANS)), "kailai") is None


# --- failures, and what is held


def test_a_failure_stops_and_holds_everything(talk: Talk) -> None:
    talk.says("max", "sarah").fails()
    assert talk.actions == (
        TurnFailed(Route("msg-1", "kailai", "msg-1", 1, "max", as_of="msg-1", attempt=1, status=RouteStatus.RUNNING)),
    )
    assert talk.queue == ["max held", "sarah held"]


def test_a_message_leaves_what_is_held_where_it_is(talk: Talk) -> None:
    talk.says("max", "sarah").fails().says("carol")
    assert talk.queue == ["carol running", "max held", "sarah held"]
    assert talk.rest() == ["carol"]
    assert talk.queue == ["max held", "sarah held"]


def test_resume_runs_what_failed_again_and_then_the_rest(talk: Talk) -> None:
    talk.says("max", "sarah").fails()
    assert talk.resume().rest() == ["max", "sarah"]


def test_resume_of_some_calls_leaves_the_others_on_hold(talk: Talk) -> None:
    talk.says("max", "sarah", "carol").stop()
    _, sarah, _ = talk.state.queue
    assert talk.resume(only=(sarah.number,)).replies("max").rest() == ["max"]
    assert talk.queue == ["max held", "carol held"]


def test_resume_of_one_call_of_a_group_runs_the_group(talk: Talk) -> None:
    talk.says("max+sarah", "carol").stop()
    max_, *_ = talk.state.queue
    talk.resume(only=(max_.number,))
    assert talk.queue == ["max running", "sarah running", "carol held"]


def test_resume_can_skip_what_failed(talk: Talk) -> None:
    talk.says("max", "sarah").fails().resume(ResumeMode.SKIP)
    assert talk.dropped == ["max"]
    assert talk.rest() == ["sarah"]


def test_resume_can_drop_all_that_is_held(talk: Talk) -> None:
    talk.says("max", "sarah").fails().resume(ResumeMode.DROP)
    assert talk.dropped == ["max", "sarah"]
    assert talk.ending == Idle()


def test_a_retry_answers_the_same_message_again(talk: Talk) -> None:
    talk.says("max").fails().says("sarah").replies().resume()
    assert isinstance(talk.ending, RunTurn)
    assert talk.ending.route.as_of == "msg-1"
    talk.begins()
    assert talk.running is not None
    assert talk.running.attempt == 2


def test_only_turns_that_began_count_as_attempts(talk: Talk) -> None:
    """`sarah` waits behind `max`, who fails three times."""
    talk.says("max", "sarah").fails().resume().fails().resume().fails().resume(ResumeMode.SKIP)
    talk.begins()
    assert talk.running is not None
    assert (talk.running.target, talk.running.attempt) == ("sarah", 1)


def test_what_failed_last_is_what_resume_begins_with(talk: Talk) -> None:
    """`resume --skip` goes on without the turn that failed, not without an older one that never ran."""
    talk.says("max", "sarah").replies("carol").stop()
    assert talk.queue == ["sarah held", "carol held"]
    talk.says("max").replies("max").fails()
    assert talk.queue == ["max held", "sarah held", "carol held"]
    assert talk.resume(ResumeMode.SKIP).dropped == ["max"]
    assert talk.rest() == ["sarah", "carol"]


def test_resume_asks_again_who_is_asked(talk: Talk) -> None:
    talk.says("max").replies("kailai", "sarah").resume()
    assert isinstance(talk.ending, HumanAsked)
    assert talk.queue == ["kailai asked", "sarah waiting"]


def test_resume_leaves_a_question_behind_the_turn_that_failed_open(talk: Talk) -> None:
    talk.says("max").replies("kailai", "sarah").says("carol", answers=False).fails().resume()
    assert talk.queue == ["carol running", "kailai asked", "sarah waiting"]
    assert default_target(talk.state, "kailai") == "max"


def test_resume_can_go_on_without_an_answer(talk: Talk) -> None:
    talk.says("max").replies("kailai", "sarah").resume(ResumeMode.SKIP)
    assert talk.dropped == ["kailai"]
    assert talk.rest() == ["sarah"]


def test_resume_skips_what_stands_first_be_it_held_or_asked(talk: Talk) -> None:
    talk.says("max").replies("kailai", "sarah").says("carol", by="bob").fails()
    assert talk.queue == ["carol held", "kailai asked", "sarah held"]
    assert talk.resume(ResumeMode.SKIP).dropped == ["carol"]
    assert talk.queue == ["kailai asked", "sarah waiting"]
    assert talk.resume(ResumeMode.SKIP).dropped == ["kailai"]
    assert talk.rest() == ["sarah"]


def test_resume_can_drop_a_question_and_all_that_waits_behind_it(talk: Talk) -> None:
    talk.says("max").replies("kailai", "sarah").resume(ResumeMode.DROP)
    assert talk.dropped == ["kailai", "sarah"]
    assert talk.ending == Idle()
    assert talk.queue == []


def test_resume_of_nothing_is_idle(talk: Talk) -> None:
    assert talk.resume().actions == (Idle(),)


# --- guards


def test_the_turn_guard_pauses_with_the_queue_intact() -> None:
    talk = Talk(Rules(AI, HUMANS, max_turns=2)).says("max", "sarah", "carol").replies().replies("max")
    assert talk.ending == Paused(PauseKind.TURNS, "2 turns since the last human message (limits.turns)")
    assert talk.queue == ["carol held", "max held"]
    assert talk.resume().rest() == ["carol", "max"]


def test_a_turn_guard_of_the_run_names_its_option() -> None:
    talk = Talk(Rules(AI, HUMANS, max_turns=1, turns_limit="--turns")).says("max", "sarah").replies()
    assert talk.ending == Paused(PauseKind.TURNS, "1 turn since the last human message (--turns)")


def test_agents_call_nobody_but_people_where_only_the_called_answer() -> None:
    talk = Talk(Rules(AI, HUMANS, only=True)).says("max", "sarah").replies("carol", "bob", "sarah")
    assert [action for action in talk.actions if isinstance(action, NotCalled)] == [
        NotCalled("carol", "max", "msg-2"),
        NotCalled("sarah", "max", "msg-2"),
    ]
    assert talk.queue == ["sarah running", "bob waiting"]
    assert talk.replies("max").ending == HumanAsked(talk.state.queue[0])
    assert talk.queue == ["bob asked"]


def test_the_members_of_a_group_call_nobody_either() -> None:
    talk = Talk(Rules(AI, HUMANS, only=True)).says("max+sarah").group_runs().delivers(max="carol", sarah="max")
    assert talk.ending == Idle()
    assert talk.queue == []


def test_turns_count_from_the_last_message_of_a_person() -> None:
    talk = Talk(Rules(AI, HUMANS, max_turns=2)).says("max", "sarah").replies().replies()
    assert talk.says("max", "sarah").rest() == ["max", "sarah"]


def test_resume_gives_another_round_of_turns() -> None:
    talk = Talk(Rules(AI, HUMANS, max_turns=1)).says("max", "sarah", "carol").replies()
    assert isinstance(talk.ending, Paused)
    assert talk.resume().speaking == "sarah"
    assert isinstance(talk.replies().ending, Paused)


def test_failed_turns_do_not_count() -> None:
    talk = Talk(Rules(AI, HUMANS, max_turns=2)).says("max", "sarah").fails().resume().replies()
    assert talk.speaking == "sarah"


def test_the_time_guard_pauses_with_the_queue_intact() -> None:
    talk = Talk(Rules(AI, HUMANS, max_seconds=90)).says("max", "sarah")
    talk.now += 91
    assert talk.replies().ending == Paused(PauseKind.TIME, "1.5 minutes since the last human message (limits.minutes)")
    assert talk.queue == ["sarah held"]
    assert talk.resume().rest() == ["sarah"]


def test_a_clock_that_is_set_back_begins_the_time_guard_anew() -> None:
    talk = Talk(Rules(AI, HUMANS, max_seconds=90)).says("max", "sarah", "carol")
    talk.now -= 10_000
    assert talk.replies().speaking == "sarah"
    talk.now += 91
    assert isinstance(talk.replies().ending, Paused)
    assert talk.queue == ["carol held"]


def test_a_turn_may_begin_in_the_last_moment() -> None:
    talk = Talk(Rules(AI, HUMANS, max_seconds=90)).says("max", "sarah")
    talk.now += 90
    assert talk.replies().speaking == "sarah"


def test_a_person_is_asked_whatever_the_guards_say() -> None:
    talk = Talk(Rules(AI, HUMANS, max_turns=1)).says("max").replies("kailai", "sarah")
    assert isinstance(talk.ending, HumanAsked)
    assert talk.queue == ["kailai asked", "sarah waiting"]


def test_a_guard_does_not_pause_a_conversation_that_is_over() -> None:
    rules = Rules(AI, HUMANS, max_turns=1, max_tokens=1, max_cost_usd=0.1, max_stale=1)
    assert Talk(rules).says("max").spends(9, 9.0).replies(new=False).ending == Idle()


def test_what_a_turn_costs_is_remembered_and_nothing_follows_from_it(talk: Talk) -> None:
    talk.says("max").spends(70, 0.5).spends(30, 0.25)
    assert talk.actions == ()
    assert (talk.state.tokens, talk.state.cost_usd) == (100, 0.75)


BUDGETS = pytest.mark.parametrize(
    ("rules", "kind", "reason"),
    [
        (Rules(AI, HUMANS, max_tokens=1000), PauseKind.TOKENS, "1,000 tokens are spent (limits.tokens)"),
        (Rules(AI, HUMANS, max_cost_usd=1.5), PauseKind.COST, "$1.50 are spent (limits.cost_usd)"),
    ],
)


@BUDGETS
def test_a_budget_pauses_with_the_queue_intact_and_resume_grants_it_again(
    rules: Rules, kind: PauseKind, reason: str
) -> None:
    talk = Talk(rules).says("max", "sarah", "carol").spends(999, 1.49).replies().spends(1, 0.01)
    assert talk.replies().ending == Paused(kind, reason)
    assert talk.queue == ["carol held"]
    assert talk.resume().speaking == "carol"
    assert (talk.state.tokens, talk.state.cost_usd)[kind is PauseKind.COST] == 0


@BUDGETS
def test_a_message_of_a_person_grants_no_budget(rules: Rules, kind: PauseKind, reason: str) -> None:
    talk = Talk(rules).says("max").spends(1000, 1.5).replies()
    assert talk.says("sarah").ending == Paused(kind, reason)
    assert talk.queue == ["sarah held"]


@BUDGETS
def test_resume_leaves_a_budget_that_is_not_used_up_as_it_is(rules: Rules, kind: PauseKind, reason: str) -> None:
    del kind, reason
    talk = Talk(rules).says("max").spends(600, 0.75).fails().resume()
    assert (talk.state.tokens, talk.state.cost_usd) == (600, 0.75)


def test_failed_turns_cost_too() -> None:
    talk = Talk(Rules(AI, HUMANS, max_tokens=100)).says("max", "sarah").spends(100).fails().resume()
    assert talk.state.tokens == 0
    talk.spends(100)
    assert isinstance(talk.replies().ending, Paused)


def test_without_a_limit_nothing_is_too_much(talk: Talk) -> None:
    assert talk.says("max", "sarah").spends(10**12, 10.0**9).replies(new=False).speaking == "sarah"


def test_the_loop_guard_pauses_when_nobody_says_anything_new() -> None:
    talk = Talk(Rules(AI, HUMANS, max_stale=2)).says("max").replies("sarah", new=False).replies("max", new=False)
    assert talk.ending == Paused(PauseKind.LOOP, "the last 2 replies said nothing new (limits.rounds)")
    assert talk.queue == ["max held"]
    assert talk.resume().replies("sarah", new=False).speaking == "sarah"
    assert isinstance(talk.replies("max", new=False).ending, Paused)


def test_something_new_ends_the_loop() -> None:
    talk = Talk(Rules(AI, HUMANS, max_stale=2)).says("max").replies("sarah", new=False).replies("max")
    assert talk.replies("sarah", new=False).speaking == "sarah"


def test_a_person_ends_the_loop() -> None:
    talk = Talk(Rules(AI, HUMANS, max_stale=2)).says("max").replies(new=False).says("sarah").replies("max", new=False)
    assert talk.speaking == "max"


# --- interruption and crash


def test_stopping_holds_everything(talk: Talk) -> None:
    talk.says("max", "sarah").stop()
    assert isinstance(talk.ending, Paused)
    assert talk.ending.kind is PauseKind.INTERRUPTED
    assert talk.queue == ["max held", "sarah held"]


def test_what_ran_when_the_process_died_is_held(talk: Talk) -> None:
    talk.says("max", "sarah").begins()
    assert talk.recover().actions == (Idle(),)
    assert talk.queue == ["max held", "sarah held"]
    talk.resume().begins()
    assert talk.running is not None
    assert talk.running.attempt == 2


def test_what_waited_when_the_process_died_is_held(talk: Talk) -> None:
    """It died after a turn ended and before the next one was decided."""
    talk.state = State(talk.rules, (Route("msg-1", "kailai", "msg-1", 1, "max"),), next_route=2)
    assert talk.recover().queue == ["max held"]


def test_opening_a_conversation_in_which_a_person_is_asked_changes_nothing(talk: Talk) -> None:
    before = talk.says("max").replies("kailai", "sarah").state
    assert talk.recover().state == before
    assert talk.says().rest() == ["sarah"]


def test_a_crash_while_a_person_is_asked_holds_what_ran(talk: Talk) -> None:
    talk.says("max").replies("kailai", "sarah").says("carol", by="bob").recover()
    assert talk.queue == ["carol held", "kailai asked", "sarah held"]
    assert isinstance(talk.says().ending, Idle)
    assert talk.resume().rest() == ["carol", "sarah"]


def test_the_actions_of_one_event_end_with_the_only_final_one(talk: Talk) -> None:
    talk.says("max").replies("max", "carol").replies("sarah", drops=None)
    assert [type(action) for action in talk.actions] == [Dropped, Queued, RunTurn]
    assert [action.final for action in talk.actions] == [False, False, True]


# --- set aside


def stopped(talk: Talk) -> int:
    """The number of a call that a person has stopped, behind which nobody waits."""
    talk.says("max").begins()
    return talk.stop().state.held[0].number


def speaks_instead(talk: Talk, *written: str, aside: tuple[int, ...]) -> Talk:
    return talk.take(HumanSpoke(talk.now, "msg-instead", "kailai", wishes(*written), aside=aside))


def test_what_was_stopped_is_set_aside_by_the_message_in_its_place(talk: Talk) -> None:
    number = stopped(talk)
    speaks_instead(talk, "sarah", aside=(number,))
    assert [action.route.number for action in talk.actions if isinstance(action, PutAside)] == [number]
    assert talk.rest() == ["sarah"]
    assert [route.number for route in talk.state.aside] == [number]


def test_a_resume_runs_what_is_set_aside_only_if_it_is_named(talk: Talk) -> None:
    number = stopped(talk)
    speaks_instead(talk, aside=(number,))
    assert talk.resume().actions == (Idle(),)
    assert talk.resume(ResumeMode.SKIP).actions == (Idle(),)
    assert talk.resume(only=(number,)).rest() == ["max"]
    assert talk.state.queue == ()


def test_a_failure_and_a_crash_leave_it_set_aside(talk: Talk) -> None:
    number = stopped(talk)
    speaks_instead(talk, "sarah", "carol", aside=(number,))
    talk.fails().recover()
    assert [route.number for route in talk.state.aside] == [number]
    assert [route.target for route in talk.state.held] == ["sarah", "carol"]


def test_a_drop_takes_it_out_alone_or_with_the_rest(talk: Talk) -> None:
    number = stopped(talk)
    speaks_instead(talk, "sarah", aside=(number,)).fails()
    talk.resume(ResumeMode.DROP, only=(number,))
    assert [route.target for route in talk.state.queue] == ["sarah"]
    assert talk.state.held
    assert talk.resume(ResumeMode.DROP).state.queue == ()
