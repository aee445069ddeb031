from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from teamchat.core.errors import DamagedStore, ExitCode, StoreError
from teamchat.core.files.folders import WRITABLE
from teamchat.core.store import database
from teamchat.core.store.database import Database
from teamchat.core.store.message_index import index_messages
from teamchat.core.store.schema import VERSION
from teamchat.core.store.sessions import all_sessions, create_session
from tests.program import ROOT

TABLES = [
    "accepted", "adoptions", "checks", "children", "clears", "hides", "images", "imported_entries", "indexed",
    "lessons", "lineage", "message_times", "messages", "routes", "sessions", "summaries", "texts",
    "todo_changes", "turn_events", "turns", "undos", "unsent", "usage", "vendor_usage",
]  # fmt: skip


@contextmanager
def refused(path: Path) -> Iterator[pytest.ExceptionInfo[StoreError]]:
    """A failure of the store: exit code 13, one line that names the file, and something to do."""
    with pytest.raises(StoreError) as caught:
        yield caught
    assert caught.value.code == ExitCode.STORE
    assert str(caught.value).startswith(f"the store {path} ")
    assert "\n" not in str(caught.value)
    assert caught.value.hint or "; " in str(caught.value)


def tables(db: Database) -> list[str]:
    rows = db.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
    inner = ("message_text", "lesson_words", "sqlite_")
    return sorted(row["name"] for row in rows if not row["name"].startswith(inner))


def names(db: Database) -> list[str]:
    return sorted(session.name for session in all_sessions(db))


# --- opening


def test_a_new_store_has_every_table_and_its_version(db: Database) -> None:
    assert tables(db) == TABLES
    assert db.version() == VERSION


def test_opening_a_store_again_keeps_what_is_in_it(db: Database, path: Path) -> None:
    create_session(db, "team", "task")
    with closing(Database(path)) as again:
        assert names(again) == ["s1"]


