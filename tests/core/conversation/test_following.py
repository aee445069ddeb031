"""A conversation as another connection follows it, against what the run itself told."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from teamchat.core.conversation import following
from teamchat.core.conversation.following import Follower
from teamchat.core.conversation.retelling import Retold
from teamchat.core.engine.events import Moved
from teamchat.core.engine.workflow import Kind, Process, ProcessCheck
from teamchat.core.errors import ExitCode, StoreGone, UnknownName
from teamchat.core.files.session_lock import session_lock
from teamchat.core.store.database import Database
from teamchat.core.store.rows import encoded
from teamchat.core.store.sessions import need_session, remove_session
from teamchat.core.team.team import Limits
from teamchat.core.turn.lines import LineMaker, ResultLine, TextDeltaLine
from teamchat.core.turn.run_events import (
    AgentSpoke,
    CheckStarted,
    Conclusion,
    ConversationEvent,
    JsonLine,
    TurnFinished,
    Warned,
)
from teamchat.core.turn.run_file import RunFile, run_file
from teamchat.runners.agent_events import TextDelta, Usage
from tests.core.fake_conversation import STORES, Fails, Reply, Stage, team_of
from tests.trials import trials

TALKS: dict[str, tuple[str, dict[str, list[Reply]]]] = {
    "a chain": ("Go [NEXT: max]", {"max": ["One [NEXT: sarah]"], "sarah": ["Two [NEXT: carol]"], "carol": ["Three"]}),
    "a group": ("Go [NEXT: max + sarah + carol]", {"max": ["A"], "sarah": ["B [TODO: see]"], "carol": ["C"]}),
    "a failure": ("Go [NEXT: max, sarah]", {"max": [Fails("half")], "sarah": ["B"]}),
    "a group that fails": ("Go [NEXT: max + sarah]", {"max": [Fails("half")], "sarah": [Fails("not even")]}),
    "a question": ("Go [NEXT: max, sarah]", {"max": ["Which? [NEXT: kailai]"], "sarah": ["B"]}),
    "todos": ("Go [TODO: a] [NEXT: max]", {"max": ["[DONE: 1] [TODO: b]"]}),
    "nobody": ("[TEAM_TASK: Build it]", {}),
}
DEBATE = Process(Kind.DEBATE, ("max", "sarah"), "carol")


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LOOK_S", 0.0)


class Watched:
    """A stage, and what a follower with a connection of its own is told of it."""

    def __init__(self, folder: Path, says: dict[str, list[Reply]] | None = None) -> None:
        self.stage = Stage(folder, team_of(folder, {"max": "claude", "sarah": "plain", "carol": "codex"}), says or {})
        self.lock, self.file = folder / "session-1.lock", run_file(folder, 1)
        self.told: list[JsonLine | Conclusion] = []
        self.ran: list[JsonLine] = []
        self._db = Database(folder / "teamchat.db")
        STORES.callback(self._db.close)
        self.follower = self.new_follower()
        self.retold = Retold(self._db, 1)

    def new_follower(self) -> Follower:
        follower = Follower(self._db, need_session(self._db, None), self.stage.team, self.lock)
        STORES.callback(follower.close)
        return follower

    def look(self) -> None:
        self.told += self.follower.look()

    def run(
        self, do: Callable[[], Conclusion], hear: Callable[[ConversationEvent], None] = lambda _: None
    ) -> Conclusion:
        """Let the stage run, as a process that holds the lock and writes the file, and look at the end."""
        file, lines = RunFile(self.file, "s1"), LineMaker()

        def tell(event: ConversationEvent) -> None:
            self.ran += lines.of(event)
            file(event)
            hear(event)

        self.stage.hear = tell
        with session_lock(self.lock, "run"), contextlib.closing(file):
            done = do()
            file.finish(done)
        self.look()
        return done

    def send(self, text: str, hear: Callable[[ConversationEvent], None] = lambda _: None) -> Conclusion:
        return self.run(lambda: self.stage.send(text), hear)

    def run_unseen(self, text: str, hear: Callable[[ConversationEvent], None] = lambda _: None) -> Conclusion:
        """Let the stage send, as a process whose lines have no room."""
        self.stage.hear = hear
        with session_lock(self.lock, "run"):
            return self.stage.send(text)

    def ended(self) -> Conclusion:
        """How the run has ended, as it was told last."""
        last = self.told[-1]
        return last if isinstance(last, Conclusion) else self.retold.conclusion(result(last))


def result(line: JsonLine) -> ResultLine:
    assert isinstance(line, ResultLine), line
    return line


@contextlib.contextmanager
def watched(says: dict[str, list[Reply]] | None = None) -> Iterator[Watched]:
    with tempfile.TemporaryDirectory() as name:
        yield Watched(Path(name), says)


def without_pieces(lines: Sequence[object]) -> list[object]:
    return [line for line in lines if not isinstance(line, TextDeltaLine)]


def as_json(lines: Sequence[object]) -> list[bytes]:
    return [encoded(line) for line in lines]


@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize("often", [0.0, 0.1, 0.5, 1.0])
def test_whoever_looks_when_is_told_what_the_run_tells_in_its_order(talk: str, often: float) -> None:
    text, says = TALKS[talk]
    chance = Random(talk)  # noqa: S311 (no secret)
    with watched(says) as seen:
        done = seen.send(text, lambda _: seen.look() if chance.random() < often else None)
        assert as_json(without_pieces(seen.told[:-1])) == as_json(without_pieces(seen.ran))
        if often == 1.0:
            assert as_json(seen.told[:-1]) == as_json(seen.ran)
        assert seen.ended() == done


@pytest.mark.parametrize("talk", TALKS)
def test_the_events_of_the_lines_are_those_of_the_run(talk: str) -> None:
    text, says = TALKS[talk]
    with watched(says) as seen:
        events: list[ConversationEvent | None] = []
        seen.send(text, lambda _: events.extend(seen.retold.event(line) for line in seen.follower.look()))  # type: ignore[arg-type]
        again = [line for event in events if event for line in LineMaker().of(event)]
        public = [line for line in again if not line.of_file]
        assert [(line.__class__, _fields(line)) for line in public] == [
            (line.__class__, _fields(line)) for line in seen.ran if not line.of_file
        ]


def _fields(line: JsonLine) -> dict[str, object]:
    """What stays the same: a part is told as of the turn's beginning."""
    return {name: getattr(line, name) for name in line.__struct_fields__ if name != "part"}


