"""The process layer with real processes: what goes in and comes out, how it ends, and that nothing is left."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import pytest

from teamchat.runners.base import StopRule
from teamchat.runners.child import guardian
from teamchat.runners.child import process as process_module
from teamchat.runners.child.guardians import Guardians
from teamchat.runners.child.process import ChildProcess, launch
from teamchat.runners.child.running import FIRST_LINE, Chunk, Launch, SpawnFailed
from tests.leftovers import marked
from tests.runners.conftest import Start
from tests.runners.processes import (
    PATIENCE_S,
    Pids,
    agent,
    children,
    descriptors,
    eventually,
    follow,
    following,
    guardian_of,
    lives,
    no_tracing,
    shell,
    state,
)

ROOT = Path(__file__).parent.parent.parent.parent
PATIENT = StopRule(grace_s=10 * PATIENCE_S)  # longer than any test waits


# --- what goes in


@pytest.mark.parametrize("size", [0, 100_000, 10_000_000])
def test_stdin_is_a_regular_file_with_exactly_the_prompt_and_its_end(start: Start, size: int) -> None:
    prompt = os.urandom(size)
    facts = json.loads(follow(start(agent("stdin-facts"), stdin=prompt)).out)
    assert facts == {
        "regular": True,
        "start": 0,
        "size": size,
        "sha256": hashlib.sha256(prompt).hexdigest(),
        "at_end": True,
    }


@pytest.mark.parametrize(
    ("steps", "answer"),
    [
        (("err", "unread"), b"unread\n"),
        (("close-stdin", "+", "err", "closed"), b"closed\n"),
        (("read-slowly", "0.02"), b"read 10000000\n"),
    ],
)
def test_an_agent_that_does_not_drain_its_prompt_blocks_nobody(
    start: Start, steps: tuple[str, ...], answer: bytes
) -> None:
    ran = follow(start(agent(*steps), stdin=bytes(10_000_000)))
    assert (ran.err, ran.end) == (answer, (0, ()))


def test_the_environment_is_exactly_the_one_given(start: Start) -> None:
    given = {"PATH": "/bin", "LC_ALL": "C", "ODD NAME": "", "LINES": "a\nb", "UMLAUT": "ä", "RAW": "\udcff\udc80é"}
    ran = follow(start(("/bin/cat", "/proc/self/environ"), env=given))
    got = dict(entry.split(b"=", 1) for entry in ran.out.split(b"\0") if entry)
    assert got == {os.fsencode(name): os.fsencode(value) for name, value in given.items()}


def test_an_empty_environment_stays_empty(start: Start) -> None:
    assert follow(start(("/bin/cat", "/proc/self/environ"), env={})).out == b""


@pytest.mark.parametrize("settings", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}, {"PYTHONUTF8": "1"}])
def test_arguments_and_environment_survive_whatever_locale_teamchat_runs_in(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    program = f"""
import asyncio, os, sys
from pathlib import Path
from teamchat.runners.child.process import Launch, launch
async def main():
    env = {{"VALUE": os.environ["VALUE"]}}
    argv = ("/bin/sh", "-c", 'printf "%s|%s" "$1" "$VALUE"', "sh", sys.argv[1])
    what = Launch(argv, Path("/"), env, b"", Path({str(tmp_path)!r}) / "turn")
    async for chunk in launch(what).chunks():
        sys.stdout.buffer.write(chunk.data)
