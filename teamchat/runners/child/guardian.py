"""The guardian: one small process per agent that is its parent and subreaper, and kills it when necessary.

Each runs in an interpreter of its own (`command`), which starts in twenty milliseconds. It imports little: `json` would
take longer, and a script would be compiled at each start.

The first message is one byte with the open folder that the agent is to start in and the agent's streams; one byte
answers it. The first line says what to run, in `marshal`'s format and hexadecimal, and `go` starts it. In between
teamchat makes the turn's private folder, which the guardian already knows. It answers in JSON, for an agent could write
there: `{"pid": N}` and, when everything is over, `{"exit": code, "left": [names]}`. Then it obeys the lines `stop` (the
CLI's own soft signal, SIGKILL after its grace) and `kill`. A closed socket also means `stop`: that is how agents die
when teamchat is killed. An order may have a lease, until when the agent may run: `until N` sets it anew, and when it is
over the guardian ends the agent by itself, also if teamchat is stopped or the machine has slept meanwhile. With `done`
as the last line teamchat removes the turn's private folder itself; without it the guardian does. The guardian's own end
closes the socket, which no other process has.

Agent CLIs start their tools in sessions of their own, so a process group is not enough: as child subreaper (Linux) the
guardian inherits every orphan of the tree and finds them all by their parents. Without a subreaper (macOS) it looks at
the tree before it ends anything, and remembers.
"""

from __future__ import annotations

import marshal
import os
import select
import signal
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

POLL_S = 0.005
LOOK_S = 0.25  # between two looks at a lease: `select` does not count the sleep of a machine
SETTLE_S = 0.25  # helpers of a CLI may outlive it for an instant; that is not worth a note
END_S = 2.0  # how long to insist on SIGKILL: a process in an uninterruptible wait cannot be ended
FIRST_PID = 2  # the lowest number of a process that is one of ours
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)  # orders come through the socket alone
STARTED = "import sys; sys.path.append(sys.argv[1]); import guardian; guardian.main(int(sys.argv[2]))"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # from <sys/prctl.h>
DESCRIPTORS = 4  # descriptors given to a guardian: a folder and three streams
INT_BYTES = 4
MARK_BITS = 59  # the bits of a turn's limit; those above say how many turns are around it
MARKS = (1 << MARK_BITS) - 55  # a prime
OUTERMOST, INNERMOST = 15, 8  # the bits above of a turn that no other one is around, and of the deepest one
GO, UNTIL = b"go", b"until "
PS_READS = ("TZ", "LANG", "LC_ALL", "LC_CTYPE", "LC_TIME", "COMMAND_MODE")
ABANDONED_GRACE_S = 1.0  # without teamchat nobody reads the rest: the tree must end within two seconds


def command(control: int) -> tuple[str, ...]:
    """Build the command line of a guardian that is to inherit this socket."""
    return (sys.executable, "-I", "-S", "-B", "-c", STARTED, os.path.dirname(__file__), str(control))  # noqa: PTH120


def become_subreaper() -> bool:
    """Become the parent of every orphan below this process. Return False where the system has no subreapers."""
    return sys.platform == "linux" and _prctl(PR_SET_CHILD_SUBREAPER, 1)


def boot_time() -> float:
    """Return seconds that go on while the machine sleeps, which `time.monotonic` leaves out."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _prctl(option: int, value: int) -> bool:
    from ctypes import CDLL

    failed: int = CDLL(None).prctl(option, value, 0, 0, 0)
    return not failed


def wake_at_child_end() -> socket.socket:
    """Make a socket that becomes readable when a child ends. It exists before the first child, so no end is missed."""
    wake, wake_write = socket.socketpair()
    wake.setblocking(False)
    wake_write.setblocking(False)
    signal.set_wakeup_fd(wake_write.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return wake


def _numbers() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 (pathlib takes long to load)


def processes() -> dict[int, tuple[int, str]]:
    """List every process that is not dead: pid -> (parent, name)."""
    if sys.platform == "linux":
        return dict(filter(None, (read_stat(name) for name in _numbers())))
    import subprocess

    with subprocess.Popen(["/bin/ps", "-axo", "pid=,ppid=,stat=,comm="], env=_of_ps(), stdout=subprocess.PIPE) as ps:
        rows = [line.decode(errors="replace").split(None, 3) for line in ps.stdout or ()]
    return {
        int(row[0]): (int(row[1]), row[-1].strip().rpartition("/")[2])
        for row in rows
        if not row[2].startswith("Z") and int(row[0]) != ps.pid
    }


def _of_ps() -> dict[str, str]:
    """Build the environment of ps: variables that say how it writes a time. A guardian cannot import `for_child`."""
    return {name: os.environ[name] for name in PS_READS if name in os.environ}


def read_stat(pid: str) -> tuple[int, tuple[int, str]] | None:
    head, _, tail = _read(f"/proc/{pid}/stat").rpartition(b")")
    if not tail:
        return None  # it has ended since
    fields = tail.split()
    state, parent, threads = fields[0], fields[1], fields[17]
    if state == b"Z" and threads == b"1":
        return None  # already dead; it only has to be reaped
    return int(pid), (int(parent), head.partition(b"(")[2].decode(errors="replace"))


def is_stopped(pid: int) -> bool:
    """Whether a process does nothing because of a signal, or of who traces it."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[:1] in ([b"T"], [b"t"])