def test_who_comes_late_is_told_of_the_turn_that_runs_from_its_beginning() -> None:
    with watched({"max": ["One"], "sarah": ["Two", "Three"]}) as seen:
        seen.send("Go [NEXT: max, sarah]")
        late: list[Follower] = []

        def hear(event: ConversationEvent) -> None:
            if isinstance(event, AgentSpoke) and isinstance(event.event, TextDelta) and not late:
                late.append(seen.new_follower())
                told.extend(late[0].look())

        told: list[JsonLine | Conclusion] = []
        seen.send("Go [NEXT: sarah]", hear)
        told += late[0].look()
    kinds = [type(line).__name__ for line in told if not getattr(line, "of_file", False)]
    assert kinds == ["QueuedLine", "TurnStartedLine", "TextDeltaLine", "MessageLine", "TurnFinishedLine", "ResultLine"]


def test_who_looks_is_told_how_a_process_moves_and_its_result() -> None:
    with watched({"max": ["A"], "sarah": ["B"], "carol": ["Both"]}) as seen:
        done = seen.run(lambda: seen.stage.run_process("Which?", DEBATE), lambda _: seen.look())
        moved = [line for line in seen.told if getattr(line, "request", None)]
        assert len(moved) > 1
        (event,) = (seen.retold.event(line) for line in moved[-1:])  # type: ignore[arg-type]
        assert isinstance(event, Moved)
        assert event.process.over
        assert seen.ended() == done
        assert done.process


def test_who_comes_after_a_process_is_not_told_of_it() -> None:
    with watched({"max": ["A", "B"]}) as seen:
        seen.run(lambda: seen.stage.run_process("Which?", Process(Kind.SEQUENTIAL, ("max",), "max")))
        late = seen.new_follower()
        assert list(late.look()) == []
        assert (late.active, late.code) == (False, ExitCode.DONE)
        seen.send("Go [NEXT: max]")
        assert not any(getattr(line, "request", None) for line in late.look())


