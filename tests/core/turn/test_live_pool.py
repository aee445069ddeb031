"""A member with the memory "live": one process for its turns of a run, and no claim that it remembers what it lost."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.conversation.inputs import Message
from teamchat.core.conversation.recovery import clean_turns
from teamchat.core.errors import ExitCode
from teamchat.core.store.sessions import create_session
from teamchat.core.store.turns import Turn
from teamchat.core.team.team import AgentSpec, Member
from teamchat.core.turn.run_events import AgentSpoke, Conclusion, TurnFinished
from teamchat.runners.agent_events import TextDelta
from teamchat.runners.child.live import LiveAgent
from tests.core.fake_conversation import Stage, team_of
from tests.program import fake

FAKE = Path(__file__).parent.parent.parent / "fakes" / "live.py"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    team = team_of(tmp_path, {"max": "claude"})
    agents = {**team.agents, "max-agent": AgentSpec("max-agent", fake(FAKE), "claude")}
    stage = Stage(tmp_path, replace(team, agents=agents))
    stage.member("max", memory="live")
    return stage


def talk(stage: Stage, *texts: str) -> Conclusion:
    """One run of teamchat over several messages, with real processes."""

    async def run() -> Conclusion:
        coordinator = stage.open_real()
        try:
            for text in texts:
                conclusion = await coordinator.run_input(Message(text=text))
        finally:
            await coordinator.close()
        return conclusion

    return asyncio.run(run())


def alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


def test_turns_of_a_run_share_one_process_that_ends_with_it(stage: Stage) -> None:
    started: list[str] = []

    def moment(vendor: str) -> float:
        started.append(vendor)
        return 0.0

    stage.moment = moment
    talk(stage, "pid", "pid")
    first, second = (message.content for message in stage.log if message.speaker.type == "ai")
    assert first == second
    assert not alive(first)
    assert started == ["claude"], "only a start keeps apart from others"
    assert [turn.setup.same_process for turn in stage.turns] == [False, True]
    assert stage.turns[1].setup.argv == stage.turns[0].setup.argv
    assert list((stage.folder / "turns").iterdir()) == []


def test_another_session_that_begins_meanwhile_leaves_it_its_files(stage: Stage) -> None:
    other = create_session(stage.db, "crew", None).id

    def begin_another(event: object) -> None:
        if isinstance(event, TurnFinished):
            clean_turns(stage.db, other, stage.folder / "turns")

    stage.hear = begin_another
    assert talk(stage, "pid", "pid").code is ExitCode.DONE
    first, second = (message.content for message in stage.log if message.speaker.type == "ai")
    assert first == second


def test_the_next_run_goes_on_with_the_session_in_a_process_of_its_own(stage: Stage) -> None:
    talk(stage, "pid")
    talk(stage, "pid")
    first, second = (message.content for message in stage.log if message.speaker.type == "ai")
    assert first != second
    assert stage.turns[1].setup.resumes == stage.turns[0].vendor_session == f"session-{first}"


def test_each_turn_has_its_own_cost(stage: Stage) -> None:
    talk(stage, "say one", "say two", "say three")
    assert [turn.outcome and turn.outcome.usage and turn.outcome.usage.cost_usd for turn in stage.turns] == [0.25] * 3


@pytest.mark.parametrize(
    ("told", "own"),
    [
        ((0.25, 0.5), [0.25, 0.25]),
        ((0.25, 0.25), [0.25, None]),  # as of a turn that was interrupted: nobody counted
        ((0.25, 0.1), [0.25, 0.1]),  # it does not add up any more
        ((0, 0), [0.0, 0.0]),  # a model that costs nothing
    ],
)
def test_no_cost_is_made_up_of_what_it_tells_in_all(
    stage: Stage, told: tuple[float, ...], own: list[float | None]
) -> None:
    talk(stage, *(f"cost {cost}" for cost in told))
    assert [turn.outcome and turn.outcome.usage and turn.outcome.usage.cost_usd for turn in stage.turns] == own


def test_a_cost_that_is_the_turns_own_is_taken_as_it_is(stage: Stage) -> None:
    """2.1.330 adds up over the session, also what earlier processes and a person by hand have spent."""
    talk(stage, "cost 1.25 0.25", "cost 1.5 0.25", "cost 1.625 0.125")
    assert [turn.outcome and turn.outcome.usage and turn.outcome.usage.cost_usd for turn in stage.turns] == [
        0.25, 0.25, 0.125,
    ]  # fmt: skip


def test_a_turn_is_interrupted_by_the_clis_own_request(stage: Stage) -> None:
    def stop_at_the_first_word(event: object) -> None:
        if isinstance(event, AgentSpoke) and isinstance(event.event, TextDelta):
            stage.stopper.request()

    stage.hear = stop_at_the_first_word
    assert talk(stage, "hang").code is ExitCode.INTERRUPTED
    (turn,) = stage.turns
    assert turn.status == "interrupted"
    assert turn.outcome is not None
    assert turn.outcome.seconds is not None
    assert turn.outcome.seconds < 10


def test_a_turn_that_hears_no_interrupt_is_ended_by_signal(stage: Stage) -> None:
    stage.member("max", first_byte_s=30.0, timeout_s=0.3)
    assert talk(stage, "deaf").code is ExitCode.TIMEOUT
    assert list((stage.folder / "turns").iterdir()) == []


def test_a_process_that_died_is_replaced_by_a_fresh_session(stage: Stage) -> None:
    assert talk(stage, "say one", "die").code is ExitCode.MEMBER_FAILED
    died = [turn.outcome.exit_code for turn in stage.turns if turn.outcome]
    assert died == [0, 3, 3], "it is asked again in a process for one turn"
    assert talk(stage, "say two").code is ExitCode.DONE
    assert stage.turns[-1].setup.fresh_because == "its turn 3 failed"
    assert stage.log[-1].content == "two"


def test_a_process_that_dies_right_before_its_turn_is_no_failure_of_the_turn(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = LiveAgent.runs

    def dies_then(agent: LiveAgent) -> bool:
        """It is there when it is looked for, and not any more when it is spoken to."""
        runs = looked(agent)
        if agent.process and runs:
            os.kill(agent.process.pid, signal.SIGKILL)
            while looked(agent):
                time.sleep(0.01)
        return runs

    monkeypatch.setattr(LiveAgent, "rest", lambda _agent: None)
    talked: list[object] = []

    def hear(event: object) -> None:
        if isinstance(event, TurnFinished) and not talked:
            talked.append(event)
            monkeypatch.setattr(LiveAgent, "runs", dies_then)

    stage.hear = hear
    assert talk(stage, "say one", "say two").code is ExitCode.DONE
    assert [turn.status for turn in stage.turns] == ["done", "failed", "done"]
    assert stage.warnings == [
        "max could not be started: the process that was kept running has ended; each further turn gets its own process"
    ]


@pytest.mark.parametrize("order", ["unsaid", "unsaid-deaf"])
def test_a_process_that_tells_no_end_of_its_turn_is_not_waited_for(stage: Stage, order: str) -> None:
    """The turn is run again in a process for one turn, as are all that follow."""
    began = time.monotonic()
    assert talk(stage, "say one", order, "say two").code is ExitCode.DONE
    assert time.monotonic() - began < 10
    assert [turn.status for turn in stage.turns] == ["done", "failed", "done", "done"]
    assert [turn.setup.memory for turn in stage.turns] == ["live", "live", "resume", "resume"]
    assert [message.content for message in stage.log if message.speaker.type == "ai"] == ["one", order, "two"]
    assert stage.turns[3].setup.resumes == stage.turns[2].vendor_session
    ended = {"unsaid": "ended with exit code 0", "unsaid-deaf": "was ended by SIGINT"}[order]
    assert stage.warnings == [f"max {ended} before it had finished its answer; each further turn gets its own process"]
    assert notes(stage.turns[1]) == [
        "did not report at once that its turn is over: its process is kept for no other turn"
    ]


def test_an_end_that_is_told_late_counts_and_its_process_is_not_kept(stage: Stage) -> None:
    """As with a hook that runs after the answer."""
    assert talk(stage, "unsaid-late 1.5", "pid").code is ExitCode.DONE
    first, second = stage.turns
    assert (first.status, second.status) == ("done", "done")
    assert notes(first) == ["did not report at once that its turn is over: its process is kept for no other turn"]
    assert not second.setup.same_process
    assert second.setup.resumes == first.vendor_session
    assert stage.warnings == []


def notes(turn: Turn) -> list[str]:
    return list(turn.outcome.notes) if turn.outcome else []


def test_a_changed_member_gets_a_process_of_its_own(stage: Stage) -> None:
    talk(stage, "pid")
    stage.member("max", system_instruction="You are another")
    talk(stage, "pid")
    assert stage.turns[1].setup.resumes is None


def test_who_answers_in_anothers_place_meanwhile_has_a_process_of_its_own(stage: Stage, tmp_path: Path) -> None:
    """Both turns run at the same time, or they would wait for each other for a minute."""
    rejected = AgentSpec("shell", ("/bin/sh", "-c", "echo Not logged in >&2; exit 1"), "claude")
    sarah = Member("sarah", "ai", tmp_path, agent="shell", fallback=("max",))
    agents = {**stage.team.agents, "shell": rejected}
    stage.team = replace(stage.team, members=(*stage.team.members, sarah), agents=agents)
    (tmp_path / "met").mkdir()
    assert talk(stage, f"[NEXT: max + sarah] meet {tmp_path / 'met'}", "[NEXT: max] pid").code is ExitCode.DONE
    own, instead, then = (message.content for message in stage.log if message.speaker.type == "ai")
    assert own != instead == then  # the last of its turns is the one that is gone on with
    assert not any(map(alive, (own, instead)))


def test_a_large_prompt_reaches_it_whole(stage: Stage) -> None:
    stage.team = replace(stage.team, max_bytes=4_000_000, max_prompt_tokens=1_000_000)
    text = "x" * 2_000_000
    assert talk(stage, f"say {text}").code is ExitCode.DONE
    assert stage.log[-1].content == text
