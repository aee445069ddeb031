"""Several commands at once on one workspace."""

from __future__ import annotations

import time
from pathlib import Path

from teamchat.cli.place import open_store
from teamchat.core.store.sessions import create_session
from tests.cli.scene import objects
from tests.crew import crew
from tests.program import ended, run_here, start


def test_sessions_of_one_workspace_run_at_the_same_time(world: Path) -> None:
    """Each waits until the other has begun: one after another they would both wait for ever."""
    here, there = str(world / "max"), str(world / "sarah")
    crew(
        world,
        {
            "max": [{"touch": here, "wait": there, "say": "Hi."}],
            "sarah": [{"touch": there, "wait": here, "say": "Me."}],
        },
        members={name: {"timeout": "20s"} for name in ("max", "sarah")},
    )
    both = [start("send", "--session", name, "--to", name, "Go") for name in ("max", "sarah")]
    assert [ended(process).code for process in both] == [0, 0]
    assert sorted(str(line["name"]) for line in objects(run_here("sessions", "--json"))) == ["max", "sarah"]


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
    assert "session login goes on" in ran.err
