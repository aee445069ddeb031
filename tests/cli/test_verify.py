"""`replay --verify`: a recording holds everything that was printed and stored, and how each turn ended."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from teamchat.core.doctor.versions import newest_proven
from tests.cli.helpers import objects
from tests.installed import program
from tests.program import Result, ended, run_here, start
from tests.runners.processes import clocks_wait_for, eventually
from tests.scripted_team import Reply, crew

FILE = Path("talk.cassette")
Change = Callable[[list[dict[str, Any]]], None]


def record(*args: str) -> Result:
    return run_here("send", "--record", FILE, *args)


def replay(*args: str) -> Result:
    return run_here("replay", "--speed", "0", *args, FILE)


def entries() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text().splitlines()]


def write(lines: list[dict[str, Any]]) -> None:
    FILE.write_text("".join(json.dumps(line) + "\n" for line in lines))


def the(kind: str) -> dict[str, Any]:
    """The last line of that kind."""
    found: dict[str, Any] = [line for line in entries() if kind in line][-1][kind]
    return found


# --- what is compared


@pytest.fixture(scope="module")
def tape() -> dict[str, str]:
    """What was recorded once, for all tests that only alter it."""
    return {}


@pytest.fixture
def recorded(world: Path, tape: dict[str, str]) -> None:
    """A turn of each CLI, two of them at the same time, an unknown name, a question to a person; then one more."""
    if tape:
        FILE.write_text(tape["text"])
        return
    crew(
        world,
        {"max": ["Plan.\n[NEXT: sarah + carol]", "Thanks."], "sarah": ["Done."], "carol": ["Fine.\n[NEXT: kailai]"]},
        like={"max": "claude", "sarah": "codex", "carol": "gemini"},
        team={"lead": "max"},
    )
    assert record("[NEXT:max] Go, [NEXT: nobody]").code == 9
    assert record("--to", "max", "Well done").code == 0
    tape["text"] = FILE.read_text()


@pytest.mark.usefixtures("recorded")
def test_what_is_as_it_was_recorded_says_nothing_more_than_a_replay() -> None:
    plain, verified = replay(), replay("--verify")
    assert (plain.code, verified.code) == (0, 0)
    assert (plain.out, plain.err) == (verified.out, verified.err)


def altered(*path: str | int, to: object) -> Change:
    def change(lines: list[dict[str, Any]]) -> None:
        place: Any = lines[-1]["end"]
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (altered("code", to=3), "exit code: 0 instead of 3"),
        (altered("paused", to="time"), 'paused: null instead of "time"'),
        (altered("task", to="Fly"), 'task: null instead of "Fly"'),
        (altered("todos", to=[{"number": 1, "by": "max", "text": "Land", "done": False}]), "todo 1: only recorded: "),
        (lambda lines: lines.insert(-1, lines[-2]), "a recorded turn of max that nobody asked for"),
        (altered("messages", 1, "text", to="No"), 'message 2 text: "Thanks." instead of "No"'),
        (altered("messages", 1, "text", to="Many\nthanks."), "+Thanks."),
        (altered("messages", 1, "speaker", to="carol"), 'message 2 speaker: "max" instead of "carol"'),
        (altered("messages", 0, "to", to=["carol"]), "-carol"),
        (altered("turns", 0, "status", to="failed"), 'turn 1 status: "done" instead of "failed"'),
        (altered("turns", 0, "outcome", "usage", "output_tokens", to=7), "usage output_tokens: 20 instead of 7"),
        (altered("turns", 0, "outcome", "denied", to=None), "turn 1 outcome denied: [] instead of null"),
        (altered("turns", 0, "outcome", "tools", to=2), "turn 1 outcome tools: 0 instead of 2"),
        (altered("turns", 0, "outcome", "files", to=["a.py"]), "-a.py"),
        (altered("turns", 0, "outcome", "notes", to=["odd"]), "-odd"),
        (altered("turns", 0, "setup", "trimmed", "history_messages", to=4), "trimmed history_messages: 0 instead of 4"),
        (altered("turns", 0, "events", 0, 1, "model", to="m"), 'model: "scripted" instead of "m"'),
        (altered("turns", 0, "events", to=[]), 'turn 1 event 1: only now: ["Started"'),
        (altered("routes", 0, "status", to="held"), 'route 1 status: "done" instead of "held"'),
        (altered("routes", 0, "number", to=9), "route 1 number: "),
        (altered("shown", 0, "type", to="warning"), '--json line 1 type: "message" instead of "warning"'),
        (altered("printed", 0, to="· something else"), "-· something else"),
    ],
)
@pytest.mark.usefixtures("recorded")
def test_each_thing_that_is_not_as_recorded_is_told_with_its_place(change: Change, said: str) -> None:
    lines = entries()
    change(lines)
    write(lines)
    ran = replay("--verify")
    assert ran.code == 1
    told = [line for line in ran.err.splitlines() if line.startswith("· input 2 is not as recorded: ")]
    assert any(said in line for line in told), ran.err
    assert replay().code == 0  # nobody asked


@pytest.mark.usefixtures("recorded")
def test_the_recording_holds_warnings_routes_and_the_printed_run_without_times() -> None:
    (first, _) = [line["end"] for line in entries() if "end" in line]
    assert [line["type"] for line in first["shown"]].count("warning") == 1
    assert [route["target"] for route in first["routes"]] == ["max", "sarah", "carol", "kailai"]
    assert [turn["member"] for turn in first["turns"]] == ["max", "sarah", "carol"]
    assert "max:" in first["printed"]
    assert "· max · 0.0s · 120 tokens · $0.25 · 0 denied" in first["printed"]
    assert not {"time_ms", "seconds", "first_byte_s", "session"} & {key for line in first["shown"] for key in line}


@pytest.mark.usefixtures("recorded")
def test_a_recording_that_breaks_off_does_not_verify() -> None:
    write(entries()[:-1])
    ran = replay("--verify")
    assert ran.code == 1
    assert ran.err.endswith("· input 2 is not as recorded: the recording breaks off\n")


def test_the_version_of_the_cli_is_kept_for_the_replay(world: Path) -> None:
    """Nothing in Gemini's output tells it, and where a recording is played no Gemini needs to be installed."""
    made = crew(world, {"carol": ["Fine."]}, like={"carol": "gemini"})
    gemini = program(world / "gemini", f'exec {sys.executable} "$@"')
    described = world / "package.json"
    described.write_text(f'{{"name": "@google/gemini-cli", "version": "{newest_proven("gemini")}"}}')
    made.file.write_text(made.file.read_text().replace(sys.executable, str(gemini)))
    assert record("--trust", "[NEXT:carol] Go").code == 0
    described.unlink()
    assert the("turn")["version"] == newest_proven("gemini")
    assert the("end")["turns"][0]["outcome"]["denied"] == []
    ran = replay("--verify")
    assert (ran.code, ran.err) == (0, ran.err)
    lines = entries()
    del next(line for line in lines if "turn" in line)["turn"]["version"]
    write(lines)
    assert "turn 1 outcome denied: null instead of []" in replay("--verify").err