asyncio.run(main())
"""
    odd = "ä€\udcff日".encode("utf-8", "surrogateescape")
    env = {os.fsencode(name): os.fsencode(value) for name, value in (os.environ | settings).items()}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, odd],
        env=env | {b"VALUE": odd},
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.stdout, done.stderr) == (odd + b"|" + odd, b"")


@contextmanager
def hostile_signals() -> Iterator[None]:
    """The calling process ignores and blocks what it can, as some parents leave it to their children."""
    numbers = (signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGUSR1)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR2})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)


def test_every_signal_is_at_its_default_in_the_agent(start: Start) -> None:
    with hostile_signals():
        ran = follow(start(("/bin/cat", "/proc/self/status")))
    masks = dict(line.split(b":\t") for line in ran.out.splitlines() if line.startswith(b"Sig"))
    glibc = 0b11 << 31  # its own two signals, which posix_spawn leaves ignored
    assert {name: int(masks[name], 16) & ~glibc for name in (b"SigBlk", b"SigIgn", b"SigCgt")} == {
        b"SigBlk": 0,
        b"SigIgn": 0,
        b"SigCgt": 0,
    }


def test_a_parent_that_ignores_and_blocks_sigchld_misses_no_end(start: Start) -> None:
    with hostile_signals():
        assert [follow(start(("/bin/true",))).end for _ in range(3)] == [(0, ())] * 3


def test_the_agent_has_three_descriptors_and_a_session_of_its_own(start: Start) -> None:
    ran = follow(start(shell("ls /proc/$$/fd; cat /proc/$$/stat")))
    *fds, stat = ran.out.splitlines()
    pid, group, session = (stat.split()[at] for at in (0, 4, 5))
    assert [fd for fd in fds if fd in {b"0", b"1", b"2"}] == fds[:3]
    assert len(fds) <= 4  # dash keeps a copy of one for itself
    assert pid == group == session


def test_the_agent_works_in_its_folder(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "Räume und mehr"
    folder.mkdir()
    assert follow(start(("/bin/pwd",), cwd=folder)).out == os.fsencode(folder) + b"\n"


# --- what comes out


def test_bytes_arrive_as_they_were_written(start: Start) -> None:
    raw = b"\xff\xfe\0\x1b[2J\r\n\xc3"
    ran = follow(start(agent("trickle", "ä€🎉".encode().hex(), "+", "raw", raw.hex(), "+", "say", "no end")))
    assert (ran.out, ran.err) == ("ä€🎉".encode() + raw + b"no end", b"")


def test_output_is_followed_while_it_is_written(start: Start) -> None:
    process = start(agent("reply", "first", "+", "hang"))
    ran = follow(process, b"first", process.stop)
    assert ran.out == b"first\n"


def test_fifty_megabytes_are_complete(start: Start) -> None:
    ran = follow(start(agent("flood", "49", "+", "one-line", "1", "+", "reply", "the end")))
    assert len(ran.out) == 50_000_000 + len(b"\nthe end\n")
    assert ran.out.endswith(b"x\nthe end\n")


def test_two_floods_at_once_neither_block_nor_fill_the_memory(tmp_path: Path) -> None:
    program = f"""
import asyncio, resource, sys
from pathlib import Path
from teamchat.runners.child.process import Launch, launch
async def main():
    sizes = {{"out": 0, "err": 0}}
    what = Launch({agent("flood-both", "100")!r}, Path("/"), {{}}, b"", Path({str(tmp_path)!r}) / "turn")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async for chunk in launch(what).chunks():
        sizes[chunk.stream] += len(chunk.data)
    print(sizes["out"], sizes["err"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=PATIENCE_S)
    out, err, grown = map(int, done.stdout.split())
    assert (out, err) == (100_000_000, 100_000_000)
    assert grown < 20_000  # KiB


def test_what_tool_children_write_until_the_end_is_there(start: Start) -> None:
    ran = follow(start(agent("reply", "begin", "+", "chatterer")))
    assert ran.out.startswith(b"begin\nstill here\n")
    assert ran.out == b"begin\n" + b"still here\n" * ran.out.count(b"still")
    assert set(ran.exit.left) <= {"sh", "sleep"}


def test_a_writer_without_end_leaves_the_event_loop_its_time(start: Start) -> None:
    process = start(agent("endless"), max_output=2**40)

    async def main() -> None:
        asyncio.get_running_loop().call_later(0.05, lambda: process.stop(hard=True))
        async for _ in process.chunks():
            time.sleep(0.01)  # noqa: ASYNC251 (a reader slower than the writer)

    asyncio.run(main())
    assert process.exit is not None
    assert process.exit.code == -signal.SIGKILL


def test_output_over_the_limit_ends_the_agent_and_is_kept_up_to_the_limit(start: Start, tmp_path: Path) -> None:
    limit = 5_000_000
    ran = follow(start(agent("endless"), max_output=limit))
    assert (ran.exit.code, ran.exit.over_limit) == (-signal.SIGKILL, limit)
    assert len(ran.out) == limit < (tmp_path / "turn0" / "stdout").stat().st_size


def test_output_over_the_limit_is_read_for_so_long_only(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teamchat.runners.child.process.DRAIN_S", 0.0)
    process = start(agent("endless"), max_output=5_000_000)

    async def main() -> int:
        read = 0
        async for chunk in process.chunks():
            assert isinstance(chunk, Chunk)
            read += len(chunk.data)
            while process.exit is None:
                process.poll()
                await asyncio.sleep(0.01)
        return read

    assert asyncio.run(asyncio.wait_for(main(), PATIENCE_S)) < 1_000_000


def test_output_within_the_limit_is_whole(start: Start) -> None:
    ran = follow(start(agent("flood", "3"), max_output=3_000_000))
    assert (len(ran.out), ran.exit.over_limit) == (3_000_000, None)


def test_who_opens_stdout_again_and_appends_overwrites_nothing(start: Start) -> None:
    assert follow(start(shell("echo one; echo two >> /dev/stdout; echo three"))).out == b"one\ntwo\nthree\n"


# --- how it ends


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        (("exit-with", "0"), 0),
        (("exit-with", "3"), 3),
        (("exit-with", "255"), 255),
        (("die", "SIGSEGV"), -signal.SIGSEGV),
        (("die", "SIGKILL"), -signal.SIGKILL),
    ],
)
def test_the_exit_says_how_the_agent_ended(start: Start, steps: tuple[str, ...], code: int) -> None:
    assert follow(start(agent(*steps))).end == (code, ())


