"""Runs the command of a check under a guardian, and judges how it ended.

A check is green by its exit code 0 alone. An end that says nothing about the work is not red: a missing program, a
signal from elsewhere, a full disk, a person.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from signal import Signals
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.agents import CLIS
from teamchat.core.check import LARGEST_OUTPUT, Check, CheckResult, NotRun
from teamchat.core.files.room import is_full
from teamchat.core.text.clean import told
from teamchat.patterns import regex
from teamchat.runners.child.command import run as run_program
from teamchat.runners.child.process import ChildProcess
from teamchat.runners.child.running import FIRST_LINE, Chunk, Exit, Launch, SpawnFailed
from teamchat.runners.child.supervisor import Alarm, Stopper, limit_in_words
from teamchat.runners.environment import GIT_LOCAL, for_child, is_secret
from teamchat.runners.untrusted.file_changes import FileChanges, NoCheckpoint

SHELL = ("/bin/sh", "-c")
ONE_STREAM = (*SHELL, 'exec 2>&1; exec "$@"', "sh")  # one file for both streams keeps the order of what is written
OWN = "TEAMCHAT_"  # teamchat's own variables begin so
NOT_PASSED_ON = frozenset({"CLAUDECODE"}).union(GIT_LOCAL, *(row.keys for row in CLIS))
MARK_BYTES = 64  # room for the line about what is left out
CRASHES = frozenset({Signals.SIGSEGV, Signals.SIGABRT, Signals.SIGBUS, Signals.SIGFPE, Signals.SIGILL, Signals.SIGSYS})
"""Signals that a program gets for its own faults."""
ENDS_NOTHING = frozenset(
    {
        *(Signals.SIGCHLD, Signals.SIGCONT, Signals.SIGURG, Signals.SIGWINCH),
        *(Signals.SIGSTOP, Signals.SIGTSTP, Signals.SIGTTIN, Signals.SIGTTOU),
    }
)
"""Signals that kill no process: 128 plus such a number is an exit code like any other."""
NO_PROGRAM = {126: "exit code 126: a program cannot be run", 127: "exit code 127: a program was not found"}
EMPTIED = (
    "emptied its own output by opening it again (> /dev/stdout or > /dev/stderr), so that is not whole: "
    "write to it with >&1, >&2 or >> /dev/stdout"
)

_NUMBER = regex(r"[0-9]{1,15}")
_MATCHING = """
import json, re, sys
last = None
for last in re.finditer(sys.argv[1], sys.stdin.buffer.read().decode(), re.MULTILINE):
    pass