def test_who_comes_while_a_check_runs_is_told_of_it() -> None:
    with watched({"max": ["One"]}) as seen:
        subprocess.run(["git", "init", "-q", str(seen.stage.folder)], check=True)
        (seen.stage.folder / ".gitignore").write_text("*\n")  # the store is there
        late: list[Follower] = []

        def hear(event: ConversationEvent) -> None:
            if isinstance(event, CheckStarted) and not late:
                late.append(seen.new_follower())

        process = Process(Kind.UNTIL, ("max",), "max", do="max", checks=(ProcessCheck("true", command="true"),))
        seen.run(lambda: seen.stage.run_process("Go", process), hear)
        kinds = [type(line).__name__ for line in late[0].look()]
    assert [kind for kind in kinds if kind.startswith("Check")] == ["CheckStartedLine", "CheckFinishedLine"]
    assert kinds[-1] == "ResultLine"


def test_a_killed_run_is_told_once_and_what_resumes_it_too() -> None:
    with watched({"max": ["One"]}) as seen:

        def killed(event: ConversationEvent) -> None:
            if isinstance(event, AgentSpoke):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            seen.send("Go [NEXT: max, sarah]", killed)
        seen.look()
        ended = seen.ended()
        assert (ended.code, ended.hint, ended.turns) == (ExitCode.INTERRUPTED, "teamchat resume", 1)
        assert (ended.denied, ended.usage) == (None, Usage()), "what it has used is unknown"
        assert ended.reason == "max was running when teamchat was killed"
        assert not seen.follower.active
        count = len(seen.told)
        seen.look()
        assert len(seen.told) == count
        assert seen.new_follower().conclusion().code is ExitCode.INTERRUPTED
        seen.ran.clear()
        done = seen.run(seen.stage.resume)
        assert as_json(seen.told[count:-1]) == as_json(without_pieces(seen.ran))
        assert seen.ended() == done


def told_of(lines: Sequence[object]) -> list[str]:
    return [f"{type(line).__name__} {getattr(line, 'text', '')}".strip() for line in without_pieces(lines)]


def missing(what: str) -> str:
    return f"Warned {what} missing here: teamchat log has the messages"


def test_a_run_whose_lines_are_nowhere_is_told_and_so_is_its_end() -> None:
    with watched({"max": ["One", Fails("half"), "Two"], "sarah": ["Three"]}) as seen:
        seen.send("Go [NEXT: max]")
        count = len(seen.told)

        def hear(event: ConversationEvent) -> None:
            if isinstance(event, AgentSpoke):
                seen.look()
                seen.look()

        done = seen.run_unseen("Again [NEXT: max]", hear)
        seen.look()
        assert told_of(seen.told[count:]) == [missing("what runs now is"), f"Conclusion {done.text}".strip()]
        ended = seen.ended()
        assert (ended.code, ended.reason, ended.turns) == (ExitCode.MEMBER_FAILED, done.reason, 1)
        late = seen.new_follower()
        assert (late.code, late.conclusion().code) == (None, ExitCode.MEMBER_FAILED)
        seen.run_unseen("Once more [NEXT: sarah]")
        count, before = len(seen.told), len(seen.ran)
        done = seen.run(seen.stage.resume)
        assert told_of(seen.told).count(missing("a turn is")) == 1
        seen.told.remove(next(line for line in seen.told[count:] if isinstance(line, Warned)))
        assert as_json(without_pieces(seen.told[count:-1])) == as_json(without_pieces(seen.ran[before:]))
        assert seen.ended() == done


def test_runs_that_nobody_has_seen_are_missing_by_their_turns() -> None:
    with watched({"max": ["One", "Two", "Three", "Four"]}) as seen:
        for text in ("One [NEXT: max]", "Two [NEXT: max]"):
            seen.run_unseen(text)
        seen.send("Three [NEXT: max]")
        assert told_of(seen.told).count(missing("2 turns are")) == 1
        count = len(seen.told)
        seen.send("Four [NEXT: max]")
        assert not any("missing" in line for line in told_of(seen.told[count:]))


def test_a_run_after_its_file_was_removed_is_told_as_a_whole() -> None:
    with watched({"max": ["One", "Two", "Three"]}) as seen:
        seen.send("One [NEXT: max]")
        for text in ("Two [NEXT: max]", "Three [NEXT: max]"):
            seen.file.unlink()
            count, before = len(seen.told), len(seen.ran)
            done = seen.send(text)
            assert as_json(without_pieces(seen.told[count:-1])) == as_json(without_pieces(seen.ran[before:]))
            assert seen.ended() == done


