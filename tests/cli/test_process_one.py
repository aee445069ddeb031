"""teamchat as process 1 of a container, and the commands of a person beside it, inside and outside of the container."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from teamchat.cli.startup.workspace import lock_file
from teamchat.core.errors import ExitCode
from teamchat.core.files.session_lock import look_at, session_lock
from teamchat.runners.child.guardian import below, named, processes
from tests.cli.helpers import refused, select
from tests.namespaces import refusal, unshared
from tests.program import TIMEOUT_S, Result, argv, cli, run_here
from tests.runners.processes import eventually
from tests.scripted_team import crew
from tests.terminals import Terminal

pytestmark = pytest.mark.skipif(bool(refusal()), reason=refusal())
SAID = "process 1 (teamchat send --to max Go)"
BUSY = f"this conversation is being run by {SAID}; wait, stop it, or start another one"
OWN_PROC = 'exec "$@"'
CHILD = '(while [ ! -e began ]; do sleep 0.05; done; {beside} >beside.out 2>beside.err </dev/null) & exec "$@"'
"""A command that is a child of process 1, as what a container's shell has left behind."""


@pytest.fixture(autouse=True)
def team(world: Path) -> None:
    """Max speaks once `go` is there, and then takes long; sarah is quick."""
    waits = {"say": "of the first", "touch": str(Path.cwd() / "began"), "wait": str(Path.cwd() / "go")}
    crew(world, {"max": [waits, {"say": "Half", "hang": 600}], "sarah": ["Hi"] * 3})


