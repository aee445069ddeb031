"""What a member's own session is shown, turn by turn, and what makes it begin a fresh one."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.context.vendor_session import own_share
from teamchat.core.receipt import Outcome
from teamchat.core.store.turns import Turn, mark_opened
from teamchat.runners.agent_events import Usage
from teamchat.runners.child.running import Launch
from tests.core.fake_conversation import Fails, Reply, Stage, team_of
from tests.hiding import hide
from tests.trials import trials

CHANGED = "its instructions, model, access or folder have changed"
WORD = re.compile(r"word-\d+")


def resumed(launch: Launch) -> str | None:
    """The session that the CLI was told to go on with."""
    return next((word for flag, word in pairwise(launch.argv) if flag in ("--resume", "resume")), None)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path, team_of(tmp_path, {"max": "claude", "sarah": "codex", "carol": "gemini"}))
    for name in ("max", "sarah", "carol"):
        stage.member(name, memory="resume", system_instruction=f"You are {name}")
    stage.says = {name: [f"{name} {number}" for number in range(20)] for name in ("max", "sarah", "carol")}
    return stage


def why_fresh(stage: Stage) -> str | None:
    return stage.turns[-1].setup.fresh_because


@pytest.mark.parametrize("name", ["max", "sarah", "carol"])
def test_a_second_turn_goes_on_with_the_session_and_shows_only_what_is_new(stage: Stage, name: str) -> None:
    stage.send("First", to=name)
    stage.send("Second", to=name)
    first, second = stage.launched
    assert resumed(first) is None
    assert resumed(second) == stage.turns[0].vendor_session
    assert "First" in stage.prompts[0]
    assert "First" not in stage.prompts[1]
    assert f"{name} 0" not in stage.prompts[1], "its own reply is in its session"
    assert stage.prompts[1].endswith("Second")
    assert stage.turns[1].setup.resumes == stage.turns[0].vendor_session
    assert stage.turns[1].setup.fresh_bytes > stage.turns[1].setup.stdin_bytes


def test_system_text_goes_each_time_to_claude_and_at_first_only_to_the_others(stage: Stage) -> None:
    for name in ("max", "sarah", "carol"):
        stage.send("First", to=name)
        stage.send("Second", to=name)
    claude, codex, gemini = (stage.launched[at : at + 2] for at in (0, 2, 4))
    assert all("You are max" in (launch.identity.system_text or "") for launch in claude)
    for launches, name in ((codex, "sarah"), (gemini, "carol")):
        assert f"You are {name}" in launches[0].stdin.decode()
        assert f"You are {name}" not in launches[1].stdin.decode()


def test_what_others_said_meanwhile_is_shown_whatever_the_window(stage: Stage) -> None:
    stage.send("First", to="max")
    for number in range(40):
        stage.send(f"Aside {number}.", to="sarah")
    stage.send("Now", to="max")
    assert all(f"Aside {number}." in stage.prompts[-1] for number in range(40))
    assert "First" not in stage.prompts[-1]


def test_a_fresh_member_never_goes_on_and_leaves_no_session(stage: Stage) -> None:
    stage.member("max", memory="fresh")
    stage.send("First", to="max")
    stage.send("Second", to="max")
    assert [resumed(launch) for launch in stage.launched] == [None, None]
    assert all("--no-session-persistence" in launch.argv for launch in stage.launched)
    assert "First" in stage.prompts[1]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"system_instruction": "You are another"}, CHANGED),
        ({"instruction_file_text": "You are another"}, CHANGED),
        ({"model": "opus"}, CHANGED),
        ({"access": "edit"}, CHANGED),
        ({"allow": ("make",)}, CHANGED),
        ({"args": ("--verbose",)}, CHANGED),
        ({"project_settings": True}, CHANGED),
        ({"web": True}, CHANGED),
        ({"mcp": ("github",)}, CHANGED),
        ({"git": True}, CHANGED),
        ({"agent": "claude-code"}, CHANGED),
        ({"title": "Architect"}, CHANGED),
        ({"memory": "fresh"}, "its memory is fresh"),
    ],
)
def test_a_changed_member_begins_a_fresh_session_with_everything(
    stage: Stage, change: dict[str, object], why: str
) -> None:
    stage.send("First", to="max")
    stage.member("max", **change)
    stage.send("Second", to="max")
    assert resumed(stage.launched[1]) is None
    assert "First" in stage.prompts[1]
    assert why_fresh(stage) == why


@pytest.mark.parametrize(("name", "continues"), [("max", True), ("sarah", True), ("carol", False)])
def test_another_folder_begins_a_fresh_session_where_the_cli_finds_one_only_in_its_own(
    stage: Stage, name: str, continues: bool
) -> None:
    stage.send("First", to=name)
    stage.member(name, cwd=Path("/"))
    stage.send("Second", to=name)
    assert (resumed(stage.launched[1]) is not None, why_fresh(stage)) == (continues, None if continues else CHANGED)


def test_another_program_begins_a_fresh_session(stage: Stage) -> None:
    stage.send("First", to="max")
    agents = {name: replace(agent, command=("another",)) for name, agent in stage.team.agents.items()}
    stage.team = replace(stage.team, agents=agents)
    stage.send("Second", to="max")
    assert (resumed(stage.launched[1]), why_fresh(stage)) == (None, CHANGED)


def test_messages_taken_back_break_the_session(stage: Stage) -> None:
    stage.send("First", to="max")
    hide(stage.db, "msg-2")
    stage.send("Second", to="max")
    assert resumed(stage.launched[1]) is None
    assert why_fresh(stage) == "messages were undone"
    stage.send("Third", to="max")
    assert resumed(stage.launched[2]) == stage.turns[1].vendor_session


def test_a_turn_that_failed_breaks_the_session_and_its_retry_shows_everything(stage: Stage) -> None:
    stage.says["max"][1] = Fails("half a")
    stage.send("First", to="max")
    stage.send("Second", to="max")
    assert resumed(stage.launched[1]) is not None
    stage.says["max"][1] = "whole"
    stage.resume()
    assert resumed(stage.launched[2]) is None
    assert "First" in stage.prompts[2]
    assert why_fresh(stage) == "its turn 2 failed"


def test_who_stands_in_begins_a_fresh_session(stage: Stage) -> None:
    stage.member("max", fallback=("sarah",))
    stage.send("First", to="sarah")
    stage.says["max"][0] = Fails("", err="Error: 429 too many requests")
    stage.send("Second", to="max")
    assert resumed(stage.launched[-1]) is None
    assert stage.spoke[-1] == "sarah"
    assert why_fresh(stage) == "it answers in place of max"


def test_a_session_that_is_gone_is_noticed_and_nothing_is_lost(stage: Stage) -> None:
    stage.send("First", to="sarah")
    says = stage.says["sarah"]
    lost = Fails(err="Error: thread/resume: thread/resume failed: no rollout found for thread id x (code -32600)")

    def answers(launch: Launch) -> Reply:
        return lost if resumed(launch) else "here again"

    stage.answers = answers
    stage.send("Second", to="sarah")
    assert [resumed(launch) is None for launch in stage.launched] == [True, False, True]
    assert "First" in stage.prompts[2]
    assert stage.said[-1] == "sarah: here again"
    assert says[0] == "sarah 0"
    assert [turn.status for turn in stage.turns] == ["done", "failed", "done"]
    assert "has lost its own session" in " ".join(stage.warnings)


def test_a_cli_that_silently_begins_anew_is_not_believed(stage: Stage) -> None:
    stage.send("First", to="sarah")
    stage.session_of = lambda launch: "another" if resumed(launch) else "fresh-one"
    stage.send("Second", to="sarah")
    assert [turn.status for turn in stage.turns] == ["done", "failed", "done"]
    assert "First" in stage.prompts[2]
    assert "began a new session" in " ".join(stage.warnings)


def test_members_whose_programs_give_their_sessions_one_name_miss_nothing(stage: Stage) -> None:
    """As wrapper scripts may: what one has said and used is not the other's."""
    stage.session_of = lambda _launch: "the-session"
    for name in ("max", "carol", "sarah", "max", "carol"):
        stage.send(f"Hi {name}.", to=name)
    assert ["carol 0" in prompt for prompt in stage.prompts] == [False, False, True, True, False]
    assert ["sarah 0" in prompt for prompt in stage.prompts] == [False, False, False, True, True]
    assert resumed(stage.launched[-1]) == "the-session"
    usages = [turn.outcome.usage for turn in stage.turns if turn.outcome]
    assert len({usage.input_tokens for usage in usages if usage}) == 1