def named(pid: int) -> str | None:
    """Name the process `PID@START`, which no later process with its number has; None where no process has it."""
    if sys.platform == "linux":
        # by `self`, as the /proc of another namespace has this process under another number
        start = _start("self" if pid == os.getpid() else pid)
        return f"{pid}@{start}" if start else None
    import subprocess

    ps = subprocess.run(["/bin/ps", "-o", "lstart=", "-p", str(pid)], env=_of_ps(), capture_output=True, check=False)
    return f"{pid}@{ps.stdout.decode(errors='replace').strip()}" if ps.returncode == 0 else None


def number_here(name: str) -> int | None:
    """Find the number that the process of this name (see `named`) has here; None where it cannot be seen.

    A process in a container has another number outside of it, and none in other containers.
    """
    number, _, start = name.partition("@")
    if named(int(number)) == name:
        return int(number)
    level = len(_numbers_of("self")) - 1  # more than 0 where /proc is that of a namespace around this one
    for pid in _numbers() if level >= 0 else ():
        numbers = _numbers_of(pid)
        if number in numbers[-1:] and _start(pid) == start and (not level or _namespace(pid) == _namespace("self")):
            return int(numbers[level])
    return None


def _start(pid: int | str) -> str:
    """Read when a process began, in ticks since the machine did; empty where no process has the number."""
    tail = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return tail[19].decode() if tail else ""


def _numbers_of(pid: str) -> list[str]:
    """Read the numbers of a process in its namespaces, from that of /proc inwards."""
    return _read(f"/proc/{pid}/status").partition(b"\nNSpid:")[2].partition(b"\n")[0].decode().split()


