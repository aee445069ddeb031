"""Messages of all sessions, found by their words."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.messages import Speaker
from teamchat.core.store import search as searching
from teamchat.core.store.database import Database
from teamchat.core.store.lineage import share_messages
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.search import Search, search
from teamchat.core.store.sessions import create_session
from teamchat.core.text.words import search_parts
from tests.core.store.message_log_contract import draft
from tests.hiding import hide

WORDS = ("slug", "Slugs", "title", "Crème", "a-b", "x_y", "日本", "42")


@pytest.fixture
def said(db: Database, session: int) -> Database:
    """Two sessions, and a branch of the first in which nothing is undone."""
    log, other = SqliteLog(db, session), SqliteLog(db, create_session(db, "team", None, "other").id)
    for text in ("the slug of a title", "undone slug", "nothing"):
        log.append(draft(text))
    other.append(replace(draft("Another SLUG"), speaker=Speaker("m", "Max", role_title=None, type="ai")))
    branch = create_session(db, "team", None, "branch")
    share_messages(db, session, branch.id, log.place("msg-3"))
    hide(db, "msg-2")
    return db


def found(db: Database, text: str, **keys: object) -> list[tuple[int, str]]:
    hits, _ = search(db, replace(Search(search_parts(text)), **keys), 20)
    return [(hit.session, hit.message) for hit in hits]


def test_all_sessions_are_searched_the_newest_message_first(said: Database) -> None:
    assert found(said, "slug") == [(2, "msg-1"), (3, "msg-2"), (1, "msg-1")]
    assert found(said, "slug title") == [(1, "msg-1")]
    assert found(said, '"slug title"') == []
    assert found(said, "sl*") == found(said, "slug")


def test_an_undone_message_is_found_where_it_is_not_undone(said: Database) -> None:
    assert found(said, "slug", session=1) == [(1, "msg-1")]
    assert found(said, "slug", session=3) == [(3, "msg-2"), (3, "msg-1")]
    hits, _ = search(said, Search(search_parts("undone"), session=1, undone=True), 20)
    assert [(hit.message, hit.undone) for hit in hits] == [("msg-2", True)]


def test_a_search_is_narrowed_by_member_and_time(said: Database) -> None:
    said.execute("UPDATE messages SET timestamp = 5000000000000 WHERE id = 4")
    assert found(said, "slug", member="max") == [(2, "msg-1")]
    assert found(said, "slug", since=6e9) == []
    assert found(said, "slug", since=4e9) == [(2, "msg-1")]
    assert found(said, "slug", since=4e9, session=1) == []


def test_hits_beyond_the_limit_are_counted_up_to_a_bound(
    said: Database, session: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SqliteLog(said, session)
    for _ in range(9):
        log.append(draft("many"))
    assert [len(hits) for hits, _ in (search(said, Search(search_parts("many")), limit) for limit in (4, 0))] == [4, 9]
    assert search(said, Search(search_parts("many")), 4)[1] == 5
    monkeypatch.setattr(searching, "COUNTED", 2)
    assert search(said, Search(search_parts("many")), 4)[1] == 2


def test_no_search_reads_a_whole_table_or_sorts(said: Database) -> None:
    values = ("slug", 0, 9, None, None, None, 0, 20)
    plans = [
        *said.rows(f"EXPLAIN QUERY PLAN {searching.HITS}", *values),
        *said.rows(f"EXPLAIN QUERY PLAN {searching.COUNT}", *values),
        *said.rows(f"EXPLAIN QUERY PLAN {searching.BOUNDS}", 1),
        *said.rows(f"EXPLAIN QUERY PLAN {searching.FIRST_SINCE}", 1),
    ]
    steps = [str(row["detail"]) for row in plans]
    scans = [step for step in steps if step.startswith("SCAN")]
    assert all(
        step.startswith(("SCAN message_text VIRTUAL TABLE INDEX", "SCAN CONSTANT", "SCAN (subquery")) for step in scans
    ), scans
    assert not [step for step in steps if "TEMP B-TREE" in step]


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), max_size=8), st.sampled_from(WORDS)
)
def test_every_message_with_the_word_is_found_and_every_hit_has_it(texts: list[str], word: str) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(Database(Path(folder) / "teamchat.db")) as db:
        log = SqliteLog(db, create_session(db, "team", None).id)
        for text in texts:
            log.append(draft(text))
        hits, _ = search(db, Search(search_parts(word)), 0)
        expected = [
            f"msg-{number}" for number, text in enumerate(texts, 1) if word.casefold() in text.casefold().split()
        ]
        assert [hit.message for hit in hits] == expected[::-1]
        assert all(any(piece.found for piece in hit.snippet) for hit in hits)
