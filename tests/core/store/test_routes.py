"""The round trip of every reachable state is in `tests/core/engine/decide/test_properties.py`."""

from __future__ import annotations

from msgspec.structs import replace

from teamchat.core.engine.state import Route, RouteStatus, Rules, State
from teamchat.core.store.database import Database
from teamchat.core.store.routes import all_routes, load_state, open_routes, save_state
from teamchat.core.store.sessions import create_session

RULES = Rules(("max",), ("kailai",))
FULL = Route("msg-3", "max", "msg-1", 7, "sarah", 1, 2, "msg-2", RouteStatus.HELD, 4)


def test_a_new_session_has_the_first_state(db: Database, session: int) -> None:
    assert load_state(db, session, RULES) == State(RULES)


def test_every_field_is_kept(db: Database, session: int) -> None:
    state = State(RULES, (FULL,), 8, 3, 1234.56789, "sarah")
    save_state(db, session, State(RULES), state)
    assert load_state(db, session, RULES) == state


def test_the_order_is_kept_whatever_the_numbers(db: Database, session: int) -> None:
    old = State(RULES)
    for order in ([1, 2, 3], [3, 1, 2], [2], [4, 2], []):
        new = State(RULES, tuple(replace(FULL, number=number) for number in order))
        save_state(db, session, old, new)
        assert [route.number for route in open_routes(db, session)] == order
        old = new


def test_what_left_the_queue_is_done_or_dropped(db: Database, session: int) -> None:
    queue = tuple(replace(FULL, number=number) for number in (1, 2, 3))
    save_state(db, session, State(RULES), State(RULES, queue))
    save_state(db, session, State(RULES, queue), State(RULES, queue[2:]), dropped=[queue[1]])
    assert [route.status for route in all_routes(db, session)] == [
        RouteStatus.DONE,
        RouteStatus.DROPPED,
        RouteStatus.HELD,
    ]


def test_a_route_that_was_queued_and_dropped_at_once_is_kept_as_dropped(db: Database, session: int) -> None:
    """The replies of a group are one step: the second may drop what the first has asked for."""
    save_state(db, session, State(RULES), State(RULES, (), 8), dropped=[FULL])
    assert all_routes(db, session) == [replace(FULL, status=RouteStatus.DROPPED)]


def test_sessions_have_queues_of_their_own(db: Database, session: int) -> None:
    other = create_session(db, "team", None).id
    save_state(db, session, State(RULES), State(RULES, (FULL,), 8))
    assert load_state(db, other, RULES) == State(RULES)
