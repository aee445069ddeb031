"""Starts agents: each under its guardian, with regular files for stdin and stdout, and a pipe for stderr.

Regular files keep output whole. Claude and Gemini throw away unread pipe output when they exit, and after a crash of
teamchat a file still holds the partial text. The prompt is complete before the process starts, so no writer can block
on an agent that never reads. The end of the turn is the end of the process, never the end of a stream.

A program that opens such a file by name (`> /dev/stdout`) empties it. Nothing prevents that, so the file begins with a
line of ours, and a turn whose line is gone fails. Stderr, which scripts open by name far more often, is a pipe: opening
that again loses nothing. Its output is written to a file, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import json
import math
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

from teamchat.runners.agent_events import Failure, FailureKind
from teamchat.runners.child import guardian
from teamchat.runners.child.guardians import GUARDIANS, Guardian, end
from teamchat.runners.child.running import (
    FIRST_LINE,
    Chunk,
    CutShort,
    Exit,
    FolderReplaced,
    Launch,
    Running,
    SpawnFailed,
    start_error,
)
from teamchat.runners.environment import for_child

_HOW = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC  # Linux can enter unreadable folders


def open_folder(path: Path, real: Path | None = None) -> int:
    """Open the folder at `path`, which must be the one at `real` if that is given, and return its descriptor.

    Raises `FolderReplaced`, and `OSError` if there is no such folder.
    """
    folder = os.open(path, _HOW)
    if real is not None and (now := _path_of(folder, path)) != real:
        os.close(folder)
        raise FolderReplaced(f"its folder {path} was {real}, and now is {now}")
    return folder


def _path_of(folder: int, path: Path) -> Path:
    """Find the path of an open folder; by its `path` where the system cannot tell."""
    try:
        if sys.platform == "linux":
            return Path(f"/proc/self/fd/{folder}").readlink()
        return Path(os.fsdecode(fcntl.fcntl(folder, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0")))
    except (OSError, AttributeError):
        return Path(os.path.realpath(path))


POLL_S = 0.02  # between two looks at the output: an agent's turn takes seconds
READ_BYTES = 128 * 1024  # bytes per read, so that a flood of short lines leaves time for others
DRAIN_S = 30.0  # how long the rest of a flood is read; short lines can cost much more to read than to write
SETTLE_S = 5.0  # how long a guardian may take to end a tree whose teamchat was killed; it takes two seconds
DEAF_S = 10.0  # how long a guardian may take to answer on a busy machine, beyond the time of its work
START_S = 30.0  # how long the guardian may take to start the agent; it takes milliseconds
PIPE_BYTES = 1 << 20  # room for unread stderr: the most that Linux gives without rights
EMPTIED = Failure(
    FailureKind.AGENT,
    "emptied its own standard output by opening it again, so its reply is not whole: "
    "write to it with >> /dev/stdout, >&1 or tee -a",
)


class ChildProcess:
    """An agent under its guardian."""

    def __init__(self, launch: Launch) -> None:
        self.started = time.monotonic()
        self.exit: Exit | None = None
        self.pid = 0
        self.folder = launch.folder
        self.stdin: int | None = None  # the input of a process that stays; whoever started it writes there
        self._launch = launch
        self._buffer = b""
        self._hurried = self._was_stopped = False
        self._deaf_at = math.inf  # when a guardian that was told to end its tree counts as deaf
        self._limit = self._left = launch.max_output  # bytes that may be written, and bytes that may still be read
        self._readers: dict[Literal["out", "err"], BinaryIO] = {}
        self._piped: tuple[int, BinaryIO] | None = None  # the end of stderr's pipe, and the file for what it has
        try:
            self._guardian, self._control = self._guarded()
        except FolderReplaced:
            self._close()
            raise
        except (OSError, ValueError) as error:
            self._close()
            raise SpawnFailed(start_error(error)) from error
        try:
            self._begin()
            report, self._buffer = first_report(self._control)  # the agent runs; this takes a few milliseconds
            self._control.setblocking(False)
            self.pid = report["pid"]
        except (OSError, ValueError) as error:
            self._abort()
            raise SpawnFailed(start_error(error)) from error

    def _guarded(self) -> Guardian:
        """Start the guardian."""
        make_private(self._launch.folder)
        with contextlib.ExitStack() as files:
            cwd = open_folder(self._launch.cwd, self._launch.real_cwd)
            files.callback(os.close, cwd)
            if self._launch.starts_in:
                cwd = open_folder(self._launch.starts_in)
                files.callback(os.close, cwd)
            streams = [files.enter_context(stream) for stream in (self._stdin(), self._stdout(), self._stderr())]
            return GUARDIANS.guard(cwd, [stream.fileno() for stream in streams])

    def _stdin(self) -> BinaryIO:
        if self._launch.stays:
            theirs, self.stdin = os.pipe()
            os.set_blocking(self.stdin, False)
            return os.fdopen(theirs, "rb")
        path = self._launch.folder / "stdin"
        stdin = os.fdopen(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600), "w+b")
        path.unlink()  # the agent inherits it, and nobody else needs it
        stdin.write(self._launch.stdin)
        stdin.seek(0)
        return stdin

    def close_stdin(self) -> None:
        if self.stdin is not None:
            os.close(self.stdin)
            self.stdin = None

    def _stdout(self) -> BinaryIO:
        path = self._launch.folder / "stdout"
        new = path.with_suffix(".new")  # nobody who follows the turn finds half of the first line
        file = _create(new)
        fcntl.flock(file, fcntl.LOCK_EX)  # inherited, so held until the whole tree has ended: `settle`
        file.write(FIRST_LINE)
        new.replace(path)
        self._readers["out"] = path.open("rb", buffering=0)
        self._readers["out"].seek(len(FIRST_LINE))
        self._limit += len(FIRST_LINE)
        return file

    def _stderr(self) -> BinaryIO:
        """Make the stream for stderr: a file, for a process that stays, else a pipe.

        Nobody reads the pipe of a process that stays between two turns.
        """
        path = self._launch.folder / "stderr"
        file = _create(path)
        self._readers["err"] = path.open("rb", buffering=0)
        if self._launch.stays:
            return file
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        self._piped = ours, file
        with contextlib.suppress(AttributeError, OSError):  # macOS has none; a user has only so much of it
            fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return os.fdopen(theirs, "wb")

    def _take_stderr(self) -> None:
        """Write the pipe's output to the file, at most `READ_BYTES`."""
        if self._piped:
            ours, file = self._piped
            with contextlib.suppress(OSError):  # nothing is there, or the disk is full
                file.write(os.read(ours, READ_BYTES))

    def _begin(self) -> None:
        """Tell the guardian what to run, byte for byte, and let it start that when the turn's private folder is made.

        The guardian knows the folder before it exists, so that nothing is left where teamchat is killed in between.
        """
        launch = self._launch
        order = {
            "argv": [os.fsencode(argument) for argument in (*launch.through, *launch.argv)],
            "env": {os.fsencode(name): os.fsencode(value) for name, value in for_child(launch.env).items()},
            "signal": launch.stop.signal.value,
            "group": launch.stop.group,
            "grace": launch.stop.grace_s,
            "remove": os.fsencode(launch.scratch) if launch.scratch else None,
            "lease": (launch.lease.until, launch.lease.grace_s) if launch.lease else None,
        }
        self._control.settimeout(START_S)
        self._control.sendall(guardian.order_line(order))
        launch.prepare()
        self._control.sendall(guardian.GO + b"\n")

    def stop(self, why: Failure | None = None, *, hard: bool = False) -> None:
        del why
        self._hurried = self._hurried or hard
        self._signal("kill" if hard else "stop")

    def renew(self, until: float) -> None:
        """Let its lease end at that `boot_time`. Any thread may.

        A guardian that cannot hear it is woken. One that stays stopped is killed, and then its agent: nobody would
        end that in time.
        """
        stays_stopped, self._was_stopped = self._was_stopped, guardian.is_stopped(self._guardian.pid)
        if self._was_stopped:
            self._wake()
            if stays_stopped:
                self._guardian.kill()
        with contextlib.suppress(OSError):  # it may have ended by itself
            self._control.send(guardian.UNTIL + f"{until}\n".encode())

    def over(self) -> None:
        """Do nothing: the turn ends when the process exits."""

    def end_input(self) -> bool:
        return False

    def _signal(self, what: Literal["stop", "kill"]) -> None:
        with contextlib.suppress(OSError):  # it may have ended by itself
            self._control.send(what.encode() + b"\n")
        self._wake()
        grace = self._launch.stop.grace_s if what == "stop" else 0.0
        self._deaf_at = min(self._deaf_at, time.monotonic() + grace + guardian.END_S + DEAF_S)

    def _wake(self) -> None:
        """Wake a guardian stopped by SIGSTOP, so that it reads its orders."""
        self._guardian.send_signal(signal.SIGCONT)

    async def chunks(self) -> AsyncGenerator[Chunk | CutShort, None]:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(self._control, self._take_report, ended)
        try:
            while True:
                over = self.exit  # looked up before reading: what was written until then is read below
                quiet = True
                self._take_stderr()
                for stream, reader in self._readers.items():
                    if data := read_more(reader, self._left):
                        self._left -= len(data)
                        quiet = False
                        yield Chunk(stream, data, time.monotonic() - self.started)
                if over and (quiet or self._hurried or self._drained_enough(over)):
                    first = os.pread(self._readers["out"].fileno(), len(FIRST_LINE), 0)
                    if over.code == 0 and first != FIRST_LINE:  # any other end has a reason of its own
                        yield CutShort(EMPTIED, time.monotonic() - self.started)
                    return
                await (_first_of(ended, POLL_S) if quiet else asyncio.sleep(0))
                self.poll()
        finally:
            loop.remove_reader(self._control)
            self._release()
            while not await self._guardian_ends():
                self._replace_guardian()
            end(self._guardian, self._control)

    async def _guardian_ends(self) -> bool:
        """Wait for the guardian's end, which closes its socket. Return False if it takes too long."""
        try:
            async with asyncio.timeout(_longest_end()):
                while await asyncio.get_running_loop().sock_recv(self._control, 4096):
                    pass
        except TimeoutError:
            return False
        except ConnectionError:
            return True
        return True

    def _take_report(self, ended: asyncio.Event) -> None:
        """Take the last report when it comes: looking at the files may begin before the output is read."""
        self.poll()
        if self.exit:
            asyncio.get_running_loop().remove_reader(self._control)
            ended.set()

    def _drained_enough(self, over: Exit) -> bool:
        """Whether there was time enough to read all output up to its limit."""
        return over.over_limit is not None and time.monotonic() - self.started > over.seconds + DRAIN_S

    def poll(self) -> None:
        """Take the guardian's last report, or notice that the guardian itself was killed; look at the output's size."""
        if self.exit:
            return
        flooded = sum(os.fstat(reader.fileno()).st_size for reader in self._readers.values()) > self._limit
        if flooded:
            self._signal("kill")  # what was written up to the limit is read all the same
        gone = False
        try:
            data = self._control.recv(65536)
            self._buffer, gone = self._buffer + data, not data
        except BlockingIOError:
            pass  # its last report may have come with the first one
        except OSError:
            gone = True
        limit = self._launch.max_output if flooded else None
        if b"\n" in self._buffer:
            report = json.loads(self._buffer)
            seconds, lapsed = time.monotonic() - self.started, "lapsed" in report
            self.exit = Exit(report["exit"], tuple(report["left"]), limit, seconds, lapsed=lapsed)
        elif gone:
            self._kill_unguarded()
            self.exit = Exit(-signal.SIGKILL, (), limit, time.monotonic() - self.started)
        elif time.monotonic() > self._deaf_at:
            self._guardian.kill()

    def begin_turn(self) -> int:
        """Give this turn of a kept process its own output limit. Output written between turns is ignored.

        Returns the offset in its stdout at which the turn begins.
        """
        for reader in self._readers.values():
            reader.seek(0, os.SEEK_END)
        self._left = self._launch.max_output
        self._limit = self._left + sum(reader.tell() for reader in self._readers.values())
        return self._readers["out"].tell()

    def _replace_guardian(self) -> None:
        """Kill an unresponsive guardian (for instance, one traced by the agent) and clean up in its place."""
        self._guardian.kill()
        if self.exit is None and self.pid:
            self._kill_unguarded()

    def _kill_unguarded(self) -> None:
        """End the remains of the agent's tree that can still be found: its guardian was killed."""
        tree = guardian.below(self.pid, guardian.processes())
        guardian.send_signal(self.pid, signal.SIGKILL, group=True)
        for pid in tree:
            guardian.send_signal(pid, signal.SIGKILL)
        self._sweep()

    def _sweep(self) -> None:
        if self._launch.scratch:
            sweep(self._launch.scratch)

    def _release(self) -> None:
        """Send the guardian its last line, after which it ends whatever still runs."""
        with contextlib.suppress(OSError):
            if self.exit:
                self._control.send(b"done\n")
            self._control.shutdown(socket.SHUT_WR)
        self._wake()
        self._close()

    def _close(self) -> None:
        self.close_stdin()
        for reader in self._readers.values():
            reader.close()
        if self._piped:
            ours, file = self._piped
            self._piped = None
            os.close(ours)
            file.close()

    def _abort(self) -> None:
        """Clean up after a failed start, even if the guardian did not end by itself."""
        self._release()
        self._control.settimeout(_longest_end())
        try:
            while self._control.recv(4096):
                pass
        except TimeoutError:
            self._replace_guardian()
        except ConnectionError:
            pass
        end(self._guardian, self._control)
        self._sweep()  # the guardian may have been killed when it had just started the agent