def test_the_turn_ends_with_the_agent_though_a_child_holds_stdout(start: Start, pids: Pids) -> None:
    ran = follow(start(agent("grandchild", "+", "reply", "done")))
    assert ran.out == b"from the child\ndone\n"
    assert (ran.end, pids.alive()) == ((0, ("sleep",)), [])


def test_what_outlives_the_agent_is_ended_and_named(start: Start, pids: Pids) -> None:
    ran = follow(start(agent("child", "+", "daemon", "+", "tool")))
    assert ran.end == (0, ("sh", *["sleep"] * 4))
    assert len(pids.all()) == 6
    assert pids.alive() == []


def test_a_helper_that_ends_by_itself_in_an_instant_is_not_worth_a_note(start: Start) -> None:
    ends = (follow(start(shell("sleep 0.05 & exit 0"))).end for _ in range(20))
    assert (0, ()) in ends  # on a busy machine its instant may be long


@pytest.mark.parametrize("group", [True, False])
def test_the_soft_signal_goes_to_the_group_or_to_the_agent_alone(start: Start, group: bool) -> None:
    heard = "while ! [ -e heard ]; do sleep 0.02; done; " if group else ""
    script = "(trap 'echo caught; touch heard' TERM; {0}) & trap '{1}echo caught; exit 7' TERM; {0}"
    stop = StopRule(group=group, grace_s=PATIENT.grace_s)
    process = start(shell(script.format("echo ready; while :; do sleep 0.05; done", heard)), stop=stop)
    ran = follow(process, b"ready\nready\n", process.stop)
    assert (ran.out.count(b"caught"), ran.exit.code) == (2 if group else 1, 7)


def test_the_soft_signal_is_the_rules_own(start: Start) -> None:
    process = start(agent("obey", "5", "+", "hang"), stop=StopRule(signal.SIGHUP, grace_s=PATIENT.grace_s))
    assert follow(process, b"ready", process.stop).out == b"ready\ncaught SIGHUP\n"


def test_what_ignores_the_soft_signal_is_killed_after_its_grace(start: Start, pids: Pids) -> None:
    process = start(
        agent("tool", "+", "daemon", "+", "grandchild", "+", "deaf", "+", "hang"), stop=StopRule(grace_s=0.3)
    )
    ran = follow(process, b"deaf", process.stop)
    assert (ran.end, pids.alive()) == ((-signal.SIGKILL, ()), [])
    assert ran.seconds >= 0.3


