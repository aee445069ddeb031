"""Kills at any moment lose nothing, and nothing runs twice without being named a retry."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from teamchat.core.agents import ProtocolName
from teamchat.core.conversation import recovery, turn_output
from teamchat.core.conversation.recovery import recover_turns
from teamchat.core.engine.state import RouteStatus
from teamchat.core.errors import ExitCode
from teamchat.core.store.database import Database
from teamchat.core.store.routes import all_routes
from teamchat.core.store.sessions import create_session
from teamchat.core.store.texts import pack
from teamchat.core.store.turn_events import stored_events
from teamchat.core.store.turns import NewTurn, Turn, begin_turn, partial_of
from teamchat.core.turn.machine import scratch_of
from teamchat.core.turn.run_events import Replied
from teamchat.core.turn.work_trees import WorkTrees
from teamchat.runners.agent_events import Usage
from teamchat.runners.child.running import BEGINS
from tests.core.fake_conversation import Hangs, Stage, team_of
from tests.core.store.test_turns import SETUP
from tests.fakes.scripted import begun_request, spoken
from tests.program import cli, ended, start
from tests.runners.processes import eventually

ID = "0123456789abcdef"
MESSAGE = "[NEXT: max, sarah] go"
GROUP = "[NEXT: max + sarah] go"
SAYS = {"max": ["to carol [NEXT: carol]"], "sarah": ["done"], "carol": ["for kailai [NEXT: kailai]", "thanks"]}
SAID = [f"kailai: {MESSAGE}", "max: to carol [NEXT: carol]", "sarah: done", "carol: for kailai [NEXT: kailai]"]


class Killed(BaseException):
    """What SIGKILL is to a process: no handler of the program's own runs it down."""


@dataclass
class Life:
    """Counts the steps of a process, and ends it before the one that is `last`; a dead one does nothing any more."""

    last: int
    steps: int = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps >= self.last:
            raise Killed


class MortalDatabase(Database):
    """A store whose every access is a step of the process."""

    life = Life(10**9)

    def execute(self, sql: str, *values: object) -> object:  # type: ignore[override]
        if not sql.startswith("ROLLBACK"):  # which is what the death of a process does
            self.life.step()
        return super().execute(sql, *values)

    def executemany(self, sql: str, rows: Iterable[tuple[object, ...]]) -> None:
        self.life.step()
        super().executemany(sql, rows)


def a_stage(folder: Path) -> Stage:
    team = team_of(folder, {"max": "plain", "sarah": "claude", "carol": "codex"})
    stage = Stage(folder, team, says={name: list(replies) for name, replies in SAYS.items()}, make=MortalDatabase)
    stage.hear = lambda _: mortal(stage).life.step()
    return stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return a_stage(tmp_path)


def mortal(stage: Stage) -> MortalDatabase:
    assert isinstance(stage.db, MortalDatabase)
    return stage.db


def live(stage: Stage, steps: int, do: Callable[[], object]) -> int:
    """Do something in a process that is killed before its nth step; how many steps there were."""
    life = mortal(stage).life = Life(steps)
    with contextlib.suppress(Killed):
        do()
    mortal(stage).life = Life(10**9)
    return life.steps


def tried(steps: int, first: int) -> range:
    """The steps before which a test kills: every third, from another one in each test; with `make crash` every one.

    The test closes each store itself: all of them at once would be more open files than some systems allow.
    """
    return range(1, steps + 1) if "DEATHS" in os.environ else range(first, steps + 1, 3)


def go_on(stage: Stage, message: str = MESSAGE) -> None:
    """What a person does who finds the conversation as it is: send what is not there, resume what is held."""
    if not stage.log:
        stage.send(message)
    for _ in range(10):
        if not stage.open().state.held:
            return
        stage.resume()


def test_a_conversation_that_is_killed_before_any_of_its_steps_loses_nothing(tmp_path: Path) -> None:
    whole = a_stage(tmp_path / "whole")
    steps = live(whole, 10**9, lambda: whole.send(MESSAGE))
    assert steps > 60
    for last in tried(steps, 1):
        stage = a_stage(tmp_path / str(last))
        live(stage, last, partial(stage.send, MESSAGE))
        go_on(stage)
        assert_whole(stage, f"killed before step {last}")
        stage.db.close()


def test_a_resume_that_is_killed_before_any_of_its_steps_loses_nothing(tmp_path: Path) -> None:
    for last in tried(79, 3):
        stage = a_stage(tmp_path / str(last))
        live(stage, 30, partial(stage.send, MESSAGE))
        live(stage, last, stage.resume)
        go_on(stage)
        assert_whole(stage, f"resume killed before step {last}")
        stage.db.close()


