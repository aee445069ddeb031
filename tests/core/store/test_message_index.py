"""Messages are added to the index of words together, and none is missing from a search."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.store import message_index
from teamchat.core.store.checking import problems
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.rescue import rescue
from teamchat.core.store.search import Search, search
from teamchat.core.store.sessions import create_session, remove_session
from teamchat.core.text.words import search_parts
from tests.core.store.message_log_contract import draft


def found(db: Database, word: str) -> list[str]:
    return [hit.message for hit in search(db, Search(search_parts(word)), 0)[0]][::-1]


def waiting(db: Database) -> int:
    """How many messages are not in the index yet."""
    return int(db.rows("SELECT COUNT(*) AS many FROM messages WHERE id > (SELECT through FROM indexed)")[0]["many"])


def test_messages_wait_until_there_are_many_or_one_is_long_or_a_search_comes(
    db: Database, session: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_index, "INDEXED_TOGETHER", 4)
    log = SqliteLog(db, session)
    for wait in (1, 2, 3, 0, 1):
        log.append(draft("word"))
        assert waiting(db) == wait
    log.append(draft("word " * message_index.LONG))
    assert waiting(db) == 0
    log.append(draft("word"))
    assert found(db, "word") == [f"msg-{number}" for number in range(1, 8)]
    assert waiting(db) == 0


def test_what_a_killed_process_has_stored_is_found_by_the_next(db: Database, session: int, path: Path) -> None:
    SqliteLog(db, session).append(draft("word"))
    assert waiting(db) == 1
    with closing(Database(path)) as next_one:
        assert found(next_one, "word") == ["msg-1"]


def test_what_was_not_stored_after_all_is_not_in_the_index(
    db: Database, session: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_index, "INDEXED_TOGETHER", 2)
    log = SqliteLog(db, session)
    log.append(draft("word"))
    with db.taken_back():
        log.append(draft("word"))
        assert waiting(db) == 0
    log.append(draft("other"))
    assert (found(db, "word"), found(db, "other")) == (["msg-1"], ["msg-2"])


def test_many_that_wait_are_added_in_short_transactions(
    db: Database, session: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SqliteLog(db, session)
    for _ in range(5):
        log.append(draft("word"))
    monkeypatch.setattr(message_index, "AT_ONCE", 8)
    commits: list[str] = []
    db._connection.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
    message_index.index_messages(db)
    assert (len(commits), waiting(db)) == (3, 0), "two words at once"
    assert len(found(db, "word")) == 5


def test_a_rescued_store_is_searched_to_its_last_message(db: Database, session: int, path: Path) -> None:
    log = SqliteLog(db, session)
    for _ in range(3):
        log.append(draft("word"))
    rescue(db, path.parent / "new.db")
    with closing(Database(path.parent / "new.db")) as new:
        assert found(new, "word") == ["msg-1", "msg-2", "msg-3"]
        assert list(problems(new)) == []


@pytest.mark.parametrize("sql", ["DELETE FROM indexed", "UPDATE indexed SET through = 9"])
def test_a_lost_note_of_what_is_indexed_is_a_problem_of_the_store(db: Database, sql: str) -> None:
    db.execute(sql)
    assert list(problems(db)) == ["a search does not find all messages"]


@given(st.lists(st.integers(1, 9), max_size=9), st.integers(0, 10))
def test_a_search_from_a_time_on_finds_what_was_said_since_in_whatever_order(seconds: list[int], since: int) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Database(Path(folder) / "teamchat.db")) as db,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(message_index, "INDEXED_TOGETHER", 2)
        log = SqliteLog(db, create_session(db, "team", None).id)
        said = [(log.append(replace(draft("word"), timestamp=1000 * at)).id, at) for at in seconds]
        hits = search(db, Search(search_parts("word"), since=since), 0)[0]
        assert [hit.message for hit in hits][::-1] == [message for message, at in said if at >= since]


STEPS = st.lists(st.one_of(st.sampled_from(("say one", "say two", "say long", "search", "restart")), st.integers(0, 2)))


@given(STEPS)
def test_whatever_is_said_deleted_and_searched_every_word_is_found_where_it_is(steps: list[str | int]) -> None:
    """A number deletes the session of that name, and messages of a later one get the ids of the deleted ones."""
    said: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "teamchat.db"
        db = Database(path)
        sessions: dict[str, int] = {}
        for at, step in enumerate(steps):
            name = f"s{at % 3}"
            if isinstance(step, int):
                name = f"s{step}"
                if name in sessions:
                    remove_session(db, sessions.pop(name))
                    del said[name]
            elif step == "restart":
                db.close()
                db = Database(path)
            elif step == "search":
                found(db, "one")
                db.execute("INSERT INTO message_text (message_text, rank) VALUES ('integrity-check', 1)")
            else:
                if name not in sessions:
                    sessions[name], said[name] = create_session(db, "team", None, name).id, []
                text = "one long " * message_index.LONG if step == "say long" else step
                message = SqliteLog(db, sessions[name]).append(draft(text)).id
                said[name] += [message] * ("one" in text)
        hits = [(hit.session, hit.message) for hit in search(db, Search(search_parts("one")), 0)[0]]
        db.execute("INSERT INTO message_text (message_text, rank) VALUES ('integrity-check', 1)")
        assert list(problems(db)) == []
        db.close()
    assert sorted(hits) == sorted((sessions[name], message) for name, ids in said.items() for message in ids)


SENTENCES = {
    "我们需要实现全文搜索功能，然后部署到服务器。": ("全文搜索", "部署", "服务器", "搜索 部署", '"实现全文"', "部署*"),
    "日本語の全文検索も必要です": ("検索", "必要", "全文検索"),
    "ต้องการค้นหาข้อความ": ("ค้นหา", "ข้อความ"),
    "用React写的ログイン画面v2です": ("React", "react", "ログイン", "写的ログ", "v2"),
    "한국어로 검색합니다": ("검색", "한국어"),
    "ភាសាខ្មែរ": ("ខ្មែរ",),
}


@pytest.mark.parametrize(("text", "word"), [(text, word) for text, words in SENTENCES.items() for word in words])
def test_a_word_in_a_script_without_spaces_is_found(db: Database, session: int, text: str, word: str) -> None:
    log = SqliteLog(db, session)
    log.append(draft("another one"))
    log.append(draft(text))
    assert found(db, word) == ["msg-2"]


@pytest.mark.parametrize("word", ["索全", "文実", "eact", "v3", "검합"])
def test_signs_that_do_not_follow_each_other_find_nothing(db: Database, session: int, word: str) -> None:
    log = SqliteLog(db, session)
    for text in SENTENCES:
        log.append(draft(text))
    assert found(db, word) == []