class Container:
    """Namespaces whose process 1 is a teamchat; `number` is its number out here."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        (self.number,) = below(process.pid, {pid: row for pid, row in processes().items() if row[0] == process.pid})

    def argv(self, *words: str) -> list[str]:
        """The command line of a teamchat beside process 1, as `docker exec` starts it."""
        user = [] if os.getuid() == 0 else ["--user", "--preserve-credentials"]
        enter = ["nsenter", "--target", str(self.number), *user, "--mount", "--pid"]
        return [*enter, "sh", "-c", 'cd "$0" && exec "$@"', str(Path.cwd()), *argv(*words)]

    def run(self, *words: str) -> Result:
        ran = subprocess.run(
            self.argv(*words), capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False
        )
        return Result(ran.returncode, ran.stdout.decode(), ran.stderr.decode())


@contextmanager
def container(setup: str = OWN_PROC, *, to: str = "max", proc: bool = True) -> Iterator[Container]:
    line = unshared(setup)
    command = [word for word in line if proc or word != "--mount-proc"]
    with subprocess.Popen(
        [*command, "sh", *argv("send", "--to", to, "Go")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            assert eventually(Path("began").exists)
            yield Container(process)
            process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()


def test_stop_in_the_container_stops_it() -> None:
    with container() as own:
        own.run("stop")  # which ends with its container, perhaps before it can say so
    assert own.process.returncode == ExitCode.TERMINATED
    assert "held: max" in run_here("log").err


def test_stop_outside_of_the_container_stops_it_by_its_number_there() -> None:
    with container() as own:
        stopped = cli("stop")
    assert (stopped.code, stopped.err) == (0, f"· stopped {SAID}; teamchat resume continues\n")
    assert own.process.returncode == ExitCode.TERMINATED


def test_stop_in_namespaces_that_have_the_proc_of_others_stops_it() -> None:
    with container(proc=False) as own:
        own.run("stop")
    assert own.process.returncode == ExitCode.TERMINATED


def test_a_second_message_is_handed_over() -> None:
    with container() as own:
        with subprocess.Popen(
            own.argv("send", "--to", "sarah", "Me, too"), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        ) as second:
            assert second.stderr
            assert any(f"queued: it goes out before the next turn of {SAID}" in line.decode() for line in second.stderr)
            Path("go").touch()
            second.stderr.read()
        out, _ = own.process.communicate(timeout=TIMEOUT_S)
    assert (own.process.returncode, out) == (0, b"max:\nof the first\n\nsarah:\nHi\n\n")
    assert select("SELECT content FROM messages WHERE turn IS NULL ORDER BY id") == [("Go",), ("Me, too",)]


def test_watch_follows_it(world: Path) -> None:
    waits = {"say": "of the first", "touch": str(Path.cwd() / "began"), "wait": str(Path.cwd() / "go")}
    crew(world, {"max": [waits], "sarah": [{"hang": 600}]})
    with (
        container(to="max,sarah") as own,
        Path("seen").open("wb") as seen,
        subprocess.Popen(own.argv("watch"), stdout=seen, stderr=seen, stdin=subprocess.DEVNULL),
    ):
        Path("go").touch()
        assert eventually(lambda: "of the first" in Path("seen").read_text())
        own.run("stop")


@pytest.mark.parametrize(
    "command", [["undo"], ["retry", "--yes"], ["clear"], ["send", "--no-wait", "Hi"], ["resume", "--no-wait"]]
)
def test_what_does_not_wait_says_that_it_is_busy_and_how_to_stop_it(command: list[str]) -> None:
    with container() as own:
        ran = own.run(*command)
        own.run("stop")
    assert ran.code == ExitCode.STORE
    assert f"teamchat: {BUSY}\n  try: teamchat stop\n" in ran.err
    assert own.process.returncode == ExitCode.TERMINATED


def test_resume_waits_for_it() -> None:
    with (
        container() as own,
        subprocess.Popen(own.argv("resume"), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as second,
    ):
        assert second.stderr
        assert any(f"waiting for {SAID}" in line.decode() for line in second.stderr)
        Path("go").touch()


@pytest.mark.parametrize("command", ["resume", "undo"])
def test_a_child_of_process_1_is_not_inside_its_conversation(command: str) -> None:
    with container(CHILD.format(beside=" ".join(argv(command)))):
        assert eventually(lambda: Path("beside.err").exists() and SAID in Path("beside.err").read_text())
        Path("go").touch()
    assert "you are inside" not in Path("beside.err").read_text()


def test_what_a_shell_of_the_container_has_left_behind_does_not_keep_it() -> None:
    """Process 1 becomes the parent of orphans and reaps none of them."""
    with container('(sleep 0.2; (sleep 0.2 &) ; (true &)) & exec "$@"') as own:
        Path("go").touch()
    assert own.process.returncode == 0


def test_a_chat_that_is_process_1_is_stopped() -> None:
    line = [*unshared(), "sh", *argv("chat")]
    terminal = Terminal(line[0], line[1:], env=dict(os.environ), encoding="utf-8", timeout=TIMEOUT_S)
    terminal.expect("›|>")
    terminal.send("@max Go\r")
    assert eventually(Path("began").exists)
    assert cli("stop").code == 0
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == ExitCode.TERMINATED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_without_a_conversation_ends_by_a_signal_too(number: signal.Signals) -> None:
    """The kernel gives process 1 no signal that it does not handle."""
    os.mkfifo("fifo")
    with (
        subprocess.Popen(
            [*unshared('exec "$@" < fifo'), "sh", *argv("send", "-")], stderr=subprocess.DEVNULL
        ) as process,
        Path("fifo").open("wb"),
    ):
        assert eventually(lambda: bool(below(process.pid, processes())))
        first = next(iter(below(process.pid, processes())))
        assert eventually(lambda: _handles(first, number))
        os.kill(first, number)
        assert process.wait(TIMEOUT_S) == 128 + number


def _handles(pid: int, number: int) -> bool:
    caught = Path(f"/proc/{pid}/status").read_text().partition("SigCgt:")[2].split()[0]
    return bool(int(caught, 16) >> number - 1 & 1)


@pytest.mark.parametrize("first", [True, False])
def test_a_process_with_the_number_of_one_in_another_container_is_not_signalled(first: bool) -> None:
    """The lock is held from another container that shares the state folder, and here the number is somebody else's."""
    number = 1 if first else os.getppid()
    assert run_here("send", "--to", "sarah", "Hi").code == 0
    lock = lock_file(Path.cwd(), 1)
    with session_lock(lock, "send"):
        lock.write_text(f"process {number} (teamchat send)\n{number}@1\n")
        found = look_at(lock)
        ran = run_here("stop")
        busy = run_here("undo")
    assert found
    assert found.name != named(number)
    there = "stop it in the container or on the machine where it runs"
    assert refused(ran) == f"process {number} (teamchat send) cannot be seen from here: {there}"
    assert ran.code == ExitCode.STORE
    assert "  try: teamchat watch\n" in ran.err
    assert f"is being run by process {number} (teamchat send);" in refused(busy)
