"""What people type out of habit does what they meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import notes, rows
from tests.program import Result, run_here
from tests.scripted_team import crew


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("help help", "help --help"),
        ("help send", "send --help"),
        ("help sessions delete", "sessions delete --help"),
        ("version", "--version"),
        ("-V", "--version"),
        ("status", "log -n 1"),
        ("status --json", "log -n 1 --json"),
        ("ls", "sessions"),
        ("ls --json", "sessions --json"),
        ("sessions list", "sessions"),
        ("sessions ls", "sessions"),
        ("log 3", "log -n 3"),
        ("log 3 --json", "log -n 3 --json"),
        ("show msg-2", "show 1"),
        ("show msg-4 --json", "show 2 --json"),
    ],
)
def test_it_prints_what_the_command_does(world: Path, typed: str, meant: str) -> None:
    crew(world, {"max": ["Hi.", "Which one?\n[NEXT: kailai]"]})
    run_here("send", "Go")
    run_here("send", "Go on")
    ran = run_here(*typed.split())
    assert ran.code == 0
    assert (ran.out, ran.err) == (run_here(*meant.split()).out, run_here(*meant.split()).err)


def test_the_status_has_what_waits(world: Path) -> None:
    crew(world, {"max": ["Which one?\n[NEXT: kailai]"]})
    run_here("send", "Go")
    ran = run_here("status")
    assert ran.out == "msg-2 max -> kailai (turn 1):\nWhich one?\n[NEXT: kailai]\n\n"
    assert ran.err == "· asked: kailai, called by max in msg-2\n"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("learn list", "learn"),
        ("learn ls --json", "learn --json"),
        ("learn --json show", "learn --json"),
        ("task show", "task"),
        ("task list", "task"),
        ("todo show", "todo"),
        ("todo --all ls", "todo --all"),
    ],
)
def test_a_word_that_asks_for_what_is_kept_prints_it(world: Path, typed: str, meant: str) -> None:
    crew(world, {"max": ["Hi."]})
    for command in ("send Hi", "task Build it", "todo add Write it", "learn Run lint"):
        assert run_here(*command.split()).code == 0
    before = rows()
    ran = run_here(*typed.split())
    assert ran == run_here(*meant.split())
    assert (ran.code, rows() == before) == (0, True)
    assert ran.out


@pytest.mark.parametrize(
    ("typed", "error", "hints"),
    [
        ("learn rm 1", "'rm 1' is not a lesson", ["teamchat learn --delete 1"]),
        (
            "learn delete #1,2 --session s1",
            "'delete #1,2' is not a lesson",
            ["teamchat learn --delete 1 --session s1", "teamchat learn --delete 2 --session s1"],
        ),
        ("learn clear", "'clear' is not a lesson", ["teamchat learn"]),
        ("task clear", "'clear' is not a task", ["teamchat task --clear"]),
        ("task rm 1 --session s1", "'rm 1' is not a task", ["teamchat task --clear --session s1"]),
        ("todo rm 2", "todo has list, add, done and clear, not 'rm'", ["teamchat todo done 2"]),
        ("todo close #2 3", "todo has list, add, done and clear, not 'close'", ["teamchat todo done '#2' 3"]),
        ("todo rm all", "todo has list, add, done and clear, not 'rm'", ["teamchat todo"]),
        ("todo ad lint", "todo has list, add, done and clear, not 'ad'", ["teamchat todo add lint"]),
        ("todo Done 2", "todo has list, add, done and clear, not 'Done'", ["teamchat todo done 2"]),
        ("todo 2", "todo has list, add, done and clear, not '2'", ["teamchat todo"]),
        (
            "todo Write the tests --as kailai",
            "todo has list, add, done and clear, not 'Write'",
            ["teamchat todo add Write the tests"],
        ),
    ],
)
def test_a_habit_that_changes_something_is_named_and_stores_nothing(
    world: Path, typed: str, error: str, hints: list[str]
) -> None:
    crew(world, {"max": ["Hi."]})
    run_here("send", "Hi")
    before = rows()
    told = f"teamchat: {error}\n" + "".join(f"  try: {hint}\n" for hint in hints)
    assert run_here(*typed.split()) == Result(2, "", told)
    assert rows() == before


@pytest.mark.parametrize("command", ["learn", "task"])
def test_what_a_habit_adds_is_stored_without_its_word(world: Path, command: str) -> None:
    crew(world, {"max": ["Hi."]})
    run_here("send", "Hi")
    assert run_here(command, "add", "Run make lint").code == 0
    assert "  Run make lint\n" in f"  {run_here(command).out}"


@pytest.mark.parametrize(
    "text", ["list the files first", "rm -f is never run", "show it", "add lint", "Delete nothing"]
)
def test_words_that_only_begin_like_a_habit_are_the_text(world: Path, text: str) -> None:
    crew(world, {"max": ["Hi."]})
    run_here("send", "Hi")
    assert run_here("task", "--", *text.split()) == Result(0, "", notes("the task of session s1 is set"))
    assert run_here("task").out == f"{text}\n"