groups = last and ([group for group in last.groups() if group] if last.re.groups else [last[0]])
print(json.dumps(groups))
"""
"""Prints the groups of the last match of a pattern in what it reads; without groups all that is matched."""
LONGEST_MATCH_S = 20.0

_Cut: TypeAlias = Literal["interrupted", "late"]


class CheckRun(Struct, frozen=True):
    """A run of a check, with at most `LARGEST_OUTPUT` bytes of its output.

    A longer output is its beginning and its end, with a line between that says how many bytes are left out. A recorded
    one has the `changes` of the files.
    """

    result: CheckResult
    output: bytes
    changes: FileChanges | NoCheckpoint | None = None


def check_environment(check: Check, inherited: Mapping[str, str]) -> dict[str, str]:
    """Build the environment of a check: the user's without secrets, and the variables that the team file adds.

    Keys of vendors, the variables of a git hook and everything that looks like a secret are passed on only if
    `env_keep` names them. Variables of teamchat's own are not passed on at all.
    """
    passed_on = {
        name: value
        for name, value in inherited.items()
        if not name.startswith(OWN)
        and (name in check.env_keep or not (name in NOT_PASSED_ON or is_secret(name, value)))
    }
    return for_child(passed_on | dict(check.env))


async def run_command(
    check: Check,
    cwd: Path,
    env: Mapping[str, str],
    *,
    folder: Path,
    scratch: Path,
    stopper: Stopper,
    through: tuple[str, ...] = (),
) -> CheckRun:
    """Run the command of a check in `cwd` to its end and judge it. Whatever a check does is a result of it.

    `folder` gets the files with its output. `scratch` is its TMPDIR, which is made here and removed by the caller.
    `through` is that of `Launch`.
    """
    return await follow(check, launch_of(check, cwd, env, folder, scratch, through), stopper)


def launch_of(
    check: Check, cwd: Path, env: Mapping[str, str], folder: Path, scratch: Path, through: tuple[str, ...] = ()
) -> Launch:
    """Describe the process to start for a check."""
    argv = (*SHELL, check.command) if isinstance(check.command, str) else check.command
    return Launch(
        argv=(*ONE_STREAM, *argv),
        cwd=cwd,
        env={**env, "TMPDIR": str(scratch), "PWD": str(cwd)},
        stdin=b"",
        folder=folder,
        scratch=scratch,
        prepare=lambda: scratch.mkdir(0o700),
        through=through,
    )


async def follow(check: Check, what: Launch, stopper: Stopper) -> CheckRun:
    """Start a check's process, follow it to its end and judge it."""
    if stopper.asked:
        return CheckRun(_interrupted(), b"")
    if not check.command:  # a shell with nothing to run would end with exit code 0
        return CheckRun(_not_run("missing", "could not be started: its command is empty"), b"")
    try:
        process = ChildProcess(what)
    except SpawnFailed as error:
        return CheckRun(_not_run("missing", f"could not be started: {error}"), b"")
    run = _Run(check, process, stopper)
    ended = await run.to_its_end()
    written = max(run.output.size, _written(what.folder))
    verdict = _judged_by_teamchat(check, run, ended, what.folder) or _judged_by_code(check, run, ended.code)
    output = run.output.kept(written)
    if check.expect and verdict.status != "not_run":
        verdict = await asyncio.to_thread(_with_expected, check, verdict, output, stopper)
    return CheckRun(replace(verdict, seconds=ended.seconds, output_bytes=written, left=ended.left), output)


def _with_expected(check: Check, verdict: CheckResult, output: bytes, stopper: Stopper) -> CheckResult:
    """Match `expect` against the output; a green result without a match becomes red.

    The count is the sum of the numbers of its groups or, without any, of all that it matches, at the last match. A
    pattern can take for ever on a member's output, so it is matched in a process of its own.
    """
    asked, text = stopper.asked, told(output.decode(errors="replace"))
    program = (sys.executable, "-I", "-S", "-c", _MATCHING, check.expect)
    try:
        matched = run_program(
            program, Path("/"), {}, LONGEST_MATCH_S, text.encode(), stopped=lambda: stopper.asked > asked
        )
    except (OSError, ValueError) as error:
        return _not_run("ended", f"expect cannot be matched: {error}")
    if matched.code is None and stopper.asked > asked:
        return _interrupted()
    if matched.code:
        return _not_run("ended", f"expect cannot be matched: exit code {matched.code}")
    if matched.code is None:
        why = f"expect, {check.expect!r}, takes longer than {LONGEST_MATCH_S:g} s on its output; make it simpler"
        return _not_run("ended", why)
    last: list[str] | None = json.loads(matched.out)
    if last is None:
        nothing = f"its output has nothing that matches expect, {check.expect!r}"
        if verdict.status == "green":
            verdict = replace(verdict, status="red", reason=nothing)
        return replace(verdict, count=0)
    return replace(verdict, count=sum(int(number) for found in last for number in _NUMBER.findall(found)))


class CheckOutput:
    """Keeps the beginning and the end of an output, in at most `largest` bytes, whatever its size."""

    def __init__(self, largest: int = LARGEST_OUTPUT) -> None:
        self.size = 0
        self._largest, self._half = largest, (largest - MARK_BYTES) // 2
        self._head, self._tail = bytearray(), bytearray()

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        self.size += len(data)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._largest:
            del self._tail[: -self._largest]

    def kept(self, written: int) -> bytes:
        """Return the kept part of an output of `written` bytes, some of which may not have been read."""
        if self.size <= self._largest:
            return bytes(self._head + self._tail)
        # the marks stand where the text is cut: there the parts of a secret are looked for
        mark = f"…\n({written - 2 * self._half:,} bytes left out)\n…".encode()
        return bytes(self._head + mark + self._tail[-self._half :])