def test_a_group_that_is_killed_before_any_of_its_steps_loses_nothing(tmp_path: Path) -> None:
    whole = a_stage(tmp_path / "whole")
    steps = live(whole, 10**9, lambda: whole.send(GROUP))
    assert steps > 60
    for last in tried(steps, 2):
        stage = a_stage(tmp_path / str(last))
        live(stage, last, partial(stage.send, GROUP))
        go_on(stage, GROUP)
        when = f"killed before step {last}"
        assert stage.said == [f"kailai: {GROUP}", "max: to carol [NEXT: carol]", "sarah: done", SAID[-1]], when
        assert [turn.status for turn in stage.turns if turn.status != "interrupted"] == ["done"] * 3, when
        assert all(
            name == "carol" or "done" not in prompt for name, prompt in zip(stage.spoke, stage.prompts, strict=True)
        )
        for name in SAYS:
            assert stage.spoke.count(name) <= sum(turn.member == name for turn in stage.turns), when
        stage.db.close()


def assert_whole(stage: Stage, when: str) -> None:
    assert stage.said == SAID, when
    assert [(route.target, route.status) for route in stage.open().state.queue] == [("kailai", RouteStatus.ASKED)], when
    routes = all_routes(stage.db, stage.session)
    assert [(route.target, route.status) for route in routes] == [
        ("max", RouteStatus.DONE),
        ("sarah", RouteStatus.DONE),
        ("carol", RouteStatus.DONE),
        ("kailai", RouteStatus.ASKED),
    ], when
    for number, route in enumerate(routes[:3], 1):
        turns = [turn for turn in stage.turns if turn.route == number]
        assert [turn.status for turn in turns] == ["interrupted"] * (len(turns) - 1) + ["done"], when
        assert [turn.setup.attempt for turn in turns] == list(range(1, len(turns) + 1)), when
        assert route.attempt == len(turns), when
        assert stage.spoke.count(route.target) <= len(turns), when


def test_the_dead_turn_is_told_and_shown_with_what_it_had_said(stage: Stage) -> None:
    def die() -> None:
        raise Killed

    stage.says["max"] = [Hangs("half a rep [NEXT: carol]", then=die)]
    live(stage, 10**9, lambda: stage.send(MESSAGE))
    stage.open()
    (turn,) = stage.turns
    assert turn.status == "interrupted"
    assert partial_of(stage.db, turn) == "half a rep [NEXT: carol]"
    assert not turn.folder.exists()
    assert stage.warnings == ["turn 1 (max) was running when teamchat was killed; its partial text: teamchat show 1"]
    assert stage.queue == ["max held", "sarah held"]
    stage.events.clear()
    stage.open()
    assert stage.events == []


@pytest.mark.parametrize("protocol", ["plain", "claude", "codex", "gemini"])
def test_the_partial_text_is_read_in_the_agents_own_format(stage: Stage, protocol: ProtocolName) -> None:
    whole = spoken(protocol, "what it\nhad said").encode()
    turn = dead_turn(stage, whole[: whole.rindex(b"\n", 0, -1) + 1] if protocol != "plain" else whole, protocol)
    assert partial_of(stage.db, turn) == "what it\nhad said"
    head = ["Started", "VendorSession"]
    kept = {"plain": [], "claude": [*head, "Text"], "codex": [*head, "Text"], "gemini": head}[protocol]
    assert [event.type for event in stored_events(stage.db, turn.id)] == kept


def test_what_a_dead_turn_had_used_by_then_is_kept(stage: Stage) -> None:
    outcome = dead_turn(stage, begun_request().encode(), "claude").outcome
    assert outcome is not None
    assert outcome.usage == Usage(11, 5, 1)


def test_the_partial_text_of_a_terminal_is_what_was_read_off_it(stage: Stage) -> None:
    told = b'{"type": "ready"}\n{"type": "text", "text": "what it\\n"}\n{"type": "text", "text": "had said"}\n{"ty'
    assert partial_of(stage.db, dead_turn(stage, told, "terminal")) == "what it\nhad said"


@pytest.mark.parametrize("output", [None, b"", b"\xff\xfe\x00 half a li"])
def test_any_output_can_be_recovered(stage: Stage, output: bytes | None) -> None:
    """None: it died before there was a file."""
    turn = dead_turn(stage, output)
    assert partial_of(stage.db, turn) == (output or b"").decode(errors="replace")
    assert turn.outcome is not None
    assert turn.outcome.code is ExitCode.INTERRUPTED
    assert turn.outcome.denied is None


def folder_of(stage: Stage) -> Path:
    return stage.folder / "turns" / ID


def dead_turn(stage: Stage, output: bytes | None, protocol: ProtocolName = "plain") -> Turn:
    """A turn whose process died after this output, recovered."""
    folder = folder_of(stage)
    if output is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "stdout").write_bytes(output)
    begin_turn(stage.db, NewTurn(stage.session, 1, "max", "own", protocol, None, pack(b"Hi"), "msg-1", SETUP, folder))
    trees = WorkTrees(stage.folder, "refs/teamchat/test")
    assert recover_turns(stage.db, stage.session, folder.parent, trees)
    assert recover_turns(stage.db, stage.session, folder.parent, trees) == []
    (turn,) = stage.turns
    return turn


