"""The end of the program: `leave` of `teamchat/cli/app.py`."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import atexit, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from teamchat.cli.app import leave
from teamchat.cli.startup.report import prepare
prepare()
"""
PIPE = 64 * 1024  # bytes that a pipe holds


def started(script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", BEGIN + script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )


def test_what_is_buffered_waits_for_a_late_reader_of_a_full_pipe() -> None:
    program = started(f"sys.stdout.write('x' * {PIPE}); sys.stdout.flush(); sys.stdout.write('end'); leave(7)")
    with pytest.raises(subprocess.TimeoutExpired):
        program.wait(0.5)
    out, err = program.communicate(timeout=30)
    assert (out, err, program.returncode) == (b"x" * PIPE + b"end", b"", 7)


def test_what_is_buffered_for_a_closed_pipe_is_no_success() -> None:
    program = started("sys.stdout.write('x'); sys.stdin.read(); leave(0)")
    assert program.stdout is not None
    program.stdout.close()
    program.stdout = None
    program.communicate(timeout=30)
    assert program.returncode == 120


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("atexit.register(print, 'at exit'); leave(3)", b"at exit\n"),
        ("threading.Thread(target=lambda: (time.sleep(0.1), print('done'))).start(); leave(3)", b"done\n"),
        ("pool = ThreadPoolExecutor(1); pool.submit(print, 'idle now'); leave(3)", b"idle now\n"),
    ],
    ids=["at exit", "a thread at work", "an idle thread of a pool"],
)
def test_what_the_interpreter_waits_for_is_waited_for(script: str, printed: bytes) -> None:
    program = started(script)
    out, err = program.communicate(timeout=30)
    assert (out, err, program.returncode) == (printed, b"", 3)
