"""A conversation from the message to its end, on a real store, with scripted processes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.conversation.inputs import Message
from teamchat.core.engine.events import Dropped, PauseKind, Queued, ResumeMode
from teamchat.core.errors import AgentMissing, ExitCode, NothingToResume, StoreError, UnknownName, UsageError
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.turn_events import stored_events
from teamchat.core.store.turns import partial_of, prompt_of, system_of
from teamchat.core.team.team import Limits
from teamchat.core.turn.machine import ReadyTurn
from teamchat.core.turn.run_events import (
    AgentSpoke,
    ConversationEvent,
    MessageStored,
    Replied,
    TurnFinished,
    TurnStarted,
    Warned,
)
from teamchat.runners.agent_events import FailureKind, Usage
from tests.core.fake_conversation import Fails, Hangs, Stage, team_of
from tests.fakes.scripted import spoken

TRIO = {"max": "claude", "sarah": "codex", "carol": "gemini"}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Three plain agents and a person."""
    return Stage(tmp_path, team_of(tmp_path, {"max": "plain", "sarah": "plain", "carol": "plain"}))


def two_people(stage: Stage) -> None:
    names = {"max": "plain", "sarah": "plain", "carol": "plain"}
    stage.team = team_of(stage.folder, names, ("kailai", "bob"))


# --- what each member is told

SYSTEM = """\
You are {name}, a member of the team 'crew'. teamchat delivers its messages.
The others: kailai (person), {others}.
To hand over, end your reply with a line like [NEXT: {first}]. Several names speak in the given order. To ask a \
person something, name the person. Without such a line nobody speaks next. Markers in code or quotes do nothing. \
Everybody reads your whole reply. Write only your own part."""

FOR_MAX = """\
[TURN]
You are answering msg-1, from kailai, below.

[MESSAGE]
Hi"""

FOR_SARAH = """\
[SYSTEM]
{system}

[CONTEXT]
- kailai -> max, sarah, carol: Hi

[TURN]
You are answering msg-2, from max, below. It is part of the work on msg-1, from kailai.

[MESSAGE]
我建议..."""

FOR_CAROL = """\
Instructions:
{system}

Conversation so far:
- kailai: Hi
- max: 我建议...

This turn:
You are answering msg-3, from sarah, below. It is part of the work on msg-1, from kailai.

User message:
技术上..."""


def test_each_member_gets_the_reply_before_its_own_as_the_message(tmp_path: Path) -> None:
    """The prompts of three vendors, one after another, byte for byte."""
    stage = Stage(tmp_path, team_of(tmp_path, TRIO))
    stage.says = {"max": ["我建议..."], "sarah": ["技术上..."], "carol": ["好"]}

    end = stage.send("[NEXT:max] [NEXT:sarah] [NEXT:carol] Hi")

    assert stage.spoke == ["max", "sarah", "carol"]
    assert stage.launched[0].identity.system_text == SYSTEM.format(name="max", others="sarah, carol", first="sarah")
    assert stage.prompts == [
        FOR_MAX,
        FOR_SARAH.format(system=SYSTEM.format(name="sarah", others="max, carol", first="max")),
        FOR_CAROL.format(system=SYSTEM.format(name="carol", others="max, sarah", first="max")),
    ]
    assert stage.said == [
        "kailai: [NEXT:max] [NEXT:sarah] [NEXT:carol] Hi",
        "max: 我建议...",
        "sarah: 技术上...",
        "carol: 好",
    ]
    assert (end.code, end.text, end.turns) == (ExitCode.DONE, "好", 3)
    assert end.usage == Usage(300, None, 60, None)


def test_a_chain_of_handing_over_is_followed(stage: Stage) -> None:
    stage.says = {"max": ["[NEXT: sarah] you", "end"], "sarah": ["you [NEXT: carol]"], "carol": ["[NEXT: max]\nback"]}
    end = stage.send("[NEXT: max] go")
    assert stage.spoke == ["max", "sarah", "carol", "max"]
    assert (end.code, end.text) == (ExitCode.DONE, "end")
    assert [message.routing.resolved_addressees for message in stage.log] == [
        ("max",),
        ("sarah",),
        ("carol",),
        ("max",),
        (),
    ]
    assert [message.routing.raw_next_markers for message in stage.log][1] == ("[NEXT: sarah]",)