@pytest.mark.parametrize(("begins", "partial"), [("6", "half"), ("", "early half")])
def test_a_turn_of_a_process_that_stays_has_only_its_own_output(stage: Stage, begins: str, partial: str) -> None:
    """Empty: the machine went down before it was written."""
    folder_of(stage).mkdir(parents=True)
    (folder_of(stage) / BEGINS).write_text(begins)
    assert partial_of(stage.db, dead_turn(stage, b"early half")) == partial


def test_no_more_of_a_dead_turn_is_kept_than_a_living_one_may_write(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_output, "MAX_OUTPUT_BYTES", 5)
    assert partial_of(stage.db, dead_turn(stage, b"0123456789")) == "01234"


def test_what_turns_that_are_over_have_left_is_removed(stage: Stage) -> None:
    """A process may be killed between storing the end of a turn and removing its files."""
    stage.send(MESSAGE)
    other = create_session(stage.db, "crew", None).id
    names = ("0" * 16, "1" * 16, "not a turn's", "2" * 16 + ".new", "A" * 16)
    folders = [stage.folder / "turns" / name for name in names]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "stdout").write_text("half")
    begin_turn(stage.db, NewTurn(other, 1, "max", "own", "plain", None, pack(b"Hi"), "msg-1", SETUP, folders[1]))
    stage.open()
    assert [folder.exists() for folder in folders] == [False, True, True, True, True]


def test_the_private_folder_of_a_turn_that_never_started_is_removed(stage: Stage) -> None:
    scratch = scratch_of(folder_of(stage))
    scratch.mkdir()
    dead_turn(stage, None)
    assert not scratch.exists()


def test_a_folder_that_the_store_names_is_read_and_removed_only_where_turns_have_theirs(stage: Stage) -> None:
    """Whoever can write to the store could otherwise have any folder removed."""
    theirs = stage.folder / "theirs"
    for folder in (theirs, stage.folder / ID):
        folder.mkdir()
        (folder / "stdout").write_text("private")
        begin_turn(
            stage.db, NewTurn(stage.session, 1, "max", "own", "plain", None, pack(b"Hi"), "msg-1", SETUP, folder)
        )
    stage.open()
    assert [partial_of(stage.db, turn) for turn in stage.turns] == ["", ""]
    assert (theirs / "stdout").exists()
    assert (stage.folder / ID / "stdout").exists()


@pytest.mark.parametrize("name", ["stdout", BEGINS])
@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "none"])
def test_what_an_agent_put_in_the_place_of_its_output_is_not_read(stage: Stage, kind: str, name: str) -> None:
    folder = folder_of(stage)
    (stage.folder / "private").write_text("1")
    folder.mkdir(parents=True)
    match kind:
        case "link":
            (folder / name).symlink_to(stage.folder / "private")
        case "fifo":
            os.mkfifo(folder / name)
        case "folder":
            (folder / name).mkdir()
    turn = dead_turn(stage, None if name == "stdout" else b"half")
    assert partial_of(stage.db, turn) == ("" if name == "stdout" else "half")
    assert not folder.exists()


def test_the_folders_of_a_turn_go_after_its_reply_is_stored(stage: Stage) -> None:
    there: list[bool] = []

    def look(event: object) -> None:
        if isinstance(event, Replied):
            there.append(any((stage.folder / "turns").iterdir()))

    stage.hear = look
    stage.send(MESSAGE)
    assert there == [True] * 3
    assert list((stage.folder / "turns").iterdir()) == []


def test_what_cannot_be_removed_is_said_and_tried_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(recovery, "remove", lambda *folders: f"{folders[-1]} cannot be removed: for a test")
        dead_turn(stage, b"half")
        stage.open()
    assert stage.warnings == [f"{folder_of(stage)} cannot be removed: for a test"]
    stage.open()
    assert not folder_of(stage).exists()
    assert len(stage.warnings) == 1


# --- a real process, really killed

STUBBORN = """\
trap '' TERM
echo $$ begins >> "$HOME/log"
echo half
test -e "$HOME/killed" && exit
touch "$HOME/running"
while true; do echo $$ >> "$HOME/log"; sleep 0.05; done
"""


def test_a_second_try_waits_until_the_first_is_really_over(world: Path) -> None:
    """An agent that ignores its signal lives on for a second when teamchat is killed."""
    Path("agent.sh").write_text(STUBBORN)
    Path("teamchat.toml").write_text(
        '[[members]]\nname = "max"\nagent = "own"\n[agents.own]\ncommand = ["sh", "agent.sh"]\n'
    )
    process = start("send", "--trust", "go")
    assert eventually((world / "home" / "running").exists)
    os.kill(process.pid, signal.SIGKILL)
    ended(process)
    (world / "home" / "killed").touch()
    assert cli("resume").code == 0
    lines = (world / "home" / "log").read_text().splitlines()
    first, second = (line.split()[0] for line in lines if line.endswith("begins"))
    assert lines[-1] == f"{second} begins"
    assert first in lines
