"""Several commands at once on one workspace."""

from __future__ import annotations

import contextlib
import shlex
import time
from pathlib import Path

import pytest

from teamchat.cli import todo
from teamchat.cli.startup import workspace
from teamchat.cli.startup.workspace import open_store
from teamchat.core.conversation.sessions.delete import delete_session
from teamchat.core.store import sessions
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, create_session, need_session
from tests.cli.helpers import objects, refused
from tests.program import argv, ended, run_here, start
from tests.scripted_team import crew


def test_sessions_of_one_workspace_run_at_the_same_time(world: Path) -> None:
    """Each waits until the other has begun: one after another they would both wait for ever."""
    here, there = str(world / "max"), str(world / "sarah")
    crew(
        world,
        {
            "max": [{"touch": here, "wait": there, "say": "Hi."}],
            "sarah": [{"touch": there, "wait": here, "say": "Me."}],
        },
        members={name: {"timeout": "1m"} for name in ("max", "sarah")},
    )
    both = [start("send", "--new", "--session", name, "--to", name, "Go") for name in ("max", "sarah")]
    assert [ended(process).code for process in both] == [0, 0]
    assert sorted(str(line["name"]) for line in objects(run_here("sessions", "--json"))) == ["max", "sarah"]


def test_large_replies_that_end_at_the_same_moment_are_all_stored(world: Path) -> None:
    """Words that come only once are what the index of the store takes longest for."""
    names = ("max", "sarah", "carol")
    texts = {name: " ".join(f"{name}{number:x}" for number in range(300_000)) for name in names}
    go = world / "go"
    crew(
        world,
        {name: [{"touch": str(world / f"{name}.here"), "wait": str(go), "say": texts[name]}] for name in names},
        team={"max_prompt_tokens": 2000},
    )
    running = [start("send", "--quiet", "--new", "--session", name, "--to", name, "Go") for name in names]
    with contextlib.ExitStack() as ends:
        for process in running:
            ends.enter_context(process)
            ends.callback(process.kill)
        while not all((world / f"{name}.here").exists() for name in names):
            assert [process.poll() for process in running] == [None] * 3
            time.sleep(0.02)
        go.touch()
        done = [process.communicate(timeout=120) for process in running]
        assert [(process.returncode, err) for process, (_, err) in zip(running, done, strict=True)] == [(0, b"")] * 3
    assert {name: run_here("show", "--reply", "--session", name).out.strip() for name in names} == texts


def test_a_session_that_another_command_is_just_creating_is_not_created_twice(world: Path) -> None:
    crew(world, {"max": ["Hi.", "Hi."]})
    run_here("send", "Go")
    with open_store(Path.cwd()) as db:
        with db.transaction():
            create_session(db, "crew", None, "login")
            process = start("send", "--session", "login", "Go")
            time.sleep(0.6)  # it has come to the store by now, and waits
        ran = ended(process)
    assert ran.code == 0, ran.err
    assert "session login continues" in ran.err


@pytest.mark.parametrize("command", ["task|Write it", "task|--clear", "todo|add|Write it", "todo|done|1", "todo|clear"])
def test_a_session_that_is_deleted_before_it_is_changed_is_told_to_be_gone(
    world: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    crew(world, {"max": ["Hi."]})
    run_here("send", "[TODO: Plan it] Go")

    def found_and_deleted(db: Database, name: str | None) -> Session:
        found = need_session(db, name)
        delete_session(db, found)
        return found

    for where in (sessions, workspace, todo):
        monkeypatch.setattr(where, "need_session", found_and_deleted)
    ran = run_here(*command.split("|"))
    assert (ran.code, refused(ran)) == (4, "session s1 was deleted meanwhile")


INSIDE = """\
cat > /dev/null
for command in "send --session s1 Hello" "resume"; do
    TEAMCHAT $command 2>&1 < /dev/null | grep -v "^·"
done
TEAMCHAT log 2> /dev/null
TEAMCHAT send --quiet --new --session other --to sarah Hello 2>&1 < /dev/null
"""


def test_an_agent_is_refused_at_once_in_its_own_conversation_and_not_in_others(world: Path) -> None:
    made = crew(world, {"max": [], "sarah": ["Me."]})
    script = world / "agent.sh"
    script.write_text(INSIDE.replace("TEAMCHAT", shlex.join(argv())))
    text = made.file.read_text()
    own = f'[[members]]\nname = "carol"\nagent = "own"\n[agents.own]\ncommand = ["sh", "{script}"]\n'
    made.file.write_text(f"{text}\n{own}")
    ran = ended(start("send", "--trust", "--to", "carol", "Go"))
    inside, new = "teamchat: session s1 waits for the turn of carol in which this runs\n  try: ", "teamchat send --new"
    refused = f"{inside}{new} Hello\n{inside}{new} 'Your message'\n"
    assert (ran.code, ran.out) == (0, f"carol:\n{refused}msg-1 kailai -> carol:\nGo\n\nMe.\n\n"), ran.err