def test_the_request_is_quoted_only_where_the_session_has_not_had_it(stage: Stage) -> None:
    stage.says["max"][:2] = ["Plan.\n[NEXT: sarah]", "Done."]
    stage.says["sarah"][0] = "Code.\n[NEXT: max]"
    stage.send("Build the very thing", to="max")
    assert "Build the very thing" not in stage.prompts[2]
    assert stage.prompts[2].endswith("Code.")


def test_a_request_that_was_quoted_is_not_quoted_again(stage: Stage) -> None:
    """It stands before the window that the session began with: that the session has had it shows nowhere else."""
    stage.team = replace(stage.team, context_window=1)
    stage.says = {"carol": ["C"], "sarah": ["S", "S 2\n[NEXT: max]"], "max": ["M\n[NEXT: sarah]", "M 2"]}
    stage.send("[NEXT: carol, sarah, max] Build the very thing")
    assert stage.spoke == ["carol", "sarah", "max", "sarah", "max"]
    of_max = [prompt for prompt, name in zip(stage.prompts, stage.spoke, strict=True) if name == "max"]
    assert ["Build the very thing" in prompt for prompt in of_max] == [True, False]
    assert resumed(stage.launched[-1]) is not None


def test_codex_reports_sums_and_the_receipt_has_the_turns_own_part(stage: Stage) -> None:
    stage.send("First", to="sarah")
    stage.usage_of = lambda launch: {"input_tokens": 250, "output_tokens": 30} if resumed(launch) else None
    stage.send("Second", to="sarah")
    outcome = stage.turns[1].outcome
    assert isinstance(outcome, Outcome)
    assert outcome.usage == Usage(150, None, 10, None)


