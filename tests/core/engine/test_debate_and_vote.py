"""What is true of a debate and of a vote whatever fails, is skipped, stopped or killed."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from teamchat.core.engine.events import Idle
from teamchat.core.engine.processes import debate, vote
from teamchat.core.engine.state import Route, Rules
from teamchat.core.engine.workflow import Kind, Process
from tests.core.engine.driver import AI, HUMANS
from tests.core.engine.worked import CHAOS, Worked
from tests.trials import trials

OPTIONS = ("SQLite", "flat files")


class Answering(Worked):
    """Everybody answers in the form that is asked for."""

    def reply(self, route: Route) -> str:
        fields = {
            "option": OPTIONS[route.number % 2],
            "position": "x",
            "changed": True,
            "agree": ["max"],
            "dissent": {},
        }
        return json.dumps(fields)


def members(least: int) -> st.SearchStrategy[tuple[str, ...]]:
    return st.permutations(AI).flatmap(lambda names: st.integers(least, 3).map(lambda most: tuple(names[:most])))


@settings(max_examples=trials(100), deadline=None)
@given(members(2), st.integers(1, 3), CHAOS, st.integers(1, 9))
def test_in_a_debate_everybody_is_asked_once_a_round_and_sees_only_the_rounds_before(
    names: tuple[str, ...], rounds: int, happens: list[str], turns: int
) -> None:
    talk = Answering(Rules(AI, HUMANS, "max", max_turns=turns))
    talk.begin(Process(Kind.DEBATE, names, "max", rounds=rounds)).goes_through(happens)
    assert talk.process.over
    assert isinstance(talk.ending, Idle)
    asked = [(done.part.seat, done.part.number) for done in talk.process.done if done.part.role != debate.SYNTHESIS]
    assert sorted(asked) == sorted((name, number) for name in names for number in range(rounds + 1))
    said = {done.message: done.part for done in talk.process.done if done.message}
    for done in talk.process.done:
        if done.part.role != debate.SYNTHESIS:
            assert all(said[message].number < done.part.number for message in done.part.shows)
    result = debate.report(talk.process)
    answered = {done.part.seat for done in talk.process.done if done.message and done.part.seat}
    assert set(result.missing) == set(names) - answered
    assert result.agreement in (None, ("max" in names) / len(names))


@settings(max_examples=trials(100), deadline=None)
@given(members(1), CHAOS, st.integers(1, 9))
def test_in_a_vote_everybody_votes_exactly_once_or_is_missing(
    names: tuple[str, ...], happens: list[str], turns: int
) -> None:
    talk = Answering(Rules(AI, HUMANS, "max", max_turns=turns))
    talk.begin(Process(Kind.VOTE, names, "max", options=OPTIONS)).goes_through(happens)
    assert talk.process.over
    assert isinstance(talk.ending, Idle)
    result = vote.report(talk.process)
    assert sorted((*(cast.member for cast in result.votes), *result.missing)) == sorted(names)
    assert sum(result.tally.values()) == len(result.votes)
    assert (result.winner is None) is (result.tie or not result.votes)
