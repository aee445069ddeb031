"""Branches: sessions that begin as another one was, and share its messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.conversation.sessions.branch import branch
from teamchat.core.conversation.sessions.delete import delete_session
from teamchat.core.conversation.undo.messages import plan_undo, redo_conversation, undo_conversation, undo_to_redo
from teamchat.core.errors import NoMessage, UsageError
from teamchat.core.messages import NewMessage
from teamchat.core.routing.todos import Add, Finish
from teamchat.core.store import messages
from teamchat.core.store.checking import problems
from teamchat.core.store.database import Database
from teamchat.core.store.images import Image, images_of, put_images
from teamchat.core.store.lineage import MESSAGES, OF_ID, parent_of
from teamchat.core.store.message_log import MessageLog
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.rescue import rescue
from teamchat.core.store.sessions import Session, all_sessions, create_session, last_session
from teamchat.core.store.todos import clear_todos, note_todos, todos_of
from teamchat.core.turn.run import rules_of
from tests.core.fake_conversation import Stage, team_of
from tests.core.store.message_log_contract import MessageLogContract, draft, ids


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, team_of(tmp_path, {"max": "claude", "sarah": "codex"}))


def session_of(stage: Stage, number: int | None = None) -> Session:
    (session,) = (one for one in all_sessions(stage.db) if one.id == (number or stage.session))
    return session


def branched(stage: Stage, at: str | None = None, name: str | None = None) -> Session:
    return branch(stage.db, session_of(stage), at, name)


@contextmanager
def inside(stage: Stage, session: int) -> Iterator[Stage]:
    before, stage.session = stage.session, session
    yield stage
    stage.session = before


def undo(stage: Stage, turn: int | None = None) -> None:
    plan = plan_undo(stage.db, session_of(stage), rules_of(stage.team), turn)
    undo_conversation(stage.open().run, plan)


class TestAnEmptySessionBesideAnotherIsALog(MessageLogContract):
    @pytest.fixture
    def log(self, db: Database) -> MessageLog:
        """Of a session that shares nothing but could."""
        one, other = create_session(db, "team", None), create_session(db, "team", None)
        log = SqliteLog(db, one.id)
        log.append(draft("of another session"))
        return SqliteLog(db, other.id)

    @pytest.fixture
    def db(self, tmp_path: Path) -> Iterator[Database]:
        with closing(Database(tmp_path / "teamchat.db")) as db:
            yield db


def test_it_has_the_messages_up_to_there_and_goes_on_by_itself(stage: Stage) -> None:
    stage.send("Go", to="max")
    stage.send("And", to="max")
    made = branched(stage, "msg-2", "other")
    assert (made.name, made.messages, made.turns) == ("other", 2, 0)
    assert last_session(stage.db) == made
    assert parent_of(stage.db, made.id) == ("s1", "msg-2")
    assert parent_of(stage.db, stage.session) is None
    stored = stage.db.rows("SELECT COUNT(*) FROM messages")[0][0]
    with inside(stage, made.id):
        assert stage.queue == []
        stage.send("Another way", to="sarah")
        assert [message.id for message in stage.log] == ["msg-1", "msg-2", "msg-3", "msg-4"]
        assert "Go" in stage.prompts[-1]
        assert "And" not in stage.prompts[-1].split("Another way")[0]
    assert stage.db.rows("SELECT COUNT(*) FROM messages")[0][0] == stored + 2
    assert [message.content for message in stage.log][2:] == ["And", "max has nothing to say"]
    assert list(problems(stage.db)) == []


def test_vendor_sessions_are_not_shared(stage: Stage) -> None:
    stage.member("max", memory="resume")
    stage.send("Go", to="max")
    made = branched(stage)
    with inside(stage, made.id):
        stage.send("On", to="max")
        assert stage.turns[-1].setup.fresh_because == "its first turn"
        stage.send("On", to="max")
        assert stage.turns[-1].setup.resumes is not None
    stage.send("On", to="max")
    assert stage.turns[-1].setup.resumes == "max-1"


@pytest.mark.parametrize(
    ("at", "task", "items"),
    [("msg-1", "one", ["a"]), ("msg-2", "one", ["a"]), ("msg-3", "two", ["a", "b"]), ("msg-4", "two", ["a", "b"])],
)
def test_its_task_and_todos_are_those_of_that_moment(stage: Stage, at: str, task: str, items: list[str]) -> None:
    stage.send("[TEAM_TASK: one] [TODO: a] Go", to="max")
    stage.send("[TEAM_TASK: two] [TODO: b] Go", to="max")
    stage.send("[TEAM_TASK: three] [TODO: c] Go", to="max")
    made = branched(stage, at)
    note_todos(stage.db, stage.session, [Add("later")], "kailai")
    assert made.task == task
    assert [item.added.text for item in todos_of(stage.db, made.id).items.values()] == items


def test_a_task_that_no_turn_has_seen_is_read_from_the_messages(stage: Stage) -> None:
    stage.send("[TEAM_TASK: one] Go", to="max")
    stage.send("[TEAM_TASK: two]")
    stage.send("[TEAM_TASK: three]")
    assert branched(stage, "msg-3").task == "two"
    stage.open().manager.set_team_task("by a command")
    assert branched(stage).task == "by a command"


def test_a_todo_command_after_the_branch_began_is_the_parents_alone(stage: Stage) -> None:
    stage.send("Go", to="max")
    note_todos(stage.db, stage.session, [Add("before")], "kailai")
    made = branched(stage)
    note_todos(stage.db, stage.session, [Add("parent's")], "kailai")
    note_todos(stage.db, made.id, [Add("branch's")], "kailai")

    def items(session: int) -> list[tuple[int, str]]:
        return [(item.number, item.added.text) for item in todos_of(stage.db, session).items.values()]

    assert items(stage.session) == [(1, "before"), (2, "parent's")]
    assert items(made.id) == [(1, "before"), (2, "branch's")]


def test_todo_commands_of_a_branch_that_has_said_nothing_are_in_its_own_branches(stage: Stage) -> None:
    stage.send("Go", to="max")
    stage.send("And", to="max")
    made = branched(stage, "msg-2")
    note_todos(stage.db, made.id, [Add("first"), Add("second")], "kailai")
    note_todos(stage.db, made.id, [Finish(1)], "kailai")
    with inside(stage, made.id):
        quiet, early = branched(stage, "msg-2"), branched(stage, "msg-1")
        stage.send("On", to="max")
        later = branched(stage, "msg-3")
        note_todos(stage.db, made.id, [Add("third")], "kailai")
    with inside(stage, later.id):
        back = branched(stage, "msg-2")
    clear_todos(stage.db, made.id, "kailai")
    for session in (quiet, later, back):
        items = todos_of(stage.db, session.id).items.values()
        assert [(item.added.text, item.done is None) for item in items] == [("first", False), ("second", True)]
        noted = note_todos(stage.db, session.id, [Add("next")], "kailai")
        assert [change.number for change in noted.changes] == [3]
    assert not todos_of(stage.db, early.id).items
    assert list(problems(stage.db)) == []


def test_an_undo_on_either_side_leaves_the_other_as_it_is(stage: Stage) -> None:
    stage.says = {"max": ["one", "two"]}
    stage.send("Go", to="max")
    stage.send("And", to="max")
    made = branched(stage)
    said = stage.said
    undo(stage)
    assert len(stage.said) == 3
    with inside(stage, made.id):
        assert stage.said == said
        stage.send("Elsewhere", to="sarah")
        undo(stage)
        assert stage.said == [*said, "kailai: Elsewhere"]
        with pytest.raises(UsageError, match="no turn to undo in session s2"):
            undo(stage)
    assert len(stage.said) == 3
    redo_conversation(stage.open().run, undo_to_redo(stage.db, session_of(stage)))
    assert stage.said == said
    assert list(problems(stage.db)) == []


def test_what_was_hidden_by_then_is_hidden_in_the_branch_for_good(stage: Stage) -> None:
    stage.send("Go", to="max")
    stage.send("And", to="max")
    undo(stage, 1)
    made = branched(stage)
    redo_conversation(stage.open().run, undo_to_redo(stage.db, session_of(stage)))
    log = SqliteLog(stage.db, made.id)
    assert (ids(log.all()), log.append(draft("next")).id) == (["msg-1"], "msg-2")
    undo(stage, 1)
    with pytest.raises(NoMessage, match="'msg-2' was undone"):
        branched(stage, "msg-2")


def test_a_branch_of_a_branch_at_a_message_of_the_first_session(stage: Stage) -> None:
    stage.send("Go", to="max")
    stage.send("And", to="max")
    made = branched(stage, "msg-3")
    with inside(stage, made.id):
        stage.send("Else", to="max")
        early, late = branched(stage, "msg-2"), branched(stage, "msg-4")
    assert parent_of(stage.db, early.id) == ("s1", "msg-2")
    assert parent_of(stage.db, late.id) == ("s2", "msg-4")
    assert ids(SqliteLog(stage.db, early.id).all()) == ["msg-1", "msg-2"]
    contents = [message.content for message in SqliteLog(stage.db, late.id).all()]
    assert contents == ["Go", "max has nothing to say", "And", "Else"]
    assert SqliteLog(stage.db, late.id).append(draft("x")).id == "msg-5"
    assert list(problems(stage.db)) == []


def test_summaries_hold_in_it_and_stay_whatever_is_undone(stage: Stage) -> None:
    stage.team = replace(stage.team, compactor="sarah", compact_at_tokens=100, context_window=4)
    stage.says = {"max": [f"Reply {number}. " + "x" * 100 for number in range(1, 20)]}
    stage.answers = lambda launch: "SUMMARY" if launch.identity.member == "sarah" else None
    for number in range(5):
        stage.send(f"Question {number}.", to="max")
    made, early = branched(stage), branched(stage, "msg-2")
    undo(stage, 1)
    with inside(stage, made.id):
        stage.send("On", to="max")
        assert "SUMMARY" in stage.prompts[-1]
    with inside(stage, early.id):
        stage.send("On", to="max")
        assert "SUMMARY" not in stage.prompts[-1]
    assert list(problems(stage.db)) == []


def test_images_of_shared_messages_are_shown(stage: Stage) -> None:
    stage.send("Go", to="max")
    image = Image("a.png", "png", b"\x89PNG\r\n\x1a\n")
    put_images(stage.db, stage.session, "msg-1", [image])
    made = branched(stage)
    assert images_of(stage.db, made.id, "msg-1") == (image,)


def test_a_session_with_branches_is_not_deleted(stage: Stage) -> None:
    stage.send("Go", to="max")
    made = branched(stage)
    with inside(stage, made.id):
        stage.send("On", to="max")
    with pytest.raises(UsageError, match=r"^s2 shares its messages \(a branch\); delete that first$"):
        delete_session(stage.db, session_of(stage))
    assert len(stage.log) == 2
    delete_session(stage.db, made)
    assert len(stage.log) == 2
    assert list(problems(stage.db)) == []
    delete_session(stage.db, session_of(stage))
    for table in ("lineage", "hides", "messages", "summaries", "turns", "texts", "sessions"):
        assert stage.db.rows(f"SELECT * FROM {table}") == [], table  # noqa: S608 (our own names)


def test_what_cannot_be_branched_is_refused(stage: Stage) -> None:
    with pytest.raises(UsageError, match="nothing was said in session s1 yet"):
        branched(stage)
    stage.send("Go", to="max")
    with pytest.raises(UsageError, match="session 's1' already exists"):
        branched(stage, None, "s1")
    with pytest.raises(NoMessage, match="session s1 has no message 'msg-9'"):
        branched(stage, "msg-9")
    assert [one.name for one in all_sessions(stage.db)] == ["s1"]


def test_a_rescued_store_keeps_its_branches(stage: Stage, tmp_path: Path) -> None:
    stage.send("Go", to="max")
    made = branched(stage)
    with inside(stage, made.id):
        stage.send("On", to="max")
        said = stage.said
    rescue(stage.db, tmp_path / "new" / "teamchat.db")
    with closing(Database(tmp_path / "new" / "teamchat.db")) as new:
        assert list(problems(new)) == []
        log = SqliteLog(new, made.id)
        assert [f"{message.speaker.role_name}: {message.content}" for message in log.all()] == said
        assert log.append(draft("x")).id == "msg-5"


def test_a_lost_lineage_is_found(stage: Stage) -> None:
    stage.send("Go", to="max")
    stage.db.execute("DELETE FROM lineage")
    assert "session s1 has lost its messages" in list(problems(stage.db))


QUERIES = {
    "latest": f"{messages.SHOWN} {messages.NEWEST_FIRST} LIMIT 1",
    "window": f"{messages.SHOWN} {messages.NEWEST_FIRST} LIMIT 5",
    "all": f"{messages.SHOWN} {messages.OLDEST_FIRST}",
    "one": f"{messages.SHOWN} AND messages.message = 'msg-1'",
    "id": f"SELECT ({OF_ID})",
    "count": f"SELECT COUNT(*) FROM {MESSAGES} WHERE lineage.session = ?1 AND ?2",  # noqa: S608 (our own words)
}


@pytest.mark.parametrize("name", QUERIES)
def test_no_query_scans_or_sorts(stage: Stage, name: str) -> None:
    plan = [row["detail"] for row in stage.db.rows(f"EXPLAIN QUERY PLAN {QUERIES[name]}", 1, 99)]
    assert any("lineage" in step for step in plan)
    assert not [step for step in plan if (step.startswith("SCAN ") and "CONSTANT" not in step) or "TEMP" in step], plan


class _Copy:
    """What a session is to hold: ids and texts, with what is hidden."""

    def __init__(self, said: list[tuple[str, str]], number: int) -> None:
        self.said, self.number = said, number


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_tree_of_branches_is_what_copies_would_be(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    with closing(Database(tmp_path_factory.mktemp("tree") / "teamchat.db")) as db:
        db.execute("PRAGMA synchronous = OFF")
        copies = {create_session(db, "team", None).id: _Copy([], 0)}
        for step in range(data.draw(st.integers(1, 25))):
            session = data.draw(st.sampled_from(sorted(copies)))
            copy, log = copies[session], SqliteLog(db, session)
            if data.draw(st.booleans()) and copy.said:
                at = data.draw(st.integers(0, len(copy.said) - 1))
                made = branch(db, next(one for one in all_sessions(db) if one.id == session), copy.said[at][0])
                number = int(copy.said[at][0].removeprefix("msg-"))
                copies[made.id] = _Copy(copy.said[: at + 1], number)
            else:
                stored = log.append(NewMessage(f"text {step}", draft("x").speaker))
                copy.number += 1
                assert stored.id == f"msg-{copy.number}"
                copy.said.append((stored.id, f"text {step}"))
        for session, copy in copies.items():
            log = SqliteLog(db, session)
            assert [(message.id, message.content) for message in log.all()] == copy.said
            for place, (message, content) in enumerate(copy.said):
                assert log.get(message).content == content
                before = [one.id for one in log.window(message, 3)]
                assert before == [name for name, _ in copy.said[max(place - 3, 0) : place]]
            assert [one.id for one in log.newest(2)] == [name for name, _ in copy.said[-2:]]
            latest = log.latest()
            assert (latest.id if latest else None) == (copy.said[-1][0] if copy.said else None)
        assert list(problems(db)) == []