def test_a_message_for_nobody_goes_to_who_should_answer(stage: Stage) -> None:
    stage.send("Hi")
    stage.send("[NEXT: carol] and you?")
    stage.send("go on")
    assert stage.spoke == ["max", "carol", "carol"]
    stage.team = replace(stage.team, lead="sarah")
    stage.send("go on")
    assert stage.spoke[-1] == "sarah"


def test_to_says_the_same_as_a_marker(stage: Stage) -> None:
    stage.send("Hi", to="sarah, max")
    assert stage.spoke == ["sarah", "max"]


def test_drop_of_an_agent_takes_out_what_agents_have_queued_and_a_person_is_told_of_the_rest(stage: Stage) -> None:
    stage.says = {"max": ["[NEXT: carol] Hm"], "sarah": ["[DROP: ALL] enough"]}
    stage.send("Hi", to="max,sarah,carol")
    assert stage.spoke == ["max", "sarah", "carol"]
    dropped = [event.route.by for event in stage.events if isinstance(event, Dropped)]
    assert dropped == ["max"]
    warned = [event.text for event in stage.events if isinstance(event, Warned)]
    assert warned == ["sarah cannot drop carol, whom kailai called in msg-1"]


def test_a_task_in_a_message_is_what_the_next_prompt_has(stage: Stage) -> None:
    stage.send("[TEAM_TASK: Design it] [NEXT: max] Hi")
    stage.send("Hi again")
    assert all("\n\nDesign it\n\n" in prompt for prompt in stage.prompts)


def test_everything_is_told_in_the_order_in_which_it_happens(stage: Stage) -> None:
    stage.says = {"max": ["[NEXT: sarah, carol] Hi"], "sarah": ["[DROP: carol] [NEXT: max] No"]}
    stage.send("Hi", to="max")
    told = [type(event) for event in stage.events if not isinstance(event, AgentSpoke)]
    turn = [TurnStarted, Replied, TurnFinished]
    queued = [Queued, Queued]
    assert told == [MessageStored, Queued, *turn, *queued, *turn, Dropped, Queued, *turn]


# --- the receipt


def test_a_turn_keeps_the_exact_bytes_and_why_it_ran(tmp_path: Path) -> None:
    stage = Stage(tmp_path, team_of(tmp_path, {"max": "claude"}))
    stage.member("max", model="opus", system_instruction="Be Max", env={"COLOUR": "red"})
    stage.send("Hi")
    (turn,) = stage.turns
    launch = stage.launched[0]
    assert prompt_of(stage.db, turn) == launch.stdin
    assert system_of(stage.db, turn) == launch.identity.system_text
    assert (turn.status, turn.member, turn.agent, turn.protocol) == ("done", "max", "max-agent", "claude")
    assert turn.setup.why == "kailai asked for max in msg-1"
    assert turn.vendor_session == "max-1"
    assert (turn.setup.answers, turn.setup.request, turn.setup.attempt) == ("msg-1", "msg-1", 1)
    assert (turn.setup.stdin_bytes, turn.setup.system_bytes) == (
        len(launch.stdin),
        len(launch.identity.system_text or ""),
    )
    assert turn.setup.env["COLOUR"] == "(sha256 b1f51a511f1d)"
    assert turn.outcome is not None
    assert turn.outcome.reply == "msg-2"
    assert turn.outcome.usage == Usage(100, None, 20, 0.25)
    assert turn.outcome.code is ExitCode.DONE
    assert [event.type for event in stored_events(stage.db, turn.id)] == [
        "Started",
        "VendorSession",
        "Text",
        "Usage",
        "Done",
    ]
    assert SqliteLog(stage.db, stage.session).get("msg-2").turn_id == turn.id


def test_nothing_of_a_turn_is_left_outside_the_store(stage: Stage, world: Path) -> None:
    stage.says = {"max": [Fails("half")]}
    stage.send("Hi")
    stage.send("Hi", to="sarah")
    assert list((stage.folder / "turns").iterdir()) == []
    assert list((world / "tmp").iterdir()) == []


