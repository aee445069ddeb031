"""Runs teamchat in processes that are killed by SIGKILL at a chosen step; a request a line on stdin, as JSON.

`{"args", "env", "cwd", "count", "last"}` runs the program, killed before its step number `last`, if there is one. With
`count` of "writes" every change of the store or of a file is a step, and so is the moment right after each commit;
with "calls" every call of a function of teamchat's own is one. The answer is `{"code", "steps", "err"}`.
`{"settle": seconds}` waits until nothing that was started lives any more; the answer is what still does.

Each process is forked from this one, which has imported all of the program: that takes milliseconds, not a start of
Python. This one is the subreaper of everything that outlives its teamchat, so that nothing can hide from `settle`.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import signal
import sqlite3
import struct
import sys
import tempfile
import time
import traceback
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import teamchat
from teamchat.cli.app import main
from teamchat.runners.child import guardian
from tests.forks import preload

CHANGES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "sqlite3.connect", "subprocess.Popen")
KEEPS = ("COMMIT", "INSERT", "UPDATE", "DELETE", "PRAGMA journal_mode")
PACKAGE = str(Path(teamchat.__file__).parent)
# how often they look is not the same twice
POLLING = tuple(f"{PACKAGE}/runners/child/{name}.py" for name in ("process", "supervisor"))

steps = mmap.mmap(-1, 8)  # shared with the process that is forked, so that it can be read when that one is dead
last = 0


def step() -> None:
    number = taken() + 1
    steps[:] = struct.pack("q", number)
    if number == last:
        os.kill(os.getpid(), signal.SIGKILL)


def taken() -> int:
    return int(struct.unpack("q", steps[:])[0])


def before_a_write(event: str, args: tuple[Any, ...]) -> None:
    created = event == "open" and args[2] & os.O_CREAT and not (isinstance(args[0], int) or os.path.lexists(args[0]))
    there = event == "os.mkdir" and Path(args[0]).is_dir()
    if created or (event in CHANGES and not there):
        step()


class Connection(sqlite3.Connection):
    """One whose commits are steps, both right before and right after."""

    def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:
        if not sql.startswith(KEEPS) or (self.in_transaction and sql != "COMMIT"):
            return super().execute(sql, values)
        step()
        cursor = super().execute(sql, values)
        step()
        return cursor


def at_a_call(frame: FrameType, event: str, _: Any) -> None:
    file = frame.f_code.co_filename
    if event == "call" and file.startswith(PACKAGE) and file not in POLLING:
        step()


def live(args: list[str], env: dict[str, str], cwd: str, count: str) -> None:
    """All of one process."""
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    tempfile.tempdir = None  # where the one that forked keeps its own
    sys.argv = ["teamchat", *args]
    if count == "writes":
        sqlite3.connect = partial(sqlite3.connect, factory=Connection)  # type: ignore[assignment]
        sys.addaudithook(before_a_write)
    else:
        sys.setprofile(at_a_call)
    main()


def run(args: list[str], env: dict[str, str], cwd: str, count: str, last_step: int) -> dict[str, object]:
    global last
    steps[:], last = bytes(8), last_step
    with tempfile.TemporaryFile() as err:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.dup2(err.fileno(), 2)
                os.dup2(os.open(os.devnull, os.O_RDWR), 1)
                os.dup2(1, 0)
                live(args, env, cwd, count)
            except SystemExit as end:
                code = int(end.code or 0)
            except BaseException:  # noqa: BLE001 (the process ends here, and must not go on as this one)
                traceback.print_exc()
            finally:
                sys.setprofile(None)
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        err.seek(0)
        return {"code": code, "steps": taken(), "err": err.read().decode(errors="replace")}


def settle(seconds: float) -> list[str]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.005)
        except ChildProcessError:
            return []
    return list(guardian.below(os.getpid(), guardian.processes()).values())


def serve() -> None:
    guardian.become_subreaper()
    preload()
    gc.freeze()  # a collection in a process that is forked would copy every page
    for line in sys.stdin:
        request = json.loads(line)
        if "settle" in request:
            answer: object = settle(request["settle"])
        else:
            answer = run(request["args"], request["env"], request["cwd"], request["count"], request["last"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
