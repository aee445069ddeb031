"""Whatever the team file becomes while routes wait, every command goes on, and says what it drops or asks for."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.engine.events import ResumeMode
from teamchat.core.engine.fitting import fitted
from teamchat.core.engine.state import Rules
from teamchat.core.errors import ExitCode, TeamchatError
from teamchat.core.store.checking import problems
from teamchat.core.team.team import Member, Team
from teamchat.core.turn.run_events import Conclusion
from tests.core.engine.driver import Talk
from tests.core.fake_conversation import Fails, Hangs, Stage, human, team_of
from tests.trials import trials

LIKES = ("plain", "claude", "codex", "gemini")
EVERYBODY = ("max", "sarah", "dora", "kailai", "bob")


def stage_in(folder: Path, **says: list[str | Fails]) -> Stage:
    team = team_of(folder, {"max": "plain", "sarah": "claude", "dora": "codex"}, humans=("kailai", "bob"))
    return Stage(folder, team, says=dict(says))  # type: ignore[arg-type]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return stage_in(tmp_path, max=["What do you think? [NEXT: kailai, sarah]"])


def without(team: Team, *names: str) -> Team:
    return replace(team, members=tuple(member for member in team.members if member.name not in names))


def renamed(team: Team, old: str, new: str) -> Team:
    members = tuple(replace(member, name=new) if member.name == old else member for member in team.members)
    return replace(team, members=members)


def turned(team: Team, name: str) -> Team:
    """The member is a person now where it was an agent, and an agent where it was a person."""

    def other(member: Member) -> Member:
        if member.type == "ai":
            return human(member.name)
        return Member(member.name, "ai", team.root, agent="max-agent")

    return replace(team, members=tuple(other(member) if member.name == name else member for member in team.members))


# --- the person who was asked


def test_the_question_to_a_person_who_has_left_is_dropped_with_a_word(stage: Stage) -> None:
    assert stage.send("Hi", to="max").code is ExitCode.HUMAN_ASKED
    stage.team = replace(without(stage.team, "kailai"), members=(*without(stage.team, "kailai").members, human("eve")))
    end = stage.send("Here I am", speaker="bob", to="dora")
    assert end.code is ExitCode.DONE
    assert stage.warnings == ["kailai, whom max asked, is no longer in the team"]
    assert stage.spoke == ["max", "dora"]
    assert stage.queue == ["sarah held"]


def test_the_question_to_a_person_with_another_name_goes_to_the_only_one_there_is(stage: Stage) -> None:
    stage.send("Hi", to="max")
    stage.team = renamed(without(stage.team, "bob"), "kailai", "kai")
    assert stage.queue == ["kai asked", "sarah waiting"]
    assert stage.send("I think so").code is ExitCode.DONE
    assert stage.spoke == ["max", "max", "sarah"]


def test_a_person_who_was_asked_and_is_an_agent_now_speaks_after_resume(stage: Stage) -> None:
    stage.send("Hi", to="max")
    stage.team = turned(stage.team, "kailai")
    assert stage.queue == ["kailai held", "sarah held"]
    assert stage.resume().code is ExitCode.DONE
    assert stage.spoke == ["max", "kailai", "sarah"]


def test_an_agent_that_is_called_and_is_a_person_now_is_asked(stage: Stage) -> None:
    stage.says = {"max": [Fails()]}
    stage.send("Hi", to="max")
    stage.team = turned(stage.team, "max")
    assert stage.resume().waiting_for == "max"


def test_a_member_whose_name_is_spelled_otherwise_now_is_the_same(stage: Stage) -> None:
    stage.says = {"max": [Fails()]}
    stage.send("Hi", to="max")
    stage.team = renamed(stage.team, "max", "M-A_X")
    assert stage.resume().code is ExitCode.DONE
    assert stage.said[-1].startswith("M-A_X: ")


# --- the queue


def test_who_is_queued_goes_by_the_names_of_now_and_who_has_left_keeps_its_own() -> None:
    talk = Talk().says("max").replies("kailai", "sarah").says("max", by="bob")
    assert talk.queue == ["max running", "kailai asked", "sarah waiting"]
    talk.state = replace(talk.state, rules=Rules(("M-A_X", "carol"), ("Kai-Lai", "bob")))
    assert [route.target for route in fitted(talk.state).queue] == ["M-A_X", "Kai-Lai", "sarah"]
    talk.stop().resume()
    assert talk.queue == ["M-A_X running", "Kai-Lai asked", "sarah waiting"]


# --- groups


@pytest.mark.parametrize("change", ["leaves", "becomes a person"])
def test_the_reply_of_a_group_that_was_kept_is_delivered_whatever_its_speaker_is_now(stage: Stage, change: str) -> None:
    killed_before_delivery(stage)
    stage.open()
    assert stage.queue == ["max held", "sarah held"]
    assert list(problems(stage.db)) == []
    stage.team = without(stage.team, "max") if change == "leaves" else turned(stage.team, "max")
    stage.says = {}
    stage.resume()
    assert "max: my part" in stage.said


def killed_before_delivery(stage: Stage) -> None:
    """A group of which max has its reply, kept, when the process dies."""
    stage.says = {"max": ["my part"], "sarah": [Hangs()]}  # a reply of sarah might be the first that is kept

    class Killed(BaseException):
        pass

    def dies(_event: object) -> None:
        kept = stage.db.rows("SELECT 1 FROM turns WHERE session = ? AND status = 'answered'", stage.session)
        if kept:
            raise Killed

    stage.hear = dies
    with pytest.raises(Killed):
        stage.send("Hi", to="max+sarah")
    stage.hear = lambda _: None


def test_who_has_left_a_group_fails_alone(stage: Stage) -> None:
    stage.says = {"max": [Fails()], "sarah": [Fails()]}
    stage.send("Hi", to="max+sarah")
    stage.team, stage.says = without(stage.team, "sarah"), {"max": ["my part"]}
    end = stage.resume()
    assert (end.code, end.hint) == (ExitCode.GROUP_PARTLY_FAILED, "teamchat resume --skip")
    assert stage.said[-1] == "max: my part"
    assert stage.resume(ResumeMode.SKIP).code is ExitCode.DONE
    assert stage.queue == []


# --- any change, any queue, any command

edits = st.lists(
    st.one_of(
        st.tuples(st.just("leaves"), st.sampled_from(EVERYBODY)),
        st.tuples(st.just("turns"), st.sampled_from(EVERYBODY)),
        st.tuples(st.just("renamed"), st.sampled_from(EVERYBODY)),
        st.tuples(st.just("spelled"), st.sampled_from(EVERYBODY)),
        st.tuples(st.just("moved"), st.sampled_from(EVERYBODY)),
        st.tuples(st.just("another agent"), st.sampled_from(EVERYBODY)),
    ),
    max_size=4,
)
said = st.sampled_from(
    ["Hi", "[NEXT: kailai]", "ask [NEXT: bob, sarah]", "[NEXT: sarah + dora]", "go [NEXT: max, kailai !P1]", Fails()]
)
commands = st.sampled_from(["send", "answer", "retry", "skip", "drop"])


def edited(team: Team, how: str, name: str) -> Team:
    match how:
        case "leaves":
            return without(team, name)
        case "turns":
            return turned(team, name)
        case "renamed":
            return renamed(team, name, f"{name}2")
        case "spelled":
            return renamed(team, name, name.upper())
        case "moved":
            changes: dict[str, object] = {"cwd": team.root / "gone"}
        case _:
            changes = {"agent": "dora-agent"}
    members = (replace(m, **changes) if m.name == name and m.type == "ai" else m for m in team.members)
    return replace(team, members=tuple(members))


def run(stage: Stage, command: str) -> Conclusion | TeamchatError:
    people = [member.name for member in stage.team.humans]
    try:
        match command:
            case "send":
                return stage.send("and now?")
            case "answer":
                return stage.send("yes", speaker=people[-1])
            case _:
                return stage.resume(ResumeMode(command))
    except TeamchatError as error:
        return error


@given(
    says=st.fixed_dictionaries({name: st.lists(said, max_size=3) for name in ("max", "sarah", "dora")}),
    opening=st.sampled_from(["max", "max,sarah", "max+sarah+dora", "max+sarah,kailai"]),
    change=edits,
    then=st.lists(commands, min_size=1, max_size=3),
    killed=st.booleans(),
)
@example(says={"max": ["[NEXT: kailai]"], "sarah": [], "dora": []}, opening="max",
         change=[("turns", "kailai")], then=["retry", "send"], killed=False)  # fmt: skip
@settings(max_examples=trials(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_change_of_the_team_leaves_a_conversation_that_goes_on(
    says: dict[str, list[str | Fails]], opening: str, change: list[tuple[str, str]], then: list[str], *, killed: bool
) -> None:
    folder = Path(tempfile.mkdtemp())
    stage = stage_in(folder, **says)
    stage.db.execute("PRAGMA synchronous = OFF")
    try:
        stage.send("Begin", to=opening)
        if killed:
            kill(stage)
        for how, name in change:
            stage.team = edited(stage.team, how, name)
        if not stage.team.humans:  # a team without one has its user
            stage.team = replace(stage.team, members=(human("login"), *stage.team.members))
        for command in then:
            queued = len(stage.queue)
            end = run(stage, command)
            assert end.code in set(ExitCode)
            if isinstance(end, Conclusion) and end.code is not ExitCode.DONE:
                assert end.reason
            assert list(problems(stage.db)) == [], "what a healthy store holds is no damage"
            if command == "drop":
                assert stage.queue == []
            if command == "skip" and queued and isinstance(end, Conclusion):
                assert end.turns or len(stage.queue) < queued
    finally:
        stage.db.close()
        shutil.rmtree(folder)


def kill(stage: Stage) -> None:
    """What the queue is when the process was killed in the middle of its first turns."""
    stage.db.execute(
        "UPDATE routes SET status = 'running' WHERE place IS NOT NULL AND answer IS NULL AND session = ?"
        " AND status = 'held' AND place < 2",
        stage.session,
    )