def test_a_session_that_a_person_went_on_with_is_gone_on_with_and_said_so(stage: Stage) -> None:
    stage.send("First", to="max")
    mark_opened(stage.db, stage.turns[0])
    stage.send("Second", to="max")
    assert resumed(stage.launched[1]) is not None
    assert stage.turns[1].setup.opened


def test_what_a_person_used_by_hand_in_codex_is_on_no_receipt(stage: Stage, tmp_path: Path) -> None:
    """Codex counts over a session; its own file says what the count was when the turn began."""
    stage.member("sarah", env={"CODEX_HOME": str(tmp_path / "codex")})
    counts = iter([100, 650, 780])  # 450 of them by hand
    stage.usage_of = lambda _launch: {"input_tokens": next(counts), "output_tokens": 0}
    stage.send("First", to="sarah")
    counted(tmp_path / "codex", "sarah-1", 550)
    mark_opened(stage.db, stage.turns[0])
    stage.send("Second", to="sarah")
    counted(tmp_path / "codex", "sarah-1", 650)
    stage.send("Third", to="sarah")
    usages = [turn.outcome.usage for turn in stage.turns if turn.outcome]
    assert [usage.input_tokens for usage in usages if usage] == [100, 100, 130]
    assert [turn.setup.opened for turn in stage.turns] == [False, True, False]


def test_where_codex_does_not_tell_what_was_used_by_hand_it_counts(stage: Stage) -> None:
    counts = iter([100, 650, 780])
    stage.usage_of = lambda _launch: {"input_tokens": next(counts), "output_tokens": 0}
    stage.send("First", to="sarah")
    mark_opened(stage.db, stage.turns[0])
    stage.send("Second", to="sarah")
    stage.send("Third", to="sarah")
    usages = [turn.outcome.usage for turn in stage.turns if turn.outcome]
    assert [usage.input_tokens for usage in usages if usage] == [100, 550, 130]


def counted(home: Path, session: str, tokens: int) -> None:
    """What Codex writes to a session's file after an answer."""
    folder = home / "sessions" / "2026" / "11" / "22"
    folder.mkdir(parents=True, exist_ok=True)
    usage = {"input_tokens": tokens, "cached_input_tokens": 0, "output_tokens": 0}
    payload = {"type": "token_count", "info": {"total_token_usage": usage, "last_token_usage": usage}}
    with (folder / f"rollout-2026-11-22T04-34-53-{session}.jsonl").open("a") as file:
        file.write(json.dumps({"type": "event_msg", "payload": payload}) + "\n")