def first_report(control: socket.socket) -> tuple[dict[str, int], bytes]:
    """Read the guardian's first report, and the bytes behind it. Blocks. Raises `OSError`."""
    data = b""
    while b"\n" not in data:
        if not (more := control.recv(4096)):
            raise ConnectionResetError
        data += more
    line, _, rest = data.partition(b"\n")
    report = json.loads(line)
    if "failed" in report:
        raise OSError(report["failed"])
    return report, rest


def _longest_end() -> float:
    """Return how many seconds a guardian takes to end everything that still runs when its socket is closed."""
    return guardian.ABANDONED_GRACE_S + guardian.END_S + DEAF_S


def make_private(folder: Path) -> None:
    """Make the folder of a turn, and the folder of all turns, for the user alone if they are missing."""
    with contextlib.suppress(FileExistsError):
        folder.parent.mkdir(mode=0o700, parents=True)  # separately: parents that mkdir makes do not get the mode
    folder.mkdir(mode=0o700, exist_ok=True)


def _create(path: Path) -> BinaryIO:
    """Create a file of output. O_APPEND keeps children from writing over each other."""
    return os.fdopen(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND, 0o600), "ab", buffering=0)


async def _first_of(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, at most that long."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def read_more(reader: BinaryIO, most: int) -> bytes:
    """Read the new bytes of a file of output since the last read, in pieces of `READ_BYTES` or fewer."""
    size = min(READ_BYTES, most)
    data = reader.read(size)
    if not data and os.fstat(reader.fileno()).st_size < reader.tell():
        reader.seek(0)  # it was truncated, as `> /dev/stdout` in a script does
        data = reader.read(size)
    return data


def foreground(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> int:
    """Let a program have the terminal until it ends; its exit code, as a shell has it (128 and more for a signal).

    Keys such as Ctrl-C are for the program alone, Ctrl-Z stops both, and what ends teamchat is passed on to it. Blocks;
    for the main thread only. Raises `SpawnFailed`.
    """
    pid = 0

    def pass_on(number: int, _frame: object) -> None:
        if pid and number in (signal.SIGTERM, signal.SIGHUP):
            for target in (*guardian.below(pid, guardian.processes()), pid):  # Gemini's parent process ignores it
                guardian.send_signal(target, number)

    # a handler and not SIG_IGN, which the program would inherit; on Ctrl-Z teamchat stops once the program has, or it
    # would go on before it, find it stopped still, and stop again
    numbers = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, pass_on) for number in numbers}
    try:
        child = subprocess.Popen(argv, cwd=cwd, env=for_child(env))
        pid = child.pid
        while os.WIFSTOPPED(status := os.waitpid(pid, os.WUNTRACED)[1]):
            os.kill(os.getpid(), signal.SIGSTOP)
            guardian.send_signal(pid, signal.SIGCONT)
    except (OSError, ValueError) as error:
        raise SpawnFailed(start_error(error)) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    child.returncode = os.waitstatus_to_exitcode(status)
    return 128 - child.returncode if child.returncode < 0 else child.returncode