def test_a_soft_stop_also_ends_children_in_sessions_of_their_own(start: Start, pids: Pids) -> None:
    process = start(agent("tool", "+", "daemon", "+", "grandchild", "+", "obey", "0", "+", "hang"), stop=PATIENT)
    ran = follow(process, b"ready", process.stop)
    assert (ran.end, pids.alive()) == ((0, ()), [])


def test_an_agent_that_somebody_has_stopped_hears_its_soft_signal(start: Start) -> None:
    process = start(agent("obey", "7", "+", "hang"), stop=PATIENT)

    def stop_it() -> None:
        os.kill(process.pid, signal.SIGSTOP)
        assert eventually(lambda: state(process.pid) == b"T")
        process.stop()

    assert follow(process, b"ready", stop_it).end == (7, ())


def test_a_hard_stop_waits_for_no_grace(start: Start) -> None:
    process = start(agent("obey", "0", "+", "hang"), stop=PATIENT)
    ran = follow(process, b"ready", lambda: process.stop(hard=True))
    assert (ran.out, ran.end) == (b"ready\n", (-signal.SIGKILL, ()))


def test_a_hard_stop_cuts_the_grace_of_a_soft_one_short(start: Start) -> None:
    async def main() -> tuple[int, tuple[str, ...]]:
        process = start(agent("deaf", "+", "hang"), stop=PATIENT)

        def stop_and_soon_kill() -> None:
            process.stop()
            asyncio.get_running_loop().call_later(0.2, lambda: process.stop(hard=True))

        return (await asyncio.wait_for(following(process, b"deaf", stop_and_soon_kill), PATIENCE_S)).end

    assert asyncio.run(main()) == (-signal.SIGKILL, ())


def test_stopping_twice_and_stopping_what_has_ended_is_harmless(start: Start) -> None:
    process = start(agent("obey", "4", "+", "hang"), stop=PATIENT)

    def stop_often() -> None:
        for _ in range(5):
            process.stop()

    ran = follow(process, b"ready", stop_often)
    assert ran.end == (4, ())
    process.stop()
    process.stop(hard=True)
    assert process.exit == ran.exit


def test_a_stop_that_crosses_the_end_keeps_the_exit_code(start: Start) -> None:
    process = start(("/bin/sh", "-c", "exit 6"))
    assert eventually(lambda: not lives(process.pid))
    process.stop()
    process.stop(hard=True)
    assert follow(process).end == (6, ())


# --- when something breaks


@pytest.mark.parametrize("kind", ["missing", "not executable", "folder", "no interpreter", "too long", "nul"])
def test_a_program_that_can_not_start_is_reported_in_words_and_leaves_nothing(
    start: Start, tmp_path: Path, kind: str
) -> None:
    program = tmp_path / "program"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    argv, words = {
        "missing": ((str(program),), "No such file or directory"),
        "not executable": ((str(program),), "Permission denied"),
        "folder": ((str(tmp_path),), "Permission denied"),
        "no interpreter": ((str(program),), "No such file or directory"),
        "too long": (("/bin/echo", "x" * 200_000), "Argument list too long"),
        "nul": (("/bin/echo", "a\0b"), "embedded null byte"),
    }[kind]
    if kind != "missing":
        program.write_text("#!/no/such/interpreter\n")
        program.chmod(0o755 if kind == "no interpreter" else 0o644)
    open_before, children_before = descriptors(), children()
    with pytest.raises(SpawnFailed) as caught:
        start(argv, scratch=scratch)
    assert words in str(caught.value)
    assert "Errno" not in str(caught.value)
    assert descriptors() == open_before
    assert eventually(lambda: children() <= children_before)
    assert not scratch.exists()


@pytest.mark.parametrize(
    ("cwd", "words"), [("missing", "No such file or directory"), ("file", "Not a directory"), ("nul\0", "null")]
)
def test_a_folder_that_can_not_be_entered_is_named(start: Start, tmp_path: Path, cwd: str, words: str) -> None:
    (tmp_path / "file").touch()
    open_before, children_before = descriptors(), children()
    with pytest.raises(SpawnFailed) as caught:
        start(("/bin/true",), cwd=tmp_path / cwd)
    assert words in str(caught.value)
    if cwd != "nul\0":
        assert str(tmp_path / cwd) in str(caught.value)
    assert descriptors() == open_before
    assert eventually(lambda: children() <= children_before)


