"""What a run has quoted is kept in memory, and every prompt quotes what one of a new process would."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teamchat.core.messages import Said
from teamchat.core.store import messages
from teamchat.core.store.database import Database
from teamchat.core.store.lineage import hide_messages
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.rows import Row
from teamchat.core.store.sessions import create_session
from tests.core.store.message_log_contract import draft
from tests.trials import trials


class CountedLog(SqliteLog):
    """Counts the messages that are read from the store."""

    read = 0

    def _a_quote(self, row: Row) -> tuple[int, Said]:
        self.read += 1
        return super()._a_quote(row)


def said(log: SqliteLog, size: int = 100) -> list[str]:
    latest = log.latest()
    return [one.text for one in log.said(latest.id, size)] if latest else []


def test_the_next_prompt_reads_only_what_is_new(db: Database, session: int) -> None:
    log = CountedLog(db, session)
    for number in range(10):
        log.append(draft(f"{number} [NEXT: max]"))
    assert said(log) == list("012345678")
    log.append(draft("x"))
    log.append(draft("y"))
    assert said(log) == [*"0123456789", "x"]
    assert log.read == 9 + 2


def test_a_wider_window_reads_what_is_older(db: Database, session: int) -> None:
    log = CountedLog(db, session)
    for number in range(10):
        log.append(draft(f"{number}"))
    assert said(log, 3) == list("678")
    assert [one.text for one in log.said("msg-7", 4)] == list("2345")
    assert said(log, 7) == list("2345678")
    assert log.read == 7


Step = tuple[Callable[[Database, SqliteLog, int], object], int]


def append(_: Database, log: SqliteLog, number: int) -> None:
    log.append(draft(f"text {number} [NEXT: max]"))


def append_in_vain(db: Database, log: SqliteLog, number: int) -> None:
    """The message is read, too, and its id is given to the next one."""
    with contextlib.suppress(ZeroDivisionError), db.transaction():
        log.append(draft(f"in vain {number}"))
        log.append(draft("the latest"))
        said(log)
        raise ZeroDivisionError


def hide_one(db: Database, log: SqliteLog, number: int) -> None:
    if shown := log.all():
        hide_messages(db, log.session, [shown[number % len(shown)].id])


def show_all(db: Database, log: SqliteLog, _: int) -> None:
    db.execute("DELETE FROM hides WHERE session = ?", log.session)


def read(_: Database, log: SqliteLog, number: int) -> None:
    said(log, number)


@pytest.mark.parametrize("most", [messages.MOST_CHARACTERS, 3 * messages.OVERHEAD])
@settings(max_examples=trials(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from([append, append, append_in_vain, hide_one, show_all, read]), st.integers(1, 9)),
        max_size=25,
    ),
    size=st.integers(1, 30),
)
def test_a_prompt_quotes_what_one_of_a_new_process_would(
    db: Database, monkeypatch: pytest.MonkeyPatch, steps: list[Step], size: int, most: int
) -> None:
    monkeypatch.setattr(messages, "MOST_CHARACTERS", most)
    db.execute("PRAGMA synchronous = OFF")
    session = create_session(db, "team", None).id
    log = SqliteLog(db, session)
    for step, number in steps:
        step(db, log, number)
        assert said(log, size) == said(SqliteLog(db, session), size)