def open_output(folder: Path, name: str = "stdout") -> BinaryIO:
    """Open a file of a turn. Raises `OSError` if an agent put something else in its place."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.fdopen(os.open(folder / name, flags), "rb", buffering=0)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder / name))
    return file


def settle(folder: Path) -> None:
    """Wait until the processes of the turn whose output is in `folder` have ended, after teamchat was killed.

    Their guardian ends them. The wait keeps a retry from overlapping with their last writes. Blocks.
    """
    until = time.monotonic() + SETTLE_S
    with open_output(folder) as file:
        while time.monotonic() < until:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return
            time.sleep(POLL_S)


def sweep(scratch: Path) -> None:
    """Kill the remains of the turn with this private folder, if its guardian was killed as well.

    A daemon has no parent left; it is recognised by the mark that it inherited. Blocks for a moment.
    """
    until = time.monotonic() + guardian.END_S
    while (left := guardian.marked(os.fsencode(scratch))) and time.monotonic() < until:
        for pid in left:
            guardian.send_signal(pid, signal.SIGKILL)
        time.sleep(POLL_S)


def launch(what: Launch) -> Running:
    """Start a real process, or reuse one that was kept running. Raises `SpawnFailed`."""
    return what.stays.turn(what) if what.stays else ChildProcess(what)
