"""Where a command of chat acts: on the conversation that the screen shows, also before that has begun."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from teamchat.cli.chatting.slash import NOT_BEGUN
from teamchat.cli.chatting.typing import STOPPED, UNDOES
from teamchat.cli.startup.workspace import store_file
from tests.cli.helpers import queue, select
from tests.cli.test_chat import CTRL_U, ENTER, ESCAPE, begun, chat, leave, line, stands, types
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
        shown.until(partial(stands, "/redo restores it"))
        line(shown, "/redo --yes")
        shown.until(partial(stands, "is redone"))  # what is typed meanwhile only stands there
        line(shown, "/clear")
        shown.until(partial(stands, "/undo takes it back"))
        line(shown, "/undo --yes")
        shown.until(partial(stands, "/clear clears it again"))
        line(shown, "/task --clear")
        line(shown, "/task")
        shown.until(lambda text: "set one: /task 'Build" in text)
        types(shown, CTRL_U)
        assert "teamchat " not in shown.text
        assert leave(shown) == 0


def counts(told: str, number: int, text: str) -> bool:
    return text.count(told) == number


@pytest.mark.usefixtures("pair")
@pytest.mark.parametrize("columns", [80, 40])
def test_another_conversation_is_opened_from_inside(columns: int) -> None:
    run_here("send", "--new", "--title", "The parser", "--to", "max", "Begin")
    run_here("send", "--new", "--to", "sarah", "Write docs")
    with chat(columns=columns, rows=40) as shown:
        shown.until(lambda text: "s2 · Write docs" in text)
        for number, typed in enumerate(("/sessions", "/resume"), 1):
            line(shown, typed)
            shown.until(partial(counts, "Open which", number))
            types(shown, ESCAPE)
            shown.until(partial(counts, "the conversation stays as it is", number))
        line(shown, "/sessions")
        shown.until(partial(counts, "Open which", 3))
        types(shown, ENTER)  # the cursor stands on the one that is not open
        shown.until(lambda text: "s1 · The parser" in text and "I did it." in text)
        line(shown, "/sessions s2")
        shown.until(lambda text: "s2 · Write docs" in text)
        line(shown, "/resume s1")
        shown.until(lambda text: "s1 · The parser" in text)
        line(shown, "/sessions s9")
        shown.until(lambda text: "there is no session 's9'" in text)
        types(shown, CTRL_U)
        line(shown, "/sessions rename s1 Other")
        shown.until(lambda text: "s1 · Other" in text)
        line(shown, "/sessions delete --yes s1")
        shown.until(lambda text: "session s1 is gone" in text and "new session" in text)
        line(shown, "@max Begin anew")
        shown.until(partial(stands, "Yes."))
        assert leave(shown) == 0
    assert sessions() == ["s2", "s3"]


def test_what_was_stopped_is_set_aside_also_after_a_look_at_another_conversation(world: Path) -> None:
    made = crew(world, {"max": [{"say": "so far", "touch": str(world / "began"), "hang": 600}, "Instead."]})
    with chat(columns=120, rows=40) as shown:
        line(shown, "@max Write the parser")
        begun(world, shown)
        types(shown, ESCAPE)
        shown.until(lambda text: STOPPED in text)
        line(shown, "/new")
        shown.until(lambda text: "another conversation" in text)
        line(shown, "/sessions s1")
        shown.until(lambda text: "session s1 continues" in text)
        line(shown, "@max Write a lexer")
        shown.until(lambda text: "set aside: max for msg-1 'Write the parser'" in text and "Instead." in text)
        assert leave(shown) == 0
    assert len(made.prompts("max")) == 2


def test_esc_stops_each_turn_and_what_stays_on_hold_is_told(world: Path) -> None:
    waits = [{"say": "so far", "touch": str(world / f"began{number}"), "hang": 600} for number in range(2)]
    made = crew(world, {"max": waits})
    with chat(columns=120, rows=40) as shown:
        line(shown, "@max Slow work")
        shown.until(lambda _: (world / "began0").exists())
        line(shown, "@max Typed before")
        shown.until(lambda text: "queued:" in text)
        types(shown, ESCAPE)
        shown.until(lambda text: "on hold: max for msg-1 'Slow work'" in text and (world / "began1").exists())
        shown.until(lambda text: "Esc stops it" in text)
        types(shown, ESCAPE)
        shown.until(lambda text: STOPPED in text)
        assert leave(shown) == 0
    assert len(made.prompts("max")) == 2
    assert queue() == [("max", "held"), ("max", "held")]


@pytest.mark.parametrize("no_color", ["", "1"], ids=["colours", "no colours"])
def test_an_older_conversation_is_opened_corrected_and_undone_in_chat_alone(world: Path, no_color: str) -> None:
    made = crew(world, {"max": ["Begun."], "sarah": ["Docs."]})
    run_here("send", "--new", "--to", "max", "Begin the parser")
    run_here("send", "--new", "--to", "sarah", "Write docs")
    made.say("max", "Begun.", {"say": "so far", "touch": str(world / "began"), "hang": 600}, "Instead.")
    with chat(columns=80, rows=40, NO_COLOR=no_color) as shown:
        line(shown, "/sessions")
        shown.until(lambda text: "Open which" in text)
        types(shown, ENTER)
        shown.until(partial(stands, "s1 · Begin the parser"))
        line(shown, "Go on with it all")
        begun(world, shown)
        shown.until(lambda text: "Esc stops it" in text)
        types(shown, ESCAPE)
        shown.until(lambda text: STOPPED[:70] in text)
        line(shown, "Go on with the lexer alone")
        shown.until(lambda text: "set aside: max for msg-3" in text and "Instead." in text and "Ctrl-D" in text)
        types(shown, ESCAPE)
        shown.until(lambda text: UNDOES in text)
        types(shown, ESCAPE)
        shown.until(lambda text: "Undo it? [y/N]" in text)
        types(shown, f"y{ENTER}")
        shown.until(lambda text: "/redo restores it" in text)
        assert "teamchat " not in shown.text
        assert leave(shown) == 0
    assert len(made.prompts("max")) == 3
