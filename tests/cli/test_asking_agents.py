"""An agent that asks its user by a tool of its CLI: the person is asked, and the answer goes back to that member."""

from __future__ import annotations

import json

import pytest

from tests.cli.helpers import actors, notes, objects, queue, said, steady
from tests.program import Result, run_here

pytestmark = pytest.mark.usefixtures("pids")
IN_WORDS = "Which database?\n- SQLite: a file\n- Postgres"
OPTIONS = [{"label": "SQLite", "description": "a file"}, {"label": "Postgres"}]
USE = {
    "type": "tool_use",
    "id": "t1",
    "name": "AskUserQuestion",
    "input": {"questions": [{"question": "Which database?", "options": OPTIONS}]},
}
REFUSED = {"type": "tool_result", "tool_use_id": "t1", "content": "Error: No such tool available", "is_error": True}


def asking(reply: str) -> list[str]:
    """The steps of a Claude that asks its user, is refused, and then replies."""
    events: list[dict[str, object]] = [
        {"type": "assistant", "parent_tool_use_id": None, "message": {"content": [USE]}},
        {"type": "user", "parent_tool_use_id": None, "message": {"content": [REFUSED]}},
        {"type": "result", "subtype": "success", "is_error": False, "num_turns": 2, "result": reply},
    ]
    return [word for event in events for word in ("+", "reply", json.dumps(event))][1:]


ENDED = "max · N.Ns"
ANSWER = ("waiting: max asks kailai", "answer: teamchat send 'Your answer'")


@pytest.mark.parametrize(
    ("reply", "message"),
    [("I need to know.", f"I need to know.\n\n{IN_WORDS}"), ("", IN_WORDS), (f"So: {IN_WORDS}", f"So: {IN_WORDS}")],
    ids=["beside text", "alone", "said again"],
)
def test_a_question_of_the_agent_is_asked(reply: str, message: str) -> None:
    actors({"max": asking(reply)}, like="claude")
    ran = steady(run_here("send", "Go"))
    assert ran == Result(9, f"max:\n{message}\n\n", notes("session s1 begins", "max begins (turn 1)", ENDED, *ANSWER))
    assert queue() == [("kailai", "asked")]


def test_the_answer_goes_back_to_the_member_that_asked() -> None:
    actors({"sarah": ["reply", "Me."], "max": asking("I need to know.")}, like="claude")
    run_here("send", "--to", "max", "Go")
    ran = objects(run_here("send", "--json", "SQLite"))
    assert [line["member"] for line in ran if line["type"] == "turn_started"] == ["max"]
    assert (ran[-1]["code"], ran[-1]["outcome"], ran[-1]["waiting"]) == (9, "human_asked", "kailai")
    (question,) = (line for line in ran if line["type"] == "question")
    assert question == {"v": 1, "type": "question", "turn": 2, "member": "max", "text": IN_WORDS}


def test_who_waits_already_speaks_first_as_where_the_reply_names_the_person() -> None:
    actors({"max": asking("I need to know."), "sarah": asking("I, too.")}, like="claude")
    assert run_here("send", "--to", "max,sarah", "Go").code == 9
    assert [name for name, _ in said()] == ["kailai", "max", "sarah"]
    assert queue() == [("kailai", "asked"), ("kailai", "waiting")]


def test_the_person_is_asked_whom_the_turn_serves_and_before_who_is_called_next() -> None:
    actors({"max": asking("I need to know.\n[NEXT: sarah, bob]"), "sarah": []}, like="claude")
    with open("teamchat.toml", "a") as file:  # noqa: PTH123
        file.write('[[members]]\nname = "bob"\ntype = "human"\n')
    assert run_here("send", "--trust", "--as", "bob", "--to", "max", "Go").code == 9
    assert queue() == [("bob", "asked"), ("sarah", "waiting")]


def test_a_group_of_which_one_asks_is_delivered_before_the_person_is_asked() -> None:
    actors({"max": asking("I need to know."), "sarah": asking("I, too.")}, like="claude")
    assert run_here("send", "--to", "max+sarah", "Go").code == 9
    assert [name for name, _ in said()] == ["kailai", "max", "sarah"]
    assert queue() == [("kailai", "asked"), ("kailai", "waiting")]


def test_the_lead_of_a_hierarchical_process_gets_the_answer_to_its_question() -> None:
    actors({"max": asking("I need to know."), "sarah": []}, like="claude")
    ran = objects(run_here("run", "hierarchical", "--lead", "max", "--json", "Go"))
    assert (ran[-1]["code"], ran[-1]["waiting"], queue()) == (9, "kailai", [("kailai", "asked")])
    assert [line["text"] for line in ran if line["type"] == "warning"] == []
    answered = objects(run_here("send", "--json", "SQLite"))
    assert [line["member"] for line in answered if line["type"] == "turn_started"] == ["max"]


def test_a_summary_is_no_place_for_a_question() -> None:
    actors({"max": ["reply", "Hi."]})
    run_here("send", "Go")
    run_here("send", "Go on")
    actors({"max": asking("")}, like="claude")
    ran = run_here("compact", "--member", "max")
    assert (ran.code, "max asked its user a question" in ran.err) == (1, True), ran