def test_a_store_is_for_its_user_alone_and_safe_against_a_power_cut(db: Database, path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [row[0] for row in db.rows("PRAGMA journal_mode")] == ["wal"]
    assert [row[0] for row in db.rows("PRAGMA synchronous")] == [2]
    assert [row[0] for row in db.rows("PRAGMA foreign_keys")] == [1]


def test_a_transaction_before_another_is_one_and_the_next_is_safe_again(db: Database) -> None:
    with db.transaction_before_another():
        create_session(db, "team", "task", "kept")
    with suppress(ZeroDivisionError), db.transaction_before_another():
        create_session(db, "team", "task", "undone")
        raise ZeroDivisionError
    with db.taken_back(), db.transaction_before_another():
        create_session(db, "team", "task", "taken back")
    assert names(db) == ["kept"]
    assert db.the(lambda row: row.integer("synchronous"), "PRAGMA synchronous") == 2


def test_a_store_of_a_newer_teamchat_is_refused(path: Path) -> None:
    with closing(Database(path)) as db:
        db.execute("PRAGMA user_version = 99")
    with refused(path) as caught:
        Database(path)
    assert str(caught.value) == f"the store {path} was written by a newer teamchat; upgrade teamchat"


@pytest.mark.parametrize("version", [1, VERSION - 1])
def test_a_store_of_a_development_version_is_refused_with_how_to_move_it_away(path: Path, version: int) -> None:
    with closing(Database(path)) as db:
        create_session(db, "team", "task")
        db.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with refused(path) as caught:
        Database(path)
    assert str(caught.value) == f"the store {path} is of a development version of teamchat; move it away to start anew"
    assert path.read_bytes() == before
    assert caught.value.hint is not None
    subprocess.run(["sh", "-c", caught.value.hint], check=True)
    with closing(Database(path)) as db:
        assert names(db) == []
    assert path.parent.with_name(f"{path.parent.name}.old").joinpath(path.name).read_bytes() == before


# --- what can be wrong with the file


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database, but long enough to have a header" * 100)
    with refused(path) as caught:
        Database(path)
    assert str(caught.value) == f"the store {path} is damaged: file is not a database"
    assert caught.value.hint == "teamchat doctor --store"


def test_a_damaged_store_is_refused(path: Path) -> None:
    with closing(Database(path)) as db:
        create_session(db, "team", None)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with refused(path) as caught, closing(Database(path)) as db:
        create_session(db, "team", None)
    assert "malformed" in str(caught.value)


def test_a_schema_that_is_no_text_is_damage(path: Path) -> None:
    Database(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = 'x', name = CAST(x'f028' AS TEXT) WHERE name = 'turns'")
        db.commit()
    with refused(path) as caught:
        Database(path)
    assert isinstance(caught.value, DamagedStore)


@pytest.mark.parametrize("size", [0, 1, 99, 100, 511, 512, 4095, 4096, 8192, 20_000])
def test_a_store_that_was_cut_short_is_damaged_and_never_empty(path: Path, size: int) -> None:
    with closing(Database(path)) as db:
        create_session(db, "team", None)
    with path.open("r+b") as file:
        file.truncate(size)
    with refused(path) as caught, closing(Database(path)) as db:
        all_sessions(db)
    assert isinstance(caught.value, DamagedStore)


def test_a_store_that_is_gone_is_damaged_where_conversations_were_run(path: Path) -> None:
    Database(path).close()
    path.unlink()
    Database(path).close()
    path.unlink()
    (path.parent / "session-1.lock").touch()
    with refused(path) as caught:
        Database(path)
    assert str(caught.value) == f"the store {path} is damaged: the file is gone, and there were conversations in it"


def test_a_new_store_appears_whole_whoever_was_killed_over_it(path: Path) -> None:
    path.parent.mkdir(parents=True)
    for name in ("teamchat.db.new", "teamchat.db.new-wal"):
        path.with_name(name).write_text("half")
    with closing(Database(path)) as db:
        assert tables(db) == TABLES
    assert sorted(file.name for file in path.parent.iterdir()) == ["teamchat.db", "teamchat.db.lock"]


def test_a_new_store_has_a_write_ahead_log_before_anyone_opens_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite refuses, without waiting, one of two processes that turn it on at the same moment."""
    monkeypatch.setattr(Database, "_prepare", lambda _: None)
    Database(path).close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_folder_that_can_not_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "state" / "teamchat.db"
    with refused(path) as caught:
        Database(path)
    assert str(caught.value).endswith(f"cannot be used: Not a directory; {WRITABLE}")


def test_a_folder_in_place_of_the_file_is_refused(path: Path) -> None:
    path.mkdir(parents=True)
    with refused(path) as caught:
        Database(path)
    assert str(caught.value).endswith(f"unable to open database file; {WRITABLE}")


def test_a_full_disk_is_refused_and_what_was_there_stays(db: Database, path: Path) -> None:
    create_session(db, "team", None)
    pages = db.rows("PRAGMA page_count")[0][0]
    db.execute(f"PRAGMA max_page_count = {pages}")
    with refused(path) as caught, db.transaction():
        create_session(db, "team", None)
        create_session(db, "team", "x" * 1_000_000)
    assert str(caught.value).endswith("cannot be written: its disk is full; free some space there")
    assert names(db) == ["s1"]


def test_a_full_disk_while_only_looking_is_told_as_such(db: Database, path: Path) -> None:
    pages = db.rows("PRAGMA page_count")[0][0]
    db.execute(f"PRAGMA max_page_count = {pages}")
    with refused(path) as caught, db.taken_back():
        create_session(db, "team", "x" * 1_000_000)
    assert str(caught.value).endswith("cannot be written: its disk is full; free some space there")


def test_what_is_larger_than_any_value_can_be_is_refused_and_what_was_there_stays(db: Database, path: Path) -> None:
    with refused(path) as caught, db.transaction():
        create_session(db, "team", None)
        db.row("SELECT zeroblob(2000000000)")
    assert str(caught.value).endswith("string or blob too big; send less of it at once")
    assert names(db) == []


def test_a_store_that_stays_locked_is_refused(db: Database, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    with closing(Database(path)) as other, db.transaction(), refused(path) as caught:
        create_session(other, "team", None)
    assert str(caught.value).endswith("database is locked; wait until the other teamchat that writes to it is done")


# --- transactions


def test_a_transaction_is_kept_as_a_whole(db: Database, path: Path) -> None:
    with db.transaction():
        create_session(db, "team", None)
        create_session(db, "team", None)
        with closing(Database(path)) as other:
            assert names(other) == []
    with closing(Database(path)) as other:
        assert names(other) == ["s1", "s2"]


def fail_halfway(db: Database, error: BaseException) -> None:
    with db.transaction():
        create_session(db, "team", None)
        with db.transaction():
            create_session(db, "team", None)
        raise error


@pytest.mark.parametrize("error", [RuntimeError(), KeyboardInterrupt()])
def test_a_transaction_that_fails_leaves_nothing(db: Database, error: BaseException) -> None:
    with pytest.raises(type(error)):
        fail_halfway(db, error)
    assert names(db) == []
    create_session(db, "team", None)
    assert names(db) == ["s1"]


def test_what_is_taken_back_was_there_while_it_lasted(db: Database) -> None:
    with db.taken_back():
        create_session(db, "team", None)
        with db.transaction():
            create_session(db, "team", None)
        assert names(db) == ["s1", "s2"]
    assert names(db) == []


# --- several processes

WRITER = """
import sys
from pathlib import Path
from teamchat.core.messages import NewMessage, Speaker
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import create_session
sys.stdin.readline()  # so that all of them begin at once
db = Database(Path(sys.argv[1]))
log = SqliteLog(db, create_session(db, "team", None).id)
for number in range(20):
    log.append(NewMessage(f"message {number}", Speaker("max", "max", type="ai")))
print(log.session)
"""


def test_many_processes_open_a_new_store_and_write_to_it_at_once(path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
        )
        for _ in range(4)
    ]
    for writer in writers:
        assert writer.stdin
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    sessions = sorted(int(writer.communicate(timeout=60)[0]) for writer in writers)
    assert sessions == [1, 2, 3, 4]
    with closing(Database(path)) as db:
        assert tables(db) == TABLES
        assert names(db) == ["s1", "s2", "s3", "s4"]
        assert [row[0] for row in db.rows("SELECT COUNT(*) FROM messages GROUP BY session")] == [20] * 4
        assert [row[0] for row in db.rows("PRAGMA integrity_check")] == ["ok"]


def test_words_of_messages_are_indexed(db: Database, session: int) -> None:
    from teamchat.core.messages import NewMessage, Speaker
    from teamchat.core.store.messages import SqliteLog

    log = SqliteLog(db, session)
    for text in ("the login page", "nothing", "Login again"):
        log.append(NewMessage(text, Speaker("kailai", "kailai", type="human")))
    index_messages(db)
    found = db.rows("SELECT rowid FROM message_text WHERE message_text MATCH 'login' ORDER BY rowid")
    assert [row["rowid"] for row in found] == [1, 3]


def test_of_a_long_message_the_beginning_is_indexed_and_goes_with_it(db: Database, session: int) -> None:
    from teamchat.core.messages import NewMessage, Speaker
    from teamchat.core.store.messages import SqliteLog

    text = f"begin {'水 ' * 499_995}end behind"
    SqliteLog(db, session).append(NewMessage(text, Speaker("max", "max", type="ai")))

    def found(word: str) -> int:
        return len(db.rows("SELECT rowid FROM message_text WHERE message_text MATCH ?", word))

    assert [found(word) for word in ("begin", "end", "behind")] == [1, 1, 0]
    db.execute("INSERT INTO message_text (message_text, rank) VALUES ('integrity-check', 1)")
    db.execute("DELETE FROM messages")
    assert [found(word) for word in ("begin", "end", "behind")] == [0, 0, 0]
    db.execute("INSERT INTO message_text (message_text, rank) VALUES ('integrity-check', 1)")