def _namespace(pid: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")  # noqa: PTH115 (pathlib takes long to load)
    except OSError:  # it has ended, or belongs to another user
        return pid


def limit_of(scratch: bytes, depth: int = 0) -> int:
    """Compute a limit of real-time computing, in microseconds, that no process reaches; it differs for each turn.

    Every process of the turn inherits it, even if its parents, session, files and environment change. `depth` is the
    number of turns around the turn: a limit can only be lowered, so the limit of an inner turn is lower.
    """
    return (OUTERMOST - depth << MARK_BITS) + int.from_bytes(scratch, "big") % MARKS


def depth_of(pid: int | str) -> int | None:
    """Count the turns around the turn whose limit the process has; None where its limit is that of no turn."""
    line = _read(f"/proc/{pid}/limits").partition(b"Max realtime timeout")[2].partition(b"\n")[0].split()
    level = int(line[1]) >> MARK_BITS if len(line) > 1 and line[1].isdigit() else 0
    return OUTERMOST - level if INNERMOST <= level <= OUTERMOST else None


def _mark(scratch: bytes) -> None:
    """Give this process, and so all that it starts, the limit that identifies its turn (Linux)."""
    if sys.platform == "linux":
        import resource

        outer = depth_of("self")
        limit = limit_of(scratch, 0 if outer is None else min(outer + 1, OUTERMOST - INNERMOST))
        try:
            resource.setrlimit(resource.RLIMIT_RTTIME, (limit, limit))
        except (OSError, ValueError):
            return  # a lower limit is set; the environment identifies the turn


def marked(scratch: bytes) -> list[int]:
    """List the live processes of the turn with this private folder: by their limit, or by their first environment.

    Empty where there is no /proc.
    """
    entry = b"TMPDIR=" + scratch
    limits = [b" %d " % limit_of(scratch, depth) for depth in range(OUTERMOST - INNERMOST + 1)]
    return [
        pid
        for pid in (processes() if sys.platform == "linux" else ())
        if any(map(_read(f"/proc/{pid}/limits").__contains__, limits))
        or entry in _read(f"/proc/{pid}/environ").split(b"\0")
    ]


def _read(path: str) -> bytes:
    """Read a file of /proc; empty if its process has ended, or belongs to another user."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (pathlib costs start-up)
            return file.read()
    except OSError:
        return b""


def below(root: int, table: dict[int, tuple[int, str]]) -> dict[int, str]:
    """Find the descendants of `root`: pid -> name. A number below 2 has none, as every process descends from it."""
    descendants: dict[int, str] = {}
    frontier = {root} if root >= FIRST_PID else set()
    while frontier:
        frontier = {pid for pid, (parent, _) in table.items() if parent in frontier and pid not in descendants}
        descendants.update({pid: table[pid][1] for pid in frontier})
    return descendants


def send_signal(pid: int, number: int, *, group: bool = False) -> None:
    """Send a signal to a process, or to the group with its number, unless it has ended.

    Nothing is sent to a number below 2. The system takes 0 and -1 for many processes, and 1 is the machine's first one.
    """
    if pid < FIRST_PID:
        return
    try:
        (os.killpg if group else os.kill)(pid, number)
    except (ProcessLookupError, PermissionError):
        return  # it has ended, or changed its user: nothing more can be done


class Guardian:
    """Owns one agent from its first instruction to the death of its last descendant."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.inherits = become_subreaper()
        self.childless = False
        self.buffer = b""
        self.abandoned = False
        self.status: int | None = None
        self.pid = 0
        self.seen: dict[int, str] = {}
        self.wake = wake_at_child_end()
        self.stop_signal, self.stop_group, self.grace = signal.SIGTERM, True, 2.0
        self.until: float | None = None  # by `boot_time`, when the lease is over
        self.lapse_grace = 0.0
        self.lapsed = False

    def report(self, **message: object) -> None:
        try:
            self.control.sendall(in_json(message).encode() + b"\n")
        except OSError:
            self.abandoned = True

    def read_line(self, timeout: float | None) -> bytes | None:
        """Read one line from teamchat; `b""` when the socket is closed, None if nothing came in time."""
        while b"\n" not in self.buffer:
            if not select.select([self.control], [], [], timeout)[0]:
                return None
            try:
                data = self.control.recv(65536)
            except OSError:
                data = b""
            if not data:
                self.abandoned = True
                return b""
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    def start(self, order: dict[str, Any], folder: int) -> bool:
        self.stop_signal, self.stop_group, self.grace = order["signal"], order["group"], order["grace"]
        if lease := order.get("lease"):
            self.until, self.lapse_grace = lease
        argv = order["argv"]
        try:
            os.fchdir(folder)
            defaults = signal.valid_signals()
            self.pid = os.posix_spawn(argv[0], argv, order["env"], setsid=True, setsigmask=[], setsigdef=defaults)
        except (OSError, ValueError) as error:
            self.report(failed=getattr(error, "strerror", None) or str(error))
            return False
        self.report(pid=self.pid)
        return True

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.status = os.waitstatus_to_exitcode(status)

    def watch(self) -> None:
        """Wait for the agent's end, an order, or the end of the lease."""
        longest = None if self.until is None else LOOK_S
        while self.status is None:
            if b"\n" not in self.buffer and self.wake in select.select([self.control, self.wake], [], [], longest)[0]:
                self.wake.recv(4096)
            if (line := self.read_line(0)) is not None:
                self.obey(line)
            self.reap()
            if self.status is None and self.until is not None and boot_time() > self.until:
                self.lapsed = True
                self.end(soft=True, grace=min(self.grace, self.lapse_grace))

    def obey(self, line: bytes) -> None:
        """Obey `until`, `kill` and `stop`; any other line, and the end of all lines, mean `stop` too."""
        if line.startswith(UNTIL):
            self.until = float(line.removeprefix(UNTIL))
            return
        grace = min(self.grace, ABANDONED_GRACE_S) if self.abandoned else self.grace
        self.end(soft=line != b"kill", grace=grace)

    def tree(self) -> dict[int, str]:
        """List the live processes of the agent's tree: below this process, or seen there before."""
        if self.childless and self.inherits:
            return {}  # avoids looking at all processes of the system, which may be many
        table = processes()
        known = {pid: name for pid, name in self.seen.items() if table.get(pid, (0, ""))[1] == name}
        self.seen = known | below(os.getpid(), table)
        return self.seen

    def end(self, *, soft: bool, grace: float = 0.0) -> None:
        """End the agent step by step: soft signal, grace, SIGKILL to the group and to every remaining descendant."""
        self.tree()
        if soft:
            send_signal(self.pid, self.stop_signal, group=self.stop_group)
            send_signal(self.pid, signal.SIGCONT, group=self.stop_group)  # a stopped process reacts to nothing else
            until = time.monotonic() + grace
            while self.status is None and time.monotonic() < until:
                if self.abandoned:
                    time.sleep(POLL_S)
                elif self.read_line(POLL_S) in (b"kill", b""):
                    break
                self.reap()
        if self.status is None:
            send_signal(self.pid, signal.SIGKILL, group=True)
        self.kill_tree()
        if self.status is None:
            self.status = -signal.SIGKILL  # it cannot be killed, and the turn does not wait for it

    def is_alone(self) -> bool:
        """Return whether the socket was closed without `done`: then the guardian removes the private folder."""
        while (line := self.read_line(None)) and line != b"done":
            pass
        return not line

    def kill_tree(self) -> None:
        until = time.monotonic() + END_S
        while (alive := self.tree()) and time.monotonic() < until:
            for pid in alive:
                send_signal(pid, signal.SIGKILL)
            time.sleep(POLL_S)
            self.reap()
        self.reap()

    def end_leftovers(self) -> list[str]:
        """End what outlived the agent. Returns the names of these processes."""
        until = time.monotonic() + SETTLE_S
        while (left := self.tree()) and time.monotonic() < until:
            time.sleep(POLL_S)
            self.reap()
        if left:
            self.kill_tree()
        return sorted(left.values())


def in_json(message: dict[str, Any]) -> str:
    """Write a report as JSON. Most have numbers and an empty list, which need no import."""
    if all(isinstance(value, int) or value == [] for value in message.values()):
        return str(message).replace("'", '"')
    import json

    return json.dumps(message)


def order_of(line: bytes) -> dict[str, Any]:
    """Read a first line. It comes only from teamchat, which has this interpreter's `marshal`."""
    return dict(marshal.loads(bytes.fromhex(line.decode())))  # noqa: S302


def order_line(order: dict[str, Any]) -> bytes:
    """Write the first line for a guardian. Arguments and variables are bytes, whatever the locale."""
    return marshal.dumps(order).hex().encode() + b"\n"


def received(control: socket.socket, number: int) -> list[int]:
    """Receive the descriptors that come with the next byte; none if the socket is closed."""
    byte, ancillary, _, _ = control.recvmsg(1, socket.CMSG_SPACE(number * INT_BYTES))
    return [descriptor for _, _, data in ancillary for descriptor in memoryview(data).cast("i")] if byte else []


def guard(control: int) -> None:
    """Be the guardian of one agent."""
    os.set_inheritable(control, False)
    guardian = Guardian(socket.socket(fileno=control))
    if not (descriptors := received(guardian.control, DESCRIPTORS)):
        return
    guardian.control.sendall(b"+")
    folder, *streams = descriptors
    os.set_inheritable(folder, False)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    line = guardian.read_line(None)
    if not line:
        return
    order = order_of(line)
    if order["remove"]:
        _mark(order["remove"])
    if guardian.read_line(None) == GO and guardian.start(order, folder):
        guardian.watch()
        lapsed = {"lapsed": 1} if guardian.lapsed else {}
        guardian.report(exit=guardian.status, left=guardian.end_leftovers(), **lapsed)
    if order["remove"] and guardian.is_alone():
        from pathlib import Path

        sys.path.append(str(Path(__file__).absolute().parents[3]))  # -I leaves it out
        from teamchat.runners.child import removal

        removal.remove(order["remove"])  # the next command finds what cannot be removed


def main(control: int) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        _prctl(PR_SET_PDEATHSIG, signal.SIGCONT)  # if an agent has stopped it, it ends with teamchat all the same
    os.chdir("/")
    guard(control)
    os._exit(0)  # an interpreter takes milliseconds to take itself apart
