"""What is stored of conversations that agents run in their turns."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from teamchat.core.store.children import used_meanwhile
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import CalledBy, find_session, last_child, last_session, set_caller
from tests.core.store.test_undos import older

CALLER = CalledBy("/other/teamchat.db", "s7", 3, "max")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "older" / "teamchat.db"


def test_in_a_store_of_the_version_before_no_agent_began_anything(path: Path) -> None:
    older(path, 19).close()
    with closing(Database(path)) as db:
        found = find_session(db, "s1")
        assert found is not None
        assert found.caller is None
        assert used_meanwhile(db, found.id).turns == 0
        assert last_session(db) == found


def test_a_session_that_an_agent_began_is_the_last_one_only_in_that_turn(path: Path) -> None:
    older(path, 19).close()
    with closing(Database(path)) as db:
        set_caller(db, 1, CALLER)
        assert last_session(db) is None
        found = last_child(db, CALLER)
        assert found is not None
        assert (found.name, found.caller) == ("s1", CALLER)
        assert last_child(db, CalledBy("/other/teamchat.db", "s7", 4, "max")) is None
