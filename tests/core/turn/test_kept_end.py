"""A store that cannot be written when a turn ends: what the agent said is kept, and nobody is asked twice."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from teamchat.core.engine.events import ResumeMode
from teamchat.core.errors import ExitCode, StoreError
from teamchat.core.receipt import Outcome
from teamchat.core.store import database
from teamchat.core.store.turn_events import TimedEvent
from teamchat.core.store.turns import partial_of
from teamchat.core.turn import kept_end
from teamchat.core.turn.execution import FinishedTurn
from teamchat.core.turn.run_events import Conclusion
from teamchat.runners.agent_events import Denied, Failure, FailureKind, Text, ToolCall, ToolResult, Usage
from teamchat.runners.child.running import Launch
from tests.core.fake_conversation import Fails, Reply, Stage, team_of


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    team = team_of(tmp_path, {"max": "plain", "sarah": "claude", "dora": "codex"})
    return Stage(tmp_path, team, says={"max": ["Plan it. [NEXT: sarah]"], "sarah": ["Fine."], "dora": ["Yes."]})


@contextmanager
def locked_when(stage: Stage, runs: str) -> Iterator[None]:
    """Somebody else writes to the store from the moment when that member's agent runs until the end."""
    with closing(sqlite3.connect(stage.db.path, isolation_level=None)) as other:

        def answers(launch: Launch) -> Reply | None:
            if launch.identity.member == runs:
                other.execute("BEGIN IMMEDIATE")
            return None

        stage.answers = answers
        yield
        stage.answers = lambda _: None


def locked(stage: Stage, runs: str, send: Callable[[], object]) -> None:
    with locked_when(stage, runs):
        send()


def test_a_store_that_stays_locked_costs_no_reply(stage: Stage) -> None:
    with locked_when(stage, "max"):
        end = stage.send("Begin", to="max")
        assert end.code is ExitCode.STORE
        assert end.reason == (
            f"the store {stage.db.path} cannot be used: database is locked; "
            "wait until the other teamchat that writes to it is done; "
            "the end of turn 1 (max) is kept, and the next command stores it"
        )
        assert end.hint == "teamchat resume"
        assert stage.said == ["kailai: Begin"]
    assert stage.resume().code is ExitCode.DONE
    assert stage.warnings == ["turn 1 (max) had finished and is stored now"]
    assert stage.said == ["kailai: Begin", "max: Plan it. [NEXT: sarah]", "sarah: Fine."]
    assert stage.spoke == ["max", "sarah"]
    assert [turn.status for turn in stage.turns] == ["done", "done"]
    assert not list((stage.folder / "turns").iterdir())


def test_where_nothing_else_waits_resume_has_only_to_store_it(stage: Stage) -> None:
    locked(stage, "sarah", lambda: stage.send("Begin", to="sarah"))
    end = stage.resume()
    assert (end.code, end.text, stage.spoke) == (ExitCode.DONE, "Fine.", ["sarah"])
    assert stage.queue == []


def test_send_stores_it_too_and_leaves_what_it_asks_for_to_resume(stage: Stage) -> None:
    locked(stage, "max", lambda: stage.send("Begin", to="max"))
    stage.send("And you?", to="dora")
    assert stage.said == ["kailai: Begin", "max: Plan it. [NEXT: sarah]", "kailai: And you?", "dora: Yes."]
    assert stage.queue == ["sarah held"]


def test_it_is_kept_for_as_long_as_the_store_is_locked(stage: Stage) -> None:
    with locked_when(stage, "max"):
        stage.send("Begin", to="max")
        with pytest.raises(StoreError, match="database is locked"):
            stage.resume()
    assert stage.resume(ResumeMode.DROP).code is ExitCode.DONE
    assert stage.said == ["kailai: Begin", "max: Plan it. [NEXT: sarah]"]
    assert stage.spoke == ["max"]


def test_of_a_group_each_reply_is_kept(stage: Stage) -> None:
    stage.says["max"] = ["Mine."]
    locked(stage, "max", lambda: stage.send("Begin", to="max+sarah+dora"))
    assert stage.resume().code is ExitCode.DONE
    assert stage.said == ["kailai: Begin", "max: Mine.", "sarah: Fine.", "dora: Yes."]
    assert sorted(stage.spoke) == ["dora", "max", "sarah"]


def test_a_turn_that_failed_is_stored_as_such_and_its_partial_text(stage: Stage) -> None:
    stage.says["max"] = [Fails("half", 3, "broke")]
    locked(stage, "max", lambda: stage.send("Begin", to="max"))
    stage.open()
    (turn,) = stage.turns
    assert (turn.status, partial_of(stage.db, turn)) == ("failed", "half")
    assert turn.outcome is not None
    assert turn.outcome.failure == Failure(FailureKind.AGENT, "ended with exit code 3: broke")
    assert stage.queue == ["max held"]


def test_what_is_said_of_a_turn_that_is_stored_later_is_how_it_ended(stage: Stage) -> None:
    stage.says["max"] = [Fails("half", 3, "broke")]
    locked(stage, "max", lambda: stage.send("Begin", to="max"))
    stage.says["max"] = ["Whole."]
    stage.resume()
    assert stage.warnings == ["turn 1 (max) had failed (ended with exit code 3: broke) and is stored now"]
    assert stage.said == ["kailai: Begin", "max: Whole."]


