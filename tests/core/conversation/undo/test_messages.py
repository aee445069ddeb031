"""Undo and redo of a conversation, seen in what the next prompts hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.conversation.undo.messages import (
    UndoPlan,
    give_call,
    plan_undo,
    redo_conversation,
    start_undo,
    undo_conversation,
    undo_to_redo,
)
from teamchat.core.engine.events import ResumeMode
from teamchat.core.errors import ExitCode, UnknownName, UsageError
from teamchat.core.routing.todos import Add
from teamchat.core.store.checking import problems
from teamchat.core.store.lessons import add_lesson
from teamchat.core.store.sessions import all_sessions
from teamchat.core.store.todos import note_todos, todos_of
from teamchat.core.store.undos import Undo, unfinished_undo
from teamchat.core.store.usage import total_used, used
from teamchat.core.team.team import Limits
from teamchat.core.turn.run import rules_of
from teamchat.runners.child.running import Launch
from tests.core.fake_conversation import Fails, Hangs, Reply, Stage, team_of


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, team_of(tmp_path, {"max": "claude", "sarah": "codex", "carol": "gemini"}))


def planned(stage: Stage, turn: int | None = None) -> UndoPlan:
    (session,) = (one for one in all_sessions(stage.db) if one.id == stage.session)
    return plan_undo(stage.db, session, rules_of(stage.team), turn)


def undo(stage: Stage, turn: int | None = None) -> Undo:
    return undo_conversation(stage.open().run, planned(stage, turn))


def redo(stage: Stage) -> Undo:
    (session,) = (one for one in all_sessions(stage.db) if one.id == stage.session)
    return redo_conversation(stage.open().run, undo_to_redo(stage.db, session))


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as caught:
        work()
    return str(caught.value)


class TestWhatComesBack:
    def test_the_last_turn_is_on_hold_again_and_its_reply_in_no_prompt(self, stage: Stage) -> None:
        stage.says = {"max": ["a wrong plan [NEXT: sarah]"], "sarah": ["built the wrong plan"]}
        stage.send("Plan it [NEXT: max]")
        plan = planned(stage, 1)
        assert [message.id for message in plan.messages] == ["msg-2", "msg-3"]
        assert [turn.number for turn in plan.turns] == [1, 2]
        assert [(route.target, route.status) for route in plan.queue] == [("max", "held")]
        undo_conversation(stage.open().run, plan)
        assert (stage.said, stage.queue) == (["kailai: Plan it [NEXT: max]"], ["max held"])
        assert list(problems(stage.db)) == []
        stage.says = {"max": ["a good plan"]}
        assert stage.resume().code == ExitCode.DONE
        assert "wrong" not in stage.prompts[-1]
        assert stage.said[-1] == "max: a good plan"
        assert stage.log[-1].id == "msg-4"

    def test_by_default_the_last_turn_is_undone_and_then_the_one_before(self, stage: Stage) -> None:
        stage.says = {"max": ["one [NEXT: sarah]"], "sarah": ["two"]}
        stage.send("Go [NEXT: max]")
        undo(stage)
        assert (stage.said[-1], stage.queue) == ("max: one [NEXT: sarah]", ["sarah held"])
        undo(stage)
        assert (stage.said[-1], stage.queue) == ("kailai: Go [NEXT: max]", ["max held"])
        assert refused(lambda: undo(stage)) == "there is no turn to undo in session s1"

    def test_what_people_said_later_goes_and_so_do_their_tasks_and_todos(self, stage: Stage) -> None:
        stage.send("Go [NEXT: max] [TEAM_TASK: first task] [TODO: first item]")
        stage.send("Secondly [NEXT: sarah] [TEAM_TASK: second task] [TODO: second item]")
        note_todos(stage.db, stage.session, [Add("of a command")], "kailai")
        undo(stage, 1)
        assert stage.said == ["kailai: Go [NEXT: max] [TEAM_TASK: first task] [TODO: first item]"]
        assert stage.open().manager.get_team_task() == "first task"
        assert [item.added.text for item in todos_of(stage.db, stage.session).items.values()] == [
            "first item", "of a command",
        ]  # fmt: skip
        stage.resume()
        assert "first item" in stage.prompts[-1]
        for word in ("Secondly", "second task", "second item"):
            assert word not in stage.prompts[-1], word
        assert list(problems(stage.db)) == []

    def test_the_request_of_an_undone_turn_is_no_longer_quoted(self, stage: Stage) -> None:
        stage.team = replace(stage.team, context_window=1)
        stage.send("First request [NEXT: max]")
        stage.says = {"max": ["-", "x [NEXT: sarah]"], "sarah": ["y [NEXT: carol]"]}
        stage.send("Second request [NEXT: max]")
        undo(stage, 1)
        stage.says = {"max": ["a [NEXT: sarah]"], "sarah": ["b [NEXT: carol]"]}
        stage.resume()
        assert "First request" in stage.prompts[-1]
        assert not any("Second request" in prompt for prompt in stage.prompts[-3:])

    def test_counters_go_back_and_what_was_spent_stays(self, stage: Stage) -> None:
        stage.usage_of = lambda _launch: {"input_tokens": 100, "output_tokens": 10}
        stage.says = {"max": ["one [NEXT: sarah]"], "sarah": ["two"]}
        stage.send("Go [NEXT: max]")
        before, spent = stage.open().state, total_used(used(stage.db, stage.session))
        assert (before.turns, before.last_ai) == (2, "sarah")
        undo(stage)
        after = stage.open().state
        assert (after.turns, after.last_ai, after.since) == (1, "max", before.since)
        assert (after.tokens, after.next_route) == (before.tokens, before.next_route)
        assert total_used(used(stage.db, stage.session)) == spent
        assert spent.turns == 2

    def test_a_person_who_was_asked_is_asked_again(self, stage: Stage) -> None:
        stage.says = {"max": ["May I? [NEXT: kailai]", "done"]}
        stage.send("Go [NEXT: max]")
        assert stage.queue == ["kailai asked"]
        stage.send("No")
        undo(stage)
        assert stage.queue == ["max held"]
        undo(stage, 1)
        assert stage.queue == ["max held"]

    @pytest.mark.parametrize("reply", [Fails("half a"), "kill"])
    def test_a_turn_that_failed_or_was_killed_can_be_undone(self, stage: Stage, reply: Reply) -> None:
        if reply == "kill":
            reply = Hangs("half a", then=lambda: stage.stopper.request())  # noqa: PLW0108 (each run has its own)
        stage.says = {"max": [reply]}
        stage.send("Go [NEXT: max, sarah]")
        assert stage.queue == ["max held", "sarah held"]
        plan = planned(stage)
        assert (plan.messages, [turn.number for turn in plan.turns]) == ((), [1])
        undo_conversation(stage.open().run, plan)
        assert stage.queue == ["max held", "sarah held"]
        assert [turn.undone is not None for turn in stage.turns] == [True]
        assert stage.open().state.queue[0].attempt == 0
        assert list(problems(stage.db)) == []

    def test_a_turn_that_runs_is_not_undone(self, stage: Stage) -> None:
        seen: list[str] = []

        def while_it_runs() -> None:
            seen.append(refused(lambda: planned(stage)))
            stage.stopper.request()

        stage.says = {"max": [Hangs(then=while_it_runs)]}
        stage.send("Go [NEXT: max]")
        assert seen == ["turn 1 (max) runs"]

    def test_turns_that_cannot_be_undone_are_refused_in_words(self, stage: Stage) -> None:
        stage.send("Go [NEXT: max]")
        with pytest.raises(UnknownName, match=r"^session s1 has no turn 7$"):
            planned(stage, 7)
        stage.db.execute("UPDATE turns SET before_state = NULL")
        assert refused(lambda: planned(stage)) == (
            "turn 1 was run by an older teamchat, which kept nothing to undo it by"
        )

    def test_a_turn_is_undone_once(self, stage: Stage) -> None:
        stage.send("Go [NEXT: max]")
        undo(stage)
        assert refused(lambda: planned(stage, 1)) == "turn 1 is undone already"


class TestGroups:
    def test_a_group_is_undone_as_a_whole(self, stage: Stage) -> None:
        stage.send("Go [NEXT: max + sarah, carol]")
        plan = planned(stage, 2)
        assert (plan.first, plan.group) == (1, (1, 2))
        assert plan.why_together == "turns 1 and 2 are of one group, and are undone together"
        undo_conversation(stage.open().run, plan)
        assert (stage.said, stage.queue) == (
            ["kailai: Go [NEXT: max + sarah, carol]"],
            ["max held", "sarah held", "carol held"],
        )
        assert list(problems(stage.db)) == []
        stage.resume()
        assert [message.speaker.role_name for message in stage.log] == ["kailai", "max", "sarah", "carol"]
        assert list(problems(stage.db)) == []

    def test_a_group_that_paused_halfway_is_undone_from_its_first_turn(self, stage: Stage) -> None:
        stage.team = replace(stage.team, limits=Limits(turns=1))
        stage.send("Go [NEXT: max + sarah]")
        assert stage.queue == ["max held", "sarah held"]
        stage.resume()
        assert len(stage.log) == 3
        plan = planned(stage)
        assert (plan.first, plan.group) == (1, (1, 2))
        undo_conversation(stage.open().run, plan)
        assert [(route.target, route.answer) for route in stage.open().state.queue] == [("max", None), ("sarah", None)]
        assert list(problems(stage.db)) == []

    def test_members_that_ran_alone_after_their_group_are_undone_alone(self, stage: Stage) -> None:
        failing = {"sarah": Fails()}
        stage.answers = lambda launch: failing.get(launch.identity.member)
        stage.send("Go [NEXT: max + sarah]")
        failing.clear()
        stage.resume()
        plan = planned(stage)
        assert (plan.first, plan.group) == (3, ())
        undo_conversation(stage.open().run, plan)
        assert (stage.queue, len(stage.log)) == (["sarah held"], 2)
        assert list(problems(stage.db)) == []

    def test_a_reply_that_waited_for_its_group_waits_for_it_again(self, stage: Stage) -> None:
        """It was given before the undone turn, and became a message after it."""
        stage.team = replace(stage.team, limits=Limits(turns=1))
        stage.says = {"max": ["from max"]}
        stage.send("Go [NEXT: max + sarah]")
        stage.send("First this [NEXT: carol]")
        assert stage.spoke == ["max", "carol"]
        stage.resume()
        assert len(stage.log) == 5
        said = stage.said
        undo(stage, 2)
        assert stage.said == said[:2]
        assert stage.turns[0].status == "answered"
        assert list(problems(stage.db)) == []
        redo(stage)
        assert stage.said == said
        assert [turn.status for turn in stage.turns] == ["done"] * 3
        assert list(problems(stage.db)) == []
        undo(stage, 2)
        stage.resume()
        stage.resume()
        assert "max: from max" in stage.said
        assert stage.spoke.count("max") == 1
        assert list(problems(stage.db)) == []


class TestMemory:
    def test_a_member_that_remembers_what_was_undone_begins_a_fresh_session(self, stage: Stage) -> None:
        stage.member("max", memory="resume")
        stage.says = {"max": ["kept", "undone words", "again"]}
        stage.send("Go", to="max")
        stage.send("And on", to="max")
        assert stage.turns[-1].setup.resumes is not None
        undo(stage)
        stage.says = {"max": ["kept", "again"]}
        stage.resume()
        last = stage.turns[-1].setup
        assert (last.resumes, last.fresh_because) == (None, "its turn 2 was undone")
        assert "undone words" not in stage.prompts[-1]
        stage.send("More", to="max")
        assert stage.turns[-1].setup.resumes is not None

    def test_after_a_redo_members_continue_the_sessions_that_they_had(self, stage: Stage) -> None:
        stage.member("max", memory="resume")
        stage.member("sarah", memory="resume")
        for name in ("sarah", "max", "max"):
            stage.send("Go", to=name)
        sarahs, _, maxs = (turn.vendor_session for turn in stage.turns)
        undo(stage)
        undo(stage)
        redo(stage)
        redo(stage)
        stage.send("And on", to="max")
        stage.send("And on", to="sarah")
        assert [turn.setup.resumes for turn in stage.turns[-2:]] == [maxs, sarahs]

    def test_so_does_one_that_read_what_another_member_said(self, stage: Stage) -> None:
        stage.member("max", memory="resume")
        stage.says = {"sarah": ["undone words"]}
        stage.send("Go", to="sarah")
        undo(stage)
        stage.resume(ResumeMode.DROP)
        stage.send("Go", to="max")
        stage.send("On", to="max")
        assert stage.turns[-1].setup.resumes is not None
        assert not any("undone words" in prompt for prompt in stage.prompts)

    def test_a_failed_turn_that_was_undone_is_the_reason_given(self, stage: Stage) -> None:
        stage.member("max", memory="resume")
        stage.says = {"max": [Fails()]}
        stage.send("Go", to="max")
        undo(stage)
        stage.says = {"max": ["Hi"]}
        stage.resume()
        assert stage.turns[-1].setup.fresh_because == "its turn 1 was undone"

    def test_summaries_that_cover_what_was_undone_do_not_hold(self, stage: Stage) -> None:
        stage.team = replace(stage.team, compactor="sarah", compact_at_tokens=100, context_window=4)
        stage.says = {"max": [f"Reply {number}. " + "x" * 100 for number in range(1, 20)]}
        stage.answers = lambda launch: "SUMMARY" if launch.identity.member == "sarah" else None
        for number in range(5):
            stage.send(f"Question {number}.", to="max")
        assert "SUMMARY" in stage.prompts[-1]
        undo(stage, 2)
        asked = len(stage.prompts)
        stage.resume()
        assert "Question 1." in stage.prompts[asked]
        for word in ("SUMMARY", "Question 2.", "Question 3.", "Reply 2."):
            assert word not in stage.prompts[asked], word

    def test_a_summary_of_what_stays_holds_unless_its_own_turn_is_undone(self, stage: Stage) -> None:
        stage.team = replace(stage.team, compactor="sarah", compact_at_tokens=100, context_window=4)
        stage.says = {"max": [f"Reply {number}. " + "x" * 100 for number in range(1, 20)]}
        stage.answers = lambda launch: "SUMMARY" if launch.identity.member == "sarah" else None
        for number in range(5):
            stage.send(f"Question {number}.", to="max")
        assert [turn.number for turn in stage.turns if turn.route is None] == [5]
        undo(stage)
        stage.resume()
        assert "SUMMARY" in stage.prompts[-1]
        undo(stage, 4)
        assert all(turn.undone for turn in stage.turns[3:])
        stage.resume()
        assert "SUMMARY" not in stage.prompts[-1]

    def test_lessons_stay_and_the_plan_names_them(self, stage: Stage) -> None:
        add_lesson(stage.db, "An older lesson.", "s1")
        stage.send("Go", to="max")
        lesson, _ = add_lesson(stage.db, "Never do this again.", "s1")
        add_lesson(stage.db, "One of another session.", "s2")
        plan = planned(stage)
        assert plan.lessons == (lesson,)
        undo_conversation(stage.open().run, plan)
        stage.resume()
        assert "Never do this again." in stage.prompts[-1]


class TestRedo:
    def test_it_brings_everything_back(self, stage: Stage) -> None:
        stage.says = {"max": ["one [NEXT: sarah] [TODO: item]"], "sarah": ["May I? [NEXT: kailai]"]}
        stage.send("Go [NEXT: max, carol] [TEAM_TASK: task]")
        stage.send("Yes [TEAM_TASK: another]")
        state, said, turns = stage.open().state, stage.said, stage.turns
        todos = todos_of(stage.db, stage.session)
        undo(stage, 2)
        undo(stage, 1)
        redo(stage)
        redo(stage)
        assert (stage.open().state, stage.said, stage.turns) == (state, said, turns)
        assert (todos_of(stage.db, stage.session), stage.open().manager.get_team_task()) == (todos, "another")
        assert refused(lambda: redo(stage)) == "there is nothing to redo in session s1"
        assert list(problems(stage.db)) == []

    def test_it_is_refused_when_something_was_said_or_run_since(self, stage: Stage) -> None:
        stage.send("Go", to="max")
        undo(stage)
        stage.resume()
        assert refused(lambda: redo(stage)) == "turn 2 (max) ran since turn 1 was undone, so that the undo stays"
        undo(stage, 2)
        redo(stage)
        assert refused(lambda: redo(stage)).startswith("turn 2 (max) ran since")

    def test_it_is_refused_when_a_person_has_spoken_since(self, stage: Stage) -> None:
        stage.send("Go", to="max")
        undo(stage)
        stage.send("[DROP: ALL]\nWait")
        assert refused(lambda: redo(stage)).endswith("since turn 1 was undone, so that the undo stays")

    def test_a_task_that_was_set_since_stays(self, stage: Stage) -> None:
        stage.send("Go [TEAM_TASK: task]", to="max")
        stage.open().manager.set_team_task("another")
        undo(stage)
        assert stage.open().manager.get_team_task() == "task"
        stage.open().manager.set_team_task("newer")
        redo(stage)
        assert stage.open().manager.get_team_task() == "newer"


class TestKilled:
    def test_an_undo_that_began_is_found_and_completed(self, stage: Stage) -> None:
        stage.send("Go", to="max")
        plan = planned(stage)
        begun = start_undo(stage.open().run, plan, "both", {"/work": ("a" * 40, None)})
        assert unfinished_undo(stage.db, stage.session) == begun
        assert refused(lambda: redo(stage)) == (
            "the undo of turn 1 was interrupted; undo that turn again to complete it"
        )
        done = undo_conversation(stage.open().run, planned(stage), begun)
        assert (done.id, done.status, done.trees) == (begun.id, "done", {"/work": ("a" * 40, None)})
        assert unfinished_undo(stage.db, stage.session) is None
        assert list(problems(stage.db)) == []


class TestAnotherMember:
    def test_a_held_call_is_given_to_another_member_and_the_receipt_says_so(self, stage: Stage) -> None:
        stage.send("Go", to="max")
        undo(stage)
        opened = stage.open()
        (route,) = opened.state.queue
        given = give_call(opened.run, route.number, "Sarah")
        assert (given.target, given.instead_of) == ("sarah", "max")
        stage.resume()
        assert stage.spoke == ["max", "sarah"]
        assert stage.turns[-1].setup.why == "kailai asked for max in msg-1, and a person gave it to sarah"
        assert list(problems(stage.db)) == []

    def test_what_cannot_be_given_is_refused(self, stage: Stage) -> None:
        stage.says = {"max": [Fails()]}
        stage.send("Go [NEXT: max, sarah]")
        opened = stage.open()
        number = opened.state.queue[0].number
        assert refused(lambda: give_call(opened.run, number, "sarah")) == "sarah is called by msg-1 already"
        assert refused(lambda: give_call(opened.run, number, "kailai")).startswith("kailai is a person")
        assert refused(lambda: give_call(opened.run, 99, "carol")) == "that call is not on hold"
        with pytest.raises(UnknownName):
            give_call(opened.run, number, "nobody")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.sampled_from(["max", "sarah", "max+sarah", "max,carol", "max+sarah,carol"])),
        st.tuples(st.just("resume"), st.sampled_from(list(ResumeMode))),
        st.tuples(st.just("undo"), st.integers(0, 3)),
        st.tuples(st.just("redo"), st.none()),
        st.tuples(st.just("fail"), st.sampled_from(["max", "sarah", "carol"])),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_no_prompt_ever_holds_an_undone_word(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, object]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    stage = Stage(folder, team_of(folder, {"max": "claude", "sarah": "codex", "carol": "gemini"}))
    stage.member("max", memory="resume")
    failing: set[str] = set()
    stage.answers = lambda launch: next_reply(stage, launch, failing)
    for number, (what, how) in enumerate(steps):
        try:
            match what, how:
                case "send", str(names):
                    stage.send(f"<said-{number}>", to=names)
                case "resume", ResumeMode() as mode:
                    stage.resume(mode)
                case "undo", int(back):
                    there = [turn.number for turn in stage.turns if turn.undone is None]
                    undo(stage, there[-1 - back] if back < len(there) else None)
                case "redo", _:
                    redo(stage)
                case "fail", str(name):
                    failing.add(name)
        except UsageError:
            pass
        assert list(problems(stage.db)) == []
        assert undone_words(stage) == []


def next_reply(stage: Stage, launch: Launch, failing: set[str]) -> Reply:
    """A reply with a word that no other has. A member in `failing` fails once, after saying it."""
    word = f"<reply-{len(stage.launched) - 1}>"
    if (name := launch.identity.member) in failing:
        failing.remove(name)
        return Fails(word)
    return word


def undone_words(stage: Stage) -> list[tuple[int, str]]:
    """The words that a member was told and that were in no message when it was started, with the launch's number.

    A vendor's session that is resumed has told the member the prompts and replies of its earlier turns.
    """
    told: dict[str, str] = {}
    found = []
    for number, (launch, log) in enumerate(zip(stage.launched, stage.visible_at, strict=True)):
        resumed = (word for flag, word in pairwise(launch.argv) if flag in ("--resume", "resume"))
        session = next(resumed, f"{launch.identity.member}-{number + 1}")
        text = told.get(session, "") + launch.stdin.decode()
        said = " ".join(message.content for message in log)
        found += [(number, word) for word in re.findall(r"<\w+-\d+>", text) if word not in said]
        told[session] = f"{text}<reply-{number}>"
    return found
