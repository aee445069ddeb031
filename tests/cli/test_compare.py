"""`compare`: two conversations' answers to the same message, and how their files differ."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pexpect
import pytest

from tests.cli.helpers import objects, refused, steady
from tests.program import TIMEOUT_S, argv, cli, run_here
from tests.scripted_team import Crew, crew
from tests.shell_team import repository, shell

UNKNOWN = "the files cannot be compared: session {}: turn {} ({}) has no checkpoints: no git repository"


@pytest.fixture
def made(world: Path) -> Crew:
    """Conversations s1 and s2 share msg-1 and msg-2; then max has answered in one and sarah in the other."""
    made = crew(world, {"max": ["one", "by a table", "three"], "sarah": [{"exit": 3}, "by files", "again"]})
    assert run_here("send", "--to", "max", "Begin").code == 0
    assert run_here("branch").code == 0
    assert run_here("send", "--session", "s1", "--to", "max", "How?").code == 0
    assert run_here("send", "--session", "s2", "--to", "sarah", "How, in short?").code == 1
    assert run_here("resume", "--session", "s2").code == 0
    return made


def answers(*args: str) -> list[dict[str, object]]:
    return [line for line in objects(run_here("compare", *args, "--json")) if line["type"] == "answer"]


def ident(answer: dict[str, object]) -> object:
    """The id of the message that was answered."""
    assert isinstance(answer["to"], dict)
    return answer["to"]["id"]


def texts(messages: object) -> list[str]:
    assert isinstance(messages, list)
    return [message["text"] for message in messages]


@pytest.mark.usefixtures("made")
def test_both_answers_to_the_last_shared_message_with_what_they_took() -> None:
    ran = steady(cli("compare", "s1", "s2"))
    turn = "N.Ns · tokens unknown · denied unknown"
    first = f"s1, after msg-2\nkailai: How?\n\nmax:\nby a table\n\nmax · {turn}\n\n"
    second = f"sarah:\nby files\n\nsarah · {turn} · failed\nsarah · {turn}\n\n"
    assert (ran.code, ran.out) == (0, f"{first}s2, after msg-2\nkailai: How, in short?\n\n{second}")
    assert [line.split("; its CLI")[0].removeprefix("· ") for line in ran.err.splitlines()] == [
        UNKNOWN.format("s1", 2, "max"), UNKNOWN.format("s2", 1, "sarah"), UNKNOWN.format("s2", 2, "sarah"),
    ]  # fmt: skip


@pytest.mark.usefixtures("made")
def test_a_message_that_is_named_is_compared_and_so_is_a_text_that_only_looks_the_same() -> None:
    one, other = answers("s1", "s2", "msg-1")
    assert texts(one["replies"]) == texts(other["replies"]) == ["one"]
    assert run_here("send", "--session", "s2", "--to", "sarah", "How?").code == 0
    one, other = answers("s1", "s2", "msg-3")
    assert (texts(one["replies"]), texts(other["replies"])) == (["by a table"], ["again"])
    assert [ident(one), ident(other)] == ["msg-3", "msg-5"]


def test_conversations_that_share_nothing_are_compared_by_equal_texts(world: Path) -> None:
    crew(world, {"max": ["one", "two", "three"], "sarah": ["hers"]})
    for args in (("--new", "--to", "max", "Same?"), ("--to", "max", "More"), ("--new", "--to", "sarah", "Same?")):
        assert run_here("send", *args).code == 0
    one, other = answers("s1", "s2")
    assert (texts(one["replies"]), texts(other["replies"])) == (["one"], ["hers"])
    assert (one["session"], other["session"], texts(one["asked"])) == ("s1", "s2", [])


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        ("s1 s1", 2, "these are one session; compare it with another one"),
        ("s1 s9", 4, "there is no session 's9' (sessions: s3, s1, s2)"),
        ("s1 s3", 2, "sessions s1 and s3 share no message, and no text was answered in both"),
        ("s1 s2", 2, "session s2 has no reply after msg-2 yet"),
        ("s1 s2 msg-9", 4, "session s1 has no message 'msg-9'"),
        ("s1 s3 msg-1", 2, "msg-1 of session s1 was not answered in session s3, nor was a message of that text"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(world: Path, args: str, code: int, error: str) -> None:
    crew(world, {"max": ["one", "two", "three"]})
    assert run_here("send", "Begin").code == 0
    assert run_here("branch").code == 0
    assert run_here("send", "--session", "s1", "On").code == 0
    assert run_here("send", "--new", "Another").code == 0
    ran = run_here("compare", *args.split())
    assert (ran.code, refused(ran)) == (code, error)


@pytest.fixture
def forked(tmp_path: Path) -> None:
    """max has changed and sarah has added a file, each in a conversation of its own."""
    repository(tmp_path / "unused")
    shell(max="echo max >> app.py", sarah="git checkout -q app.py; echo hers > new.py")
    assert run_here("send", "How?").code == 0
    assert run_here("branch", "--at", "msg-1").code == 0
    assert run_here("send", "--to", "sarah", "How else?").code == 0


@pytest.mark.usefixtures("forked")
def test_the_files_after_both_answers_are_compared() -> None:
    ran = cli("compare", "s1", "s2")
    assert "· the files, from s1 to s2:\n" in ran.err
    _, patch = ran.out.split("diff --git a/app.py", 1)
    assert ("\n-max\n" in patch, "\n+hers\n" in patch) == (True, True)
    listed = cli("compare", "s1", "s2", "--stat")
    assert listed.out.endswith("\napp.py  +0 −1\nnew.py  +1 −0  new\n2 files, +1 −1\n")
    *_, trees = objects(run_here("compare", "s2", "s1", "--json"))
    files = trees["files"]
    assert isinstance(files, list)
    assert [(file["path"], file["what"]) for file in files] == [("app.py", "changed"), ("new.py", "deleted")]


@pytest.mark.usefixtures("forked")
def test_files_that_are_equal_are_said_to_be() -> None:
    assert run_here("branch", "--at", "msg-1", "--session", "s1").code == 0
    assert run_here("send", "--to", "sarah", "How else?").code == 0
    assert "· the files are the same after both\n" in cli("compare", "s2", "s3").err


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(("width", "beside"), [(120, True), (99, False)])
def test_they_stand_side_by_side_at_a_terminal_that_is_wide_enough(width: int, *, beside: bool) -> None:
    program, *rest = argv("compare", "s1", "s2")
    env = {**os.environ, "COLUMNS": str(width), "TERM": "xterm"}
    child = pexpect.spawn(program, rest, env=env, dimensions=(24, width), timeout=TIMEOUT_S, encoding="utf-8")
    child.expect(pexpect.EOF)
    assert bool(re.search(r"by a table +by files", child.before)) is beside
    assert bool(re.search(r"s1, after msg-2 +s2, after msg-2", child.before)) is beside
    assert "by files" in child.before
    child.close()
