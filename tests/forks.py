"""Starts the program under test in milliseconds: a server that has imported it forks a process for each start.

A start of Python and the imports of `teamchat send` take ten times as long as what most tests do with the program. What
the program makes once and keeps (patterns, schemas, commands) is there, too: the server has sent a message. Each
process is a child of the one that asks (CLONE_PARENT), with the streams, folder, environment and session that
`subprocess` gives a new one. From there on it runs `python -m teamchat`, and it ends as any interpreter does.

What an interpreter reads before it runs anything cannot be forked: `Program` starts another interpreter for that.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import platform
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

RUN = (sys.executable, "-m", "teamchat")
CLONE = {"x86_64": 56, "aarch64": 220}  # the number of the system call
CLONE_PARENT = 0x8000
OWN, PROGRAMS = "teamchat.", ("__main__", "templates")  # of its modules, those that run when they are imported
WARMING = """\
[[members]]
name = "max"
agent = "sh"
[[members]]
name = "sarah"
agent = "sh"
[agents.sh]
command = ["sh", "-c", "cat > /dev/null; echo Fine."]
"""
LAZY = ("asyncio", "rich.markdown", "sqlite3", "typer._click._textwrap", "typer.rich_utils")
READ_AT_START = ("PYTHON", "LANG", "LC_", "TZ", "LD_", "MALLOC_", "GLIBC_")  # variables that begin like this
READ_AT_IMPORT = ("FORCE_COLOR", "PY_COLORS", "TERMINAL_WIDTH", "GITHUB_ACTIONS")  # by `typer.rich_utils`
SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGTSTP)
SIZE = 8  # bytes of a number
THREADS_END_S = 10.0  # after a run
ONE_BY_ONE = threading.RLock()  # for the threads of a test that start programs at the same time


class Server:
    """The process that forks, as the process that asks sees it."""

    def __init__(self) -> None:
        self.began_with = read_at_start(os.environ)
        self.control, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def fork(self, request: Mapping[str, object], streams: Sequence[int]) -> int:
        """Start a process with these standard streams; its pid."""
        data = json.dumps(request).encode()
        with ONE_BY_ONE:
            socket.send_fds(self.control, [len(data).to_bytes(SIZE, "big")], streams)
            self.control.sendall(data)
            return int.from_bytes(received(self.control, SIZE), "big")

    def close(self) -> None:
        self.control.close()
        self.process.wait()


@cache
def _server() -> Server:
    return Server()


def server() -> Server:
    """The one of this process, started when it is first needed."""
    with ONE_BY_ONE:
        return _server()


def close() -> None:
    """End the server, if there is one."""
    if _server.cache_info().currsize:
        server().close()
        _server.cache_clear()


def read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    """What an interpreter and its libraries read once, when they start."""
    return {name: value for name, value in env.items() if name.startswith(READ_AT_START + READ_AT_IMPORT)}


def can_fork(env: Mapping[str, str]) -> bool:
    """Whether a process with this environment behaves the same when it is forked."""
    known = sys.platform == "linux" and platform.machine() in CLONE
    ignored = any(signal.getsignal(number) is signal.SIG_IGN for number in SIGNALS)
    return known and not ignored and read_at_start(env) == server().began_with


class Program(subprocess.Popen[bytes]):
    """A `Popen` that forks `python -m teamchat` where that makes no difference but time."""

    def _execute_child(self, args: Sequence[str], *rest: Any) -> None:
        code = subprocess.Popen._execute_child.__code__  # type: ignore[attr-defined]
        given = dict(zip(code.co_varnames[2 : code.co_argcount], rest, strict=True))
        env = os.environ if given["env"] is None else given["env"]
        simple = not (given["preexec_fn"] or given["pass_fds"] or given["shell"])
        if not (simple and tuple(args[: len(RUN)]) == RUN and can_fork(env)):
            super()._execute_child(args, *rest)  # type: ignore[misc]
            return
        streams = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        streams = [own if stream == -1 else stream for own, stream in enumerate(streams)]
        self.pid = forked(args[len(RUN) :], env, given["cwd"], streams, session=given["start_new_session"])
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in pipes))  # type: ignore[attr-defined]


def forked(
    args: Sequence[str],
    env: Mapping[str, str],
    cwd: str | os.PathLike[str] | None,
    streams: Sequence[int],
    *,
    session: bool,
    terminal: bool = False,
) -> int:
    """Start the program with these arguments; with `terminal` its input is the terminal of its session. Its pid."""
    request = {
        "args": list(args),
        "env": dict(env),
        "cwd": os.path.abspath(cwd or os.curdir),  # noqa: PTH100 (bytes that are no UTF-8 stay)
        "session": session,
        "terminal": terminal,
        "umask": umask(),
    }
    return server().fork(request, streams)


def umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# --- in the server


def received(control: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (more := control.recv(size - len(data))):
            raise EOFError
        data += more
    return data


def fork_beside() -> int:
    """As `os.fork`, but the child is a child of this process's parent."""
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = int(ctypes.PyDLL(None).syscall(CLONE[platform.machine()], CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0))
    (ctypes.pythonapi.PyOS_AfterFork_Parent if pid else ctypes.pythonapi.PyOS_AfterFork_Child)()
    return pid