@pytest.mark.parametrize("reply", ["Two", Fails("half")])
def test_what_a_message_led_to_is_told_also_where_no_line_has_it(monkeypatch: pytest.MonkeyPatch, reply: Reply) -> None:
    monkeypatch.setattr(following, "STILL_S", 0.0)
    with watched({"max": ["One", reply]}) as seen:
        seen.send("One [NEXT: max]")
        follower = seen.new_follower()
        done = seen.run_unseen("Two [NEXT: max]")
        follower.follow_only("msg-3")
        told: list[JsonLine | Conclusion] = []
        while follower.active:
            told += follower.look()
    *lines, ended = told
    assert isinstance(ended, Conclusion)
    assert (ended.code, ended.text, ended.turns, ended.reason) == (done.code, done.text, 1, done.reason)
    assert told_of(lines) == ([missing("lines are"), "MessageLine Two"] if reply == "Two" else [])


def test_of_a_run_that_was_killed_and_resumed_at_once_both_are_told() -> None:
    with watched({"max": ["One"]}) as seen:

        def killed(event: ConversationEvent) -> None:
            seen.look()
            if isinstance(event, AgentSpoke):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            seen.send("Go [NEXT: max]", killed)
        seen.run(seen.stage.resume)
        first, last = [line for line in seen.told if isinstance(line, Conclusion | ResultLine)]
        assert isinstance(first, Conclusion)
        assert (first.reason, result(last).code) == ("max was running when teamchat was killed", 0)  # type: ignore[arg-type]


def test_runs_that_nobody_has_read_are_said_to_be_missing() -> None:
    with watched({"max": ["One", "Two", "Three"]}) as seen:
        looks, seen.look = seen.look, lambda: None  # type: ignore[method-assign]
        for _ in range(3):
            seen.send("Go [NEXT: max]")
        looks()
        first, *_ = seen.told
    assert isinstance(first, Warned)
    assert first.text == "2 runs are missing here: teamchat log has the messages"


def test_a_guard_is_told_as_the_run_tells_it() -> None:
    with watched({"max": ["[NEXT: sarah]"], "sarah": ["[NEXT: max]"]}) as seen:
        seen.stage.team = replace(seen.stage.team, limits=Limits(turns=1))
        done = seen.send("Go [NEXT: max]")
        assert (seen.ended(), done.code) == (done, ExitCode.GUARD)


def test_a_deleted_session_and_a_removed_store_are_errors_in_words() -> None:
    with watched({"max": ["One"]}) as seen:
        seen.send("Go [NEXT: max]")
        remove_session(seen.stage.db, seen.stage.session)
        with pytest.raises(UnknownName, match="session s1 was deleted meanwhile"):
            seen.look()
        seen.stage.db.path.unlink()
        with pytest.raises(StoreGone):
            seen.look()


def test_a_summary_is_told_with_its_turn() -> None:
    with watched({"max": ["One", "In short."]}) as seen:
        seen.send("Go [NEXT: max]")
        seen.send("Go [NEXT: sarah]")
        seen.told.clear()
        seen.run(lambda: asyncio.run(seen.stage.open().summarise("max")))
        (summary,) = [line for line in seen.told if getattr(line, "through", None)]
        event = seen.retold.event(summary)  # type: ignore[arg-type]
    assert event is not None
    assert as_json([*LineMaker().of(event)]) == as_json([summary])


@pytest.mark.parametrize("seed", range(trials(4)))
def test_reading_changes_nothing_and_a_late_end_is_the_same(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 (no secret)
    with watched({"max": ["One"], "sarah": ["Two"]}) as seen:
        ends = 0

        def hear(event: ConversationEvent) -> None:
            nonlocal ends
            ends += isinstance(event, TurnFinished)
            if chance.random() < 0.3:
                seen.look()

        seen.send("Go [NEXT: max, sarah]", hear)
        before, version = seen.stage.log, seen.stage.db.path.stat().st_mtime_ns
        seen.look()
        assert (seen.stage.log, seen.stage.db.path.stat().st_mtime_ns, ends) == (before, version, 2)
