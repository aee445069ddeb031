"""`teamchat learn --from-session`: a member says what a conversation has taught, a person whether that is kept."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pexpect
import pytest

from teamchat.cli.startup.workspace import open_store
from teamchat.core.conversation.lessons import keep_lessons
from teamchat.core.store.lessons import add_lesson
from tests.cli.helpers import notes, objects, queue, refused, rows, said, steady
from tests.program import TIMEOUT_S, Result, argv, cli, run_here
from tests.scripted_team import Crew, Reply, crew
from tests.terminals import Terminal

ASK = ("learn", "--from-session")
KEY = "sk-ant-api03-" + "a1B2" * 10
TWO = "- Run make lint.\n- Never push. [NEXT: max]\n"


def talked(world: Path, *answers: Reply, team: dict[str, object] | None = None) -> Crew:
    """Max and kailai have talked; sarah is the lead, and has yet to say anything."""
    replies: dict[str, list[Reply]] = {"max": ["Lint failed.", "Later."], "sarah": list(answers)}
    made = crew(world, replies, team={"lead": "sarah"} if team is None else team)
    assert run_here("send", "Why red?", "--to", "max").code == 0
    return made


def lessons() -> list[object]:
    return [line["text"] for line in objects(run_here("learn", "--json"))]


def test_the_lead_is_asked_and_its_lessons_are_kept(world: Path) -> None:
    made = talked(world, TWO)
    ran = run_here(*ASK, "--yes")
    assert steady(ran) == Result(
        0,
        "Run make lint.\nNever push.\n",
        notes(
            "sarah looks for lessons (turn 2)",
            "found 2 new lessons: teamchat show 2",
            "lesson 1 is learned",
            "lesson 2 is learned",
            "sarah · N.Ns",
        ),
    )
    assert [(line["text"], line["session"]) for line in objects(run_here("learn", "--json"))] == [
        ("Never push.", "s1"),
        ("Run make lint.", "s1"),
    ]
    (asked,) = made.prompts("sarah")
    assert asked.index("Why red?") < asked.index("Lint failed.") < asked.index("at most 10 lessons")


def test_nothing_of_it_is_part_of_the_conversation(world: Path) -> None:
    made = talked(world, "- Keep it short. [NEXT: max]", "Hi.")
    assert run_here(*ASK, "--yes").code == 0
    assert said() == [("kailai", "Why red?"), ("max", "Lint failed.")]
    assert queue() == []
    run_here("learn", "--delete", "1")
    run_here("send", "Go on.", "--to", "max+sarah")
    assert not any("Keep it short." in prompt for name in ("max", "sarah") for prompt in made.prompts(name)[1:])
    assert "lessons" not in made.prompts("max")[-1]


def test_its_receipt_has_the_answer(world: Path) -> None:
    talked(world, TWO)
    run_here(*ASK, "--yes")
    shown = run_here("show", "2").out
    assert "  why       a person asked for lessons from the conversation\n" in shown
    assert "  access    read: " in shown
    assert shown.endswith("  the answer (never a message, never in a prompt):\n  | - Run make lint.\n"
                          "  | - Never push. [NEXT: max]\n")  # fmt: skip
    (receipt,) = objects(run_here("show", "2", "--json"))
    assert (receipt["route"], receipt["summary"], receipt["partial"]) == (None, None, TWO.strip())
    setup = receipt["setup"]
    assert isinstance(setup, dict)
    assert (setup["purpose"], setup["memory"]) == ("lessons", "fresh")


def test_json_tells_the_turn_and_what_came_of_it(world: Path) -> None:
    talked(world, TWO)
    lines = objects(run_here(*ASK, "--yes", "--json"))
    assert [line["type"] for line in lines] == [
        "turn_started", "lessons", "lesson", "lesson", "turn_finished", "result",
    ]  # fmt: skip
    found = ["Run make lint.", "Never push."]
    assert lines[1] == {"v": 1, "type": "lessons", "turn": 2, "member": "sarah", "found": found}
    assert [(line["number"], line["text"], line["session"]) for line in lines[2:4]] == [
        (1, found[0], "s1"),
        (2, found[1], "s1"),
    ]
    assert (lines[-1]["code"], lines[-1]["text"], lines[-1]["turns"]) == (0, "\n".join(found), 0)


@pytest.mark.parametrize("answer", ["NONE", "None.\n", "1. **run make lint**"])
def test_nothing_new_is_nothing_to_keep(world: Path, answer: str) -> None:
    talked(world, answer)
    run_here("learn", "Run make lint.")
    ran = run_here(*ASK, "--yes")
    assert (ran.code, ran.out) == (0, "")
    assert "· found no new lesson: teamchat show 2\n" in ran.err
    assert lessons() == ["Run make lint."]


def test_the_member_is_told_which_lessons_are_known_and_asked_for_others(world: Path) -> None:
    made = talked(world, "Never push.", "NONE")
    assert run_here(*ASK, "--yes").code == 0
    run_here("learn", "Run make lint.")
    assert run_here(*ASK, "--yes").code == 0
    first, second = made.prompts("sarah")
    assert ("already kept" in first, "Never push." in first) == (False, False)
    known, _, asked = second.partition("\n\nWhat should somebody know")
    assert re.search(
        r"These lessons are already kept:\n- \S+ \(s1\): Never push\.\n- \S+ \(s1\): Run make lint\.\Z", known
    )
    assert "Leave out what a kept lesson already says in other words;" in asked


@pytest.mark.parametrize("limits", [{"max_prompt_tokens": 2000}, {"max_bytes": 8000}])
def test_of_a_thousand_known_lessons_those_that_fit_are_told_within_a_quarter_of_the_prompt(
    world: Path, limits: dict[str, object]
) -> None:
    made = talked(world, "NONE", team={"lead": "sarah", **limits})
    with open_store(Path.cwd()) as db, db.transaction():
        add_lesson(db, "Lint failed before", None)
        for number in range(1000):
            add_lesson(db, f"Filler number {number}", None)
    assert run_here(*ASK, "--yes").code == 0
    (asked,) = made.prompts("sarah")
    lines = [line for line in asked.split("\n") if line.startswith("- ") and "kailai" not in line]
    assert "Why red?" in asked
    assert any("Lint failed before" in line for line in lines)
    assert any("Filler number 999" in line for line in lines)
    assert sum(len(line) + 1 for line in lines) <= 2000


def test_what_somebody_else_kept_meanwhile_is_not_kept_twice(world: Path) -> None:
    talked(world)
    with open_store(Path.cwd()) as db:
        add_lesson(db, "run make lint", None)
        assert [lesson.text for lesson in keep_lessons(db, ["Run make lint.", "Never push."], "s1")] == ["Never push."]
    assert lessons() == ["Never push.", "run make lint"]


def test_no_secret_is_kept(world: Path) -> None:
    talked(world, f"The staging key is {KEY}")
    assert run_here(*ASK, "--yes").out == f"The staging key is {'*' * len(KEY)}\n"
    assert lessons() == [f"The staging key is {'*' * len(KEY)}"]


@pytest.mark.parametrize(
    ("answer", "args", "code", "reason"),
    [
        ({"say": "Run make lint.", "exit": 3}, [], 1, "sarah ended with exit code 3"),
        ({"hang": 60}, ["--timeout", "0.3s"], 3, "sarah was still running after 0.3 s (its timeout)"),
    ],
)
def test_of_a_turn_that_failed_nothing_is_kept(
    world: Path, answer: Reply, args: list[str], code: int, reason: str
) -> None:
    talked(world, answer)
    ran = run_here(*ASK, "--yes", "--json", *args)
    result = objects(ran)[-1]
    assert (ran.code, result["code"], result["reason"]) == (code, code, reason)
    assert (lessons(), queue()) == ([], [])


def test_a_summary_stands_for_what_it_covers(world: Path) -> None:
    made = talked(world, "It was red.", "Run make lint.")
    run_here("send", "Better now?", "--to", "max")
    assert run_here("compact", "--member", "sarah").code == 0
    assert run_here(*ASK, "--yes").code == 0
    asked = made.prompts("sarah")[1]
    assert ("It was red." in asked, "Lint failed." in asked, "Later." in asked) == (True, False, True)


def test_over_the_budget_the_newest_is_read(world: Path) -> None:
    made = talked(world, "Run make lint.", team={"lead": "sarah", "max_prompt_tokens": 300, "context_window": 1})
    for word in ("one", "two"):
        run_here("send", f"{word} " * 70, "--to", "max")
    assert run_here(*ASK, "--yes").code == 0
    (asked,) = made.prompts("sarah")
    assert ("Why red?" in asked, "two two" in asked) == (False, True)
    assert "(the budget)" in run_here("show").out


def test_an_older_conversation_is_read_and_stays_the_older_one(world: Path) -> None:
    made = talked(world, "Run make lint.")
    run_here("send", "--new", "Hello again", "--to", "max")
    assert run_here(*ASK, "--yes", "--session", "s1").code == 0
    assert "Hello again" not in made.prompts("sarah")[0]
    assert said()[0] == ("kailai", "Hello again")


def test_a_failure_to_find_lessons_keeps_nobody_from_summing_up(world: Path) -> None:
    compactor = {"lead": "sarah", "compactor": "sarah", "compact_at_tokens": 5}
    made = talked(world, {"say": "", "exit": 3}, "It was red.", team=compactor)
    assert run_here(*ASK, "--yes").code == 1
    run_here("send", "Better now?", "--to", "max")
    assert "It was red." in made.prompts("max")[-1]


@pytest.mark.parametrize(("answer", "kept"), [("n", []), ("", []), ("y", ["Never push.", "Run make lint."])])
def test_a_person_is_asked(world: Path, answer: str, kept: list[object]) -> None:
    talked(world, TWO)
    program, *rest = argv(*ASK)
    child = Terminal(program, rest, env={**os.environ, "TERM": "dumb"}, timeout=TIMEOUT_S, echo=False, encoding="utf-8")
    child.expect_exact("found 2 new lessons: teamchat show 2\r\n▌   Run make lint.\r\n▌   Never push.\r\n")
    child.expect_exact("Keep 2 lessons? [y/N] ")
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert ("no lesson was stored" in str(child.before)) is not bool(kept)
    assert lessons() == kept


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        ([], 2, "storing lessons needs your yes, and there is no terminal to ask on"),
        (["--json"], 2, "storing lessons needs your yes, and there is no terminal to ask on"),
        (["--yes", "A lesson"], 2, "--from-session takes neither a text nor --delete"),
        (["--yes", "--delete", "1"], 2, "--from-session takes neither a text nor --delete"),
        (["--yes", "--member", "kailai"], 2, "kailai is a person; only an agent can be asked for lessons"),
        (["--yes", "--member", "sara"], 4, "no member 'sara' in team 'crew' (there are: kailai, max, sarah)"),
        (["--yes", "--session", "none"], 4, "there is no session 'none' (sessions: s1)"),
    ],
)
def test_what_can_not_be_is_said_before_anybody_is_asked(world: Path, args: list[str], code: int, error: str) -> None:
    made = talked(world, TWO)
    before = rows()
    ran = cli(*ASK, *args)
    assert (ran.code, refused(ran)) == (code, error)
    assert (rows(), made.prompts("sarah")) == (before, [])


def test_its_options_are_of_no_use_without_it(world: Path) -> None:
    crew(world, {"max": []})
    ran = run_here("learn", "A lesson", "--yes")
    assert ran.code == 2
    assert refused(ran) == "--member, --yes, --timeout, --trust and --no-wait need --from-session"
    assert lessons() == []


def test_without_a_conversation_there_is_nothing_to_ask(world: Path) -> None:
    made = crew(world, {"max": [TWO]})
    assert refused(run_here(*ASK, "--yes")) == "there is no conversation here yet"
    assert made.prompts("max") == []


def test_another_member_is_asked_where_it_is_named_and_the_first_where_nobody_leads(world: Path) -> None:
    made = talked(world, "Run make lint.", team={})
    made.say("max", "Lint failed.", "Never push.")
    assert run_here(*ASK, "--yes").out == "Never push.\n"
    assert run_here(*ASK, "--yes", "--member", "Sarah").out == "Run make lint.\n"
