from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import notes, objects, refused, steady
from tests.hiding import hide
from tests.program import Result, run_here
from tests.scripted_team import Crew, crew


@pytest.fixture
def made(world: Path) -> Crew:
    made = crew(world, {"max": ["One."] * 9}, humans=("kailai", "mia"))
    assert run_here("send", "--as", "kailai", "Hi").code == 0
    return made


@pytest.mark.usefixtures("made")
def test_it_is_kept_by_hand() -> None:
    assert run_here("todo", "add", "Write the tests") == Result(0, "", notes("todo 1 added by kailai: Write the tests"))
    assert run_here("todo", "add", "ship", "it", "--as", "mia") == Result(0, "", notes("todo 2 added by mia: ship it"))
    assert run_here("todo") == Result(0, "[ ] 1  Write the tests  (kailai)\n[ ] 2  ship it  (mia)\n", "")
    assert run_here("todo", "done", "1") == Result(0, "", notes("todo 1 done by kailai: Write the tests"))
    assert run_here("todo", "list") == Result(0, "[ ] 2  ship it  (mia)\n", notes("1 done (--all lists them)"))
    assert run_here("todo", "--all") == Result(
        0, "[x] 1  Write the tests  (kailai, done by kailai)\n[ ] 2  ship it  (mia)\n", ""
    )
    assert run_here("todo", "clear") == Result(0, "", notes("2 todos cleared from session s1"))
    assert run_here("todo") == Result(
        0, "", notes("session s1 has no todos; add one: teamchat todo add 'Write the tests'")
    )
    assert run_here("todo", "add", "again").err == notes("todo 3 added by kailai: again")


def test_members_are_told_of_it_until_it_is_cleared(made: Crew) -> None:
    for command in (["add", "Write it"], ["clear"]):
        assert run_here("todo", *command).code == 0
        assert run_here("send", "--as", "kailai", "Go").code == 0
    assert ["- 1 (kailai): Write it\n0 done." in prompt for prompt in made.prompts("max")] == [False, True, False]


@pytest.mark.usefixtures("made")
def test_several_are_done_at_once_and_an_unknown_one_is_named() -> None:
    for text in "abc":
        assert run_here("todo", "add", text).code == 0
    ran = run_here("todo", "done", "1", "7,2")
    assert ran == Result(
        4,
        "",
        notes("todo 1 done by kailai: a", "todo 2 done by kailai: b")
        + "teamchat: there is no todo 7 (open: 3)\n  try: teamchat todo\n",
    )
    assert run_here("todo").out == "[ ] 3  c  (kailai)\n"
    ran = run_here("todo", "done", "7", "3", "--json")
    assert [line["number"] for line in objects(ran)] == [3]
    assert (ran.code, ran.err) == (4, "teamchat: there is no todo 7 (open: none)\n  try: teamchat todo\n")
    assert run_here("todo", "done", "#1", "2,3").code == 0
    assert run_here("todo").out == ""


@pytest.mark.usefixtures("made")
def test_what_is_done_already_is_not_done_again() -> None:
    for command in (["add", "a"], ["add", "b"], ["done", "1"]):
        assert run_here("todo", *command).code == 0
    assert run_here("todo", "done", "1", "--as", "mia") == Result(0, "", notes("todo 1 is already done"))
    assert run_here("todo", "done", "1", "1", "--json") == Result(0, "", notes("todo 1 is already done"))
    assert run_here("todo", "done", "1", "2") == Result(
        0, "", notes("todo 1 is already done", "todo 2 done by kailai: b")
    )
    assert run_here("todo", "done", "1", "7") == Result(
        4, "", notes("todo 1 is already done") + "teamchat: there is no todo 7 (open: none)\n  try: teamchat todo\n"
    )
    assert [line.split("  ")[1] for line in run_here("todo", "--history").out.splitlines()] == [
        "todo 1 added by kailai: a",
        "todo 2 added by kailai: b",
        "todo 1 done by kailai: a",
        "todo 2 done by kailai: b",
    ]


@pytest.mark.usefixtures("made")
def test_the_history_says_who_changed_what_and_when() -> None:
    assert run_here("send", "--as", "kailai", "Go [TODO: a] [TODO: b]").code == 0
    assert run_here("todo", "done", "2", "--as", "mia").code == 0
    assert run_here("todo", "clear").code == 0
    assert steady(run_here("todo", "--history")).out == (
        "WHEN  todo 1 added by kailai in msg-3: a\n"
        "WHEN  todo 2 added by kailai in msg-3: b\n"
        "WHEN  todo 2 done by mia: b\n"
        "WHEN  todo 1 cleared by kailai: a\n"
        "WHEN  todo 2 cleared by kailai: b\n"
    )


def test_what_was_taken_back_is_in_the_history_and_not_on_the_list(made: Crew) -> None:
    from teamchat.cli.startup.workspace import open_store

    assert run_here("send", "--as", "kailai", "Go [TODO: a]").code == 0
    with open_store(made.file.parent) as db:
        hide(db, "msg-3")
    assert run_here("todo", "--all").out == ""
    assert steady(run_here("todo", "--history")).out == "WHEN  todo 1 added by kailai in msg-3, undone: a\n"


