"""Hostile agents, one small function each: `agents.py NAME`. What each must come to stands in its decorator.

Every one of them is run by `inside.py`, in namespaces that nothing gets out of. "answers": its reply `ANSWER` is
stored and the command ends with 0. "fails": no reply is stored and the command does not end with 0. "either": both are
right, as long as the two agree. `hangs`: it ends by its timeout, which is short.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import termios
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal, NamedTuple

Ends = Literal["answers", "fails", "either"]
ANSWER = b"the answer\n"
FOREVER_S = 3600
MEGABYTE = 1_000_000
ANOTHER_STORE = 'rm -rf "$STATE"/workspaces/*'


class Agent(NamedTuple):
    """`quick`: it is one of those that `make test` runs. `repair` undoes what nobody but a person can."""

    name: str
    act: Callable[[], None]
    ends: Ends
    like: str = "plain"
    hangs: bool = False
    quick: bool = False
    live: bool = False
    terminal: bool = False
    repair: str = ""


AGENTS: dict[str, Agent] = {}


def agent(ends: Ends, **facts: bool | str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def put(act: Callable[[], None]) -> Callable[[], None]:
        name = act.__name__.strip("_")
        AGENTS[name] = Agent(name, act, ends, **facts)  # type: ignore[arg-type]
        return act

    return put


# --- what they are made of


def say(data: bytes = ANSWER, stream: int = 1) -> None:
    while data:
        data = data[os.write(stream, data) :]


def forever() -> None:
    while True:
        time.sleep(FOREVER_S)


def own() -> Path:
    """Its private folder."""
    return Path(os.environ["TMPDIR"])


def output() -> Path:
    """The file that its standard output is."""
    return Path(str(Path("/proc/self/fd/1").readlink()).removesuffix(" (deleted)"))


def state() -> Path:
    """The folder of the workspace's store."""
    return output().parent.parent.parent


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def teamchat() -> int:
    return parent(os.getppid())