# --- how turns end


def test_a_turn_that_a_clock_has_ended_replays_as_a_timeout(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = crew(world, {"max": [{"say": "Half of it", "hang": 600}]}, members={"max": {"timeout": "0.3s"}})
    with monkeypatch.context() as patch:
        clocks_wait_for((made.scripts / "max.hangs").exists, patch)
        assert run_here("send", "--record", FILE, "[NEXT:max] Go").code == 3
    ran = replay("--verify", "--json")
    assert ran.code == 0, ran.err
    (finished,) = [line for line in objects(ran) if line["type"] == "turn_finished"]
    assert finished["failure"] == {
        "kind": "timeout",
        "reason": "was still running after 0.3 s (its timeout)",
        "hint": None,
    }
    assert finished["partial"] == "Half of it"
    assert replay().code == 3


def test_a_slow_replay_has_no_clocks_of_its_own(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crew(world, {"max": [{"say": "Slow", "hang": 0.6}]}, members={"max": {"timeout": "0.3s"}})
    with monkeypatch.context() as patch:
        clocks_wait_for(lambda: False, patch)
        assert run_here("send", "--record", FILE, "[NEXT:max] Go").code == 0
    ran = run_here("replay", "--speed", "1", "--verify", FILE)
    assert ran.code == 0, ran.err


def test_an_interrupted_run_replays_as_one_and_the_next_input_follows(world: Path) -> None:
    crew(world, {"max": [{"say": "Well", "touch": str(world / "began"), "hang": 600}], "sarah": ["Hello."]})
    process = start("send", "--record", FILE, "[NEXT:max, sarah] Go")
    assert eventually((world / "began").exists)
    os.kill(process.pid, signal.SIGINT)
    assert ended(process).code == 130
    assert replay().code == 130
    assert record("--to", "sarah", "Then you").code == 0
    ran = replay("--verify")
    assert ran.code == 0, ran.err
    assert "max was interrupted" in ran.err
    assert "still on hold" not in ran.err
    assert ran.out.endswith("sarah:\nHello.\n\n")


def test_an_interrupted_group_replays_as_one(world: Path) -> None:
    began = [world / "one", world / "two"]
    hanging = [{"say": "Well", "touch": str(file), "hang": 600} for file in began]
    crew(world, {"max": [hanging[0]], "sarah": [hanging[1]], "carol": ["Never"]})
    process = start("send", "--record", FILE, "[NEXT:max + sarah, carol] Go")
    assert eventually(lambda: all(file.exists() for file in began))
    os.kill(process.pid, signal.SIGTERM)
    assert ended(process).code == 143
    ran = replay("--verify")
    assert ran.code == 0, ran.err
    assert the("end")["code"] == 130


def test_a_member_that_is_not_installed_replays_as_one(world: Path) -> None:
    made = crew(world, {"max": ["Never"], "sarah": ["Hello."]}, members={"max": {"fallback": ["sarah"]}})
    text = made.file.read_text()
    made.file.write_text(text + '\n[agents.gone]\ncommand = ["no-such-program"]\n')
    made.file.write_text(made.file.read_text().replace('agent = "max-agent"', 'agent = "gone"'))
    assert record("--trust", "[NEXT:max] Go").code == 0
    assert the("turn")["member"] == "sarah"
    ran = replay("--verify")
    assert ran.code == 0, ran.err
    why = "is not installed; install it, or change its command in the team file"
    assert f"max's program 'no-such-program' {why}; sarah answers as its fallback" in ran.err


def test_a_program_that_can_not_be_started_replays_as_one(world: Path) -> None:
    crew(world, {"max": ["Never"]})
    broken = world / "work" / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    team = Path("teamchat.toml")
    team.write_text(team.read_text().replace('agent = "max-agent"', 'agent = "broken"'))
    team.write_text(team.read_text() + '\n[agents.broken]\ncommand = ["./broken"]\n')
    live = record("--trust", "[NEXT:max] Go")
    ran = replay("--verify")
    assert ran.code == 0, ran.err
    assert replay().code == live.code == 11


def test_retries_and_their_pauses_replay_at_once(world: Path) -> None:
    limited = {"err": "rate limit reached, try again later\n", "exit": 1}
    crew(world, {"max": [limited, "Hello."]}, like={"max": "codex"}, members={"max": {"retries": 1}})
    assert record("[NEXT:max] Go").code == 0
    ran = replay("--verify")
    assert ran.code == 0, ran.err
    assert "tries again in 2 s" in ran.err


@pytest.mark.parametrize("agent", ["max-agent", "codex"])
def test_an_agent_that_cooled_down_does_so_in_a_replay(world: Path, agent: str) -> None:
    limited = {"err": "rate limit reached, try again later\n", "exit": 1}
    made = crew(
        world,
        {"max": [limited], "sarah": ["Hello.", "Again."]},
        like={"max": "codex"},
        members={"max": {"fallback": ["sarah"]}},
    )
    made.file.write_text(made.file.read_text().replace("max-agent", agent))
    assert record("[NEXT:max] Go", "--trust").code == 0
    assert record("[NEXT:max] Once more").code == 0
    ran = replay("--verify")
    assert ran.code == 0, ran.err
    assert "max's agent cools down" in ran.err


def test_members_in_folders_of_their_own_write_at_the_same_time_in_a_replay_too(world: Path) -> None:
    for name in ("one", "two"):
        Path(name).mkdir()
    crew(
        world,
        {"max": ["Hi"], "sarah": ["Ho"]},
        members={"max": {"cwd": "one", "access": "edit"}, "sarah": {"cwd": "two", "access": "edit"}},
    )
    assert record("[NEXT:max + sarah] Go").code == 0
    ran = replay("--verify")
    assert ran.code == 0, ran.err
    assert "one after the other" not in ran.err


def test_a_group_with_retries_and_stand_ins_replays_in_the_order_in_which_its_turns_began(world: Path) -> None:
    limited = {"err": "rate limit reached, try again later\n", "exit": 1}
    replies: dict[str, list[Reply]] = {
        "max": [limited, "Mine."],
        "sarah": [{**limited, "hang": 0.3}],
        "carol": ["Hers.\n[NEXT: nobody]"],
    }
    crew(
        world,
        replies,
        like={"max": "codex", "sarah": "claude", "carol": "gemini"},
        members={"max": {"retries": 1}, "sarah": {"fallback": ["carol"]}},
    )
    assert record("[NEXT:max + sarah] Go").code == 0
    assert sorted(turn["member"] for turn in the("end")["turns"]) == ["carol", "max", "max", "sarah"]
    ran = replay("--verify")
    assert ran.code == 0, ran.err