def test_what_is_unknown_in_one_turn_is_unknown_in_the_sum(tmp_path: Path) -> None:
    stage = Stage(tmp_path, team_of(tmp_path, {"max": "claude", "sarah": "plain"}))
    end = stage.send("Hi", to="max")
    assert (end.usage, end.denied) == (Usage(100, None, 20, 0.25), 0)
    end = stage.send("Hi", to="max,sarah")
    assert (end.usage, end.denied) == (Usage(None, None, None, None), None)


# --- a person is asked


def test_a_person_is_asked_and_the_answer_goes_back_to_who_asked(stage: Stage) -> None:
    stage.says = {"max": ["[NEXT: kailai] which one?", "thanks"]}
    end = stage.send("Hi", to="max,sarah")
    assert stage.spoke == ["max", "sarah"]
    assert (end.code, end.reason, end.hint) == (ExitCode.HUMAN_ASKED, "max asks kailai", "teamchat send 'Your answer'")
    assert end.waiting_for == "kailai"
    assert end.held == ()
    end = stage.send("the first")
    assert stage.spoke == ["max", "sarah", "max"]
    assert (end.code, end.text, end.waiting_for) == (ExitCode.DONE, "thanks", None)


def test_the_queue_behind_a_question_waits_for_the_answer(stage: Stage) -> None:
    stage.says = {"max": ["[NEXT: kailai, carol] which one?"]}
    stage.send("Hi", to="max")
    assert stage.spoke == ["max"]
    stage.send("this", to="sarah")
    assert stage.spoke == ["max", "sarah", "carol"]


def test_among_several_people_the_answer_names_who_speaks(stage: Stage) -> None:
    two_people(stage)
    stage.says = {"max": ["[NEXT: bob] which one?"]}
    end = stage.send("Hi", to="max", speaker="kailai")
    assert (end.waiting_for, end.hint) == ("bob", "teamchat send --as bob 'Your answer'")
    assert stage.send("me neither", speaker="kailai").waiting_for == "bob"
    assert stage.send("this", speaker="bob").code is ExitCode.DONE
    assert stage.spoke == ["max", "max", "max"]


def test_two_people_who_are_asked_can_answer_in_any_order(stage: Stage) -> None:
    two_people(stage)
    stage.says = {"max": ["[NEXT: kailai, bob] both of you"]}
    stage.send("Hi", to="max", speaker="kailai")
    assert stage.send("from bob", speaker="bob").waiting_for == "kailai"
    assert stage.send("from kailai").waiting_for == "bob"
    assert stage.send("from bob", speaker="bob").code is ExitCode.DONE


# --- failures


def test_a_failing_member_stops_the_conversation_and_holds_the_rest(stage: Stage) -> None:
    stage.says = {"max": [Fails("half a rep", 3, "model not found\n")]}
    end = stage.send("Hi", to="max,sarah")
    assert stage.spoke == ["max"]
    assert (end.code, end.hint) == (ExitCode.MEMBER_FAILED, "teamchat resume")
    assert end.reason == "max ended with exit code 3: model not found"
    assert stage.queue == ["max held", "sarah held"]
    assert stage.said == ["kailai: Hi"]


def test_the_partial_text_of_a_failed_turn_is_on_its_receipt_and_in_no_prompt(stage: Stage) -> None:
    stage.says = {"max": [Fails("half a rep [NEXT: carol]")]}
    stage.send("Hi", to="max")
    (turn,) = stage.turns
    assert turn.status == "failed"
    assert partial_of(stage.db, turn) == "half a rep [NEXT: carol]"
    assert turn.outcome is not None
    assert turn.outcome.failure is not None
    assert (turn.outcome.failure.kind, turn.outcome.exit_code) == (FailureKind.AGENT, 1)
    finished = next(event for event in stage.events if isinstance(event, TurnFinished))
    assert (finished.outcome.reply, finished.partial) == (None, "half a rep [NEXT: carol]")
    stage.send("Hi", to="sarah")
    assert "half" not in stage.prompts[-1]
    assert stage.spoke == ["max", "sarah"]


def test_a_reply_without_words_is_a_failure(stage: Stage) -> None:
    stage.says = {"max": [" \n "]}
    end = stage.send("Hi", to="max")
    assert (end.code, end.reason) == (ExitCode.MEMBER_FAILED, "max finished without an answer")