def test_a_guardian_that_can_not_start_is_a_failed_start(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "GUARDIANS", Guardians())
    monkeypatch.setattr(sys, "executable", "/bin/false")
    open_before, children_before = descriptors(), children()
    with pytest.raises(SpawnFailed, match=r"^the guardian process ended before it could start the agent$"):
        start(("/bin/true",))
    assert descriptors() == open_before
    assert eventually(lambda: children() <= children_before)


def test_a_turn_folder_that_can_not_be_made_is_a_failed_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    open_before = descriptors()
    with pytest.raises(SpawnFailed, match="Not a directory"):
        launch(Launch(("/bin/true",), tmp_path, {}, b"", tmp_path / "file" / "turn"))
    assert descriptors() == open_before


def test_fifty_runs_leak_no_descriptor_and_no_child(tmp_path: Path) -> None:
    async def main() -> None:
        for _ in range(50):
            async for _ in launch(Launch(("/bin/echo", "x"), tmp_path, {}, b"in", tmp_path / "turn")).chunks():
                pass

    follow(launch(Launch(("/bin/true",), tmp_path, {}, b"", tmp_path / "turn")))  # whatever is opened once
    open_before, children_before = descriptors(), children()
    asyncio.run(main())
    assert descriptors() == open_before
    assert eventually(lambda: children() <= children_before)


def test_a_reader_that_stops_following_ends_the_agent(start: Start, pids: Pids) -> None:
    async def main() -> None:
        async with aclosing(start(agent("tool", "+", "reply", "x", "+", "hang")).chunks()) as chunks:
            async for _ in chunks:
                break

    children_before = children()
    asyncio.run(main())
    assert pids.alive() == []
    assert eventually(lambda: children() <= children_before)


def test_a_cancelled_task_ends_the_agent_without_blocking_the_loop(start: Start, pids: Pids) -> None:
    async def main() -> None:
        process = start(agent("tool", "+", "deaf", "+", "hang"))
        keeper = guardian_of(process)
        ready = asyncio.Event()
        task = asyncio.ensure_future(following(process, b"deaf", ready.set))
        await ready.wait()
        os.kill(keeper, signal.SIGSTOP)
        try:
            task.cancel()
            for _ in range(10):
                await asyncio.sleep(0.01)
            assert not task.done()  # it waits for the guardian, which cannot end yet
        finally:
            os.kill(keeper, signal.SIGCONT)
        with pytest.raises(asyncio.CancelledError):
            await task

    children_before = children()
    asyncio.run(main())
    assert pids.alive() == []
    assert eventually(lambda: children() <= children_before)