def test_each_session_has_its_own(made: Crew) -> None:
    assert run_here("send", "--as", "kailai", "--new", "--session", "other", "Hi").code == 0
    assert run_here("todo", "add", "--session", "s1", "a").code == 0
    assert run_here("todo").out == ""
    assert run_here("todo", "--session", "s1").out == "[ ] 1  a  (kailai)\n"
    assert run_here("todo", "--session", "s1", "--team", str(made.file)).out == "[ ] 1  a  (kailai)\n"
    before = len(made.prompts("max"))
    assert [
        run_here("send", "--as", "kailai", "--session", name, "Go", "--to", "max").code for name in ("s1", "other")
    ] == [0, 0]
    assert ["1 (kailai): a" in prompt for prompt in made.prompts("max")[before:]] == [True, False]


@pytest.mark.usefixtures("made")
def test_scripts_read_json() -> None:
    def lines(*args: str) -> list[dict[str, object]]:
        found = objects(run_here("todo", *args, "--json"))
        for line in found:
            for times in (line, line.get("done")):
                if isinstance(times, dict) and "at" in times:
                    assert isinstance(times.pop("at"), float)
        return found

    item = {"number": 1, "text": "a", "by": "kailai", "message": None}
    assert lines("add", "a") == [{"v": 1, "type": "todo_added", **item}]
    assert lines() == [{"v": 1, "type": "todo", **item, "done": None}]
    assert lines("done", "1", "--as", "mia") == [{"v": 1, "type": "todo_done", **item, "by": "mia"}]
    assert lines() == []
    assert lines("--all") == [{"v": 1, "type": "todo", **item, "done": {"by": "mia", "message": None}}]
    assert lines("clear") == [{"v": 1, "type": "todo_cleared", **item}]
    assert lines("--history") == [
        {"v": 1, "type": "todo_change", **item, "what": what, "by": by, "hidden": False}
        for what, by in (("added", "kailai"), ("done", "mia"), ("cleared", "kailai"))
    ]


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        (["add"], 2, "add what?"),
        (["done"], 2, "done what?"),
        (["add", " ... "], 2, "the todo has no letter or digit"),
        (["done", "x"], 2, "'x' is not a todo number"),
        (["done", ","], 2, "',' is not a todo number"),
        (["done", "1"], 4, "there is no todo 1 (open: none)"),
        (["list", "a"], 2, "list takes no text"),
        (["clear", "1"], 2, "clear takes no text"),
        (["add", "a", "--all"], 2, "--all and --history are for listing, not for add"),
        (["add", "a", "--as", "max"], 4, "max is an agent; only people send messages: --as kailai or mia"),
        (["ad", "a"], 2, "todo has list, add, done and clear, not 'ad'"),
        (["--session", "none"], 4, "there is no session 'none' (sessions: s1)"),
    ],
)
@pytest.mark.usefixtures("made")
def test_what_makes_no_sense_is_refused(args: list[str], code: int, error: str) -> None:
    ran = run_here("todo", *args)
    assert (ran.code, refused(ran)) == (code, error)
    assert run_here("todo", "--history").out == ""


@pytest.mark.usefixtures("made")
def test_a_full_list_and_a_long_text_are_told() -> None:
    assert run_here("todo", "add", "é" * 200).err == notes(
        "todo 1 is longer than 300 bytes, and was cut to its beginning", f"todo 1 added by kailai: {'é' * 148}…"
    )
    assert run_here("send", "--as", "kailai", "Go " + "[TODO: x] " * 150).code == 0
    assert refused(run_here("todo", "add", "x")) == "100 todos are open already: 1 more was not added"


def test_before_anything_was_said_there_is_no_list(world: Path) -> None:
    crew(world, {"max": []})
    assert refused(run_here("todo", "done", "1")) == "there is no conversation here yet"


def test_a_broken_team_file_does_not_hide_the_list(made: Crew) -> None:
    assert run_here("todo", "add", "a").code == 0
    made.file.write_text("broken [")
    assert run_here("todo").out == "[ ] 1  a  (kailai)\n"
    assert run_here("todo", "clear").code == 2


def test_a_text_can_not_repaint_the_list(made: Crew) -> None:
    assert run_here("todo", "add", "a\u202eb\x1b[2Kc\nd\udcff").code == 0
    assert run_here("todo").out == "[ ] 1  a\\u202ebc d\ufffd  (kailai)\n"
    assert made.file.exists()


def test_bare_words_are_what_is_to_do(made: Crew) -> None:
    assert run_here("send", "--as", "kailai", "--to", "max", "Go").code == 0
    assert run_here("todo", "add", "Write", "the tests").code == 0
    assert run_here("todo").out == "[ ] 1  Write the tests  (kailai)\n"
    assert made.file.exists()