def requested(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork for each request. Returns in the children alone: what each is to be, and its standard streams."""
    while True:
        size, streams, _, _ = socket.recv_fds(control, SIZE, 3)
        if not size:
            sys.exit()
        request = json.loads(received(control, int.from_bytes(size, "big")))
        pid = fork_beside()
        if not pid:
            control.close()
            return request, streams
        control.sendall(pid.to_bytes(SIZE, "big"))
        for stream in streams:
            os.close(stream)


def become(request: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Make this process what `subprocess` makes of a new one."""
    if request["session"]:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if request["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        new = os.fdopen(number, "w" if number else "r", encoding=old.encoding, errors=old.errors, closefd=False)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 (as `python -m` does)
    sys.argv[1:] = request["args"]


def preload() -> None:
    """Import all that the program may import, and build its commands: a child finds it done."""
    import teamchat
    from teamchat.cli import app

    for module in pkgutil.walk_packages(teamchat.__path__, OWN):
        if not any(part in PROGRAMS for part in module.name.split(".")):
            importlib.import_module(module.name)
    for name in LAZY:
        importlib.import_module(name)
    for name in app.COMMANDS:
        app._command(name)
    with tempfile.TemporaryDirectory() as folder:
        warm_up(folder)
    tempfile.tempdir = None  # every child has its own


def warm_up(folder: str) -> None:
    """Send messages in a world of their own: a child finds made what the program makes once, such as its schemas."""
    from teamchat.cli.app import run
    from teamchat.runners.child.guardians import GUARDIANS

    env, cwd, quiet = dict(os.environ), os.getcwd(), io.StringIO()  # noqa: PTH109 (bytes that are no UTF-8 stay)
    os.environ.update(dict.fromkeys(("HOME", "TEAMCHAT_HOME", "TMPDIR"), folder))
    os.chdir(folder)
    stdin, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # requests may come there, which are no message
    with open("teamchat.toml", "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(WARMING)
    try:
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            codes = [run(["send", "--trust", text]) for text in ("[NEXT: max] Go", "Go")]
            codes += [run([command]) for command in ("show", "log", "sessions")]
    finally:
        os.environ.clear()
        os.environ.update(env)
        os.chdir(cwd)
        os.dup2(stdin, 0)
        os.close(stdin)
        os.close(nothing)
    assert not any(codes), quiet.getvalue()
    GUARDIANS.dismiss()
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join(THREADS_END_S)  # a run does not wait for those that have nothing more to do
    assert threading.active_count() == 1


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    preload()
    gc.freeze()  # a collection in a child would copy every page
    become(*requested(control))
    try:
        runpy.run_module("teamchat", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, int):
            finish(end.code)
        raise


def finish(code: int) -> None:
    """End as an interpreter does, but without taking apart what was imported, which would copy every page of it.

    It returns where the streams cannot be flushed, of which the interpreter makes an exit code of its own.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
