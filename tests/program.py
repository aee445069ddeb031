"""The program under test, run as users run it: `cli` in a separate process, `run_here` in this one.

A separate process is forked from one that has imported the program (`forks.py`). `cli_exec` starts an interpreter.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path
from types import TracebackType
from typing import IO

from tests.forks import RUN, Program

ROOT = Path(__file__).parent.parent
TIMEOUT_S = 60.0


@cache
def fake(program: Path) -> tuple[str, ...]:
    """The command line of a fake, which is started thousands of times: compiled already, and without `site`."""
    SourceFileLoader("fake", str(program)).get_code("fake")  # writes what it has compiled, unless it was there
    compiled = cache_from_source(str(program))
    return (sys.executable, "-I", "-S", compiled if Path(compiled).exists() else str(program))


@dataclass(frozen=True)
class Result:
    """How the program ended. `out` and `err` are text; bytes that are not UTF-8 become surrogates."""

    code: int
    out: str
    err: str

    @property
    def raw(self) -> bytes:
        """Standard output, byte for byte."""
        return self.out.encode(errors="surrogateescape")


def argv(*args: str | os.PathLike[str]) -> list[str]:
    return [*RUN, *(os.fspath(arg) for arg in args)]


def cli(
    *args: str | os.PathLike[str],
    stdin: str | bytes | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Result:
    """Run the real program to its end. Without `stdin` its standard input is /dev/null; `env` is added."""
    process = Started(
        argv(*args),
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(env or {})},
        cwd=cwd,
    )
    with process:
        return ended(process, stdin.encode() if isinstance(stdin, str) else stdin)


def cli_exec(*args: str | os.PathLike[str]) -> Result:
    """Run the real program to its end in a new interpreter, which imports what it needs."""
    done = subprocess.run(argv(*args), stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False)
    return Result(done.returncode, _text(done.stdout), _text(done.stderr))


class Started(Program):
    """A running program. If a test fails inside its `with`, the program is killed at once."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            self.kill()
        super().__exit__(kind, error, at)


def start(
    *args: str | os.PathLike[str],
    env: Mapping[str, str] | None = None,
    program: Path | None = None,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.PIPE,
) -> Started:
    """Start the real program, or another Python `program`, in a new session; the caller ends it."""
    return Started(
        argv(*args) if program is None else [sys.executable, str(program), *argv(*args)[len(RUN) :]],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, **(env or {})},
        start_new_session=True,
    )


def ended(process: subprocess.Popen[bytes], stdin: bytes | None = None) -> Result:
    """Wait for a program that was started."""
    out, err = process.communicate(stdin, timeout=TIMEOUT_S)
    return Result(process.returncode, _text(out or b""), _text(err or b""))


def run_here(*args: str | os.PathLike[str], stdin: str | bytes | None = None) -> Result:
    """Run the program in this process: quick, but without signals. `stdin` is redirected from a file."""
    from teamchat.cli.app import run

    out, err = _Stream(), _Stream()
    given = contextlib.nullcontext() if stdin is None else _redirected(stdin)
    with given, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = run([os.fspath(arg) for arg in args])
        except SystemExit as end:  # shell completion exits by itself
            code = int(end.code or 0)
    return Result(int(code), out.text, err.text)


@contextlib.contextmanager
def _redirected(data: str | bytes) -> Iterator[None]:
    """Make this process read `data` from its standard input."""
    before, stream = os.dup(0), sys.stdin
    try:
        with tempfile.TemporaryFile() as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.seek(0)
            os.dup2(file.fileno(), 0)
        with open(0, closefd=False) as sys.stdin:
            yield
    finally:
        sys.stdin = stream
        os.dup2(before, 0)
        os.close(before)


class _Stream(io.TextIOWrapper):
    """Text and bytes written to it, in order, as `main` sets up the real ones."""

    def __init__(self) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)

    @property
    def text(self) -> str:
        return _text(self.bytes.getvalue())


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")
