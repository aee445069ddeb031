"""`teamchat check`: checks that a person runs by hand, without any turn."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from teamchat.cli.startup.workspace import lock_file
from teamchat.core.conversation.permission import trust_store
from teamchat.core.files.session_lock import session_lock
from tests.cli.checked import checked_crew
from tests.cli.helpers import objects, refused, select
from tests.cli.test_chat import ENTER, chat, leave, types
from tests.cli.test_json import as_documented
from tests.cli.test_terminal import at_terminal
from tests.cli.test_watch import interrupted, until, watching
from tests.program import ended, run_here, start
from tests.runners.processes import Pids, agent, eventually
from tests.scripted_team import Table

ORDERED: dict[str, str | Table] = {
    "tests": {"command": "true", "needs": ["lint"]},
    "lint": "false",
    "docs": {"command": "true", "needs": ["tests"]},
    "types": "true",
}
STYLES = re.compile(r"\x1b\[[\d;]*[A-Za-z]")


def ran() -> list[tuple[object, ...]]:
    return select("SELECT number, name, status, route, after FROM checks ORDER BY number")


def test_a_command_begins_a_conversation(world: Path) -> None:
    checked_crew(world, {})
    done = run_here("check", "echo hello")
    assert (done.code, done.out) == (0, "")
    lines = done.err.splitlines()
    assert lines[:2] == ["· session s1 begins", "· check runs: echo hello (check-1)"]
    assert lines[2].startswith("· check echo hello: green · ")
    assert ran() == [(1, "echo hello", "green", None, 0)]
    assert run_here("show", "check-1", "--reply").out == "hello\n"
    assert "by hand, before any turn" in run_here("show", "check-1").out
    assert run_here("check", "true").err.splitlines()[0] == "· check runs: true (check-2)"


def test_a_red_one_says_where_its_output_is(world: Path) -> None:
    checked_crew(world, {"tests": "echo no; exit 3"})
    assert run_here("send", "--to", "max", "Hi").code == 0
    done = run_here("check", "TESTS")
    assert done.code == 16
    assert "· check tests is red: exit code 3\n" in done.err
    assert re.search(r"^· check tests: red, exit code 3 · \d+\.\d s · teamchat show check-1$", done.err, re.MULTILINE)
    assert "· try: teamchat show check-1\n" in done.err
    assert ran() == [(1, "tests", "red", None, 1)]


def test_all_run_behind_those_that_they_need(world: Path) -> None:
    checked_crew(world, ORDERED)
    done = run_here("check")
    assert done.code == 16
    assert [name for _, name, *_ in ran()] == ["lint", "types"]
    assert "· check tests is skipped: it needs lint, which is not green\n" in done.err
    assert "· check docs is skipped: it needs tests, which is not green\n" in done.err


def test_one_that_is_named_runs_behind_those_that_it_needs(world: Path) -> None:
    checked_crew(world, {"docs": {"command": "true", "needs": ["style"]}, "style": "true", "types": "true"})
    assert run_here("check", "docs").code == 0
    assert [name for _, name, *_ in ran()] == ["style", "docs"]


def test_one_that_needs_a_red_one_is_skipped(world: Path) -> None:
    checked_crew(world, ORDERED)
    done = run_here("check", "tests")
    assert done.code == 16
    assert [(name, status) for _, name, status, *_ in ran()] == [("lint", "red")]
    assert "· check tests is skipped: it needs lint, which is not green\n" in done.err


def test_json_has_each_check_and_a_result(world: Path) -> None:
    checked_crew(world, {"lint": "true", "tests": "exit 2"})
    lines = objects(run_here("check", "--json"))
    assert [(line["type"], line.get("check")) for line in lines] == [
        ("check_started", "check-1"), ("check_finished", "check-1"),
        ("check_started", "check-2"), ("check_finished", "check-2"),
        ("result", None),
    ]  # fmt: skip
    assert all(map(as_documented, lines))
    assert (lines[-1]["code"], lines[-1]["reason"]) == (16, "check tests is red: exit code 2")
    assert (lines[-1]["session"], lines[-1]["hint"]) == ("s1", "teamchat show check-2")


@pytest.mark.parametrize(
    ("command", "code", "why"),
    [("no-such-program", 11, "exit code 127: a program was not found"), ("kill -TERM $$", 1, "was ended by SIGTERM")],
)
def test_one_that_was_not_run_says_nothing_of_the_work(world: Path, command: str, code: int, why: str) -> None:
    checked_crew(world, {"tests": command})
    done = run_here("check", "tests")
    assert done.code == code
    assert f"· failed: check tests was not run: {why}\n" in done.err


def test_ctrl_c_ends_it_and_what_is_behind_it(world: Path) -> None:
    checked_crew(world, {"first": "touch begun; sleep 60", "second": "true"})
    with start("check") as process:
        assert eventually(Path("begun").exists)
        process.send_signal(signal.SIGINT)
        assert ended(process).code == 130
    assert [(name, status) for _, name, status, *_ in ran()] == [("first", "not_run")]


def test_one_that_was_killed_does_not_run_again(world: Path, pids: Pids) -> None:
    checked_crew(world, {"tests": " ".join(agent("hang"))})
    with start("check") as process:
        pids.await_count(1)
        process.kill()
        ended(process)
    assert "  interrupted: check tests  " in run_here("sessions").out
    for looks in ("log", "status"):
        assert run_here(looks).out == "check tests was running when teamchat was killed · check-1\n\n"
    done = run_here("check", "true")
    assert done.code == 0
    assert "· check-1 (tests) was running when teamchat was killed\n" in done.err
    assert [(name, status) for _, name, status, *_ in ran()] == [("tests", "not_run"), ("true", "green")]


def test_one_that_runs_is_seen_by_others(world: Path) -> None:
    checked_crew(world, {"tests": "touch begun; sleep 60"})
    with start("check") as process:
        assert eventually(Path("begun").exists)
        assert re.search(r"  running: check tests, 0:\d\d  ", run_here("sessions").out)
        assert run_here("log").out == "check tests runs: touch begun; sleep 60 (check-1)\n\n"
        process.send_signal(signal.SIGINT)
        assert ended(process).code == 130


def test_a_terminal_has_the_command_for_its_output_at_the_right_margin(world: Path) -> None:
    checked_crew(world, {"tests": "exit 3", "lint": "true"})
    lines = STYLES.sub("", at_terminal("check", kind="xterm-256color").out).splitlines()
    (red,) = [line for line in lines if "✗ check tests" in line]
    assert re.fullmatch(r"✗ check tests: red, exit code 3 · \d+\.\d s {2,}teamchat show check-1", red.strip())
    assert any(re.fullmatch(r"✓ check lint: green · \d+\.\d s · check-2", line.strip()) for line in lines)


def test_a_conversation_with_checks_can_be_deleted(world: Path) -> None:
    checked_crew(world, {})
    assert run_here("check", "echo hello").code == 0
    assert run_here("sessions", "delete", "s1", "--yes").code == 0
    assert ran() == []


def test_quiet_says_it_by_the_exit_code_alone(world: Path) -> None:
    checked_crew(world, {"tests": "exit 1"})
    assert run_here("check", "--quiet", "true").err == ""
    done = run_here("check", "--quiet", "tests")
    assert (done.code, done.out) == (16, "")


def test_nothing_runs_without_trust(world: Path) -> None:
    made = checked_crew(world, {"tests": "touch ran"})
    made.file.write_text(made.file.read_text().replace("touch ran", "touch ran; true"))
    assert run_here("check", "tests").code == 5
    assert not Path("ran").exists()
    assert run_here("check", "--trust", "tests").code == 0
    assert Path("ran").exists()
    assert trust_store().file.exists()


def test_it_takes_the_lock_of_the_conversation(world: Path) -> None:
    checked_crew(world, {})
    assert run_here("check", "true").code == 0
    with session_lock(lock_file(Path.cwd(), 1), "send"):
        assert run_here("check", "--no-wait", "true").code == 13
    assert len(ran()) == 1


def test_what_cannot_be_run_is_refused_before_anything_is_stored(world: Path) -> None:
    checked_crew(world, {"tests": "true"})
    assert "did you mean 'tests'" in refused(run_here("check", "test"))
    missing = run_here("check", "--session", "s9", "true")
    assert missing.code == 4
    assert missing.err.endswith("  try: teamchat send --new --session s9 'Your message'\n")
    assert run_here("sessions", "--json").out == ""
    checked_crew(world, {})
    assert refused(run_here("check")) == "the team file has no [checks]: name a shell command"


def test_a_session_that_is_not_there_is_no_new_one(world: Path) -> None:
    checked_crew(world, {})
    assert run_here("check", "true").code == 0
    missing = run_here("check", "--session", "other", "true")
    assert (missing.code, missing.err.splitlines()[1:]) == (4, ["  try: teamchat sessions"])


def test_stop_ends_it_and_says_what_is_true(world: Path) -> None:
    checked_crew(world, {"tests": "touch begun; sleep 60"})
    with start("check", "tests") as process:
        assert eventually(Path("begun").exists)
        stopped = run_here("stop")
        assert ended(process).code == 143
    assert (stopped.code, stopped.out) == (0, "")
    assert stopped.err.endswith("(teamchat check tests); nothing is waiting in session s1\n")
    assert run_here("resume").code == 2


def test_a_watcher_sees_it_with_its_result(world: Path) -> None:
    checked_crew(world, {"tests": "exit 1"})
    assert run_here("send", "[TEAM_TASK: Build]").code == 0
    with watching("watch", "--json", "--last", "0") as process:
        shown = objects(run_here("check", "tests", "--json"))
        assert until(process, "result") == shown
        interrupted(process)


def test_chat_runs_it(world: Path) -> None:
    checked_crew(world, {"tests": "true"})
    with chat() as shown:
        types(shown, f"/check tests{ENTER}")
        shown.until(lambda text: "✓ check tests: green" in text)
        types(shown, f"/check sh -c 'exit 1'{ENTER}")
        shown.until(lambda text: re.search(r"✗ check sh -c 'exit 1': red.* s +/show check-2", text) is not None)
        leave(shown)
    assert [(name, status) for _, name, status, *_ in ran()] == [("tests", "green"), ("sh -c 'exit 1'", "red")]
