"""Where a command of chat acts: on the conversation that the screen shows, also before that has begun."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from teamchat.cli.chatting.slash import NOT_BEGUN
from teamchat.cli.shared.workspace import store_file
from tests.cli.helpers import select
from tests.cli.test_chat import CTRL_U, chat, leave, line, stands, types
from tests.program import run_here
from tests.scripted_team import Crew, crew

NEEDS_ONE = (
    "/undo", "/undo --yes", "/redo", "/retry", "/compact", "/clear", "/task --clear", "/usage", "/log", "/diff",
    "/export", "/show", "/merge", "/branch", "/worktrees", "/open max", "/compare first first", "/learn --from-session",
)  # fmt: skip


@pytest.fixture
def pair(world: Path) -> Crew:
    return crew(world, {"max": ["I did it."] + ["Yes."] * 9, "sarah": ["Looks right."] * 9})


def old(task: str = "The old one") -> list[tuple[object, ...]]:
    """A conversation with a task, and what of it may not change."""
    run_here("send", "--session", "old", "--new", "--to", "max", "Hello")
    run_here("task", task)
    return stored("old")


def stored(name: str) -> list[tuple[object, ...]]:
    """What the store has of a session, except when it was used."""
    rows = select(
        "SELECT sessions.name, task, content FROM sessions LEFT JOIN messages ON messages.session = sessions.id"
        " ORDER BY messages.id"
    )
    return [row for row in rows if row[0] == name]


def sessions() -> list[object]:
    there = store_file(Path.cwd()).exists()
    return [name for (name,) in select("SELECT name FROM sessions ORDER BY id")] if there else []


@pytest.mark.parametrize("args", [(), ("--new",)])
def test_after_new_no_command_acts_on_the_conversation_before(pair: Crew, args: tuple[str, ...]) -> None:
    before = old()
    requests = len(pair.prompts("max"))
    with chat(*args, columns=120, rows=50) as shown:
        if not args:
            line(shown, "/new")
            shown.until(lambda text: "another conversation" in text)
        for typed in NEEDS_ONE:
            line(shown, f"{CTRL_U}{typed}")
            if typed not in ("/task --clear", "/compare first first"):
                shown.until(lambda text: NOT_BEGUN in text)
            shown.until(partial(stands, typed))
            shown.scrolled()
        line(shown, "/task The new one")
        shown.until(lambda text: "is set" in text)
        line(shown, "/task")
        shown.until(lambda text: "\nThe new one" in text)
        line(shown, "/todo add Tests")
        shown.until(lambda text: "todo 1 added" in text)
        line(shown, "/new")
        line(shown, "/new")
        line(shown, "/todo")
        shown.until(lambda text: text.count("another conversation") >= 2)
        assert leave(shown) == 0
    assert stored("old") == before
    assert sessions() == ["old", "s2"]
    assert stored("s2") == [("s2", "The new one", None)]
    assert len(pair.prompts("max")) == requests


@pytest.mark.usefixtures("pair")
def test_a_task_begins_the_first_conversation_of_a_workspace() -> None:
    with chat() as shown:
        line(shown, "/undo")
        shown.until(lambda text: NOT_BEGUN in text)
        line(shown, "/task Build it")
        shown.until(lambda text: "the task of session s1 is set" in text)
        line(shown, "@max Begin")
        shown.until(lambda text: "I did it." in text)
        assert leave(shown) == 0
    assert sessions() == ["s1"]
    assert stored("s1")[0] == ("s1", "Build it", "Begin")


def test_a_task_and_a_todo_come_before_the_first_message(pair: Crew) -> None:
    assert run_here("task", "Build it").code == 0
    assert run_here("todo", "add", "Write tests").code == 0
    assert run_here("send", "--to", "max", "Begin").code == 0
    assert sessions() == ["s1"]
    assert "Build it" in pair.prompts("max")[0]
    assert "Write tests" in pair.prompts("max")[0]


@pytest.mark.usefixtures("pair")
@pytest.mark.parametrize("args", [("todo", "add", "!!"), ("todo", "add", "--as", "nobody", "A"), ("task", " ")])
def test_a_refused_task_or_todo_begins_none(args: tuple[str, ...]) -> None:
    assert run_here(*args).code != 0
    assert sessions() == []


@pytest.mark.usefixtures("pair")
def test_what_commands_propose_is_typed_as_in_chat() -> None:
    old()
    with chat("--session", "old", columns=120, rows=40) as shown:
        line(shown, "/undo --yes")
        shown.until(lambda text: "/redo restores it" in text)
        line(shown, "/redo --yes")
        line(shown, "/clear")
        shown.until(lambda text: "/undo takes it back" in text)
        line(shown, "/undo --yes")
        shown.until(lambda text: "/clear clears it again" in text)
        line(shown, "/task --clear")
        line(shown, "/task")
        shown.until(lambda text: "set one: /task 'Build" in text)
        types(shown, CTRL_U)
        assert "teamchat " not in shown.text
        assert leave(shown) == 0