def test_an_agent_that_ends_at_once_is_followed_to_its_end(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both reports of its guardian, which waits for an answer to the second, come with one look at the socket."""

    found = process_module.first_report

    def late(control: socket.socket) -> tuple[dict[str, int], bytes]:
        assert eventually(lambda: b'"exit"' in control.recv(4096, socket.MSG_PEEK))
        return found(control)

    monkeypatch.setattr("teamchat.runners.child.process.first_report", late)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert follow(start(agent("exit-with", "3"), scratch=scratch)).end == (3, ())
    assert scratch.exists()


def test_a_killed_guardian_is_noticed_and_its_agents_tree_killed(start: Start, pids: Pids, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    before = children()
    process = start(agent("child", "+", "grandchild", "+", "reply", "half", "+", "hang"), scratch=scratch)
    keeper = guardian_of(process)
    ran = follow(process, b"half", lambda: os.kill(keeper, signal.SIGKILL))
    assert ran.end == (-signal.SIGKILL, ())
    assert b"half\n" in ran.out
    assert eventually(lambda: not pids.alive())
    assert eventually(lambda: children() <= before)


@pytest.mark.parametrize("inherited", ["limit", "environment"])
def test_a_killed_guardians_daemons_are_found_by_what_they_inherit(
    start: Start, pids: Pids, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inherited: str
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    env = {"PATH": os.environ["PATH"], "AGENT_PIDS": str(pids.file)}
    if inherited == "environment":
        monkeypatch.setattr(guardian, "limit_of", lambda *_: 1)
        env["TMPDIR"] = str(scratch)
    process = start(agent("daemon", "+", "reply", "half", "+", "hang"), env=marked(env), scratch=scratch)
    keeper = guardian_of(process)
    ran = follow(process, b"half", lambda: os.kill(keeper, signal.SIGKILL))
    assert ran.end == (-signal.SIGKILL, ())
    assert eventually(lambda: not pids.alive())


def test_the_limit_is_another_one_for_each_turn_and_too_high_to_matter() -> None:
    limits = {guardian.limit_of(f"/tmp/teamchat-{number:016x}".encode()) for number in range(1000)}
    assert len(limits) == 1000
    assert all(1 << 62 <= limit < 1 << 63 for limit in limits)


def test_what_is_dead_and_not_reaped_is_not_waited_for(tmp_path: Path) -> None:
    """Where the first process of a container reaps nobody, the guardian of a killed teamchat stays a zombie."""
    scratch = os.fsencode(tmp_path)
    mark = f"from teamchat.runners.child import guardian; guardian._mark({scratch!r})"
    command = [sys.executable, "-c", f"{mark}; print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as dead:
        assert dead.stdout
        dead.stdout.readline()
        assert guardian.marked(scratch) == [dead.pid]
        dead.kill()
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
        assert guardian.marked(scratch) == []


TRACES_ITS_GUARDIAN = """
import ctypes, os, time
with open(os.environ["AGENT_PIDS"], "w") as file:
    file.write(f"{os.getpid()}\\n")
ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0)  # PTRACE_ATTACH
print("half", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(no_tracing(), reason="needs to trace a process")
@pytest.mark.parametrize("when", ["told to stop", "left"])
def test_a_guardian_that_hears_nothing_is_replaced(
    start: Start, pids: Pids, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """A process that is traced takes no signal but SIGKILL, so an agent can make its guardian deaf."""
    monkeypatch.setattr(process_module, "DEAF_S", 0.1)
    before = children()
    process = start((sys.executable, "-I", "-S", "-c", TRACES_ITS_GUARDIAN), stop=StopRule(grace_s=0.1))

    async def leave() -> None:
        async with aclosing(process.chunks()) as chunks:
            await anext(chunks)

    if when == "left":
        asyncio.run(asyncio.wait_for(leave(), PATIENCE_S))
    else:
        assert follow(process, b"half", process.stop).end == (-signal.SIGKILL, ())
    assert eventually(lambda: not pids.alive())
    assert eventually(lambda: children() <= before)


@pytest.mark.parametrize("hard", [False, True])
def test_a_guardian_that_somebody_has_stopped_goes_on_when_it_gets_an_order(start: Start, *, hard: bool) -> None:
    process = start(agent("reply", "half", "+", "hang"), stop=PATIENT)
    keeper = guardian_of(process)

    def stop_both() -> None:
        os.kill(keeper, signal.SIGSTOP)
        assert eventually(lambda: state(keeper) == b"T")
        process.stop(hard=hard)

    assert follow(process, b"half", stop_both).exit.code == (-signal.SIGKILL if hard else -signal.SIGTERM)


def test_a_guardian_that_somebody_has_stopped_sees_the_end_of_its_reader(start: Start, pids: Pids) -> None:
    before = children()
    process = start(agent("reply", "x", "+", "hang"))
    keeper = guardian_of(process)

    async def main() -> None:
        async with aclosing(process.chunks()) as chunks:
            async for _ in chunks:
                os.kill(keeper, signal.SIGSTOP)
                assert eventually(lambda: state(keeper) == b"T")
                break

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
    assert pids.alive() == []
    assert eventually(lambda: children() <= before)


@pytest.fixture
def changed_guardian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes guardians do something else where they would say that the agent runs."""

    def change(instead: str) -> None:
        changed = tmp_path / "guardian.py"
        changed.write_text(Path(guardian.__file__).read_text().replace("self.report(pid=self.pid)", instead))
        monkeypatch.setattr(guardian, "__file__", str(changed))

    return change


def test_a_guardian_that_is_killed_before_it_can_say_so_leaves_no_agent(
    start: Start, changed_guardian: Callable[[str], None], tmp_path: Path
) -> None:
    changed_guardian("os.kill(os.getpid(), signal.SIGKILL)")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(SpawnFailed, match="the guardian process ended"):
        start(agent("hang"), env=marked({"TMPDIR": str(scratch)}), scratch=scratch)
    assert eventually(lambda: guardian.marked(os.fsencode(scratch)) == [])


def test_a_guardian_that_never_says_that_its_agent_runs_is_replaced(
    start: Start, changed_guardian: Callable[[str], None], pids: Pids, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed_guardian("time.sleep(600)")
    monkeypatch.setattr(process_module, "START_S", 1.0)
    monkeypatch.setattr(process_module, "DEAF_S", 0.1)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    before = children()
    with pytest.raises(SpawnFailed, match="timed out"):
        start(agent("hang"), scratch=scratch)
    assert (pids.alive(), guardian.marked(os.fsencode(scratch))) == ([], [])
    assert eventually(lambda: children() <= before)


def test_everything_is_gone_soon_after_teamchat_was_killed_whatever_the_grace(pids: Pids, tmp_path: Path) -> None:
    scratch, folder = tmp_path / "scratch", tmp_path / "turn"
    scratch.mkdir()
    (scratch / "file").touch()
    argv = agent("tool", "+", "daemon", "+", "grandchild", "+", "reply", "half", "+", "deaf", "+", "hang")
    program = f"""
import asyncio
from pathlib import Path
from teamchat.runners.base import StopRule
from teamchat.runners.child.process import Launch, launch
async def main():
    argv, env = {argv!r}, {marked({"AGENT_PIDS": str(pids.file)})!r}
    stop = StopRule(grace_s={PATIENT.grace_s})
    what = Launch(argv, Path("/"), env, b"", Path({str(folder)!r}), Path({str(scratch)!r}), stop=stop)
    async for chunk in launch(what).chunks():
        print(chunk.data.decode(), flush=True)
asyncio.run(main())
"""
    teamchat = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT)
    assert teamchat.stdout is not None
    with teamchat.stdout as out:
        for line in iter(out.readline, b""):
            if b"deaf" in line:
                break
        assert len(pids.alive()) == 6
        teamchat.kill()
        teamchat.wait()
    assert eventually(lambda: not pids.alive())
    assert eventually(lambda: not scratch.exists())
    assert (folder / "stdout").read_bytes().endswith(b"half\ndeaf\n")


@pytest.mark.parametrize("when", ["made", "filled", "failed"])
def test_killed_while_it_makes_the_private_folder_teamchat_leaves_none(tmp_path: Path, when: str) -> None:
    scratch = tmp_path / "scratch"
    program = f"""
import os, signal
from pathlib import Path
from teamchat.runners.child.process import Launch, launch
def prepare():
    Path({str(scratch)!r}).mkdir()
    if {when!r} != "made":
        Path({str(scratch / "file")!r}).write_text("x")
    if {when!r} == "failed":
        raise OSError
    os.kill(os.getpid(), signal.SIGKILL)
folder, scratch = Path({str(tmp_path / "turn")!r}), Path({str(scratch)!r})
launch(Launch({agent("hang")!r}, Path("/"), {{}}, b"", folder, scratch, prepare))
"""
    killed = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False, capture_output=True)
    code = 1 if when == "failed" else -signal.SIGKILL
    assert killed.returncode == code, killed.stderr
    assert eventually(lambda: not scratch.exists())
    assert (tmp_path / "turn" / "stdout").read_bytes() == FIRST_LINE


def test_a_process_that_was_never_followed_dies_with_its_object(tmp_path: Path, pids: Pids) -> None:
    what = Launch(agent("hang"), tmp_path, marked({"AGENT_PIDS": str(pids.file)}), b"", tmp_path / "turn")
    before = children()
    with pytest.warns(ResourceWarning):
        ChildProcess(what)
    assert eventually(lambda: children() <= before)
    assert pids.alive() == []