class _Run:
    """A check that runs: its output, and why teamchat ended it (`cut`), if it did."""

    def __init__(self, check: Check, process: ChildProcess, stopper: Stopper) -> None:
        self.output = CheckOutput()
        self.cut: _Cut | None = None
        self.emptied = False  # whether the check emptied its own output
        self._check, self._process, self._stopper = check, process, stopper
        self._stops_sent = 0

    async def to_its_end(self) -> Exit:
        with self._stopper.alarm() as alarm:
            watch = asyncio.ensure_future(self._watch(alarm))
            try:
                async with aclosing(self._process.chunks()) as chunks:
                    async for chunk in chunks:
                        if isinstance(chunk, Chunk):
                            self.output.add(chunk.data)
                        else:
                            self.emptied = True
            finally:
                watch.cancel()
        return self._process.exit or Exit(-Signals.SIGKILL)

    async def _watch(self, alarm: Alarm) -> None:
        while True:
            if self._stopper.asked > self._stops_sent:
                self._stops_sent = self._stopper.asked
                self._end("interrupted", hard=self._stops_sent > 1)
            elif (left := self._left()) > 0:
                await alarm.sleep(left)
            else:
                self._end("late")

    def _left(self) -> float:
        """Return the seconds until it has taken too long."""
        if self.cut or self._process.exit:
            return math.inf
        return self._process.started + self._check.timeout_s - time.monotonic()

    def _end(self, why: _Cut, *, hard: bool = False) -> None:
        """End it for that reason, unless it has ended by itself. A hard stop leaves the rest of its output unread."""
        self._process.poll()
        if self._process.exit is None:
            self.cut = self.cut or why
        if self._process.exit is None or hard:
            self._process.stop(hard=hard)


def _written(folder: Path) -> int:
    """Count the bytes in the files of a check in `folder`, unread bytes included."""
    sizes = 0
    for name, ours in (("stdout", len(FIRST_LINE)), ("stderr", 0)):
        try:
            sizes += max((folder / name).lstat().st_size - ours, 0)
        except OSError:  # the check has removed it
            continue
    return sizes


def _judged_by_teamchat(check: Check, run: _Run, ended: Exit, folder: Path) -> CheckResult | None:
    """Return the result of a check whose own end does not count; None if it does."""
    if run.cut == "interrupted":
        return _interrupted()
    if is_full(folder):
        return _not_run("ended", f"its output has filled the disk of {folder.parent}; make room there")
    if ended.over_limit:
        return CheckResult("red", f"wrote more than {ended.over_limit >> 20} MiB and was stopped")
    if run.cut == "late":
        return CheckResult("red", f"took longer than {limit_in_words(check.timeout_s)}")
    return None


def _judged_by_code(check: Check, run: _Run, code: int) -> CheckResult:
    if number := _signal(code, of_shell=isinstance(check.command, str)):
        name = _name(number)
        return CheckResult("red", name) if number in CRASHES else _not_run("ended", f"was ended by {name}")
    if code in NO_PROGRAM:
        return replace(_not_run("missing", NO_PROGRAM[code]), exit_code=code)
    if code:
        return CheckResult("red", f"exit code {code}", code)
    return CheckResult("red", EMPTIED, code) if run.emptied else CheckResult("green", exit_code=code)


def _signal(code: int, *, of_shell: bool) -> int | None:
    """Find the number of the signal that ended a check or a command of its shell (exit code 128 + number)."""
    if code < 0:
        return -code
    number = code - 128
    return number if of_shell and number in set(Signals) - ENDS_NOTHING else None


def _name(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:  # Python names few of the real-time signals
        return f"signal {number}"


def _not_run(why: NotRun, reason: str) -> CheckResult:
    return CheckResult("not_run", reason, not_run=why)


def _interrupted() -> CheckResult:
    return _not_run("interrupted", "was interrupted")
