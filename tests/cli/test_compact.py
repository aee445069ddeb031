"""A long conversation is summed up by a member: by itself when it has grown, or by `teamchat compact`.

Every command is what a new process sees: nothing of it stays but in the store.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import notes, objects, queue, refused, rows, said, steady, turn
from tests.program import Result, ended, run_here, start
from tests.runners.processes import eventually
from tests.scripted_team import Crew, Reply, crew

LONG = "x" * 120
SUMMARY = "We agreed on plan B."
COMPACTOR = {"compactor": "sarah", "compact_at_tokens": 60}


def made_of(world: Path, *summaries: Reply, team: dict[str, object] | None = None) -> Crew:
    """Max answers at length; sarah sums up what has come to sixty tokens, which three messages do."""
    answers: list[Reply] = [f"Reply {number}. {LONG}" for number in range(1, 8)]
    replies = {"max": answers, "sarah": list(summaries)}
    return crew(world, replies, team=COMPACTOR if team is None else team)


def talk(*numbers: int) -> list[Result]:
    return [run_here("send", f"Question {number}.", "--to", "max") for number in numbers]


@pytest.fixture
def made(world: Path) -> Crew:
    """Two questions and their answers, which are due."""
    made = made_of(world, SUMMARY, "Still plan B.")
    assert [ran.code for ran in talk(1, 2)] == [0, 0]
    assert made.prompts("sarah") == []
    return made


def test_the_next_message_has_it_summed_up_first(made: Crew) -> None:
    (ran,) = talk(3)
    assert steady(ran) == Result(
        0,
        f"max:\nReply 3. {LONG}\n\n",
        notes(
            "session s1 continues (--new starts another)",
            "sarah summarises the conversation (turn 3)",
            "summarised up to msg-4: teamchat show 3",
            turn("sarah", 3)[1],
            *turn("max", 4),
        ),
    )
    (asked,) = made.prompts("sarah")
    assert "Question 1.\nmax: Reply 1." in asked
    assert "Question 3." not in asked
    told = made.prompts("max")[-1]
    assert f"Summary of the earlier messages, written by sarah. Build on it:\n\n{SUMMARY}\n" in told
    assert [told.count(text) for text in ("Question 1.", "Question 2.", "Question 3.", "Reply 1.", "Reply 2.")] == [
        1, 1, 1, 0, 0,
    ]  # fmt: skip
    assert told.index(SUMMARY) < told.index("Question 1.") < told.index("Question 2.") < told.index("Question 3.")


def test_all_that_was_said_stays_in_the_log_and_in_the_index(made: Crew) -> None:
    talk(3)
    assert len(said()) == 6
    assert made.prompts("sarah")
    assert ("max", f"Reply 1. {LONG}") in said()
    assert len(objects(run_here("search", "Reply", "--json"))) == 3


def test_the_next_processes_go_on_with_it_and_sum_it_up_again(made: Crew) -> None:
    talk(3, 4)
    assert made.prompts("max")[-1].count(SUMMARY) == 1
    talk(5)
    second = made.prompts("sarah")[1]
    assert SUMMARY in second
    assert ("Reply 2." in second, "Reply 3." in second, "Reply 4." in second) == (False, True, True)
    last = made.prompts("max")[-1]
    assert (SUMMARY in last, "Still plan B." in last) == (False, True)


def test_another_conversation_has_its_own(made: Crew) -> None:
    talk(3)
    before = len(made.prompts("max"))
    for number, new in ((1, ["--new"]), (2, []), (3, [])):
        assert run_here("send", *new, "--session", "other", f"Question {number}.", "--to", "max").code == 0
    there = made.prompts("max")[before:]
    assert [SUMMARY in prompt for prompt in there] == [False] * 3
    assert ["Still plan B." in prompt for prompt in there] == [False, False, True]


def test_json_tells_the_turn_and_what_came_of_it(made: Crew) -> None:
    ran = run_here("send", "Question 3.", "--to", "max", "--json")
    lines = [line for line in objects(ran) if line["type"] in ("turn_started", "compacted", "turn_finished")]
    assert [line["type"] for line in lines] == [
        "turn_started", "compacted", "turn_finished", "turn_started", "turn_finished",
    ]  # fmt: skip
    side_turn = {
        "agent": "sarah-agent",
        "agent_type": "plain",
        "route": None,
        "part": None,
        "host": None,
        "place": None,
    }
    assert lines[0] == {"v": 1, "type": "turn_started", "turn": 3, "member": "sarah", **side_turn, "attempt": 1}
    assert lines[1] == {
        "v": 1, "type": "compacted", "turn": 3, "member": "sarah", "through": "msg-4", "kept": ["msg-1", "msg-3"],
        "text": SUMMARY,
    }  # fmt: skip
    assert (lines[2]["ok"], lines[2]["reply"]) == (True, None)
    assert objects(ran)[-1]["turns"] == 1
    assert made.prompts("sarah")


@pytest.mark.usefixtures("made")
def test_receipts_show_the_summary_and_where_it_was_told() -> None:
    talk(3)
    shown = run_here("show", "3").out
    assert "  why       the conversation needs a summary\n  covers    the messages up to msg-4\n" in shown
    assert shown.endswith(f"  the summary, which prompts have instead of the older messages:\n  | {SUMMARY}\n")
    assert "reply" not in shown
    (receipt,) = objects(run_here("show", "3", "--json"))
    assert (receipt["route"], receipt["summary"]) == (None, SUMMARY)
    assert "bytes in place of older messages\n" in run_here("show", "4").out
    assert "summary " in run_here("show", "4", "--prompt").err
    assert "summary" not in run_here("show", "2").out
    assert (SUMMARY in run_here("show", "4", "--diff").out, SUMMARY in run_here("show", "3", "--diff").out) == (
        True,
        False,
    )


def test_a_dry_run_says_that_it_is_due(world: Path, made: Crew) -> None:
    ran = run_here("send", "--dry-run", "Question 3.", "--to", "max")
    assert "before that, sarah would summarise 4 messages (about 70 tokens);\n" in ran.out
    assert made.prompts("sarah") == []
    talk(3)
    assert "would summarise" not in run_here("send", "--dry-run", "Question 4.", "--to", "max").out
    assert world.is_dir()


def test_a_failure_stops_nothing(world: Path) -> None:
    made = made_of(world, {"say": "half", "exit": 3})
    assert [ran.code for ran in talk(1, 2)] == [0, 0]
    (ran,) = talk(3)
    assert ran.code == 0
    assert "· the conversation was not summarised: sarah ended with exit code 3" in ran.err
    assert "Reply 2." in made.prompts("max")[-1]
    assert rows()["summaries"] == []


def test_a_time_out_stops_nothing(world: Path) -> None:
    replies: dict[str, list[Reply]] = {
        "max": [f"Reply {number}. {LONG}" for number in range(1, 4)],
        "sarah": [{"hang": 60}],
    }
    members = {"sarah": {"timeout": "0.3s"}}
    made = crew(world, replies, team=COMPACTOR, members=members)
    assert [ran.code for ran in talk(1, 2, 3)] == [0, 0, 0]
    assert "Reply 2." in made.prompts("max")[-1]
    assert rows()["summaries"] == []


def test_killed_while_it_is_summed_up_nothing_is_lost_or_said_twice(world: Path) -> None:
    begun = world / "begun"
    made = made_of(world, {"touch": str(begun), "wait": str(world / "never")}, SUMMARY)
    assert [ran.code for ran in talk(1, 2)] == [0, 0]
    process = start("send", "Question 3.", "--to", "max")
    assert eventually(begun.exists)
    process.kill()
    ended(process)
    ran = run_here("resume")
    assert ran.code == 0, ran.err
    assert "turn 3 (sarah) was running when teamchat was killed" in ran.err
    assert rows()["summaries"] == []
    assert len(said()) == 6
    assert made.prompts("max")[-1].count("Question 3.") == 1
    assert "Reply 1." in made.prompts("max")[-1]
    talk(4)
    assert SUMMARY in made.prompts("max")[-1]
    assert len(said()) == 8


def test_it_is_done_when_it_is_asked_for(world: Path) -> None:
    made = made_of(world, SUMMARY, team={})
    talk(1)
    ran = run_here("compact", "--member", "Sarah")
    assert steady(ran) == Result(
        0,
        "",
        notes(
            "sarah summarises the conversation (turn 2)", "summarised up to msg-1: teamchat show 2", turn("sarah", 2)[1]
        ),
    )
    talk(2)
    assert SUMMARY in made.prompts("max")[-1]


def test_quiet_prints_the_summary_alone(made: Crew) -> None:
    assert run_here("compact", "--quiet") == Result(0, f"{SUMMARY}\n", "")
    assert made.prompts("sarah")


def test_its_failure_is_the_commands(world: Path) -> None:
    made_of(world, {"err": "broken\n", "exit": 3})
    talk(1)
    ran = run_here("compact", "--json")
    result = objects(ran)[-1]
    assert (ran.code, result["code"], result["outcome"]) == (1, 1, "member_failed")
    assert str(result["reason"]).startswith("sarah ended with exit code 3")
    assert queue() == []


NO_SUMMARY = "members of this team get no summary; set share_context = true in the team file"


@pytest.mark.parametrize(
    ("team", "args", "sentence"),
    [
        ({}, [], "the team file names no compactor"),
        ({"share_context": False}, ["--member", "sarah"], NO_SUMMARY),
        ({}, ["--member", "kailai"], "kailai is a person; only an agent can write the summary"),
        ({}, ["--member", "sara"], "no member 'sara' in team 'crew' (there are: kailai, max, sarah)"),
        (COMPACTOR, [], "there is no conversation here yet"),
    ],
)
def test_what_can_not_be(world: Path, team: dict[str, object], args: list[str], sentence: str) -> None:
    made_of(world, team=team)
    assert refused(run_here("compact", *args)) == sentence


def test_with_nothing_to_sum_up(made: Crew) -> None:
    run_here("compact")
    ran = run_here("compact")
    assert (ran.code, refused(ran)) == (2, "there is nothing to summarise: prompts quote the newest message as it is")
    assert len(made.prompts("sarah")) == 1


def test_a_session_goes_with_its_summaries(made: Crew) -> None:
    talk(3)
    assert len(rows()["summaries"]) == 1
    assert run_here("sessions", "delete", "s1", "--yes").code == 0
    assert (rows()["summaries"], rows()["texts"]) == ([], [])
    assert made.prompts("sarah")


def test_a_recording_has_it_and_replays_it(world: Path) -> None:
    made_of(world, SUMMARY)
    for number in (1, 2, 3):
        new = ["--new"] if number == 1 else []
        ran = run_here("send", *new, f"Question {number}.", "--to", "max", "--record", "talk.cassette")
        assert ran.code == 0, ran.err
    played = run_here("replay", "talk.cassette", "--verify")
    assert played.code == 0, played.err + played.out
    assert "summarises the conversation" in Path("talk.cassette").read_text()
