"""A guardian as a program, spoken to over its socket: orders in any pieces, and every end of a tree."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners.child import guardian
from tests.leftovers import marked
from tests.namespaces import apart
from tests.runners.processes import PATIENCE_S, Pids, agent, eventually, lives, shell

AS_ON_MACOS = f"""
import shutil, socket, subprocess, sys
sys.platform = "darwin"
{guardian.STARTED}
"""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A guardian and the socket to it."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    out: Path
    errors: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def report(self) -> dict[str, Any]:
        return reported(self.control)

    def ended(self) -> int:
        """The exit code of the guardian."""
        return self.process.wait(PATIENCE_S)


Guard = Callable[..., Guarded]


def reported(control: socket.socket) -> dict[str, Any]:
    line = b""
    while not line.endswith(b"\n"):
        byte = control.recv(1)
        assert byte, "the guardian is gone"
        line += byte
    return dict(json.loads(line))


def order(argv: tuple[str, ...], pids: Pids, *, grace: float = 10 * PATIENCE_S, remove: Path | None = None) -> bytes:
    env = marked({"AGENT_PIDS": str(pids.file), "PATH": os.environ["PATH"]})
    fields = {"argv": argv, "env": env, "signal": 15, "group": True, "grace": grace, "remove": remove and bytes(remove)}
    return guardian.order_line(fields) + guardian.GO + b"\n"


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[Guard]:
    started: list[Guarded] = []

    def run(program: str = guardian.STARTED) -> Guarded:
        ours, theirs = socket.socketpair()
        ours.settimeout(PATIENCE_S)
        out_file, err_file = tmp_path / f"out{len(started)}", tmp_path / f"err{len(started)}"
        folder = os.open("/", os.O_RDONLY)
        with theirs, err_file.open("wb") as err, out_file.open("wb") as out, Path(os.devnull).open("rb") as nothing:
            process = subprocess.Popen(
                [program if word == guardian.STARTED else word for word in guardian.command(theirs.fileno())],
                stdin=nothing,
                stdout=nothing,
                stderr=err,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
            socket.send_fds(ours, [b"+"], [folder, nothing.fileno(), out.fileno(), err.fileno()])
        os.close(folder)
        assert ours.recv(1) == b"+"
        started.append(Guarded(process, ours, out_file, err_file))
        return started[-1]

    yield run
    for one in started:
        one.control.close()
        one.ended()
        assert one.errors.read_bytes() == b""


# --- orders


def test_orders_may_arrive_in_any_pieces(guard: Guard, pids: Pids) -> None:
    guarded = guard()
    for byte in order(agent("obey", "3", "+", "hang"), pids):
        guarded.control.send(bytes([byte]))
    assert guarded.report().keys() == {"pid"}
    assert eventually(lambda: b"ready" in guarded.out.read_bytes())
    for piece in (b"s", b"to", b"p", b"\n"):
        guarded.control.send(piece)
        time.sleep(0.02)
    assert guarded.report() == {"exit": 3, "left": []}


def test_orders_may_arrive_at_once(guard: Guard, pids: Pids) -> None:
    guarded = guard()
    guarded.control.sendall(order(agent("deaf", "+", "hang"), pids) + b"stop\nstop\nkill\n")
    guarded.report()
    assert guarded.report()["exit"] in {-signal.SIGKILL, -signal.SIGTERM}  # the latter before it was deaf


def test_an_order_nobody_knows_means_stop(guard: Guard, pids: Pids) -> None:
    guarded = guard()
    guarded.control.sendall(order(("/bin/sleep", "60"), pids) + b"what?\n")
    guarded.report()
    assert guarded.report() == {"exit": -signal.SIGTERM, "left": []}


@pytest.mark.parametrize("length", [0, 1, 40])
def test_without_a_whole_first_order_nothing_is_run(guard: Guard, pids: Pids, length: int) -> None:
    guarded = guard()
    guarded.control.sendall(order(agent("hang"), pids)[:length])
    guarded.control.close()
    assert (guarded.ended(), pids.all()) == (0, [])


@pytest.mark.parametrize("close", ["close", "shut down"])
def test_a_closed_socket_means_stop_and_is_not_patient(guard: Guard, pids: Pids, tmp_path: Path, close: str) -> None:
    guarded, scratch = guard(), tmp_path / "scratch"
    scratch.mkdir()
    guarded.control.sendall(order(agent("tool", "+", "daemon", "+", "deaf", "+", "hang"), pids, remove=scratch))
    guarded.report()
    assert eventually(lambda: b"deaf" in guarded.out.read_bytes())
    if close == "close":
        guarded.control.close()
    else:
        guarded.control.shutdown(socket.SHUT_WR)
    assert guarded.ended() == 0  # its own grace is longer than that waits
    assert (pids.alive(), scratch.exists()) == ([], False)


def test_a_socket_that_closes_during_the_grace_ends_it(guard: Guard, pids: Pids) -> None:
    guarded = guard()
    guarded.control.sendall(order(agent("daemon", "+", "deaf", "+", "hang"), pids))
    guarded.report()
    assert eventually(lambda: b"deaf" in guarded.out.read_bytes())
    guarded.control.sendall(b"stop\n")
    time.sleep(0.1)
    guarded.control.close()
    assert guarded.ended() == 0
    assert pids.alive() == []


def test_signals_to_the_guardian_itself_change_nothing(guard: Guard, pids: Pids) -> None:
    guarded = guard()
    guarded.control.sendall(order(agent("obey", "0", "+", "sleep", "0.3", "+", "exit-with", "8"), pids))
    guarded.report()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        os.kill(guarded.pid, number)
    assert guarded.report() == {"exit": 8, "left": []}


def test_no_guardian_has_the_socket_of_another_one(guard: Guard, pids: Pids) -> None:
    first, second = guard(), guard()
    for one in (first, second):
        one.control.sendall(order(("/bin/sleep", "60"), pids))
    agents = [one.report()["pid"] for one in (first, second)]
    first.control.close()
    assert eventually(lambda: not lives(agents[0]))
    assert lives(agents[1])
    second.control.close()
    assert (first.ended(), second.ended()) == (0, 0)
    assert not lives(agents[1])


# --- trees


def test_hundreds_of_orphans_are_ended_and_reaped(guard: Guard, pids: Pids) -> None:
    guarded = guard()
    script = 'i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done; echo $$ >> "$AGENT_PIDS"; wait'
    guarded.control.sendall(order(shell(script), pids))
    guarded.report()
    pids.await_count(1)
    assert len(guardian.below(guarded.pid, guardian.processes())) == 201
    guarded.control.sendall(b"kill\n")
    assert guarded.report()["exit"] == -signal.SIGKILL
    assert eventually(lambda: guardian.below(guarded.pid, guardian.processes()) == {})


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_whose_first_thread_has_ended_is_not_dead(guard: Guard, pids: Pids) -> None:
    headless = (
        "import ctypes, os, threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "open(os.environ['AGENT_PIDS'], 'w').write(f'{os.getpid()}\\n')\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    guarded = guard()
    guarded.control.sendall(
        order(
            shell(f'{sys.executable} -I -S -c "{headless}" & while ! [ -s "$AGENT_PIDS" ]; do sleep 0.05; done'), pids
        )
    )
    guarded.report()
    report = guarded.report()
    (pid,) = pids.all()
    assert report["exit"] == 0
    assert len(report["left"]) == 1
    assert not Path(f"/proc/{pid}").exists()


def test_without_a_subreaper_nothing_is_left_of_a_normal_end(guard: Guard, pids: Pids) -> None:
    guarded = guard(AS_ON_MACOS)
    guarded.control.sendall(order(agent("exit-with", "2"), pids))
    guarded.report()
    assert guarded.report() == {"exit": 2, "left": []}


def test_without_a_subreaper_the_tree_that_was_seen_is_ended(guard: Guard, pids: Pids) -> None:
    guarded = guard(AS_ON_MACOS)
    guarded.control.sendall(order(agent("child", "+", "grandchild", "+", "obey", "1", "+", "hang"), pids))
    guarded.report()
    assert eventually(lambda: b"ready" in guarded.out.read_bytes())
    guarded.control.sendall(b"stop\n")
    assert guarded.report() == {"exit": 1, "left": []}
    assert pids.alive() == []


# --- the table of processes


@pytest.mark.parametrize("name", ["a) Z 1 (b", "(", "tab\tand space"])
def test_names_that_look_like_fields_confuse_nobody(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("/bin/sleep")
    with subprocess.Popen([str(tmp_path / name), "60"]) as sleeper:
        try:
            assert eventually(lambda: guardian.processes().get(sleeper.pid) == (os.getpid(), name))
        finally:
            sleeper.kill()
    assert not lives(sleeper.pid)


@given(st.dictionaries(st.integers(2, 13), st.tuples(st.integers(2, 13), st.just("x"))), st.integers(2, 13))
def test_descendants_are_what_reaches_the_root_by_its_parents(table: dict[int, tuple[int, str]], root: int) -> None:
    def reaches(pid: int) -> bool:
        seen: set[int] = set()
        while pid in table and pid not in seen:
            seen.add(pid)
            pid = table[pid][0]
            if pid == root:
                return True
        return False

    assert set(guardian.below(root, table)) == {pid for pid in table if reaches(pid)}


LOW = (1, 0, -1, -2, -(1 << 31))


@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("number", LOW)
def test_no_signal_is_sent_to_a_number_below_2(number: int, *, group: bool) -> None:
    """Tried where it could end no more than a shell, its child and an interpreter."""
    code = f"from teamchat.runners.child import guardian as g; g.send_signal({number}, 9, group={group})"
    script = 'sleep 60 & "$@"; echo "ended with $?"; kill $! && echo survived'
    assert apart(script, sys.executable, "-c", code).stdout == "ended with 0\nsurvived\n"


@pytest.mark.parametrize("number", LOW)
def test_nobody_descends_of_a_number_below_2(number: int) -> None:
    table = guardian.processes()
    assert guardian.below(number, table) == {}
    assert os.getpid() in guardian.below(table[os.getpid()][0], table)
