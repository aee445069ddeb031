"""A message from a second terminal or script, while another process runs the session."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from teamchat.core.errors import ExitCode
from tests.cli.helpers import objects, select
from tests.program import Started, cli, ended, run_here, start
from tests.runners.processes import eventually
from tests.screens import screen
from tests.scripted_team import Crew, crew

GOES_OUT = "queued: it goes out before the next turn of process"


@pytest.fixture
def team(world: Path) -> Crew:
    """Max speaks once `go` is there; the others are quick."""
    waits = {"say": "of the first", "touch": str(Path.cwd() / "began"), "wait": str(Path.cwd() / "go")}
    return crew(world, {"max": [waits], "sarah": ["Hi"] * 3, "carol": ["Ho"] * 3})


def go() -> None:
    Path("go").touch()


@contextmanager
def run_of_the_first(*options: str) -> Iterator[Started]:
    """A process that runs the session: max speaks, and sarah is to speak after him."""
    with start("send", "--to", "max,sarah", "Go", *options) as first:
        assert eventually(Path("began").exists)
        yield first


def queued(process: Started) -> None:
    assert process.stderr
    assert any(GOES_OUT in line.decode() for line in process.stderr)


def people_said() -> list[object]:
    return [text for (text,) in select("SELECT content FROM messages WHERE turn IS NULL ORDER BY id")]


def unsent() -> list[object]:
    return [text for (text,) in select("SELECT text FROM unsent WHERE sent IS NULL")]


@pytest.mark.usefixtures("team")
def test_at_a_terminal_it_is_stored_told_and_the_command_returns() -> None:
    with run_of_the_first() as first:
        with screen("send", "--to", "carol", "And a test", columns=200) as seen:
            rows = seen.to_the_end()
            assert seen.child.exitstatus == 0
        assert rows == [
            "· session s1 continues (--new starts another)",
            f"· {GOES_OUT} {first.pid} (teamchat send --to max,sarah Go)",
            "· its replies come there, and in: teamchat watch",
        ]
        assert unsent() == ["And a test"]
        assert "queued, not sent yet: 'And a test'" in run_here("log").err
        go()
        ran = ended(first)
    assert (ran.code, ran.out) == (0, "max:\nof the first\n\ncarol:\nHo\n\nsarah:\nHi\n\n")
    assert people_said() == ["Go", "And a test"]


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize("options", [(), ("--quiet",), ("--json",), ("--verdict", "Ho,No")])
def test_a_script_waits_for_the_replies_that_its_message_leads_to(options: tuple[str, ...]) -> None:
    with run_of_the_first() as first, start("send", "--to", "carol", "And a test", *options) as second:
        queued(second)
        go()
        mine, theirs = ended(second), ended(first)
    assert (mine.code, theirs.code) == (0, 0)
    if "--json" in options:
        lines = objects(mine)
        kinds = [line["type"] for line in lines]
        assert kinds == ["message", "queued", "turn_started", "message", "turn_finished", "result"]
        assert (lines[0]["text"], lines[-1]["text"], lines[-1]["turns"]) == ("And a test", "Ho", 1)
    else:
        assert mine.out == ("Ho\n" if "--quiet" in options else "carol:\nHo\n\n")


@pytest.mark.usefixtures("team")
def test_with_follow_a_terminal_waits_too() -> None:
    with run_of_the_first() as first, screen("send", "--follow", "--to", "carol", "And a test", columns=200) as seen:
        seen.until(lambda text: GOES_OUT in text)
        go()
        rows = seen.to_the_end()
        assert seen.child.exitstatus == 0
        ended(first)
    assert "▌ Ho" in rows
    assert "▌ of the first" not in rows


def test_its_exit_code_is_that_of_its_replies(team: Crew) -> None:
    team.say("carol", {"exit": 1, "err": "no"})
    with run_of_the_first() as first, start("send", "--to", "carol", "And a test") as second:
        queued(second)
        go()
        mine, theirs = ended(second), ended(first)
    assert (mine.code, theirs.code) == (ExitCode.MEMBER_FAILED, ExitCode.MEMBER_FAILED)
    assert "failed: carol ended with exit code 1: no; held: carol" in mine.err


def test_its_verdict_is_that_of_its_own_replies(team: Crew) -> None:
    team.say("sarah", "PASS")
    team.say("carol", "FAIL")
    verdict = ("--verdict", "PASS,FAIL")
    with run_of_the_first(*verdict) as first, start("send", "--to", "carol", "Check", *verdict) as second:
        queued(second)
        go()
        mine, theirs = ended(second), ended(first)
    assert mine.code == ExitCode.OTHER_VERDICT
    assert theirs.code == ExitCode.NO_VERDICT, "max has said neither"


def test_the_quiet_result_of_the_first_is_its_own(team: Crew) -> None:
    team.say("sarah", "of sarah")
    with start("send", "--to", "max", "Go", "--quiet") as first:
        assert eventually(Path("began").exists)
        with start("send", "--to", "carol", "And a test", "--quiet") as second:
            queued(second)
            go()
            assert (ended(second).out, ended(first).out) == ("Ho\n", "of the first\n")


@pytest.mark.usefixtures("team")
def test_no_wait_is_refused() -> None:
    with run_of_the_first() as first:
        ran = run_here("send", "--to", "carol", "And a test", "--no-wait")
        go()
        ended(first)
    assert ran.code == ExitCode.STORE
    assert "is being run by process" in ran.err
    assert people_said() == ["Go"]


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize("options", [("--only",), ("--turns", "3"), ("--window", "2"), ("--timeout", "30s")])
def test_what_needs_a_run_of_its_own_waits_for_the_end(options: tuple[str, ...]) -> None:
    with run_of_the_first() as first, start("send", "--to", "carol", "Later", *options) as second:
        assert second.stderr
        assert any("waiting for process" in line.decode() for line in second.stderr)
        go()
        assert (ended(first).code, ended(second).out) == (0, "carol:\nHo\n\n")
    assert people_said() == ["Go", "Later"]


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize("options", [("--only",), ("--record", "run.cassette")])
def test_a_run_that_has_bounds_or_is_recorded_takes_none(options: tuple[str, ...]) -> None:
    with run_of_the_first(*options) as first, start("send", "--to", "carol", "Later") as second:
        assert second.stderr
        assert any("waiting for process" in line.decode() for line in second.stderr)
        go()
        assert ended(first).out == "max:\nof the first\n\nsarah:\nHi\n\n"
        assert ended(second).out == "carol:\nHo\n\n"


@pytest.mark.usefixtures("team")
def test_a_killed_run_leaves_it_to_its_sender() -> None:
    with run_of_the_first() as first, start("send", "--to", "carol", "And a test") as second:
        queued(second)
        first.kill()
        ended(first)
        mine = ended(second)
    assert (mine.code, mine.out) == (0, "carol:\nHo\n\n")
    assert people_said() == ["Go", "And a test"]
    assert unsent() == []


@pytest.mark.usefixtures("team")
def test_a_killed_run_leaves_it_to_the_next_one() -> None:
    with run_of_the_first() as first:
        with screen("send", "--to", "carol", "And a test") as seen:
            seen.to_the_end()
        first.kill()
        ended(first)
    ran = run_here("send", "--to", "sarah", "And now?")
    assert "· 1 message that waited goes out first\n" in ran.err
    assert (ran.code, ran.out) == (0, "carol:\nHo\n\nsarah:\nHi\n\n")
    assert people_said() == ["Go", "And a test", "And now?"]


@pytest.mark.usefixtures("team")
def test_resume_sends_it_too() -> None:
    with run_of_the_first() as first:
        with screen("send", "--to", "carol", "And a test") as seen:
            seen.to_the_end()
        first.kill()
        ended(first)
    go()
    ran = run_here("resume", "--skip")
    assert (ran.code, ran.out) == (0, "carol:\nHo\n\nsarah:\nHi\n\n")


@pytest.mark.usefixtures("team")
def test_ctrl_c_takes_it_back() -> None:
    with run_of_the_first() as first:
        with start("send", "--to", "carol", "And a test") as second:
            queued(second)
            second.send_signal(signal.SIGINT)
            mine = ended(second)
        go()
        ended(first)
    assert (mine.code, mine.err.splitlines()[-1]) == (ExitCode.INTERRUPTED, "· not sent")
    assert people_said() == ["Go"]


@pytest.mark.usefixtures("team")
def test_several_go_out_in_order_and_none_twice() -> None:
    with run_of_the_first() as first:
        for number in range(3):
            with screen("send", "--to", "carol", f"message {number}") as seen:
                seen.to_the_end()
        go()
        assert ended(first).code == 0
    assert people_said() == ["Go", "message 0", "message 1", "message 2"]
    assert unsent() == []


@pytest.mark.usefixtures("team")
def test_a_message_to_nobody_of_the_team_is_refused_at_once() -> None:
    with run_of_the_first() as first:
        assert cli("send", "--to", "dora", "And a test").code == ExitCode.UNKNOWN_NAME
        go()
        ended(first)
    assert people_said() == ["Go"]
