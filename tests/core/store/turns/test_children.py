"""What is stored of conversations that agents run in their turns."""

from __future__ import annotations

from teamchat.core.store.database import Database
from teamchat.core.store.sessions import CalledBy, last_child, last_session, set_caller

CALLER = CalledBy("/other/teamchat.db", "s7", 3, "max")


def test_a_session_that_an_agent_began_is_the_last_one_only_in_that_turn(db: Database, session: int) -> None:
    set_caller(db, session, CALLER)
    assert last_session(db) is None
    found = last_child(db, CALLER)
    assert found is not None
    assert (found.name, found.caller) == ("s1", CALLER)
    assert last_child(db, CalledBy("/other/teamchat.db", "s7", 4, "max")) is None