@pytest.mark.parametrize("digits", [19, 4000])
def test_a_reply_is_kept_whatever_its_agent_says_it_used(tmp_path: Path, digits: int) -> None:
    stage = Stage(tmp_path, team_of(tmp_path, {"max": "codex"}))
    printed = spoken("codex", "Hi from max").replace('"input_tokens": 100', f'"input_tokens": {"9" * digits}')
    stage.says = {"max": [Fails(printed, code=0)]}
    end = stage.send("Hi")
    assert (end.code, end.text) == (ExitCode.DONE, "Hi from max")
    assert end.usage == Usage(None, None, 20, None)


def test_resume_has_the_failed_turn_answer_the_same_message_again(stage: Stage) -> None:
    stage.says = {"max": [Fails()], "sarah": ["Hi from sarah"]}
    stage.send("Hi", to="max,carol")
    stage.send("Something else", to="sarah")
    stage.says["max"] = ["Hi from max"]
    end = stage.resume()
    assert end.code is ExitCode.DONE
    assert stage.spoke == ["max", "sarah", "max", "carol"]
    assert "You are answering msg-1, from kailai, below." in stage.prompts[2]
    assert stage.prompts[2].index("Hi from sarah") < stage.prompts[2].rindex("Hi")  # which was said since
    assert [turn.setup.answers for turn in stage.turns] == ["msg-1", "msg-2", "msg-1", "msg-4"]
    assert [turn.setup.attempt for turn in stage.turns] == [1, 1, 2, 1]
    assert "Hi from max" in stage.prompts[3]


def test_resume_can_skip_the_failed_turn(stage: Stage) -> None:
    stage.says = {"max": [Fails()]}
    stage.send("Hi", to="max,sarah")
    assert stage.resume(ResumeMode.SKIP).code is ExitCode.DONE
    assert stage.spoke == ["max", "sarah"]


def test_resume_can_drop_all_that_is_held(stage: Stage) -> None:
    stage.says = {"max": [Fails()]}
    stage.send("Hi", to="max,sarah")
    assert stage.resume(ResumeMode.DROP).code is ExitCode.DONE
    assert stage.spoke == ["max"]
    with pytest.raises(NothingToResume, match=r"^nothing is waiting in this conversation$"):
        stage.resume()


def test_sending_leaves_what_is_held(stage: Stage) -> None:
    stage.says = {"max": [Fails()]}
    stage.send("Hi", to="max,sarah")
    end = stage.send("Hi", to="carol")
    assert (end.code, [route.target for route in end.held]) == (ExitCode.DONE, ["max", "sarah"])
    assert stage.spoke == ["max", "carol"]


def test_what_can_be_known_before_a_start_starts_nothing(stage: Stage) -> None:
    def refuse(turn: ReadyTurn) -> None:
        raise AgentMissing(f"{turn.member.name}'s program is not there", "install it")

    stage.check = refuse
    end = stage.send("Hi", to="max,sarah")
    assert (end.code, end.reason) == (ExitCode.AGENT_UNAVAILABLE, "max's program is not there")
    assert end.hint == "install it && teamchat resume"
    assert stage.launched == []
    assert stage.turns == []
    assert stage.queue == ["max held", "sarah held"]
    stage.check = lambda _: None
    stage.resume()
    assert [turn.setup.attempt for turn in stage.turns] == [1, 1]


def test_a_prompt_over_a_limit_is_refused_before_anything_starts(stage: Stage) -> None:
    stage.team = replace(stage.team, max_bytes=100)
    end = stage.send("Hi", to="max")
    assert end.code is ExitCode.TOO_LARGE
    assert end.reason is not None
    assert end.reason.startswith("max: system text, task and turn note take ")
    assert stage.launched == []
    stage.team = replace(stage.team, max_bytes=10_000)
    assert stage.resume().code is ExitCode.DONE


def test_a_member_that_has_left_the_team_is_reported_and_can_be_skipped(stage: Stage) -> None:
    stage.says = {"max": [Fails()]}
    stage.send("Hi", to="max,sarah")
    stage.team = team_of(stage.folder, {"sarah": "plain"})
    end = stage.resume()
    assert end.code is ExitCode.UNKNOWN_NAME
    assert end.reason == "no member 'max' in team 'crew' (there are: kailai, sarah)"
    assert end.hint == "teamchat resume --skip"
    assert stage.resume(ResumeMode.SKIP).code is ExitCode.DONE
    assert stage.spoke == ["max", "sarah"]


