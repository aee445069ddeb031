"""`clear`: prompts, summaries and the agents' own sessions begin anew, and nothing of the record is lost."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from teamchat.cli.startup.workspace import store_file
from teamchat.core.conversation.permission import trust_store
from teamchat.core.store.checking import problems
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import create_session
from teamchat.core.team.find import load
from tests.cli.helpers import notes, objects, refused
from tests.cli.inner import CHEAP, team
from tests.program import cli, run_here


@pytest.fixture
def said() -> Path:
    """Two messages of a person with replies, a task and a todo."""
    world = team(max="true")
    assert run_here("send", "[TEAM_TASK: Build it] [TODO: Test it] First words").code == 0
    assert run_here("send", "Second words").code == 0
    return world


def prompt() -> str:
    return run_here("show", "--prompt").out


@pytest.mark.usefixtures("said")
def test_clear_removes_all_messages_and_the_task_from_prompts() -> None:
    cleared = run_here("clear")
    assert cleared.err == notes(
        "session s1 is cleared: prompts begin after msg-4, and the task is removed; teamchat undo takes it back"
    )
    assert run_here("send", "Third words").code == 0
    assert "Third words" in prompt()
    for gone in ("First words", "Second words", "Build it"):
        assert gone not in prompt()
    assert "Test it" in prompt()
    assert run_here("send", "Fourth words").code == 0
    assert "Third words" in prompt()


@pytest.mark.usefixtures("said")
def test_the_record_the_ids_and_the_todos_stay() -> None:
    run_here("clear")
    run_here("send", "Third words")
    assert [line["id"] for line in objects(run_here("log", "--json")) if line["type"] == "message"] == [
        f"msg-{number}" for number in range(1, 7)
    ]
    assert [line["text"] for line in objects(run_here("todo", "--json"))] == ["Test it"]
    (cleared,) = [line for line in objects(run_here("log", "--json")) if line["type"] == "cleared"]
    assert (cleared["after"], cleared["task"]) == ("msg-4", "Build it")
    assert "prompts begin here; the task was: Build it" in run_here("log").out
    assert "First words" in run_here("search", "First words").out


@pytest.mark.usefixtures("said")
def test_the_next_undo_brings_back_all_of_it() -> None:
    run_here("clear")
    assert "prompts include msg-4 and earlier messages again" in run_here("undo", "--dry-run").out
    undone = run_here("undo", "--yes")
    assert undone.code == 0
    assert undone.err == notes("the clear is undone; teamchat clear clears it again")
    assert run_here("task").out == "Build it\n"
    run_here("send", "Third words")
    assert "First words" in prompt()
    assert "Build it" in prompt()


@pytest.mark.usefixtures("said")
def test_an_undo_of_a_turn_since_takes_that_turn_back_and_then_the_clear() -> None:
    run_here("clear")
    run_here("send", "Third words")
    assert run_here("undo", "--yes").code == 0
    run_here("resume", "--drop")
    assert run_here("send", "Fourth words").code == 0
    assert "First words" not in prompt()


@pytest.mark.usefixtures("said")
def test_an_undo_of_a_turn_before_takes_the_clear_back_and_a_redo_brings_it_again() -> None:
    run_here("clear")
    run_here("send", "Third words")
    assert run_here("undo", "2", "--yes").code == 0
    assert run_here("task").out == "Build it\n"
    run_here("resume")
    assert "First words" in prompt()
    assert run_here("undo", "--yes").code == 0
    assert not [line for line in objects(run_here("log", "--json")) if line["type"] == "cleared"]


@pytest.mark.usefixtures("said")
def test_a_redo_restores_what_an_undo_had_taken_back_with_its_turns() -> None:
    run_here("clear")
    run_here("send", "Third words")
    run_here("undo", "2", "--yes")
    assert run_here("redo", "--yes").code == 0
    assert [line["after"] for line in objects(run_here("log", "--json")) if line["type"] == "cleared"] == ["msg-4"]
    run_here("send", "Fourth words")
    assert "Third words" in prompt()
    assert "First words" not in prompt()


@pytest.mark.usefixtures("said")
def test_a_task_that_was_set_since_stays() -> None:
    run_here("clear")
    run_here("task", "Another one")
    assert run_here("undo", "--yes").code == 0
    assert run_here("task").out == "Another one\n"


def test_it_is_refused_while_calls_wait() -> None:
    team(max="printf '[NEXT: kailai] Shall I?\\n'; exit 0")
    assert cli("send", "Go").code == 9
    ran = run_here("clear")
    assert (ran.code, refused(ran)) == (2, "calls wait in session s1: kailai")
    assert "teamchat resume --drop" in ran.err


@pytest.mark.usefixtures("said")
def test_a_second_one_with_nothing_said_since_is_refused() -> None:
    run_here("clear")
    assert refused(run_here("clear")) == "nothing was said since it was cleared"
    run_here("task", "Another one")
    assert run_here("clear").err.endswith("  try: teamchat task --clear\n")
    run_here("undo", "--yes")
    run_here("send", "Third words")
    assert "First words" in prompt()


def test_without_messages_there_is_nothing_to_clear() -> None:
    team(max="true")
    assert refused(run_here("clear")) == "there is no conversation here yet"


def test_a_session_in_which_nothing_was_said_keeps_its_task() -> None:
    team(max="true")
    run_here("send", "Hi")
    with closing(Database(store_file(Path.cwd()))) as db:
        create_session(db, "work", "Build it", "empty")
    assert refused(run_here("clear", "--session", "empty")) == "nothing was said in session empty yet"
    assert run_here("task", "--session", "empty").out == "Build it\n"


@pytest.mark.usefixtures("said")
def test_an_undone_message_of_an_import_clears_nothing() -> None:
    value = json.loads(run_here("export", "--format", "json").out)
    value["entries"][-1] |= {"undone": True, "cleared": True}
    Path("it.json").write_text(json.dumps(value))
    assert run_here("import", "it.json", "--session", "again", "--yes").code == 0
    assert run_here("send", "--session", "again", "Third words").code == 0
    assert "First words" in run_here("show", "--session", "again", "--prompt").out


def claude(world: Path) -> None:
    """The member resumes its vendor session, as Claude does."""
    (world / "max.sh").write_text(f'echo "$@" >> ../argv\n{CHEAP}')
    file = Path("teamchat.toml")
    text = file.read_text().replace("[agents.max-agent]\n", '[agents.max-agent]\nlike = "claude"\n')
    file.write_text(text.replace('agent = "max-agent"\n', 'agent = "max-agent"\nmemory = "resume"\n'))
    trust_store().grant(load(file.absolute()))


def setup() -> dict[str, Any]:
    (shown,) = objects(run_here("show", "--json"))
    assert isinstance(shown["setup"], dict)
    return shown["setup"]


def test_an_agents_own_session_begins_anew_and_an_undo_continues_the_old_one() -> None:
    claude(team(max="true"))
    run_here("send", "First words")
    run_here("send", "Second words")
    assert setup()["resumes"] == "v"
    run_here("clear")
    run_here("undo", "--yes")
    run_here("send", "Third words")
    assert setup()["resumes"] == "v"
    run_here("clear")
    run_here("send", "Fourth words")
    assert (setup()["resumes"], setup()["fresh_because"]) == (None, "the conversation was cleared")
    run_here("send", "Fifth words")
    assert setup()["resumes"] == "v"


@pytest.mark.usefixtures("said")
def test_a_summary_from_before_it_is_in_no_prompt() -> None:
    assert cli("compact", "--member", "max").code == 0
    run_here("send", "Third words")
    assert "Done" in prompt()
    run_here("clear")
    run_here("send", "Fourth words")
    assert "First words" not in prompt()
    assert "Build on it" not in prompt()
    assert "Third words" not in prompt()
    run_here("undo", "--yes")
    run_here("resume", "--drop")
    run_here("undo", "--yes")
    run_here("send", "Fifth words")
    assert "Third words" in prompt()


@pytest.mark.usefixtures("said")
def test_a_branch_begins_where_its_session_does() -> None:
    run_here("clear")
    run_here("send", "Third words")
    run_here("branch", "side")
    run_here("send", "--session", "side", "Fourth words")
    assert "Third words" in run_here("show", "--session", "side", "--prompt").out
    assert "First words" not in run_here("show", "--session", "side", "--prompt").out


@pytest.mark.usefixtures("said")
def test_exports_show_where_it_was_and_an_import_begins_there() -> None:
    run_here("clear")
    run_here("send", "[TEAM_TASK: Another one] Third words")
    assert "msg-4 · " in run_here("export").out
    assert "cleared: prompts begin after it" in run_here("export").out
    assert "cleared: prompts begin after it" in run_here("export", "--format", "html").out
    Path("it.json").write_text(run_here("export", "--format", "json").out)
    assert run_here("import", "it.json", "--session", "again", "--yes").code == 0
    run_here("send", "--session", "again", "Fourth words")
    shown = run_here("show", "--session", "again", "--prompt").out
    assert "Third words" in shown
    assert "Another one" in shown
    assert "First words" not in shown


@pytest.mark.usefixtures("said")
def test_json_and_hooks_are_told() -> None:
    file = Path("teamchat.toml")
    file.write_text(f"{file.read_text()}\n[hooks]\ntask_changed = {json.dumps(['/bin/sh', '-c', 'cat > ../told'])}\n")
    trust_store().grant(load(file.absolute()))
    (line,) = objects(run_here("clear", "--json"))
    assert line == {"v": 1, "type": "cleared", "session": "s1", "after": "msg-4", "task": "Build it"}
    assert json.loads(Path("../told").read_text()) == {"v": 1, "type": "task", "text": None}
    (undone,) = objects(run_here("undo", "--json", "--yes"))
    assert (undone["cleared"], undone["done"]) == ("msg-4", True)


def test_a_recording_is_not_continued_over_it() -> None:
    team(max="true")
    assert cli("send", "--record", "it.cassette", "First words").code == 0
    run_here("clear")
    assert cli("send", "--record", "it.cassette", "Second words").code == 2
    run_here("undo", "--yes")
    assert cli("send", "--record", "it.cassette", "Second words").code == 0
    assert cli("test", "it.cassette").code == 0
    run_here("clear")
    assert cli("send", "--record", "new.cassette", "--new", "Third words").code == 0


@pytest.mark.usefixtures("said")
def test_the_store_is_healthy_and_the_session_can_be_deleted() -> None:
    run_here("clear")
    with closing(Database(store_file(Path.cwd()))) as db:
        assert list(problems(db)) == []
    assert run_here("sessions", "delete", "--yes", "s1").code == 0


@pytest.mark.usefixtures("said")
def test_a_dry_run_and_a_window_begin_there_too() -> None:
    run_here("clear")
    shown = run_here("send", "--window", "9", "--dry-run", "Now").out
    assert "Now" in shown
    assert "Second words" not in shown
