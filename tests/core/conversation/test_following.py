"""A conversation as another connection follows it, against what the run itself told."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from teamchat.core.conversation.following import Follower
from teamchat.core.conversation.undo.messages import plan_undo, undo_conversation
from teamchat.core.engine.workflow import Kind, Process, ProcessCheck
from teamchat.core.errors import ExitCode, StoreGone, UnknownName
from teamchat.core.files.session_lock import session_lock
from teamchat.core.messages import ConversationMessage
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import need_session, remove_session
from teamchat.core.team.team import Limits
from teamchat.core.turn.run import rules_of
from teamchat.core.turn.run_events import (
    AgentSpoke,
    CheckFinished,
    CheckStarted,
    Conclusion,
    ConversationEvent,
    MessageStored,
    ProcessMoved,
    Replied,
    RouteDropped,
    RouteQueued,
    SummaryStored,
    TodoChanged,
    TurnFinished,
    TurnStarted,
    Warned,
)
from teamchat.runners.agent_events import SHOWN_ONLY, TextDelta
from tests.core.fake_conversation import STORES, Fails, Reply, Stage, team_of
from tests.trials import trials

Told = ConversationEvent | Conclusion
TALKS: dict[str, tuple[str, dict[str, list[Reply]]]] = {
    "a chain": ("Go [NEXT: max]", {"max": ["One [NEXT: sarah]"], "sarah": ["Two [NEXT: carol]"], "carol": ["Three"]}),
    "a group": ("Go [NEXT: max + sarah + carol]", {"max": ["A"], "sarah": ["B [TODO: see]"], "carol": ["C"]}),
    "one after the other": ("Go [NEXT: max, sarah]", {"max": ["A [NEXT: carol]"], "sarah": ["B"], "carol": ["C"]}),
    "a failure": ("Go [NEXT: max, sarah]", {"max": [Fails("half")], "sarah": ["B"]}),
    "a group of which one fails": ("Go [NEXT: max + sarah]", {"max": [Fails("half")], "sarah": ["B"]}),
    "a group that fails": ("Go [NEXT: max + sarah]", {"max": [Fails("half")], "sarah": [Fails("not even")]}),
    "a question": ("Go [NEXT: max, sarah]", {"max": ["Which? [NEXT: kailai]"], "sarah": ["B"]}),
    "todos": ("Go [TODO: a] [NEXT: max]", {"max": ["[DONE: 1] [TODO: b]"]}),
    "nobody": ("[TEAM_TASK: Build it]", {}),
}


class Watched:
    """A stage, and what a follower with a connection of its own told of it."""

    def __init__(self, folder: Path, says: dict[str, list[Reply]] | None = None) -> None:
        self.stage = Stage(folder, team_of(folder, {"max": "claude", "sarah": "plain", "carol": "codex"}), says or {})
        self.lock = folder / "session-1.lock"
        self.told: list[Told] = []
        self._db = Database(folder / "teamchat.db")
        STORES.callback(self._db.close)
        self.follower = self.new_follower()

    def new_follower(self, after: int = 0) -> Follower:
        return Follower(self._db, need_session(self._db, None), self.stage.team, self.lock, after)

    def look(self) -> None:
        self.told += self.follower.look()

    def send(self, text: str, *, looks: Callable[[], bool] = lambda: True) -> Conclusion:
        """Let the run say `looks` at each of its events whether the follower looks."""

        def hear(_: ConversationEvent) -> None:
            if looks():
                self.look()

        self.stage.hear = hear
        with session_lock(self.lock, "send"):
            done = self.stage.send(text)
        self.look()
        return done

    @property
    def conclusion(self) -> Conclusion:
        """The last thing that was told."""
        last = self.told[-1]
        assert isinstance(last, Conclusion), last
        return last


@contextlib.contextmanager
def watched(says: dict[str, list[Reply]] | None = None) -> Iterator[Watched]:
    with tempfile.TemporaryDirectory() as name:
        yield Watched(Path(name), says)


def in_brief(events: Sequence[Told]) -> list[object]:
    """What was told besides the words of agents, warnings and the end."""
    return [brief for event in events if (brief := _brief(event))]


def _brief(event: Told) -> object:
    match event:
        case MessageStored(message=message):
            return "message", message
        case Replied(turn=turn, message=message):
            return "reply", turn.number, message
        case TurnStarted(turn=turn, route=route):
            return "starts", turn.number, turn.member, route and route.number
        case TurnFinished(turn=turn, outcome=outcome, partial=partial):
            return "ends", turn.number, outcome.failure, outcome.usage, outcome.reply, partial
        case RouteQueued(route=route) | RouteDropped(route=route):
            return type(event), route
        case TodoChanged(change=change):
            return "todo", change.what, change.text, change.number, change.message
        case CheckStarted(check=check) | CheckFinished(check=check):
            return type(event), check
        case _:
            return None


def replies_and_ends(events: Sequence[Told]) -> list[object]:
    """The replies of a group in their order, and the number of turns that ended before each."""
    ends, found = 0, list[object]()
    for event in events:
        ends += isinstance(event, TurnFinished)
        if isinstance(event, Replied):
            found.append((ends, event.message.id))
    return found


def spoken(events: Sequence[Told]) -> dict[int, list[object]]:
    """What the agents said, turn by turn."""
    turns: dict[int, list[object]] = {}
    for event in events:
        if isinstance(event, AgentSpoke):
            turns.setdefault(event.turn, []).append(event.event)
    return turns


def without_deltas(turns: dict[int, list[object]]) -> dict[int, list[object]]:
    kept = {turn: [event for event in events if not isinstance(event, SHOWN_ONLY)] for turn, events in turns.items()}
    return {turn: events for turn, events in kept.items() if events}


def of_end(conclusion: Conclusion) -> tuple[object, ...]:
    held = tuple((route.number, route.target, route.status) for route in conclusion.held)
    return conclusion.code, conclusion.text, conclusion.reason, conclusion.waiting_for, held, conclusion.usage


@pytest.mark.parametrize("talk", TALKS)
def test_who_looks_at_each_moment_is_told_what_the_run_tells_in_its_order(talk: str) -> None:
    text, says = TALKS[talk]
    with watched(says) as seen:
        done = seen.send(text)
        if talk.startswith("a group"):  # whose turns end in any order
            assert sorted(map(str, in_brief(seen.told))) == sorted(map(str, in_brief(seen.stage.events)))
        else:
            assert in_brief(seen.told) == in_brief(seen.stage.events)
        assert spoken(seen.told) == spoken(seen.stage.events)
        assert of_end(seen.conclusion) == of_end(done)


@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize("seed", range(trials(4)))
def test_who_looks_now_and_then_misses_nothing_and_is_told_nothing_twice(talk: str, seed: int) -> None:
    text, says = TALKS[talk]
    chance = Random(f"{talk} {seed}")  # noqa: S311 (no secret)
    often = chance.choice((0.0, 0.1, 0.5))
    with watched(says) as seen:
        done = seen.send(text, looks=lambda: chance.random() < often)
        told, ran = seen.told, seen.stage.events
        if talk.startswith("a group"):
            assert sorted(map(str, in_brief(told))) == sorted(map(str, in_brief(ran)))
            assert replies_and_ends(told) == replies_and_ends(ran)
        else:
            assert in_brief(told) == in_brief(ran)
        assert without_deltas(spoken(told)) == without_deltas(spoken(ran))
        assert_nobody_speaks_outside_of_its_turn(told)
        assert of_end(seen.conclusion) == of_end(done)


def assert_nobody_speaks_outside_of_its_turn(told: Sequence[Told]) -> None:
    running: set[int] = set()
    for event in told:
        match event:
            case TurnStarted(turn=turn):
                running.add(turn.number)
            case TurnFinished(turn=turn):
                running.remove(turn.number)
            case AgentSpoke(turn=number):
                assert number in running
            case _:
                pass
    assert not running


def test_who_comes_late_is_told_of_the_turn_that_runs_from_its_beginning() -> None:
    with watched({"max": ["One [NEXT: sarah]"], "sarah": ["Two"]}) as seen:
        seen.send("Go [NEXT: max]", looks=lambda: False)
        seen.told.clear()
        late: list[Follower] = []

        def hear(event: ConversationEvent) -> None:
            if isinstance(event, AgentSpoke) and isinstance(event.event, TextDelta) and not late:
                late.append(seen.new_follower(seen.follower._log.last_place()))
                seen.told += late[0].look()

        seen.stage.says["sarah"].append("Three")
        seen.stage.hear = hear
        with session_lock(seen.lock, "send"):
            seen.stage.send("Go [NEXT: sarah]")
        seen.told += late[0].look()
    kinds = [type(event).__name__ for event in seen.told if not isinstance(event, Warned)]
    assert kinds == ["RouteQueued", "TurnStarted", "AgentSpoke", "Replied", "TurnFinished", "Conclusion"]


def test_who_looks_is_told_how_a_process_moves_and_its_result() -> None:
    process = Process(Kind.DEBATE, ("max", "sarah"), "carol")
    with watched({"max": ["A"], "sarah": ["B"], "carol": ["Both"]}) as seen:
        seen.stage.hear = lambda _: seen.look()
        with session_lock(seen.lock, "run"):
            done = seen.stage.run_process("Which?", process)
        seen.look()
        told, ran = processes(seen.told), processes(seen.stage.events)
    assert [one.request for one in told] == ["msg-1"] * len(told)
    assert [one for one in told if one in ran] == ran
    assert (told[-1], seen.conclusion.process) == (ran[-1], done.process)


def test_who_looks_is_told_of_a_process_again_when_it_is_resumed() -> None:
    with watched({"max": ["A"], "sarah": ["B"]}) as seen:
        seen.stage.team = replace(seen.stage.team, limits=Limits(turns=1))
        with session_lock(seen.lock, "run"):
            seen.stage.run_process("Which?", Process(Kind.SEQUENTIAL, ("max", "sarah"), "max"))
        seen.look()
        stopped = processes(seen.told)[-1]
        seen.told.clear()
        seen.stage.hear = lambda _: seen.look()
        with session_lock(seen.lock, "resume"):
            seen.stage.resume()
        seen.look()
        told = processes(seen.told)
        assert (told[0], told[-1].over) == (stopped, True)


def test_who_comes_after_a_process_is_not_told_of_it() -> None:
    with watched({"max": ["A", "B"]}) as seen:
        with session_lock(seen.lock, "run"):
            seen.stage.run_process("Which?", Process(Kind.SEQUENTIAL, ("max",), "max"))
        late = seen.new_follower(2)
        assert processes(late.look()) == []
        with session_lock(seen.lock, "send"):
            seen.stage.send("Go [NEXT: max]")
        told = list(late.look())
        assert processes(told) == []
        assert [one.process for one in told if isinstance(one, Conclusion)] == [None]


RED_ONCE = "test -e done || { touch done; exit 1; }"


def process_of_checks(*commands: str) -> Process:
    checks = tuple(ProcessCheck(command, command=command) for command in commands)
    return Process(Kind.UNTIL, ("max",), "max", do="max", rounds=2, checks=checks)


@contextlib.contextmanager
def watched_repository() -> Iterator[Watched]:
    with watched({"max": ["One", "Two"]}) as seen:
        subprocess.run(["git", "init", "-q", str(seen.stage.folder)], check=True)
        (seen.stage.folder / ".gitignore").write_text("*\n")  # the store is there
        yield seen


@pytest.mark.parametrize("seed", range(trials(6)))
def test_who_looks_is_told_of_checks_between_the_turns(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 (no secret)
    often = (1.0, 0.0, 0.1, 0.5)[seed % 4]
    with watched_repository() as seen:

        def hear(_: ConversationEvent) -> None:
            if chance.random() < often:
                seen.look()

        seen.stage.hear = hear
        with session_lock(seen.lock, "run"):
            done = seen.stage.run_process("Go", process_of_checks(RED_ONCE, "true"))
        seen.look()
        told, ran = (in_brief(_unanswered(events)) for events in (seen.told, seen.stage.events))
        assert len([event for event in ran if isinstance(event, tuple) and event[0] is CheckFinished]) == 4
        assert told == ran
        assert processes(seen.told)[-1] == processes(seen.stage.events)[-1]
        assert of_end(seen.conclusion) == of_end(done)


@pytest.mark.parametrize("often", [0.0, 0.3, 1.0])
def test_who_looks_is_told_of_reviews_behind_the_checks(often: float) -> None:
    chance = Random(1)  # noqa: S311 (no secret)
    agrees = '{"verdict": "agree", "findings": []}'
    with watched_repository() as seen:
        seen.stage.says |= {name: [agrees] * 9 for name in ("sarah", "carol")}

        def hear(_: ConversationEvent) -> None:
            if chance.random() < often:
                seen.look()

        seen.stage.hear = hear
        process = replace(process_of_checks(RED_ONCE, "true"), review=("sarah", "carol"))
        with session_lock(seen.lock, "run"):
            seen.stage.run_process("Go", process)
        seen.look()
        told, ran = (
            [event for event in _unanswered(events) if isinstance(event, RouteQueued | Replied | CheckFinished)]
            for events in (seen.told, seen.stage.events)
        )
        assert {event.route.target for event in ran if isinstance(event, RouteQueued)} > {"max", "sarah", "carol"}
        assert in_brief(told) == in_brief(ran)


def _unanswered(events: Iterable[Told]) -> list[Told]:
    """The events with queued steps that do not say yet which message they answer."""
    return [
        RouteQueued(replace(event.route, as_of=None)) if isinstance(event, RouteQueued) else event for event in events
    ]


def test_who_comes_while_a_check_runs_is_told_of_it() -> None:
    with watched_repository() as seen:
        late: list[Follower] = []

        def hear(event: ConversationEvent) -> None:
            if isinstance(event, CheckStarted) and not late:
                late.append(seen.new_follower(seen.follower._log.last_place()))
                seen.told += late[0].look()

        seen.stage.hear = hear
        with session_lock(seen.lock, "run"):
            seen.stage.run_process("Go", process_of_checks("true"))
        seen.told += late[0].look()
    kinds = [type(event).__name__ for event in seen.told]
    assert [kind for kind in kinds if kind.startswith("Check")] == ["CheckStarted", "CheckFinished"]
    assert kinds[-1] == "Conclusion"


@pytest.mark.parametrize("command", ["kill -TERM $$", "no-such-program"])
def test_a_check_that_was_not_run_is_told_as_the_run_tells_it(command: str) -> None:
    with watched_repository() as seen:
        with session_lock(seen.lock, "run"):
            done = seen.stage.run_process("Go", process_of_checks(command))
        seen.look()
        assert of_end(seen.conclusion) == of_end(done)
        assert "was not run" in (done.reason or "")


def processes(events: Iterable[Told]) -> list[Process]:
    return [event.process for event in events if isinstance(event, ProcessMoved)]


def test_a_killed_run_is_told_once_and_what_resumes_it_too() -> None:
    with watched({"max": ["One"]}) as seen:

        def hear(event: ConversationEvent) -> None:
            if isinstance(event, AgentSpoke):
                raise KeyboardInterrupt

        seen.stage.hear = hear
        with pytest.raises(KeyboardInterrupt):
            seen.stage.send("Go [NEXT: max, sarah]")
        seen.look()
        assert (seen.conclusion.code, seen.conclusion.hint) == (ExitCode.INTERRUPTED, "teamchat resume")
        assert seen.conclusion.reason == "max was running when teamchat was killed"
        assert not seen.follower.active
        count = len(seen.told)
        seen.follower._looked_at_lock = 0.0
        seen.look()
        assert len(seen.told) == count
        seen.stage.hear = lambda _: None
        with session_lock(seen.lock, "resume"):
            seen.stage.resume()
        seen.look()
        assert [event.message.content for event in seen.told if isinstance(event, Replied)] == [
            "One",
            "sarah has nothing to say",
        ]
        assert seen.conclusion.code is ExitCode.DONE


def test_a_guard_is_told_as_the_run_tells_it() -> None:
    with watched({"max": ["[NEXT: sarah]"], "sarah": ["[NEXT: max]"]}) as seen:
        seen.stage.team = seen.follower.team = replace(seen.stage.team, limits=Limits(turns=1))
        done = seen.send("Go [NEXT: max]")
        assert of_end(seen.conclusion) == of_end(done)
        assert seen.conclusion.code is ExitCode.GUARD


def test_a_clock_that_is_set_forward_is_not_told_as_a_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    same = ["The very same words. [NEXT: max]", "The very same words. [NEXT: max]"]
    with watched({"max": [one.replace("max", "sarah") for one in same], "sarah": [*same]}) as seen:
        seen.stage.team = seen.follower.team = replace(seen.stage.team, limits=Limits(rounds=1))
        ahead = time.time() + 40 * 86_400
        monkeypatch.setattr(time, "time", lambda: ahead)
        done = seen.send("Go [NEXT: max]")
        assert of_end(seen.conclusion) == of_end(done)
        assert "said nothing new" in (seen.conclusion.reason or "")


def test_an_undo_is_a_warning_and_no_run() -> None:
    with watched({"max": ["One"]}) as seen:
        seen.send("Go [NEXT: max]")
        seen.told.clear()
        run = seen.stage.open().run
        undo_conversation(run, plan_undo(seen.stage.db, need_session(seen.stage.db, None), rules_of(seen.stage.team)))
        seen.look()
        assert seen.told == [Warned("turn 1 and all later ones were undone: teamchat log --all")]


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
        with session_lock(seen.lock, "compact"):
            seen.stage.send("Go [NEXT: sarah]")
            asyncio.run(seen.stage.open().summarise("max"))
        seen.look()
        (summary,) = [event for event in seen.told if isinstance(event, SummaryStored)]
        assert (summary.turn.member, summary.summary.text) == ("max", "In short.")


def test_reading_changes_nothing(tmp_path: Path) -> None:
    seen = Watched(tmp_path, {"max": ["One"]})
    seen.send("Go [NEXT: max]", looks=lambda: False)
    before: list[ConversationMessage] = seen.stage.log
    version = seen.stage.db.changes()
    seen.look()
    assert seen.stage.db.changes() == version
    assert seen.stage.log == before


def test_a_pause_between_two_steps_of_a_process_is_no_end() -> None:
    """Recovery puts the queue on hold before a resume continues it."""
    with watched({"max": ["One"]}) as seen:
        with session_lock(seen.lock, "chat"):
            seen.stage.send("Go [NEXT: max]")
            seen.look()
            assert not any(isinstance(event, Conclusion) for event in seen.told)
            assert seen.follower.active
            seen.stage.send("And [NEXT: sarah]")
        seen.look()
        assert [event.turns for event in seen.told if isinstance(event, Conclusion)] == [2]
        assert not seen.follower.active
