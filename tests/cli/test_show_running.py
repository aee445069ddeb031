"""`teamchat show` of a turn that is not over yet."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.helpers import actors, objects, refused
from tests.cli.test_live_members import TEAM
from tests.program import ended, run_here, start
from tests.runners.processes import Pids, eventually
from tests.scripted_team import crew


def text_so_far() -> str:
    """What `show --reply` prints of the turn that runs; empty before there is any."""
    return run_here("show", "--reply").out


def test_it_has_the_text_so_far_and_the_whole_one_afterwards(world: Path) -> None:
    crew(world, {"max": [{"say": "Half", "hang": 600}, "Whole"]})
    with start("send", "Go") as running:
        assert eventually(lambda: text_so_far() == "Half")
        shown = run_here("show").out
        assert "turn 1 · max (max-agent) · running\n" in shown
        assert shown.endswith("  its text so far:\n  | Half\n")
        (receipt,) = objects(run_here("show", "--json"))
        assert (receipt["status"], receipt["partial"], receipt["outcome"]) == ("running", "Half", None)
        running.terminate()
        ended(running)
    assert run_here("resume").code == 0
    assert text_so_far() == "Whole"
    assert "so far" not in run_here("show").out


def test_it_is_read_in_the_agents_own_format(pids: Pids) -> None:
    steps = [
        "claude-init",
        "+",
        "claude-text",
        "One.",
        "+",
        "claude-tool",
        "Bash",
        "+",
        "claude-delta",
        "Tw",
        "+",
        "hang",
    ]
    actors({"max": steps}, like="claude")
    with start("send", "Go") as running:
        assert eventually(pids.hang)
        assert text_so_far() == "One.\n\nTw"
        running.kill()
        ended(running)
    assert text_so_far() == "One.\n\nTw", "a killed turn has it before it is recovered, too"


def test_of_a_kept_process_it_is_the_text_of_this_turn_alone() -> None:
    Path("teamchat.toml").write_text(TEAM)
    assert run_here("trust").code == 0
    with start("send", "[NEXT:max] [NEXT:sarah] say early") as running:
        assert eventually(lambda: text_so_far() == "half")
        running.terminate()
        ended(running)


def test_without_any_text_yet_there_is_none(world: Path) -> None:
    crew(world, {"max": [{"touch": str(world / "asked"), "wait": str(world / "go"), "say": "Hi"}]})
    with start("send", "Go") as running:
        assert eventually((world / "asked").exists)
        assert refused(run_here("show", "--reply")) == "turn 1 wrote no reply"
        assert "so far" not in run_here("show").out
        assert json.loads(run_here("show", "--json").out)["partial"] == ""
        (world / "go").touch()
        assert ended(running).out == "max:\nHi\n\n"
