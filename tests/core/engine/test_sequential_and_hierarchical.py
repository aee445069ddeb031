"""What is true of a sequential and of a hierarchical process whatever fails, is skipped, stopped or undone."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from teamchat.core.engine.decide import decide
from teamchat.core.engine.events import Deliver, Idle, RunGroup, RunTurn, Undone
from teamchat.core.engine.state import RouteStatus, Rules, State
from teamchat.core.engine.workflow import Done, Handout, Kind, Process
from teamchat.core.store.database import Database
from teamchat.core.store.routes import load_state, save_state
from teamchat.core.store.sessions import create_session
from tests.core.engine.driver import AI, HUMANS
from tests.core.engine.worked import CHAOS, Handed, Worked
from tests.trials import trials

WORKERS = ("sarah", "carol")


def after_lead(process: Process) -> Iterator[tuple[Done, list[str]]]:
    """Each turn of the lead that called somebody, and who spoke before its next one."""
    places = [place for place, done in enumerate(process.done) if done.part.role == "lead"]
    for here, there in pairwise([*places, len(process.done)]):
        if isinstance(process.done[here].finding, Handout):
            yield process.done[here], [done.member for done in process.done[here + 1 : there]]


handouts = st.lists(
    st.sampled_from(((("sarah",),), (("carol",), ("sarah",)), (("sarah", "carol"),))), min_size=0, max_size=4
)
one_by_one = st.lists(st.sampled_from(((("sarah",),), (("carol",), ("sarah",)))), min_size=0, max_size=4)
processes = st.one_of(
    st.builds(
        lambda members, rounds: Process(Kind.SEQUENTIAL, tuple(members), "max", rounds=rounds),
        st.permutations(AI).flatmap(lambda names: st.integers(1, 3).map(lambda most: names[:most])),
        st.integers(1, 3),
    ),
    st.just(Process(Kind.HIERARCHICAL, AI, "max")),
)


@settings(max_examples=trials(100), deadline=None)
@given(processes, handouts, CHAOS, st.integers(1, 9))
def test_whatever_happens_everybody_is_asked_in_order_and_no_guard_is_exceeded(
    process: Process, handed: list[Handed], happens: list[str], turns: int
) -> None:
    talk = Worked(Rules(AI, HUMANS, "max", max_turns=turns)).begin(process, handed)
    talk.goes_through(happens)

    assert talk.process.over
    assert isinstance(talk.ending, Idle)
    assert talk.state.queue == ()
    if process.kind is Kind.SEQUENTIAL:
        assert [done.member for done in talk.process.done] == list(process.members) * process.rounds
    for lead, spoke in after_lead(talk.process):
        assert isinstance(lead.finding, Handout)
        called = [request.target for request in lead.finding.requests]
        assert sorted(spoke) == sorted(called)


@settings(max_examples=trials(15), deadline=None)
@given(processes, one_by_one, CHAOS)
def test_a_process_survives_the_store_and_an_undo(process: Process, handed: list[Handed], happens: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        db = Database(Path(folder) / "teamchat.db")
        try:
            assert_stored_as_it_is(db, Worked(Rules(AI, HUMANS, "max")).begin(process, handed), happens)
        finally:
            db.close()


def assert_stored_as_it_is(db: Database, talk: Worked, happens: list[str]) -> None:
    session = create_session(db, "crew", None).id
    saved = load_state(db, session, talk.rules)
    for what in [*happens, *["goes"] * 60]:
        before = talk.state
        save_state(db, session, saved, talk.state)
        saved = load_state(db, session, talk.rules)
        assert saved == talk.state
        if talk.process.over:
            break
        if isinstance(talk.ending, RunTurn | RunGroup | Deliver):
            talk.next(fails=what == "fails")
        else:
            talk.resume()
        assert_undone(before, talk.state)


def assert_undone(before: State, now: State) -> None:
    undone, _ = decide(now, Undone(1000.0, before))
    assert undone.process == before.process
    assert {route.number for route in undone.queue} == {route.number for route in before.queue}
    assert all(route.status in (RouteStatus.HELD, RouteStatus.ASKED) for route in undone.queue)