# --- errors in the message itself


@pytest.mark.parametrize(
    ("text", "to", "error"),
    [
        ("[NEXT: nobody] Hi", None, UnknownName),
        ("Hi", "nobody", UnknownName),
        ("Hi", "", UsageError),
        ("", None, UsageError),
        (" \n", None, UsageError),
        ("[FROM: max] Hi", None, UnknownName),
    ],
)
def test_a_message_that_can_not_be_sent_leaves_no_trace(
    stage: Stage, text: str, to: str | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        stage.send(text, to=to)
    assert stage.log == []
    assert stage.open().state.queue == ()


def test_a_name_that_nobody_has_is_told_and_the_others_run(stage: Stage) -> None:
    stage.send("[NEXT: maxx, sarah] Hi")
    assert stage.spoke == ["sarah"]
    assert stage.warnings == ["nobody is called 'maxx': did you mean max?"]


def test_what_an_agent_gets_wrong_is_told_and_stops_nothing(stage: Stage) -> None:
    stage.says = {"max": ["[NEXT: max] [NEXT: sara] [NEXT: carol] go"]}
    assert stage.send("Hi", to="max").code is ExitCode.DONE
    assert stage.warnings == ["max: max named itself: ignored", "max: nobody is called 'sara': did you mean sarah?"]
    assert stage.spoke == ["max", "carol"]


# --- guards and interruption


def test_the_turn_guard_pauses_and_resume_goes_on(stage: Stage) -> None:
    stage.team = replace(stage.team, limits=Limits(turns=2))
    end = stage.send("Hi", to="max,sarah,carol")
    assert (end.code, end.paused, end.hint) == (ExitCode.GUARD, PauseKind.TURNS, "teamchat resume")
    assert end.reason == "2 turns since the last human message (limits.turns)"
    assert [route.target for route in end.held] == ["carol"]
    assert stage.resume().code is ExitCode.DONE
    assert stage.spoke == ["max", "sarah", "carol"]


def test_the_time_guard_pauses(stage: Stage) -> None:
    stage.team = replace(stage.team, limits=Limits(minutes=1e-9))
    end = stage.send("Hi", to="max,sarah")
    assert (end.code, end.paused) == (ExitCode.GUARD, PauseKind.TIME)
    assert [route.target for route in end.held] == ["sarah"]


def test_the_time_guard_lets_nothing_be_tried_again(tmp_path: Path) -> None:
    team = team_of(tmp_path, {"max": "codex", "sarah": "codex"})
    members = tuple(replace(member, retries=3) for member in team.members)
    stage = Stage(tmp_path, replace(team, members=members, limits=Limits(minutes=1e-9)))
    stage.says = {"max": [Fails(err="Error: 429 too many requests")]}
    end = stage.send("Hi", to="max,sarah")
    assert end.code is ExitCode.GUARD
    assert str(end.reason).endswith(", and 1e-09 minutes since the last human message (limits.minutes)")
    assert [route.target for route in end.held] == ["max", "sarah"]
    assert len(stage.launched) == 1


def test_an_interrupted_turn_is_held_with_its_partial_text(stage: Stage) -> None:
    stage.says = {"max": [Hangs("half a rep", then=lambda: stage.stopper.request())]}  # noqa: PLW0108 (each run has its own)
    end = stage.send("Hi", to="max,sarah")
    assert (end.code, end.reason) == (ExitCode.INTERRUPTED, "max was interrupted")
    assert end.hint == "teamchat resume"
    assert partial_of(stage.db, stage.turns[0]) == "half a rep"
    assert stage.turns[0].status == "interrupted"
    assert stage.queue == ["max held", "sarah held"]
    stage.says = {"max": ["whole"]}
    assert stage.resume().code is ExitCode.DONE
    assert stage.said == ["kailai: Hi", "max: whole", "sarah: sarah has nothing to say"]


def test_a_stop_between_two_turns_starts_no_other(stage: Stage) -> None:
    stage.hear = lambda event: stage.stopper.request() if isinstance(event, TurnFinished) else None
    end = stage.send("Hi", to="max,sarah")
    assert (end.code, end.reason, end.paused) == (ExitCode.INTERRUPTED, "interrupted", PauseKind.INTERRUPTED)
    assert stage.said == ["kailai: Hi", "max: max has nothing to say"]
    assert stage.queue == ["sarah held"]


def test_a_reply_that_was_complete_when_it_was_stopped_counts(stage: Stage) -> None:
    stage.hear = lambda event: stage.stopper.request() if isinstance(event, AgentSpoke) else None
    end = stage.send("Hi", to="max")
    assert (end.code, stage.said[-1]) == (ExitCode.DONE, "max: max has nothing to say")


# --- finishing a turn is one transaction


@pytest.mark.parametrize("step", ["INSERT INTO messages", "UPDATE turns", "INSERT OR REPLACE INTO routes", "COMMIT"])
def test_a_turn_whose_end_cannot_be_stored_is_stored_by_the_next_command(
    stage: Stage, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is stored at first, and then all of it: the agent is not asked twice."""
    execute = stage.db.execute
    ended: list[str] = []

    def failing(sql: str, *values: object) -> object:
        if stage.launched and sql.startswith(step) and not ended:
            ended.append(sql)
            raise StoreError("the disk is full")
        return execute(sql, *values)

    monkeypatch.setattr(stage.db, "execute", failing)
    stage.says = {"max": ["Hello [NEXT: carol]"]}
    end = stage.send("Hi", to="max,sarah")
    assert ended
    kept = "the disk is full; the end of turn 1 (max) is kept, and the next command stores it"
    assert (end.code, end.reason) == (ExitCode.STORE, kept)
    assert stage.said == ["kailai: Hi"]
    assert [route.target for route in end.held] == ["max", "sarah"]
    assert [turn.status for turn in stage.turns] == ["running"]
    assert stage.queue == ["sarah held", "carol held"]
    assert [turn.status for turn in stage.turns] == ["done"]
    assert stage.said == ["kailai: Hi", "max: Hello [NEXT: carol]"]
    stage.resume()
    assert stage.spoke == ["max", "sarah", "carol"]


def test_a_store_that_stays_broken_ends_the_run_and_tells_what_waits(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise StoreError("the disk is full")

    stage.hear = lambda event: (
        monkeypatch.setattr(stage.db, "execute", failing) if isinstance(event, AgentSpoke) else None
    )
    end = stage.send("Hi", to="max,sarah")
    assert (end.code, (end.reason or "").partition("; ")[0]) == (ExitCode.STORE, "the disk is full")
    assert [route.target for route in end.held] == ["max", "sarah"]
    monkeypatch.undo()
    assert stage.queue == ["sarah held"]


def test_a_stop_that_can_not_be_stored_ends_the_run_all_the_same(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise StoreError("the disk is full")

    def hear(event: ConversationEvent) -> None:
        if isinstance(event, MessageStored):
            stage.stopper.request()
            monkeypatch.setattr(stage.db, "execute", failing)

    stage.hear = hear
    end = stage.send("Hi", to="max")
    assert (end.code, [route.target for route in end.held]) == (ExitCode.STORE, ["max"])


# --- sessions


def test_sessions_know_nothing_of_each_other(stage: Stage) -> None:
    stage.send("a secret", to="max")
    other = Stage(stage.folder, stage.team)
    other.send("Hi", to="max")
    assert other.session != stage.session
    assert "secret" not in other.prompts[0]
    assert stage.said[0] == "kailai: a secret"


def test_several_coordinators_can_run_in_one_loop(tmp_path: Path) -> None:
    """The library's use: nothing is global."""
    stages = [Stage(tmp_path / name, team_of(tmp_path, {"max": "plain"})) for name in "ab"]

    async def both() -> None:
        await asyncio.gather(*(stage.open().run_input(Message(text=f"Hi {stage.folder.name}")) for stage in stages))

    asyncio.run(both())
    assert [stage.said[0] for stage in stages] == ["kailai: Hi a", "kailai: Hi b"]
    assert [len(stage.log) for stage in stages] == [2, 2]