def test_what_nothing_can_keep_is_told(stage: Stage) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_end, "write_private", full)
        locked(stage, "max", lambda: stage.send("Begin", to="max"))
    (told,) = stage.warnings
    assert told.startswith("what max said is not stored: the store ")
    assert told.endswith("\nPlan it. [NEXT: sarah]")


def test_on_a_full_disk_only_a_reply_that_its_cli_calls_complete_counts(stage: Stage) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("teamchat.core.files.room.room_in", lambda _: 0)
        assert stage.send("Begin", to="sarah").code is ExitCode.DONE
        end = stage.send("And you?", to="max")
    assert stage.said == ["kailai: Begin", "sarah: Fine.", "kailai: And you?"]
    assert end.code is ExitCode.MEMBER_FAILED
    assert "may have lost some of its answer" in (end.reason or "")


@pytest.mark.parametrize("junk", [b"", b"{}", b"[]", b"null", b"\xff", b"[" * 50_000, b'{"text": 1, "events": [[1]]}'])
@pytest.mark.parametrize("packed", [True, False])
def test_junk_in_its_place_is_a_turn_that_was_interrupted(stage: Stage, junk: bytes, *, packed: bool) -> None:
    locked(stage, "max", lambda: stage.send("Begin", to="max"))
    (folder,) = (stage.folder / "turns").iterdir()
    (folder / kept_end.NAME).write_bytes(zlib.compress(junk) if packed else junk)
    stage.open()
    (turn,) = stage.turns
    assert (turn.status, partial_of(stage.db, turn)) == ("interrupted", "Plan it. [NEXT: sarah]")


def test_what_is_kept_is_what_was(tmp_path: Path) -> None:
    outcome = Outcome(
        exit_code=None,
        seconds=1.5,
        failure=Failure(FailureKind.TIMEOUT, "too long", "wait"),
        usage=Usage(1, 2, None, 0.5),
        denied=(Denied("Bash", "rm"),),
        files=("a\udcff.py",),
        stderr_tail="err",
    )
    events = (
        TimedEvent(0.5, ToolCall("1", "Read", "a.py")),
        TimedEvent(0.75, ToolResult("1", "read", paths=("/a.py",))),
        TimedEvent(1.0, Text("水 \ud800")),
    )
    turn = FinishedTurn(outcome, "nul \0 \ud800", interrupted=True, vendor_session="session", events=events)
    assert kept_end.read_end(tmp_path / "new") is None
    assert kept_end.keep_end(tmp_path / "new", turn)
    assert kept_end.read_end(tmp_path / "new") == turn


def test_no_more_is_taken_in_than_a_turn_can_come_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent can write to the folder of its turn: few bytes must not become many."""
    assert kept_end.keep_end(tmp_path, FinishedTurn(Outcome(0, 1.0), "x" * 10_000))
    assert kept_end.read_end(tmp_path) is not None
    monkeypatch.setattr(kept_end, "LARGEST_WRITTEN", 10_000)
    assert kept_end.read_end(tmp_path) is None
    file = tmp_path / kept_end.NAME
    monkeypatch.undo()
    file.write_bytes(file.read_bytes()[:-1])
    assert kept_end.read_end(tmp_path) is None


def test_the_output_makes_room_on_a_full_disk(stage: Stage) -> None:
    """The store has as many pages as it may have, until the output of the turn is gone."""
    reply = "x" * 200_000 + " [NEXT: nobody]"
    stage.says["max"] = [reply]
    limit = int(stage.db.rows("PRAGMA page_count")[0][0]) + 20

    def answers(_launch: Launch) -> Reply | None:
        stage.db.execute(f"PRAGMA max_page_count = {limit}")
        return None

    stage.answers = answers
    free = kept_end.free_output

    def freed(folder: Path) -> None:
        assert (folder / kept_end.NAME).exists(), "nothing else has the reply then"
        free(folder)
        assert (folder / "stdout").stat().st_size == 0
        stage.db.execute("PRAGMA max_page_count = 100000")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("teamchat.core.turn.ending.free_output", freed)
        assert stage.send("Begin", to="max").code is ExitCode.DONE
    assert stage.said[1] == f"max: {reply}"
    assert len(stage.warnings) == 1, "what is wrong with the reply is said once"


def test_what_was_said_aside_is_left_in_its_receipt_and_asked_for_again(stage: Stage) -> None:
    """A summary that cannot be stored is none; its text is that of an interrupted turn."""

    def compact() -> Conclusion:
        async def run() -> Conclusion:
            return await stage.open().summarise("sarah")

        return asyncio.run(run())

    stage.says["dora"] = ["Yes.", "No."]
    stage.says["sarah"] = ["SUMMARY"]
    stage.send("Begin", to="dora")
    stage.send("Go on", to="dora")
    with locked_when(stage, "sarah"), pytest.raises(StoreError, match="database is locked"):
        compact()
    assert compact().text == "SUMMARY"
    assert stage.warnings == ["turn 3 (sarah) was running when teamchat was killed; its partial text: teamchat show 3"]
    told = [(turn.status, partial_of(stage.db, turn)) for turn in stage.turns[2:]]
    assert told == [("interrupted", "SUMMARY"), ("done", "")]
