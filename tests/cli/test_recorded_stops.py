"""Recordings of runs that stopped, and of what went on from there: guards, Ctrl-C, `resume`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.helpers import refused
from tests.program import Result, argv, ended, run_here, start
from tests.runners.processes import clocks_wait_for, eventually
from tests.scripted_team import Reply, crew

FILE = Path("talk.cassette")
LIMITED = {"err": "rate limit reached, try again later\n", "exit": 1}


def record(*args: str) -> Result:
    return run_here("send", "--record", FILE, *args)


def resume(*args: str) -> Result:
    return run_here("resume", "--record", FILE, *args)


def replay(*args: str) -> Result:
    return run_here("replay", "--speed", "0", *args, FILE)


def exact() -> None:
    """The recording plays byte for byte, without any of the programs, and has the prompts of today."""
    path, os.environ["PATH"] = os.environ["PATH"], "/nowhere"
    try:
        ran = replay("--verify")
        assert ran.code == 0, ran.err
        checked = run_here("test", FILE)
        assert checked.code == 0, checked.out
    finally:
        os.environ["PATH"] = path


def ends() -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in FILE.read_text().splitlines()]
    return [line["end"] for line in lines if "end" in line]


def interrupted_when(happens: Callable[[], bool], *args: str) -> Result:
    process = start(*args)
    assert eventually(happens)
    os.kill(process.pid, signal.SIGINT)
    return ended(process)


# --- resume


@pytest.mark.parametrize("mode", [(), ("--skip",), ("--drop",)])
def test_what_a_guard_has_held_goes_on_in_the_same_file(world: Path, mode: tuple[str, ...]) -> None:
    crew(world, {"max": ["One.\n[NEXT: sarah, carol]"], "sarah": ["Two."], "carol": ["Three."]}, limits={"turns": 1})
    assert record("[NEXT:max] Go").code == 7
    went_on = resume(*mode)
    exact()
    ran = replay()
    assert ran.code == went_on.code
    sent = "$ teamchat send '[NEXT:max] Go'\n\nmax:\nOne.\n[NEXT: sarah, carol]\n\n"
    command = " ".join(["$ teamchat resume", *mode])
    assert ran.out == f"{sent}{command}\n\n{went_on.out}"


def test_a_turn_that_failed_is_tried_again(world: Path) -> None:
    crew(world, {"max": [{"say": "Half", "exit": 3}, "Whole."], "sarah": ["Hello."]})
    assert record("[NEXT:max, sarah] Go").code == 1
    assert resume().code == 0
    exact()


def test_a_turn_that_a_clock_has_ended_is_tried_again(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies: list[Reply] = [{"say": "Half", "hang": 600}, "Whole."]
    made = crew(world, {"max": replies}, members={"max": {"stall": "0.3s", "first_byte": "60s"}})
    clocks_wait_for((made.scripts / "max.hangs").exists, monkeypatch)
    assert record("[NEXT:max] Go").code == 3
    clocks_wait_for(lambda: False, monkeypatch)
    assert resume().code == 0
    exact()


def test_who_is_asked_is_asked_again_and_answers(world: Path) -> None:
    crew(world, {"max": ["May I?\n[NEXT: kailai]", "Done."]})
    assert record("[NEXT:max] Go").code == 9
    assert resume().code == 9
    assert record("Yes").code == 0
    exact()


def test_an_unfinished_group_goes_on(world: Path) -> None:
    crew(world, {"max": [{"exit": 3}, "Mine."], "sarah": ["Hers."]})
    assert record("[NEXT:max + sarah] Go").code == 6
    assert resume().code == 0
    exact()


def test_nothing_to_resume_leaves_the_recording_as_it_is(world: Path) -> None:
    crew(world, {"max": ["One."]})
    assert record("[NEXT:max] Go").code == 0
    before = FILE.read_bytes()
    ran = resume()
    assert (ran.code, ran.err.splitlines()[-2]) == (2, "teamchat: nothing is waiting in this conversation")
    assert FILE.read_bytes() == before


@pytest.mark.parametrize("make", ["folder", "pipe", "device", "nowhere", "empty", "too long"])
def test_what_is_no_file_is_not_recorded_into(world: Path, make: str) -> None:
    crew(world, {"max": ["One."]})
    place = {"device": "/dev/null", "nowhere": "no/such", "empty": "", "too long": "x" * 300}.get(make, "place")
    if make == "folder":
        Path(place).mkdir()
    elif make == "pipe":
        os.mkfifo(place)
    ran = run_here("send", "--record", place, "[NEXT:max] Go")
    assert (ran.code, ran.out) == (2, "")
    assert "expected a file in an existing folder" in " ".join(ran.err.replace("│", " ").split())
    assert run_here("sessions", "--json").out == ""  # nothing began


def test_a_recording_does_not_begin_with_a_resume(world: Path) -> None:
    crew(world, {"max": ["One."]}, limits={"turns": 1})
    assert run_here("send", "[NEXT:max, max] Go").code in (0, 7)
    ran = resume()
    assert ran.code == 2
    assert "a recording begins with a new conversation" in ran.err
    assert not FILE.exists()


def test_another_conversation_of_the_same_length_is_refused(world: Path) -> None:
    crew(world, {"max": ["One.", "Two.", "Three."]})
    assert record("[NEXT:max] Go").code == 0
    assert run_here("send", "--new", "[NEXT:max] Go").code == 0
    ran = record("More")
    assert (ran.code, "does not match what this conversation has now" in ran.err) == (2, True)


@pytest.mark.parametrize(
    "meanwhile",
    [("send", "--to", "max", "Unrecorded"), ("resume", "--drop"), ("task", "Another"), ("todo", "add", "Sweep")],
)
def test_a_conversation_that_went_on_without_its_recording_is_refused(world: Path, meanwhile: tuple[str, ...]) -> None:
    crew(world, {"max": ["One.", "Two.", "Three."], "sarah": ["Hello."]}, limits={"turns": 1})
    assert record("[NEXT:max, sarah] Go").code == 7
    assert run_here(*meanwhile).code in (0, 7)
    before, rows = FILE.read_bytes(), run_here("log", "--json").out
    ran = record("--to", "max", "More")
    notes = re.compile("^· .*\n", re.MULTILINE)
    said = refused(Result(ran.code, ran.out, notes.sub("", ran.err)))
    assert (ran.code, said) == (2, f"the recording {FILE} does not match what this conversation has now")
    assert (FILE.read_bytes(), run_here("log", "--json").out) == (before, rows)


def test_a_recording_that_was_killed_is_refused(world: Path) -> None:
    crew(world, {"max": ["One.", "Two."]})
    assert record("[NEXT:max] Go").code == 0
    FILE.write_text("".join(FILE.read_text().splitlines(keepends=True)[:-1]))
    assert "breaks off" in record("--to", "max", "More").err
    ran = replay("--verify")
    assert (ran.code, ran.err.endswith("· input 1 is not as recorded: the recording breaks off\n")) == (1, True)


def test_a_recording_that_can_not_be_written_any_more_loses_no_turn(world: Path) -> None:
    crew(world, {"max": ["One."], "sarah": ["Two."]})
    team = Path("teamchat.toml")
    moves = ["sh", "-c", f"cat > /dev/null; mv {FILE} there; mkdir {FILE}; echo One."]
    text = team.read_text().partition("[agents.max-agent]")
    rest = text[2].partition("\n[")
    team.write_text(f"{text[0]}{text[1]}\ncommand = {json.dumps(moves)}\n[{rest[2]}")
    assert run_here("trust").code == 0
    ran = record("[NEXT:max, sarah] Go")
    assert (ran.code, ran.out) == (2, "max:\nOne.\n\nsarah:\nTwo.\n\n")
    assert ran.err.endswith(f"· failed: the cassette {FILE} cannot be written: Is a directory\n")
    assert [line.partition(":")[0] for line in Path("there").read_text().splitlines()] == ['{"cassette"', '{"human"']


# --- stopped where no agent runs


def test_ctrl_c_in_a_pause_between_two_tries(world: Path) -> None:
    late = {"wait": str(world / "late"), "say": "Hello."}  # should the pause be over before Ctrl-C comes
    crew(world, {"max": [LIMITED, late, "Hello."]}, like={"max": "codex"}, members={"max": {"retries": 1}})
    process = start("send", "--record", str(FILE), "[NEXT:max] Go")
    assert process.stderr is not None
    while b"tries again" not in process.stderr.readline():
        assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    assert ended(process).code == 130
    (world / "late").touch()
    assert resume().code == 0
    exact()


def test_ctrl_c_that_comes_as_a_turn_ends(world: Path) -> None:
    """A reader that goes away stops a run as Ctrl-C does, and here between two turns for certain."""
    crew(world, {"max": ["One."], "sarah": ["Two."]})
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(argv("send", "--record", FILE, "[NEXT:max, sarah] Go"), stdout=writer, check=False)
    os.close(writer)
    assert done.returncode == 130
    assert [turn["member"] for turn in ends()[0]["turns"]] == ["max"]
    assert resume().code == 0
    exact()


@pytest.mark.parametrize("kind", ["codex", "plain"])
def test_ctrl_c_in_a_group_of_which_one_has_not_begun(world: Path, kind: str) -> None:
    """Members that may write in one folder speak one after the other, and those of one vendor begin a little apart."""
    hang: dict[str, Sequence[Reply]] = {
        name: [{"say": "Well", "touch": str(world / name), "hang": 60}, "Whole."] for name in ("max", "sarah")
    }
    crew(
        world,
        {**hang, "carol": ["Hello."]},
        like=dict.fromkeys((*hang, "carol"), kind),
        members={"sarah": {"access": "edit"}, "carol": {"access": "edit"}},
    )
    ran = interrupted_when(
        lambda: all((world / name).exists() for name in hang),
        "send", "--record", str(FILE), "[NEXT:max + sarah + carol] Go",
    )  # fmt: skip
    assert ran.code == 130
    assert replay().code == 130
    assert resume().code == 0
    exact()


def test_a_guard_of_minutes(world: Path) -> None:
    crew(world, {"max": [{"say": "One.", "hang": 1}], "sarah": ["Two."]}, limits={"minutes": 0.01})
    assert record("[NEXT:max, sarah] Go").code == 7
    assert resume().code == 0
    exact()
    assert replay().code == 0


def test_a_slow_replay_is_not_paused_by_a_guard_of_minutes(world: Path) -> None:
    crew(world, {"max": [{"say": "One.", "hang": 0.3}], "sarah": ["Two."]})
    assert record("[NEXT:max, sarah] Go").code == 0
    FILE.write_text(FILE.read_text().replace('"minutes": 60.0', '"minutes": 0.001'))
    ran = run_here("replay", "--verify", FILE)
    assert ran.code == 0, ran.err


def test_an_agent_cools_down_for_as_long_as_it_did(world: Path) -> None:
    crew(
        world,
        {"max": [LIMITED], "sarah": ["One.\n[NEXT: max]", "Two."]},
        like={"max": "codex"},
        members={"max": {"fallback": ["sarah"]}},
    )
    assert record("[NEXT:max] Go").code == 0
    exact()
    lines = [json.loads(line) for line in FILE.read_text().splitlines()]
    first = next(line["turn"] for line in lines if line.get("turn", {}).get("member") == "sarah")
    first["seconds"] = 100
    FILE.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = replay()
    assert (ran.code, "no recording of this turn of max" in ran.err) == (10, True)


def test_ctrl_c_ends_the_replay_of_a_run_that_ctrl_c_has_ended(world: Path) -> None:
    crew(world, {"max": [{"say": "Well", "touch": str(world / "began"), "hang": 60}, "Hello."]})
    assert interrupted_when((world / "began").exists, "send", "--record", str(FILE), "[NEXT:max] Go").code == 130
    assert resume().code == 0
    text = re.sub('"seconds": [0-9.]+, "left"', '"seconds": 60, "left"', FILE.read_text())
    FILE.write_text(text)
    process = start("replay", str(FILE))
    assert process.stdout is not None
    assert process.stdout.readline() == b"$ teamchat send '[NEXT:max] Go'\n"
    assert process.stderr is not None
    assert b"max begins" in process.stderr.readline()
    os.kill(process.pid, signal.SIGINT)
    ran = ended(process)
    assert (ran.code, "Hello." in ran.out) == (130, False)


def test_a_turn_that_is_tried_again_is_told_what_it_was_told_then(world: Path) -> None:
    Path("a.md").write_text("The first rule.\n")
    replies: list[Reply] = [{"exit": 3}, "One."]
    made = crew(world, {"max": replies}, like={"max": "claude"}, members={"max": {"knowledge": ["a.md"]}})
    assert record("--to", "max", "Look at it").code == 1
    Path("a.md").write_text("The second rule.\n")
    assert resume().code == 0
    assert ["second" in prompt for prompt in made.prompts("max")] == [False, True]
    exact()


def test_a_path_that_is_gone_later_is_not_there_later(world: Path) -> None:
    replies = {"max": ["See @b.txt there.\n[NEXT: sarah]"], "sarah": ["One.", "Two."]}
    made = crew(world, replies, like=dict.fromkeys(replies, "claude"))
    Path("b.txt").touch()
    assert record("[NEXT:max] Go").code == 0
    Path("b.txt").unlink()
    assert record("--to", "sarah", "Again").code == 0
    assert ["\\@b.txt" in prompt for prompt in made.prompts("sarah")] == [True, False]
    exact()


def test_a_path_that_a_turn_has_made_is_there_from_then_on(world: Path) -> None:
    replies: dict[str, list[Reply]] = {
        "max": ["Write @notes.md please.\n[NEXT: sarah + carol]", "Thanks."],
        "sarah": [{"say": "Here.", "wait": "spoke", "touch": "notes.md"}],
        "carol": [{"say": "Me, too.\n[NEXT: max]", "touch": "spoke"}],
    }
    made = crew(world, replies, like=dict.fromkeys(replies, "claude"))
    assert record("[NEXT:max] Go").code == 0
    prompts = (*made.prompts("sarah"), *made.prompts("carol"), made.prompts("max")[1])
    assert ["\\@notes.md" in prompt for prompt in prompts] == [False, False, True]
    exact()


def test_a_path_that_was_there_for_all_of_a_group_is_there_for_each(world: Path) -> None:
    replies = {"max": ["See @b.txt there.\n[NEXT: sarah + carol]"], "sarah": ["One."], "carol": ["Two."]}
    crew(world, replies, like=dict.fromkeys(replies, "claude"))
    Path("b.txt").touch()
    assert record("[NEXT:max] Go").code == 0
    exact()
