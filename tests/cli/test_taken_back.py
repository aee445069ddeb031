"""Commands over a conversation in which messages were taken back: their ids still stand in turns and in the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.cli.startup.workspace import open_store
from teamchat.core.errors import ExitCode
from tests.cli.helpers import notes, objects, refused
from tests.hiding import hide, undo
from tests.program import run_here
from tests.scripted_team import Crew, Table, crew

COMMANDS = (
    "log", "log --all", "log --json", "log --full msg-2", "show", "show 1", "show msg-2", "show 1 --reply",
    "show --prompt", "show --diff", "show --json", "usage", "todo", "sessions", "stop", "doctor --store",
    "open max", "resume", "resume --skip", "resume --drop", "send -q --dry-run Hi", "send -q Hi",
    "compact --member max", "learn --from-session",
)  # fmt: skip


@pytest.fixture
def made(world: Path) -> Crew:
    """msg-2 is max's reply; max is held, for the turn that msg-3 called him to has failed."""
    made = crew(world, {"max": ["Hi.", {"exit": 1}, "Hi again.", "Hi.", "Hi.", "Hi."]})
    assert run_here("send", "Go").code == 0
    assert run_here("send", "Go on").code == 1
    return made


def take_back(made: Crew, *messages: str) -> None:
    with open_store(made.file.parent) as db:
        hide(db, *messages)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_ends_in_a_traceback(made: Crew, command: str) -> None:
    take_back(made, "msg-1", "msg-2", "msg-3")
    ran = run_here(*command.split())
    assert ran.code in set(ExitCode)
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("command", ["show 1 --reply", "show msg-2", "log --full msg-2"])
def test_a_reply_that_was_taken_back_is_said_to_be(made: Crew, command: str) -> None:
    take_back(made, "msg-2")
    ran = run_here(*command.split())
    assert (ran.code, ran.out) == (4, "")
    assert ran.err == "teamchat: message 'msg-2' was undone\n  try: teamchat log --all\n"


@pytest.mark.parametrize("command", ["show msg-9", "log --full msg-9"])
def test_a_message_that_never_was_is_missing_in_the_same_words_everywhere(made: Crew, command: str) -> None:
    del made
    assert refused(run_here(*command.split())) == "session s1 has no message 'msg-9'"


@pytest.mark.parametrize("compactor", [{}, {"compactor": "max", "compact_at_tokens": 1}])
def test_what_waits_for_a_message_that_was_taken_back_can_be_skipped(world: Path, compactor: Table) -> None:
    made = crew(world, {"max": [{"exit": 1}, "Hi.", "Hi."]}, team=compactor)
    assert run_here("send", "Go").code == 1
    take_back(made, "msg-1")
    ran = run_here("resume")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err == notes(
        "session s1 continues", "failed: message 'msg-1' was undone; held: max", "try: teamchat resume --skip"
    )
    assert run_here("resume", "--skip").code == 0


def test_the_full_log_has_what_was_taken_back_and_says_so(made: Crew) -> None:
    take_back(made, "msg-2")
    assert "msg-2" not in run_here("log").out
    whole = run_here("log", "--all")
    assert "msg-2 max (turn 1), undone:\n" in whole.out
    assert "msg-3 kailai -> max:\n" in whole.out
    assert run_here("log", "--all", "--full", "msg-2").out == "Hi."
    lines = objects(run_here("log", "--all", "--json"))
    assert [(line["id"], line["hidden"]) for line in lines] == [("msg-1", False), ("msg-2", True), ("msg-3", False)]
    assert [line["id"] for line in objects(run_here("log", "--json"))] == ["msg-1", "msg-3"]


@pytest.mark.usefixtures("made")
def test_the_receipt_of_an_undone_turn_says_so_and_its_use_counts() -> None:
    used = run_here("usage", "--json").out
    undo(1)
    assert run_here("show", "1").out.startswith("turn 1 · max (max-agent) · done, undone\n")
    assert [line["undone"] for line in objects(run_here("show", "1", "--json"))] == [True]
    assert run_here("usage", "--json").out == used
    assert "msg-2 max (turn 1), undone" in run_here("log", "--all").out
    assert run_here("doctor", "--store").code == 0