STEP = st.one_of(
    st.tuples(st.just("send"), st.sampled_from(["max", "sarah", "carol", "max+sarah", "max,carol", "sarah+carol+max"])),
    st.tuples(st.just("fail"), st.sampled_from(["max", "sarah", "carol"])),
    st.tuples(st.just("undo"), st.just("")),
    st.tuples(st.just("resume"), st.just("")),
)


@pytest.mark.parametrize("window", [1000, 1], ids=["the whole", "a window of one, and summaries"])
@settings(max_examples=trials(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, max_size=12))
def test_every_session_is_shown_every_message_exactly_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]], window: int
) -> None:
    """Over any interleaving of members, groups, failures and messages that are taken back.

    A session that begins with a window is shown what comes after that.
    """
    folder = tmp_path_factory.mktemp("memory")
    team = team_of(folder, {"max": "claude", "sarah": "codex", "carol": "gemini", "al": "plain"})
    compactor = "al" if window == 1 else None
    stage = Stage(folder, replace(team, context_window=window, compactor=compactor, compact_at_tokens=15))
    for name in ("max", "sarah", "carol"):
        stage.member(name, memory="resume")
    failing: set[str] = set()

    def answer(launch: Launch) -> str | Fails:
        if launch.identity.member == "al":
            return "A summary."
        number = 1000 + len(stage.launched)
        hand_over = "\n[NEXT: max, sarah]" if number % 3 else ""
        return Fails("half") if launch.identity.member in failing else f"word-{number} said{hand_over}"

    stage.answers = answer
    for number, (what, who) in enumerate(steps):
        if what == "undo" and not stage.queue:
            hide(stage.db, *(message.id for message in stage.log[-1:]))
        elif what == "resume" and stage.queue:
            failing.clear()
            stage.resume()
        elif what in ("send", "fail"):
            failing = {who} if what == "fail" else set()
            stage.send(f"word-{number} please", to=who)
        failing = set()
    shown: dict[str, Counter[str]] = {}
    begins: dict[str, list[str]] = {}
    for turn, launch in zip(stage.turns, stage.launched, strict=True):
        if turn.setup.purpose != "reply":
            continue
        session = turn.setup.resumes or turn.vendor_session or f"turn {turn.number}"
        seen = shown.setdefault(session, Counter())
        seen.update(WORD.findall(launch.stdin.decode()))
        assert all(count == 1 for count in seen.values()), (session, seen)
        told = set(seen)
        own = {
            word
            for before in stage.turns
            if before.vendor_session == session and before.number < turn.number and before.outcome
            for word in WORD.findall(spoken_in(stage, before.outcome.reply))
        }
        there = visible_then(stage, turn)
        before = begins.setdefault(session, there[:-1] if window == 1 else [])
        visible = {word for text in there[len(before) :] for word in WORD.findall(text)}
        assert visible <= told | own, (session, visible, told, own)
    stage.db.close()


def spoken_in(stage: Stage, message: str | None) -> str:
    row = stage.db.row("SELECT content FROM messages WHERE message = ?", message)
    return str(row["content"]) if row else ""


def visible_then(stage: Stage, turn: Turn) -> list[str]:
    """Every message that was there when the turn began, up to the one that it answered."""
    there = stage.visible_at[turn.number - 1]
    ids = [message.id for message in there]
    return [message.content for message in there[: ids.index(turn.shown_through) + 1]]


def test_of_figures_that_add_up_over_a_session_a_turn_has_what_was_not_there_before() -> None:
    before = Usage(4, 3, 2, 0.5)
    assert own_share(Usage(10, 8, 6, 1.0, cumulative=True), before) == Usage(6, 5, 4, 1.0)
    assert own_share(Usage(3, 2, 1, cumulative=True), before) == Usage(0, 0, 0)
    assert own_share(Usage(10, cumulative=True), Usage()) == Usage(10)
    assert own_share(Usage(10, 8, 6, 1.0), before) == Usage(10, 8, 6, 1.0)
    assert own_share(None, before) is None
