"""`branch`: a conversation that begins as another one was, and goes on by itself."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.helpers import notes, objects, refused, rows, said
from tests.core.checkpoint.worktree import WorkTree
from tests.hiding import undo
from tests.program import Result, ended, run_here, start
from tests.scripted_team import Crew, crew
from tests.shell_team import repository, shell

BACK = "it is the current one now; back to s1: teamchat send --session s1 'Your message'"
FILES = "the files stay as they are"


@pytest.fixture
def made(world: Path) -> Crew:
    """msg-2 and msg-4 are replies of max."""
    made = crew(world, {"max": ["one", "two", "three", "four", "five"], "sarah": ["hers", "again"]})
    for text in ("Begin", "Go on"):
        assert run_here("send", "--to", "max", text).code == 0
    return made


def typed(line: str) -> Result:
    """What comes of a command that the program has given."""
    program, *words = shlex.split(line)
    assert program == "teamchat"
    return run_here(*words)


def told(ran: Result) -> list[str]:
    return [line.removeprefix("· ") for line in ran.err.splitlines()]


def test_it_has_the_messages_so_far_and_is_the_current_one(made: Crew) -> None:
    ran = run_here("branch")
    assert ran == Result(0, "", notes("session s2 begins as s1 was at msg-4: 4 messages", BACK, FILES))
    before = said()
    assert run_here("send", "--to", "sarah", "Another way").code == 0
    assert said() == [*before, ("kailai", "Another way"), ("sarah", "hers")]
    assert "Begin" in made.prompts("sarah")[0]
    assert typed(told(ran)[1].partition(": ")[2]).code == 0
    assert said() == [*before, ("kailai", "Your message"), ("max", "three")]


@pytest.mark.usefixtures("made")
def test_it_may_begin_at_an_earlier_message_under_a_name() -> None:
    ran = run_here("branch", "--at", "msg-2", "another try")
    assert told(ran)[0] == "session another try begins as s1 was at msg-2: 2 messages"
    assert said() == [("kailai", "Begin"), ("max", "one")]
    listed = run_here("sessions").out.splitlines()
    assert [line.split("  ")[0] for line in listed] == ["another try", "s1"]
    assert ["branch of s1 at msg-2" in line for line in listed] == [True, False]
    of = [line["branch_of"] for line in objects(run_here("sessions", "--json"))]
    assert of == [{"session": "s1", "at": "msg-2"}, None]
    again = run_here("branch", "--session", "another try")
    assert told(again)[:2] == [
        "session s3 begins as another try was at msg-2: 2 messages",
        "it is the current one now; back to another try: teamchat send --session 'another try' 'Your message'",
    ]


@pytest.mark.usefixtures("made")
def test_as_json_it_is_one_object() -> None:
    (line,) = objects(run_here("branch", "--at", "msg-3", "--json"))
    del line["id"], line["created_at"], line["used_at"]
    assert line == {
        "v": 1, "type": "session", "name": "s2", "team": "crew", "task": None, "messages": 3, "turns": 0,
        "title": "Begin", "cost_usd": None, "turns_with_cost": 0,
        "branch_of": {"session": "s1", "at": "msg-3"}, "changed_files": [],
        "back": "teamchat send --session s1 'Your message'",
    }  # fmt: skip


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("args", "code", "error", "hint"),
    [
        ("--at msg-9", 4, "session s1 has no message 'msg-9'", "teamchat log --session s1"),
        ("--at msg-4", 4, "message 'msg-4' was undone", "teamchat log --all --session s1"),
        ("s1", 2, "session 's1' already exists", "teamchat sessions"),
        ("msg-2", 2, "msg-2 is a message, not a name for a session", "teamchat branch --at msg-2 --session s1"),
    ],
)
def test_what_cannot_be_branched_is_refused_in_one_line(args: str, code: int, error: str, hint: str) -> None:
    undo(2)
    before = rows()
    ran = run_here("branch", *args.split(), "--session", "s1")
    assert (ran.code, refused(ran), ran.err.splitlines()[1]) == (code, error, f"  try: {hint}")
    assert typed(hint).code == 0
    if "branch" not in hint:
        assert rows() == before


def test_where_nothing_was_said_there_is_nothing_to_begin_with(world: Path) -> None:
    made = crew(world, {"max": ["one"]})
    ran = run_here("branch")
    assert (ran.code, refused(ran)) == (4, "there is no conversation here yet")
    assert run_here("send", "Go").code == 0
    undo(1)
    ran = run_here("branch")
    assert told(ran)[0] == "session s2 begins as s1 was at msg-1: 1 message"
    assert made.file.exists()


def test_a_turn_that_runs_goes_on_and_its_reply_is_the_first_conversations_alone(world: Path) -> None:
    release = world / "release"
    shell(max=f"touch here; while ! test -e {release}; do sleep 0.02; done")
    with start("send", "Go") as sending:
        while not Path("here").exists():
            assert sending.poll() is None
        ran = run_here("branch")
        assert told(ran)[0] == "session s2 begins as s1 was at msg-1: 1 message"
        assert told(ran)[2] == "what waits or runs in s1 stays there: max"
        release.touch()
        assert ended(sending).code == 0
    assert said() == [("kailai", "Go")]
    assert len(objects(run_here("log", "--session", "s1", "--json"))) == 2
    assert "nothing is waiting in this conversation" in run_here("resume").err


@pytest.mark.usefixtures("made")
def test_where_the_environment_names_the_session_the_branch_is_named_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAMCHAT_SESSION", "s1")
    line = told(run_here("branch"))[1]
    assert line == ("TEAMCHAT_SESSION names another one; continue this one: teamchat send --session s2 'Your message'")
    assert typed(line.partition(": ")[2]).code == 0
    assert len(objects(run_here("log", "--session", "s2", "--json"))) == 6
    assert len(objects(run_here("log", "--session", "s1", "--json"))) == 4


def test_turns_that_changed_files_since_are_named_with_what_shows_and_undoes_it(tmp_path: Path) -> None:
    tree = repository(tmp_path / "unused")
    shell(max="echo more >> app.py", sarah=":")
    for name in ("max", "max", "sarah", "max"):
        assert run_here("send", "--to", name, "Go").code == 0
    content = tree.files()
    lines = told(run_here("branch", "--at", "msg-2"))
    assert lines[2:] == [
        "the files stay as they are",
        "turns 2 and 4 of s1 changed files after msg-2: teamchat diff 2..4 --session s1",
        "undo these changes: teamchat undo 2 --files --session s1",
    ]
    assert tree.files() == content
    shown = typed(lines[3].partition(": ")[2])
    assert (shown.code, shown.out.count("\n+more")) == (0, 2)
    (line,) = objects(run_here("branch", "--at", "msg-7", "--session", "s1", "--json"))
    assert line["changed_files"] == [{"session": "s1", "turn": 4}]


def test_turns_of_every_session_that_it_leaves_are_named(tmp_path: Path) -> None:
    repository(tmp_path / "unused")
    shell(max="echo more >> app.py")
    for _ in range(2):
        assert run_here("send", "Go").code == 0
    assert run_here("branch").code == 0
    assert run_here("send", "--session", "s1", "The first one's alone").code == 0
    assert run_here("send", "--session", "s2", "Go").code == 0
    (line,) = objects(run_here("branch", "--at", "msg-2", "--json"))
    assert line["changed_files"] == [{"session": "s1", "turn": 2}, {"session": "s2", "turn": 1}]


@pytest.mark.usefixtures("made")
def test_a_conversation_with_branches_is_deleted_after_them_by_what_is_to_be_typed() -> None:
    for name in ("one", "two"):
        assert run_here("branch", name).code == 0
        assert run_here("send", "--to", "sarah", "On").code == 0
    ran = run_here("sessions", "delete", "s1", "--yes")
    assert refused(ran) == "two, one share its messages (branches); delete them first"
    commands = [line.removeprefix("  try: ") for line in ran.err.splitlines()[1:]]
    assert commands == ["teamchat sessions delete two", "teamchat sessions delete one"]
    for command in commands:
        assert typed(f"{command} --yes").code == 0
    assert run_here("sessions", "delete", "s1", "--yes").code == 0
    assert json.dumps(rows()["messages"]) == "[]"


def test_a_member_is_told_what_was_said_and_resumes_nothing_of_the_other(world: Path) -> None:
    crew(world, {"max": ["one", "two", "three"]}, like={"max": "claude"}, members={"max": {"memory": "resume"}})
    assert run_here("send", "Begin").code == 0
    assert run_here("branch").code == 0
    assert run_here("send", "On").code == 0
    (shown,) = objects(run_here("show", "--json"))
    setup = shown["setup"]
    assert isinstance(setup, dict)
    assert (setup["resumes"], setup["fresh_because"]) == (None, "its first turn")


def test_the_files_of_a_work_tree_are_not_touched(tmp_path: Path) -> None:
    tree: WorkTree = repository(tmp_path / "unused")
    shell(max="echo more >> app.py; rm tests/one.py")
    assert run_here("send", "Go").code == 0
    before, status = tree.files(), tree.git("status", "--porcelain=v2")
    assert run_here("branch", "--at", "msg-1").code == 0
    assert (tree.files(), tree.git("status", "--porcelain=v2")) == (before, status)
