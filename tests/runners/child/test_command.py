"""Programs that are run to their end, or read while they print: their output and their end, and nothing afterwards."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from teamchat.runners.child.command import CommandEnd, capture, printing, run, run_alone
from teamchat.runners.child.guardian import send_signal
from teamchat.runners.child.running import SpawnFailed
from tests.runners.processes import PATIENCE_S, Pids, agent, eventually, lives, shell

ENV = {"PATH": os.environ["PATH"]}


def test_input_output_and_end_are_the_same_in_both_ways(tmp_path: Path) -> None:
    echo = shell("read line; echo $line; echo err >&2; exit 3")
    with printing(echo, tmp_path, ENV, b"in\n") as program:
        assert program.end() == CommandEnd(3, b"in\n", b"err\n")
    assert run(echo, tmp_path, ENV, PATIENCE_S, b"in\n") == CommandEnd(3, b"in\n", b"err\n")


def test_a_program_that_is_not_read_to_its_end_is_killed_with_its_group(tmp_path: Path) -> None:
    with printing(shell("sleep 600 & echo $!; wait"), tmp_path, ENV) as program:
        child = int(program.out.readline())
    assert eventually(lambda: not lives(child))


def test_a_program_that_takes_too_long_has_no_exit_code(tmp_path: Path) -> None:
    with printing(shell("exec sleep 600"), tmp_path, ENV, seconds=0.1) as program:
        assert program.end() == CommandEnd(None, b"", b"")
    assert run(shell("exec sleep 600"), tmp_path, ENV, 0.1) == CommandEnd(None, b"", b"")


def test_an_input_that_is_read_late_is_read_whole(tmp_path: Path) -> None:
    assert run(shell("sleep 1; wc -c"), tmp_path, ENV, PATIENCE_S, b"x" * 3_000_000).out.strip() == b"3000000"


def test_a_program_that_does_nothing_is_killed_and_one_that_works_is_not(tmp_path: Path) -> None:
    assert run(shell("exec sleep 600"), tmp_path, ENV, PATIENCE_S, idle_s=0.5).why == "idle"
    busy = shell("for i in 1 2 3 4 5 6 7 8; do sleep 0.2; echo $i; done")
    assert run(busy, tmp_path, ENV, PATIENCE_S, idle_s=1.0).code == 0
    assert run(shell("exec sleep 600"), tmp_path, ENV, PATIENCE_S, stopped=lambda: True).why == "stopped"


def test_what_it_wrote_and_how_it_ended(tmp_path: Path) -> None:
    assert capture(shell("echo out; echo err >&2; exit 3"), ENV, tmp_path, PATIENCE_S) == (3, b"out\n")


def test_it_gets_the_folder_and_exactly_the_environment(tmp_path: Path) -> None:
    code, out = capture(shell("pwd; echo $MINE $HOME"), {**ENV, "MINE": "mine"}, tmp_path, PATIENCE_S)
    assert (code, out) == (0, f"{tmp_path}\nmine\n".encode())


def test_standard_input_is_empty(tmp_path: Path) -> None:
    assert capture(shell("cat; echo end"), ENV, tmp_path, PATIENCE_S) == (0, b"end\n")


def test_it_is_in_a_session_of_its_own(tmp_path: Path) -> None:
    code, out = capture(shell("ps -o sid= -p $$"), ENV, tmp_path, PATIENCE_S)
    assert code == 0
    assert int(out) != os.getsid(0)


def test_a_child_that_keeps_standard_output_open_is_not_waited_for(tmp_path: Path) -> None:
    script = "echo 1.2.3; sleep 600 & echo $! > pid"
    assert capture(shell(script), ENV, tmp_path, PATIENCE_S) == (0, b"1.2.3\n")
    send_signal(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_its_whole_group_is_killed_when_the_time_is_over(tmp_path: Path, pids: Pids) -> None:
    env = {**ENV, "AGENT_PIDS": str(pids.file)}
    argv = agent("deaf", "+", "child", "+", "say", "half", "+", "hang")
    ends = []
    for patience in (0.5, 2, 8, 32):  # until that is enough for it to come to its end
        pids.file.unlink(missing_ok=True)
        ends.append(capture(argv, env, tmp_path, patience))
        assert eventually(lambda: pids.alive() == [])
        if pids.hang():
            break
    assert ends[-1] == (None, b"deaf\nhalf")
    assert len(pids.all()) == 2


def test_a_program_that_runs_alone_leaves_nothing_of_its_group(tmp_path: Path) -> None:
    ran = run_alone(shell("cat; echo err >&2; sleep 600 & echo $! > pid; exit 3"), tmp_path, ENV, PATIENCE_S, b"in\n")
    assert ran == CommandEnd(3, b"in\nerr\n", b"")
    assert eventually(lambda: not lives(int((tmp_path / "pid").read_text())))


def test_a_program_that_runs_alone_is_killed_when_the_time_is_over(tmp_path: Path) -> None:
    assert run_alone(shell("exec sleep 600"), tmp_path, ENV, 0.1, b"") == CommandEnd(None, b"", b"")


@pytest.mark.parametrize("program", ["/nowhere/claude", "nul\0"])
def test_what_can_not_be_started_says_why(program: str, tmp_path: Path) -> None:
    with pytest.raises(SpawnFailed, match=r".+"):
        capture((program,), ENV, tmp_path, PATIENCE_S)


def test_a_script_without_its_interpreter_can_not_be_started(tmp_path: Path) -> None:
    script = tmp_path / "claude"
    script.write_text("#!/nowhere/node\n")
    script.chmod(0o755)
    with pytest.raises(SpawnFailed, match="No such file"):
        capture((str(script),), ENV, tmp_path, PATIENCE_S)