def background(act: Callable[[], None], *, quiet: bool = False) -> int:
    """A child in a session of its own that does something and then stays; back when it has done it."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid:
        os.close(theirs)
        os.read(ours, 1)
        os.close(ours)
        return pid
    try:
        os.setsid()
        if quiet:
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            os.dup2(1, 2)
        act()
        os.close(theirs)
        forever()
    finally:
        os._exit(0)


def daemon(then: Callable[[], None] = lambda: None, *, env: dict[str, str] | None = None) -> None:
    """Two forks, no open file, a program of its own that may have another environment."""
    ours, theirs = os.pipe()
    if os.fork():
        os.close(theirs)
        os.wait()
        os.read(ours, 1)
        os.close(ours)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    os.set_inheritable(theirs, False)
    os.chdir("/")
    then()
    for number in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    os.execve("/bin/sleep", ["sleep", str(FOREVER_S)], os.environ if env is None else env)  # noqa: S606


def daemon_in_namespace() -> None:
    subprocess.Popen(["unshare", "--user", "--pid", "--fork", "sleep", str(FOREVER_S)], start_new_session=True)


def event(**fields: object) -> None:
    say(json.dumps(fields).encode() + b"\n")


def nothing(*_: object) -> None:
    pass


# --- standard input


@agent("answers")
def never_reads() -> None:
    say()


@agent("answers", quick=True)
def closes_its_input() -> None:
    os.close(0)
    say()


@agent("answers")
def reads_half_of_its_input() -> None:
    os.read(0, 3)
    say()


@agent("answers")
def reads_its_input_byte_by_byte() -> None:
    while os.read(0, 1):
        pass
    say()


@agent("answers")
def reads_its_input_again_and_again() -> None:
    for _ in range(100):
        os.lseek(0, 0, os.SEEK_SET)
        os.read(0, 1 << 20)
    say()


@agent("answers", quick=True)
def writes_to_its_input() -> None:
    with suppress(OSError):
        os.write(0, b"x" * MEGABYTE)
        os.ftruncate(0, 0)
    say()


@agent("answers")
def makes_its_input_non_blocking_and_locks_it() -> None:
    fcntl.fcntl(0, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND)
    fcntl.flock(0, fcntl.LOCK_EX)
    say()


@agent("answers")
def puts_another_file_in_the_place_of_its_input() -> None:
    os.dup2(os.open("/dev/zero", os.O_RDONLY), 0)
    os.read(0, 1000)
    say()


# --- standard output


@agent("fails", quick=True)
def says_nothing() -> None:
    pass


@agent("fails")
def says_only_spaces() -> None:
    say(b" \n\t \r\n" * 1000)


@agent("fails", quick=True)
def says_only_escapes() -> None:
    say(b"\x1b[2J\x1b[31m\x1b]0;title\x07\x1b[0m" * 100)


@agent("fails")
def says_only_zero_width_spaces() -> None:
    say("\u200b\u200c\u200d\ufeff".encode() * 100)


@agent("fails")
def says_only_nuls() -> None:
    say(b"\0" * 100_000)


@agent("answers", quick=True)
def ends_in_the_middle_of_a_line() -> None:
    say(ANSWER.rstrip())


@agent("fails")  # it is longer than a reply may be
def writes_a_line_of_64_megabytes() -> None:
    for _ in range(64):
        say(b"x" * MEGABYTE)
    say(b"\n" + ANSWER)


@agent("answers", quick=True)
def writes_a_line_of_4_megabytes() -> None:
    say(b"x" * 4 * MEGABYTE + b"\n" + ANSWER)


@agent("fails")
def floods_its_output() -> None:
    block = b"y" * 99 + b"\n"
    while True:
        say(block * 20_000)


@agent("fails")
def floods_its_errors() -> None:
    while True:
        say(b"e" * 2 * MEGABYTE, 2)


@agent("answers", quick=True)
def writes_5_megabytes_of_errors() -> None:
    say(b"e" * 5 * MEGABYTE, 2)
    say()


@agent("answers", quick=True)
def writes_what_is_no_utf8() -> None:
    say(bytes(range(128, 256)) * 1000 + b"\xed\xa0\x80\xc0\xaf\xf8\n" + ANSWER)


@agent("answers")
def writes_utf16() -> None:
    say("\ufeffthe answer\n".encode("utf-16") + ANSWER)


@agent("answers", quick=True)
def writes_nuls() -> None:
    say(b"a\0b\0" * 1000 + b"\n" + ANSWER)


@agent("answers")
def writes_every_character_of_control() -> None:
    say(bytes(range(32)) * 1000 + "\u202e\u2066\x9b31m\x85\u2028".encode() * 100 + b"\n" + ANSWER)


@agent("answers", quick=True)
def floods_with_escapes() -> None:
    say(b"\x1b]0;owned\x07\x1b[2J\x1b[1;1H\x1b[?1049h\x1bP" * 10_000 + b"\x1b\\\n" + ANSWER)


@agent("answers")
def never_ends_an_escape() -> None:
    say(b"\x1b]0;" + b"x" * MEGABYTE + b"\x1b\\\n" + ANSWER)


@agent("answers")
def writes_byte_by_byte() -> None:
    for byte in b"word " * 1000:
        say(bytes([byte]))
    say()


@agent("answers")
def returns_the_carriage() -> None:
    say(b"99%\r" * 50_000 + b"\n" + ANSWER)


@agent("fails", quick=True)
def closes_its_output() -> None:
    os.close(1)
    os.close(2)


@agent("answers")
def closes_its_output_behind_its_answer() -> None:
    say()
    os.close(1)
    os.close(2)


@agent("fails")
def puts_another_file_in_the_place_of_its_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    say()


@agent("either", quick=True)
def opens_its_output_again() -> None:
    say(b"before\n")
    with Path("/proc/self/fd/1").open("wb") as again:
        again.write(ANSWER)


@agent("either", quick=True)
def truncates_its_output() -> None:
    say(b"x" * 100_000)
    os.ftruncate(1, 10)
    say()


@agent("answers")
def makes_its_output_a_sparse_file() -> None:
    say()
    with suppress(OSError):
        os.lseek(1, 0, os.SEEK_SET)
        os.pwrite(1, ANSWER, 0)


@agent("fails")
def makes_its_output_as_large_as_a_disk() -> None:
    os.ftruncate(1, 1 << 40)
    forever()


@agent("either")
def truncates_its_output_again_and_again() -> None:
    until = time.monotonic() + 1
    while time.monotonic() < until:
        say(b"x" * 10_000)
        os.ftruncate(1, 0)
    say()


@agent("either", quick=True)
def has_its_answer_written_after_its_end() -> None:
    def late() -> None:
        while os.getppid() == mine:
            time.sleep(0.001)
        say()

    mine = os.getpid()
    if os.fork() == 0:
        os.setsid()
        late()
        os._exit(0)


def half_of(text: str) -> Callable[[], None]:
    def act() -> None:
        say(text.encode()[: len(text) // 2])

    return act


for like, whole in (
    ("claude", '{"type": "result", "subtype": "success", "is_error": false, "result": "the answer"}'),
    ("codex", '{"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "the answer"}}'),
    ("gemini", '{"type": "message", "role": "assistant", "content": "the answer", "delta": true}'),
    ("opencode", '{"type": "text", "sessionID": "s", "part": {"messageID": "m", "text": "the answer"}}'),
):
    AGENTS[f"writes_half_an_event_of_{like}"] = Agent(
        f"writes_half_an_event_of_{like}", half_of(whole), "fails", like, quick=like == "claude"
    )


@agent("fails", like="claude", quick=True)
def speaks_of_an_end_that_has_no_answer() -> None:
    event(type="result", subtype="success", is_error=False, result="")


@agent("fails", like="claude")
def speaks_json_of_the_wrong_types() -> None:
    values: tuple[object, ...] = (None, 1, [], {}, "x", True, [[[]]], {"type": {}}, {"type": "result", "result": 7})
    for value in values:
        say(json.dumps(value).encode() + b"\n")
    event(type="result", subtype=["success"], is_error="no", result={"text": "the answer"}, usage=[1])


@agent("fails", like="codex")
def speaks_json_that_is_very_deep() -> None:
    say(b"[" * 200_000 + b"]" * 200_000 + b"\n")
    say(b'{"a":' * 100_000 + b"\n")


@agent("answers", like="claude")
def speaks_of_numbers_without_end() -> None:
    say(
        b'{"type": "result", "subtype": "success", "is_error": false, "result": "the answer", "total_cost_usd": 1e999,'
        b' "usage": {"input_tokens": ' + b"9" * 4000 + b', "output_tokens": -1}}\n'
    )


# --- its end


def dies_of(number: signal.Signals) -> Callable[[], None]:
    def act() -> None:
        say(b"half of the ans")
        with suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        time.sleep(1)
        os._exit(3)

    return act


STAYS = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)  # which stop it: see below
HARMLESS = (signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH)
for number in sorted(signal.Signals):
    if number not in (*STAYS, *HARMLESS):
        AGENTS[f"dies_of_{number.name}"] = Agent(
            f"dies_of_{number.name}",
            dies_of(number),
            "fails",
            quick=number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE, signal.SIGTERM),
        )


@agent("fails", quick=True)
def exits_with_255() -> None:
    say()
    os._exit(255)


@agent("fails")
def exits_with_1() -> None:
    say()
    os._exit(1)


@agent("fails")
def aborts_with_a_core() -> None:
    say()
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    os.abort()


@agent("answers", quick=True)
def exits_while_a_child_holds_its_output() -> None:
    background(nothing)
    say()


@agent("fails", hangs=True, quick=True)
def stops_itself() -> None:
    say(b"half")
    os.kill(os.getpid(), signal.SIGSTOP)
    forever()


@agent("fails", hangs=True)
def stops_itself_behind_its_answer() -> None:
    say()
    os.killpg(0, signal.SIGSTOP)
    forever()


@agent("fails", hangs=True, quick=True)
def is_deaf() -> None:
    for number in signal.valid_signals():
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    say(b"half")
    forever()


@agent("fails", hangs=True)
def hangs_without_a_word() -> None:
    for number in range(3, 100):
        with suppress(OSError):
            os.close(number)
    forever()


@agent("fails", hangs=True)
def hangs_with_all_files_closed() -> None:
    os.closerange(0, 100)
    forever()


@agent("fails", hangs=True)
def spins() -> None:
    say(b"half")
    while True:
        pass


@agent("fails", hangs=True, quick=True)
def answers_when_it_is_told_to_stop() -> None:
    def answer(*_: object) -> None:
        say()
        os._exit(0)

    signal.signal(signal.SIGTERM, answer)
    say(b"not yet\n")
    forever()


@agent("answers", quick=True)
def leaves_zombies() -> None:
    for _ in range(50):
        if os.fork() == 0:
            os._exit(0)
    say()


@agent("answers")
def ends_its_first_thread() -> None:
    def rest() -> None:
        time.sleep(0.1)
        say()
        os._exit(0)

    threading.Thread(target=rest).start()
    ctypes.CDLL(None).pthread_exit(None)


@agent("answers")
def becomes_another_program() -> None:
    say()
    os.execv("/bin/true", ["\x1b[31mteamchat"])  # noqa: S606


@agent("answers")
def is_called_like_its_guardian() -> None:
    ctypes.CDLL(None).prctl(15, b"a) Z 1 (", 0, 0, 0)
    background(lambda: ctypes.CDLL(None).prctl(15, b") Z 0 (", 0, 0, 0))
    say()


@agent("answers")
def lowers_all_its_limits() -> None:
    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_STACK):
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (16, 16))
    os.nice(19)
    say()


# --- its children


@agent("answers", quick=True)
def leaves_a_daemon() -> None:
    daemon()
    say()


@agent("answers", quick=True)
def leaves_a_daemon_without_its_environment() -> None:
    daemon(env={})
    say()


@agent("fails", hangs=True)
def hangs_with_a_daemon_without_its_environment() -> None:
    daemon(env={})
    say()
    forever()


@agent("answers", quick=True)
def leaves_a_daemon_that_is_deaf() -> None:
    def deaf() -> None:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)

    daemon(deaf)
    say()


@agent("answers")
def leaves_a_daemon_that_is_stopped() -> None:
    if os.fork() == 0:
        os.setsid()
        os.kill(os.getpid(), signal.SIGSTOP)
        forever()
    say()


@agent("answers")
def leaves_200_children() -> None:
    for _ in range(200):
        if os.fork() == 0:
            forever()
    say()


@agent("answers")
def leaves_a_child_that_takes_in_orphans() -> None:
    def take_in() -> None:
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
        for _ in range(5):
            daemon(env={})

    background(take_in)
    say()


@agent("answers")
def leaves_a_child_in_a_namespace_of_its_own() -> None:
    background(daemon_in_namespace, quiet=True)
    say()


@agent("answers")
def leaves_a_child_that_writes_on() -> None:
    if os.fork() == 0:
        os.setsid()
        while True:
            say(b"and more\n")
            time.sleep(0.001)
    say()


@agent("answers")
def leaves_children_that_spin() -> None:
    for _ in range(4):
        if os.fork() == 0:
            os.setsid()
            os.nice(19)
            while True:
                pass
    say()


def chain(seconds: float, pause: float) -> None:
    """A process that is another one every instant, each in a session of its own."""
    if os.fork():
        return
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        os.setsid()
        time.sleep(pause)
        if os.fork():
            os._exit(0)
    os._exit(0)


@agent("answers", quick=True)
def leaves_a_chain_of_forks() -> None:
    chain(60.0, 0.01)
    say()


@agent("answers")
def leaves_a_quick_chain_of_forks() -> None:
    chain(30.0, 0.0005)
    say()


@agent("answers")
def leaves_many_chains_of_forks() -> None:
    for _ in range(5):
        chain(30.0, 0.005)
    say()


@agent("answers")
def forks_a_tree() -> None:
    for _ in range(6):
        os.fork()
    if os.getpid() == os.getpgrp():
        say()
    else:
        time.sleep(60)


@agent("answers")
def starts_a_child_as_vfork_does() -> None:
    subprocess.Popen(["/bin/sleep", str(FOREVER_S)], start_new_session=True)
    say()


@agent("answers")
def has_many_threads() -> None:
    for _ in range(50):
        threading.Thread(target=forever, daemon=True).start()
    say()
    os._exit(0)


@agent("answers")
def leaves_a_child_on_a_terminal_of_its_own() -> None:
    _, theirs = os.openpty()
    name = os.ttyname(theirs)

    def take() -> None:
        fcntl.ioctl(os.open(name, os.O_RDWR), termios.TIOCSCTTY, 0)

    background(take)
    say()


@agent("answers", quick=True)
def leaves_a_child_that_is_traced() -> None:
    def traced() -> None:
        ctypes.CDLL(None).ptrace(0, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)

    if os.fork() == 0:
        if os.fork() == 0:
            traced()
            forever()
        forever()
    say()


@agent("either")
def kills_everybody() -> None:
    say()
    os.kill(-1, signal.SIGTERM)


# --- links, folders and files


@agent("answers", quick=True)
def puts_a_link_in_the_place_of_its_folder() -> None:
    own().rmdir()
    own().symlink_to(Path.cwd() / "victim")
    say()


@agent("answers")
def puts_a_file_in_the_place_of_its_folder() -> None:
    own().rmdir()
    own().write_text("file")
    say()


@agent("answers", quick=True)
def puts_a_fifo_in_the_place_of_its_folder() -> None:
    own().rmdir()
    os.mkfifo(own())
    say()


@agent("answers")
def removes_its_folder() -> None:
    own().rmdir()
    say()


@agent("answers")
def moves_its_folder_away() -> None:
    own().rename(own().with_name("moved"))
    say()
    Path(own().with_name("moved")).rmdir()


@agent("answers", quick=True)
def takes_all_permissions_of_its_folder() -> None:
    deep = own() / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "file").touch()
    for folder in (deep, deep.parent, own()):
        folder.chmod(0)
    say()


@agent("answers", quick=True)
def fills_its_folder_with_links() -> None:
    victim = Path.cwd() / "victim"
    for number in range(200):
        (own() / f"to folder {number}").symlink_to(victim)
        (own() / f"to file {number}").symlink_to(victim / "kept")
    say()


@agent("answers")
def makes_loops_of_links() -> None:
    for name, target in (("a", "b"), ("b", "a"), ("c", "."), ("d", ".."), ("e", "/"), ("f", "c/c/c/c")):
        (own() / name).symlink_to(target)
    say()


@agent("answers", quick=True)
def makes_hard_links_to_the_store() -> None:
    for file in state().glob("teamchat.db*"):
        (own() / file.name).hardlink_to(file)
    (own() / "kept").hardlink_to(Path.cwd() / "victim" / "kept")
    say()


def deep(levels: int) -> None:
    os.chdir(own())
    for _ in range(levels):
        os.mkdir("d")  # noqa: PTH102
        os.chdir("d")


@agent("answers", quick=True)
def makes_1100_folders_in_each_other() -> None:
    deep(1100)
    say()


@agent("answers")
def makes_10000_folders_in_each_other() -> None:
    deep(10_000)
    say()


@agent("answers")
def makes_a_deep_tree_without_permissions() -> None:
    folders = [os.open(own(), os.O_RDONLY)]
    for _ in range(200):
        os.mkdir("d", dir_fd=folders[-1])
        folders.append(os.open("d", os.O_RDONLY, dir_fd=folders[-1]))
    for folder in folders:
        os.fchmod(folder, 0)
    say()


@agent("answers", quick=True)
def makes_3000_files() -> None:
    for number in range(3000):
        (own() / str(number)).touch()
    say()


@agent("answers")
def makes_50000_files() -> None:
    for number in range(50_000):
        os.close(os.open(f"{own()}/{number}", os.O_CREAT))
    say()


@agent("answers")
def makes_a_wide_tree() -> None:
    for number in range(2000):
        (own() / str(number) / "in").mkdir(parents=True)
    say()


@agent("answers", quick=True)
def makes_a_huge_sparse_file() -> None:
    for folder in (own(), Path.cwd()):
        with (folder / "sparse").open("wb") as file:
            file.truncate(1 << 41)
    say()


@agent("answers", quick=True)
def makes_fifos_and_sockets() -> None:
    for folder in (own(), Path.cwd()):
        os.mkfifo(folder / "fifo")
        os.chdir(folder)
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("socket")
    say()


@agent("answers", quick=True)
def makes_unusual_names() -> None:
    for name in (b"\xff\xfe", b"\n", b"-rf", b" ", b"\x1b[2J", b"x" * 255, b".removed-1-0", b"*", b"..."):
        (own() / os.fsdecode(name)).mkdir()
        (own() / os.fsdecode(name) / os.fsdecode(name)).touch()
        (Path.cwd() / os.fsdecode(name)).touch()
    say()


@agent("answers")
def makes_folders_of_others_looks() -> None:
    for mode in (0o1777, 0o2777, 0o4000, 0o7000, 0o111, 0o222):
        folder = own() / oct(mode)
        folder.mkdir()
        (folder / "file").touch()
        folder.chmod(mode)
    say()


@agent("answers", quick=True)
def swaps_its_folders_for_links_meanwhile() -> None:
    victim = Path.cwd() / "victim"

    def swap() -> None:
        while True:
            with suppress(OSError):
                (own() / "in" / "it").mkdir(parents=True)
                (own() / "in" / "it").rename(own() / "out")
                (own() / "in" / "it").symlink_to(victim)
                (own() / "out").rmdir()

    if os.fork() == 0:
        os.setsid()
        swap()
    say()


@agent("answers")
def fills_its_folder_meanwhile() -> None:
    if os.fork() == 0:
        os.setsid()
        number = 0
        while True:
            number += 1
            with suppress(OSError):
                os.close(os.open(f"{own()}/{number}", os.O_CREAT))
    say()


@agent("answers")
def stays_in_its_folder() -> None:
    background(lambda: os.chdir(own()), quiet=True)
    say()


@agent("answers")
def holds_a_removed_file_open() -> None:
    file = (own() / "gone").open("wb")
    (own() / "gone").unlink()
    file.write(b"x" * MEGABYTE)
    background(nothing)
    say()


# --- terminals


def asks(prompt: bytes = b">>> ") -> bytes:
    say(prompt)
    return os.read(0, 100_000)


@agent("answers", terminal=True, quick=True)
def answers_on_a_terminal() -> None:
    asks()
    say()
    asks()


@agent("fails", terminal=True, hangs=True)
def never_shows_a_prompt() -> None:
    forever()


@agent("fails", terminal=True, hangs=True)
def never_shows_its_prompt_again() -> None:
    asks()
    say()
    forever()


@agent("either", terminal=True, quick=True)
def floods_with_prompts() -> None:
    asks()
    say(b">>> \n" * 5000 + ANSWER + b">>> \n" * 5000)
    asks()


@agent("either", terminal=True)
def changes_its_terminal() -> None:
    mode = termios.tcgetattr(0)
    mode[0] = mode[1] = mode[3] = 0
    mode[2] |= termios.HUPCL
    termios.tcsetattr(0, termios.TCSANOW, mode)
    asks()
    say()
    asks()


@agent("either", terminal=True)
def changes_the_size_of_its_terminal() -> None:
    asks()
    for size in ((0, 0), (1, 1), (65535, 65535), (24, 80)):
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    say()
    asks()


@agent("either", terminal=True, quick=True)
def writes_titles_on_its_terminal() -> None:
    asks()
    say(b"\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b[6n\x1b[c\x1bP+q544e\x1b\\" * 50 + ANSWER)
    asks()


@agent("either", terminal=True)
def uses_the_other_screen_of_its_terminal() -> None:
    asks()
    say(b"\x1b[?1049h\x1b[2J\x1b[1;1H" + ANSWER + b"\x1b[?1049l")
    asks()


@agent("fails", terminal=True)
def exits_on_its_terminal() -> None:
    say(b"no prompt\n")


@agent("fails", terminal=True)
def closes_its_terminal() -> None:
    asks()
    os.closerange(0, 3)


@agent("fails", terminal=True, hangs=True)
def stops_itself_on_its_terminal() -> None:
    asks()
    os.kill(os.getpid(), signal.SIGSTOP)
    forever()


@agent("fails", terminal=True, quick=True)
def dies_on_its_terminal() -> None:
    asks()
    say(b"half")
    os.kill(os.getpid(), signal.SIGKILL)


@agent("either", terminal=True)
def leaves_a_daemon_on_its_terminal() -> None:
    daemon(env={})
    background(nothing)
    asks()
    say()
    asks()


@agent("either", terminal=True)
def writes_bytes_on_its_terminal() -> None:
    asks()
    say(bytes(range(256)) * 100 + b"\n" + ANSWER)
    asks()


@agent("fails", terminal=True, hangs=True)
def holds_its_terminal() -> None:
    asks()
    fcntl.ioctl(0, termios.TIOCSTOP if hasattr(termios, "TIOCSTOP") else termios.TCXONC, 0)
    forever()


@agent("either", terminal=True)
def kills_its_typist() -> None:
    asks()
    say()
    os.kill(os.getppid(), signal.SIGKILL)
    forever()


# --- processes that stay (Claude's stream-json)


def turns() -> Iterator[dict[str, object]]:
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["type"] != "control_request":
            begin()
            yield asked


def begin(session: str = "one") -> None:
    event(type="system", subtype="init", model="scripted", session_id=session)


def result(text: str = "the answer", **fields: object) -> None:
    whole = {"type": "result", "subtype": "success", "is_error": False, "result": text, **fields}
    event(**whole, usage={"input_tokens": 1, "output_tokens": 1}, total_cost_usd=0.01)


@agent("answers", like="claude", live=True, quick=True)
def lives() -> None:
    for _ in turns():
        result()


@agent("answers", like="claude", live=True, quick=True)
def lives_and_ends_twice() -> None:
    for _ in turns():
        result()
        result("the answer again")


@agent("fails", like="claude", live=True, hangs=True)
def lives_and_never_ends() -> None:
    for _ in turns():
        forever()


@agent("either", like="claude", live=True)
def lives_and_changes_its_session() -> None:
    for number, _ in enumerate(turns()):
        begin(f"another {number}")
        result()


@agent("either", like="claude", live=True, quick=True)
def lives_and_answers_before_it_is_asked() -> None:
    begin()
    result("too early")
    for _ in turns():
        result()


@agent("either", like="claude", live=True)
def lives_and_answers_twice_at_once() -> None:
    for _ in turns():
        begin("two")
        result("of two")
        begin("one")
        result()


@agent("answers", like="claude", live=True, quick=True)
def lives_and_dies_behind_its_answer() -> None:
    for _ in turns():
        result()
        os.kill(os.getpid(), signal.SIGKILL)


@agent("fails", like="claude", live=True, quick=True)
def lives_and_dies_in_its_answer() -> None:
    for _ in turns():
        say(b'{"type": "assistant", "message": {"content": [{"type": "te')
        os.kill(os.getpid(), signal.SIGKILL)


@agent("fails", like="claude", live=True, hangs=True)
def lives_and_ends_with_half_a_line() -> None:
    for _ in turns():
        say(b'{"type": "result", "subtype": "success", "is_error": false, "result": "the answer"}')
        forever()


@agent("fails", like="claude", live=True, hangs=True)
def lives_and_never_reads() -> None:
    forever()


@agent("fails", like="claude", live=True)
def lives_and_closes_its_input() -> None:
    os.close(0)
    begin()


@agent("fails", like="claude", live=True)
def lives_and_has_no_answer() -> None:
    for _ in turns():
        result("")


@agent("fails", like="claude", live=True)
def lives_and_fails() -> None:
    for _ in turns():
        result("no", subtype="error_during_execution", is_error=True)


@agent("answers", like="claude", live=True)
def lives_and_writes_on() -> None:
    for _ in turns():
        result()
        if os.fork() == 0:
            for _ in range(20_000):
                say(b'{"type": "stream_event"}\n')
            os._exit(0)


@agent("answers", like="claude", live=True)
def lives_among_junk() -> None:
    for _ in turns():
        say(b"\xff\0{]\n" * 10_000 + b"x" * MEGABYTE + b"\n")
        result()


@agent("answers", like="claude", live=True, quick=True)
def lives_with_a_daemon() -> None:
    daemon(env={})
    for _ in turns():
        result()


@agent("answers", like="claude", live=True)
def lives_and_stops_itself() -> None:
    for _ in turns():
        result()
        os.kill(os.getpid(), signal.SIGSTOP)


@agent("answers", like="claude", live=True)
def lives_and_will_not_end() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for _ in turns():
        result()
        if os.fork() == 0:
            forever()
    forever()


@agent("answers", like="claude", live=True)
def lives_and_fills_its_folder() -> None:
    for _ in turns():
        deep(1100)
        result()


# --- attacks on teamchat itself


@agent("answers", quick=True)
def removes_its_output_file() -> None:
    output().unlink()
    say()


@agent("answers", quick=True)
def puts_a_link_in_the_place_of_its_output_file() -> None:
    file = output()
    file.unlink()
    file.symlink_to(Path.cwd() / "victim" / "kept")
    say()


@agent("answers")
def puts_a_fifo_in_the_place_of_its_output_file() -> None:
    file = output()
    file.unlink()
    os.mkfifo(file)
    say()


@agent("answers", quick=True)
def removes_its_turn() -> None:
    subprocess.run(["rm", "-rf", output().parent], check=False)
    say()


@agent("answers", quick=True)
def puts_a_link_in_the_place_of_its_turn() -> None:
    folder = output().parent
    folder.rename(own() / "turn")
    folder.symlink_to(Path.cwd() / "victim")
    say()


@agent("answers", repair='rm "$STATE"/workspaces/*/turns')
def puts_a_link_in_the_place_of_all_turns() -> None:
    turns = output().parent.parent
    turns.rename(own() / "turns")
    turns.symlink_to(Path.cwd() / "victim")
    say()


@agent("answers")
def takes_the_permissions_of_its_turn() -> None:
    output().parent.chmod(0)
    say()


@agent("either", repair='chmod 700 "$STATE"', quick=True)
def takes_the_permissions_of_the_state() -> None:
    say()
    state().parent.parent.chmod(0)


@agent("either", repair='chmod 600 "$STATE"/workspaces/*/teamchat.db*')
def takes_the_permissions_of_the_store() -> None:
    say()
    for file in state().glob("teamchat.db*"):
        file.chmod(0)


@agent("answers", quick=True)
def locks_the_store() -> None:
    with closing(sqlite3.connect(state() / "teamchat.db", isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        say()


@agent("answers", quick=True)
def has_a_daemon_lock_the_store() -> None:
    path = state() / "teamchat.db"
    kept: list[sqlite3.Connection] = []  # one that nothing refers to is closed at some time, and locks nothing

    def lock() -> None:
        kept.append(sqlite3.connect(path, isolation_level=None))
        kept[0].execute("BEGIN EXCLUSIVE")

    background(lock, quiet=True)
    say()


@agent("answers", quick=True)
def writes_junk_into_the_lock() -> None:
    for lock in state().glob("session-*.lock"):
        lock.write_bytes(b"process 1 (\x1b[31m\xff" + b"x" * 100_000)
    say()


@agent("answers")
def removes_the_lock() -> None:
    for lock in state().glob("session-*.lock"):
        lock.unlink()
    say()


@agent("answers", repair='rm -rf "$STATE"/workspaces/*/session-*.lock', quick=True)
def puts_a_fifo_in_the_place_of_the_lock() -> None:
    for lock in state().glob("session-*.lock"):
        lock.unlink()
        os.mkfifo(lock)
    say()


@agent("answers", repair='rm -rf "$STATE"/workspaces/*/session-*.lock')
def puts_a_folder_in_the_place_of_the_lock() -> None:
    for lock in state().glob("session-*.lock"):
        lock.unlink()
        lock.mkdir()
    say()


@agent("answers", quick=True)
def holds_the_lock() -> None:
    for lock in state().glob("session-*.lock"):
        lock.unlink()
        file = lock.open("w")
        fcntl.flock(file, fcntl.LOCK_EX)
        background(nothing)
    say()


@agent("either", quick=True)
def kills_its_guardian() -> None:
    say()
    os.kill(os.getppid(), signal.SIGKILL)


@agent("either", quick=True)
def kills_its_guardian_and_leaves_a_daemon() -> None:
    guardian = os.getppid()
    daemon(env={})
    say()
    os.kill(guardian, signal.SIGKILL)
    forever()


@agent("either")
def has_a_daemon_kill_the_guardian() -> None:
    guardian = os.getppid()
    daemon(lambda: os.kill(guardian, signal.SIGKILL), env={})
    say()


@agent("fails", quick=True)
def kills_teamchat() -> None:
    say(b"half")
    os.kill(teamchat(), signal.SIGKILL)
    forever()


def end_as(content: bytes) -> None:
    """Put something where teamchat keeps the end of a turn that its store could not take."""
    (output().parent / "ended.json.z").write_bytes(content)
    os.kill(teamchat(), signal.SIGKILL)
    forever()


@agent("fails", quick=True)
def writes_junk_as_its_end() -> None:
    end_as(zlib.compress(b'{"text": [], "events": [[1]], "outcome": {}, "vendor_session": {}}'))


@agent("fails")
def writes_a_bomb_as_its_end() -> None:
    deflate, zeros = zlib.compressobj(1), bytes(64 * MEGABYTE)
    end_as(b"".join(deflate.compress(zeros) for _ in range(40)) + deflate.flush())


@agent("fails")
def puts_a_fifo_in_the_place_of_its_end() -> None:
    os.mkfifo(output().parent / "ended.json.z")
    os.kill(teamchat(), signal.SIGKILL)
    forever()


@agent("fails", quick=True)
def kills_teamchat_and_its_guardian() -> None:
    """And leaves a daemon that nothing tells from others but what a process cannot drop by accident."""
    guardian, above = os.getppid(), teamchat()
    daemon(env={})
    os.kill(guardian, signal.SIGSTOP)
    os.kill(above, signal.SIGKILL)
    os.kill(guardian, signal.SIGKILL)
    forever()


@agent("fails")
def terminates_teamchat() -> None:
    say(b"half")
    os.kill(teamchat(), signal.SIGTERM)
    forever()


@agent("fails")
def interrupts_teamchat_twice() -> None:
    os.kill(teamchat(), signal.SIGINT)
    time.sleep(0.2)
    os.kill(teamchat(), signal.SIGINT)
    forever()


@agent("fails", hangs=True, quick=True)
def stops_its_guardian() -> None:
    os.kill(os.getppid(), signal.SIGSTOP)
    say(b"half")
    forever()


@agent("fails", hangs=True)
def traces_its_guardian() -> None:
    """A process that is traced hears no signal but SIGKILL."""
    ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0)
    say(b"half")
    forever()


@agent("either")
def takes_the_files_of_its_guardian() -> None:
    resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (0, 0))
    daemon(env={})
    say()


@agent("either")
def takes_the_files_of_teamchat() -> None:
    resource.prlimit(teamchat(), resource.RLIMIT_NOFILE, (0, 0))
    say()


@agent("either")
def takes_the_time_of_teamchat() -> None:
    say()
    resource.prlimit(teamchat(), resource.RLIMIT_CPU, (0, 0))
    forever()


@agent("either", quick=True)
def takes_the_file_sizes_of_teamchat() -> None:
    say()
    resource.prlimit(teamchat(), resource.RLIMIT_FSIZE, (0, 0))


@agent("either")
def takes_the_memory_of_teamchat() -> None:
    has = int(Path(f"/proc/{teamchat()}/statm").read_text().split()[0]) * resource.getpagesize()
    resource.prlimit(teamchat(), resource.RLIMIT_AS, (has + 4 * MEGABYTE, has + 4 * MEGABYTE))
    say(b"x" * 20 * MEGABYTE + b"\n" + ANSWER)


@agent("answers")
def stops_teamchat_for_a_while() -> None:
    above = teamchat()
    os.kill(above, signal.SIGSTOP)
    say()
    time.sleep(2)
    os.kill(above, signal.SIGCONT)


@agent("answers")
def opens_the_files_of_its_guardian() -> None:
    for number in range(32):
        for pid in (os.getppid(), teamchat()):
            with suppress(OSError):
                os.close(os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR | os.O_NONBLOCK))
    say()


def command(*words: str) -> None:
    env = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    subprocess.run([os.environ["PYTHON"], "-m", "teamchat", *words], env=env, check=False, capture_output=True)


@agent("either", quick=True)
def calls_stop() -> None:
    command("stop")
    say()


@agent("either", hangs=True)
def calls_send() -> None:
    command("send", "--session", "s1", "--no-wait", "--to", "good", "hi")
    say()


@agent("either", hangs=True)
def calls_send_and_waits() -> None:
    command("send", "--to", "good", "hi")
    say()


@agent("answers")
def calls_resume() -> None:
    command("resume", "--no-wait", "--drop")
    say()


@agent("answers")
def calls_sessions_delete() -> None:
    command("sessions", "delete", "s1", "--yes")
    say()


@agent("either", repair=ANOTHER_STORE)
def writes_junk_into_the_store() -> None:
    with (state() / "teamchat.db").open("r+b") as file:
        file.write(b"\xff" * 100)
    say()


@agent("either", repair=ANOTHER_STORE)
def puts_a_folder_in_the_place_of_the_store() -> None:
    for file in state().glob("teamchat.db*"):
        file.unlink()
    (state() / "teamchat.db").mkdir()
    say()


@agent("either", repair=ANOTHER_STORE)
def puts_a_fifo_in_the_place_of_the_store() -> None:
    for file in state().glob("teamchat.db*"):
        file.unlink()
    os.mkfifo(state() / "teamchat.db")
    say()


@agent("either", repair=ANOTHER_STORE)
def removes_the_store() -> None:
    for file in state().glob("teamchat.db*"):
        file.unlink()
    say()


@agent("either", quick=True)
def removes_the_whole_state() -> None:
    subprocess.run(["rm", "-rf", state().parent.parent], check=False)
    say()


@agent("answers", repair='chmod 700 "$TMPDIR"; rm -rf "$TMPDIR"/*', quick=True)
def takes_the_permissions_of_the_temporary_folder() -> None:
    say()
    own().parent.chmod(0)


@agent("answers")
def makes_folders_like_those_of_processes_that_stay() -> None:
    for number in range(5):
        folder = output().parent.parent / f"{number:016x}.live"
        folder.mkdir()
        os.mkfifo(folder / "stdout")
    say()


@agent("either")
def removes_the_log_of_the_store() -> None:
    for file in state().glob("teamchat.db-*"):
        file.unlink()
    say()


@agent("either")
def makes_folders_where_turns_come() -> None:
    for number in range(100):
        (output().parent.parent / f"{number:016x}").mkdir()
    say()


@agent("either", repair='rm -f "$STATE"/*.json')
def writes_junk_into_the_other_files() -> None:
    for name in ("trust.json", "cooldowns.json", "starts.json"):
        (state().parent.parent / name).write_bytes(b"\xff{]" * 100)
    say()


@agent("answers")
def changes_the_team_file_into_nothing() -> None:
    file = Path("teamchat.toml")
    text = file.read_bytes()
    file.write_bytes(b"\xff")
    say()
    file.write_bytes(text)


@agent("answers", terminal=False)
def sends_signals_to_teamchat() -> None:
    for number in (signal.SIGCONT, signal.SIGWINCH, signal.SIGCHLD, signal.SIGURG):
        os.kill(teamchat(), number)
        os.kill(os.getppid(), number)
    say()


def apart() -> bool:
    """Whether the first process that this one can see is the play of `inside.py`, whose end is the worst that can come.

    Some agents signal everybody, fill what they can write to or fork without an end: outside, that is the machine.
    """
    return b"tests.torture.inside" in Path("/proc/1/cmdline").read_bytes().split(b"\0")


if __name__ == "__main__":
    if not apart():
        say(b"agents.py: it runs only in the namespaces of tests/torture/inside.py\n", 2)
        os._exit(98)
    chosen = AGENTS[sys.argv[1]]
    try:
        chosen.act()
    except OSError as error:  # of an attack that this system does not let through
        say(f"{errno.errorcode.get(error.errno or 0)}: {error}\n".encode(), 2)
        os._exit(99)
    os._exit(0)
