"""The command of a check with real processes: what counts as green and red, and what says nothing of the work."""

from __future__ import annotations

import asyncio
import os
import resource
import select
import sys
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from signal import SIGKILL, Signals
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.agents import CLIS
from teamchat.core.check import LARGEST_OUTPUT, Check, NotRun
from teamchat.core.checks import command
from teamchat.core.checks.command import CheckOutput, CheckRun, check_environment, follow, launch_of, run_command
from teamchat.runners.base import StopRule
from teamchat.runners.child.guardian import send_signal
from teamchat.runners.child.process import ChildProcess
from teamchat.runners.child.running import MAX_OUTPUT_BYTES
from teamchat.runners.child.supervisor import Stopper
from teamchat.runners.environment import GIT_LOCAL
from tests.leftovers import marked
from tests.namespaces import apart
from tests.program import ROOT
from tests.runners.processes import PATIENCE_S, Pids, agent, eventually

HURRIED, PATIENT = StopRule(grace_s=0.05), StopRule(grace_s=10 * PATIENCE_S)
HANGS = "touch hangs; while :; do sleep 0.02; done"
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS")
ENDS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGPIPE", "SIGALRM", "SIGXFSZ")
ENDS_NOTHING = ("SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGWINCH")


class Run(Protocol):
    """Runs a check to its end. `meanwhile` is called in a thread once it has started."""

    def __call__(
        self,
        command: str | tuple[str, ...],
        *,
        meanwhile: Callable[[Stopper], object] = lambda _: None,
        timeout_s: float = PATIENCE_S,
        stop: StopRule | None = None,
        max_output: int = MAX_OUTPUT_BYTES,
        cwd: Path | None = None,
        through: tuple[str, ...] = (),
    ) -> CheckRun: ...


@pytest.fixture(autouse=True)
def _no_cores() -> Iterator[None]:
    """What a signal ends writes no file of its memory."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    def runs(
        command: str | tuple[str, ...],
        *,
        meanwhile: Callable[[Stopper], object] = lambda _: None,
        timeout_s: float = PATIENCE_S,
        stop: StopRule | None = None,
        max_output: int = MAX_OUTPUT_BYTES,
        cwd: Path | None = None,
        through: tuple[str, ...] = (),
    ) -> CheckRun:
        check, env, stopper = Check("tests", command, timeout_s), marked({"PATH": os.environ["PATH"]}), Stopper()
        what = launch_of(check, cwd or work, env, tmp_path / "folder", tmp_path / "scratch", through)
        what = replace(what, stop=stop or what.stop, max_output=max_output)

        async def main() -> CheckRun:
            following = asyncio.ensure_future(follow(check, what, stopper))
            await asyncio.to_thread(meanwhile, stopper)
            return await following

        return asyncio.run(asyncio.wait_for(main(), PATIENCE_S))

    return runs


def hangs() -> bool:
    return Path("hangs").exists()


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of a check runs out as soon as it hangs."""
    left = command._Run._left
    monkeypatch.setattr(command._Run, "_left", lambda self: min(left(self), 0.02) if not hangs() or self.cut else 0.0)


def judged(run: CheckRun) -> tuple[str, str, int | None, NotRun | None]:
    result = run.result
    return result.status, result.reason, result.exit_code, result.not_run


GREEN = ("green", "", 0, None)


# --- exit codes


def test_only_exit_code_0_is_green(run: Run, tmp_path: Path) -> None:
    ran = run("echo fine")
    assert (judged(ran), ran.output) == (GREEN, b"fine\n")
    assert (ran.result.output_bytes, ran.result.left) == (5, ())
    assert ran.result.seconds > 0
    assert (tmp_path / "folder" / "stdout").read_bytes().endswith(b"fine\n")


@pytest.mark.parametrize("code", [1, 2, 125, 128, 255])
@pytest.mark.parametrize("shell", [True, False])
def test_any_other_exit_code_is_red(run: Run, code: int, shell: bool) -> None:
    script = f"echo no; exit {code}"
    ran = run(script if shell else ("/bin/sh", "-c", script))
    assert (judged(ran), ran.output) == (("red", f"exit code {code}", code, None), b"no\n")


def test_a_list_is_a_program_with_its_arguments(run: Run) -> None:
    ran = run(("printf", "%s|", "a b", "$HOME", "*", "", "-x"))
    assert (judged(ran), ran.output) == (GREEN, b"a b|$HOME|*||-x|")


def test_a_text_is_for_the_shell(run: Run) -> None:
    assert run("echo \"$0\"\nfalse || printf 'a b' # and no more").output == b"/bin/sh\na b"


def test_a_text_that_is_no_shell_command_is_red_with_what_the_shell_says(run: Run) -> None:
    ran = run("echo 'unclosed")
    assert ran.result.status == "red"
    assert ran.output


# --- signals


@pytest.mark.parametrize("name", CRASHES)
@pytest.mark.parametrize("script", ["kill -{} $$", "(exec sh -c 'kill -{} $$'); exit $?"])
def test_a_crash_is_red_also_where_the_shell_reports_it(run: Run, name: str, script: str) -> None:
    assert judged(run(script.format(name[3:]))) == ("red", name, None, None)


def test_a_crash_of_a_program_without_a_shell_is_red(run: Run) -> None:
    assert judged(run((sys.executable, "-c", "import os; os.abort()"))) == ("red", "SIGABRT", None, None)


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("script", ["kill -{} $$", "(exec sh -c 'kill -{} $$'); exit $?"])
def test_a_signal_from_elsewhere_says_nothing_of_the_work(run: Run, name: str, script: str) -> None:
    assert judged(run(script.format(name[3:]))) == ("not_run", f"was ended by {name}", None, "ended")


def test_a_signal_that_has_no_name_has_a_number(run: Run) -> None:
    assert judged(run(("/bin/sh", "-c", "kill -40 $$"))) == ("not_run", "was ended by signal 40", None, "ended")


@pytest.mark.parametrize("code", [134, 137, 139, 143])
def test_without_a_shell_128_and_more_is_an_exit_code(run: Run, code: int) -> None:
    ran = run((sys.executable, "-c", f"raise SystemExit({code})"))
    assert judged(ran) == ("red", f"exit code {code}", code, None)


@pytest.mark.parametrize("name", ENDS_NOTHING)
def test_128_and_a_signal_of_which_nobody_dies_is_an_exit_code(run: Run, name: str) -> None:
    code = 128 + Signals[name]
    assert judged(run(f"exit {code}")) == ("red", f"exit code {code}", code, None)


# --- what cannot start


@pytest.mark.parametrize("of_shell", [True, False])
@pytest.mark.parametrize(
    ("code", "program", "reason"),
    [
        (127, "no-such-program", "exit code 127: a program was not found"),
        (127, "./no/such", "exit code 127: a program was not found"),
        (126, "./not-executable", "exit code 126: a program cannot be run"),
        (126, "/", "exit code 126: a program cannot be run"),
    ],
)
def test_a_program_that_is_not_there_is_no_red(run: Run, code: int, program: str, reason: str, of_shell: bool) -> None:
    Path("not-executable").write_text("#!/bin/sh\n")
    ran = run(program if of_shell else (program,))
    assert judged(ran) == ("not_run", reason, code, "missing")
    assert program.encode() in ran.output


@pytest.mark.parametrize(
    ("cwd", "why"), [("missing", "No such file or directory"), ("file", "Not a directory"), ("loop", "Too many levels")]
)
def test_a_folder_that_is_not_there_is_no_red(run: Run, cwd: str, why: str) -> None:
    Path("file").touch()
    Path("loop").symlink_to("loop")
    ran = run("echo never", cwd=Path(cwd).absolute())
    status, reason, code, not_run = judged(ran)
    assert (status, code, not_run, ran.output) == ("not_run", None, "missing", b"")
    assert reason.startswith(f"could not be started: {why}")
    assert cwd in reason


@pytest.mark.parametrize("text", ["echo a\0b", "x" * 300_000, "\ud800"], ids=["nul", "too-long", "surrogate"])
@pytest.mark.parametrize("of_shell", [True, False])
def test_a_command_that_no_system_can_start_is_no_red(run: Run, text: str, of_shell: bool) -> None:
    status, reason, _, not_run = judged(run(text if of_shell else ("echo", text)))
    assert (status, not_run) == ("not_run", "missing")
    assert reason.startswith("could not be started: ")


@pytest.mark.parametrize("empty", ["", ()])
def test_an_empty_command_is_not_green(run: Run, empty: str | tuple[str, ...]) -> None:
    assert judged(run(empty)) == ("not_run", "could not be started: its command is empty", None, "missing")


def test_a_private_folder_that_cannot_be_made_is_no_red(run: Run, tmp_path: Path) -> None:
    (tmp_path / "scratch").touch()
    status, reason, _, not_run = judged(run("echo never"))
    assert (status, not_run) == ("not_run", "missing")
    assert reason.startswith("could not be started: File exists")


# --- time


@pytest.mark.parametrize(("timeout_s", "words"), [(0.2, "0.2 s"), (0.0, "0 s")])
def test_what_takes_too_long_is_red(run: Run, timeout_s: float, words: str) -> None:
    assert judged(run("sleep 600", timeout_s=timeout_s)) == ("red", f"took longer than {words}", None, None)


@pytest.mark.usefixtures("late")
def test_it_is_stopped_softly_first_and_keeps_its_output(run: Run) -> None:
    ran = run(f"trap 'echo bye; exit 0' TERM; echo begun; {HANGS}", timeout_s=1800, stop=PATIENT)
    assert judged(ran) == ("red", "took longer than 30 min", None, None)
    assert (ran.output[:6], ran.output[-4:]) == (b"begun\n", b"bye\n")


@pytest.mark.usefixtures("late")
def test_what_ignores_the_soft_stop_is_killed(run: Run) -> None:
    ran = run(f"trap '' TERM; echo begun; {HANGS}", timeout_s=600, stop=HURRIED)
    assert (judged(ran), ran.output) == (("red", "took longer than 10 min", None, None), b"begun\n")


@pytest.mark.usefixtures("late")
def test_what_took_too_long_and_is_then_interrupted_has_taken_too_long(run: Run) -> None:
    ran = run(f"trap 'touch stopped' TERM; {HANGS}", timeout_s=600, stop=PATIENT, meanwhile=ends_what_was_stopped)
    assert judged(ran) == ("red", "took longer than 10 min", None, None)


@pytest.mark.parametrize(("timeout_s", "requests"), [(0.0, 0), (PATIENCE_S, 1), (PATIENCE_S, 2)])
def test_what_has_ended_by_itself_is_judged_by_its_own_end(tmp_path: Path, timeout_s: float, requests: int) -> None:
    check, env, stopper = Check("tests", "exit 3", timeout_s), marked({"PATH": os.environ["PATH"]}), Stopper()
    process = ChildProcess(launch_of(check, tmp_path, env, tmp_path / "folder", tmp_path / "scratch"))
    told = select.poll()
    told.register(process._control, select.POLLIN)
    assert eventually(lambda: b"\n" in process._buffer or bool(told.poll(0)))
    for _ in range(requests):
        stopper.request()
    ran = command._Run(check, process, stopper)
    assert asyncio.run(asyncio.wait_for(ran.to_its_end(), PATIENCE_S)).code == 3
    assert ran.cut is None


# --- interruption


def interrupts(stopper: Stopper) -> None:
    assert eventually(hangs)
    stopper.request()


def interrupts_twice(stopper: Stopper) -> None:
    interrupts(stopper)
    assert eventually(Path("stopped").exists)
    stopper.request()


def ends_what_was_stopped(stopper: Stopper) -> None:
    assert eventually(Path("stopped").exists)
    stopper.request()
    stopper.request()


def test_an_interrupted_check_is_stopped_softly_and_is_no_red(run: Run) -> None:
    ran = run(f"trap 'echo bye; exit 1' TERM; echo begun; {HANGS}", meanwhile=interrupts, stop=PATIENT)
    assert judged(ran) == ("not_run", "was interrupted", None, "interrupted")
    assert (ran.output[:6], ran.output[-4:]) == (b"begun\n", b"bye\n")


def test_a_second_request_ends_it_at_once(run: Run) -> None:
    ran = run(f"trap 'touch stopped' TERM; {HANGS}", meanwhile=interrupts_twice, stop=PATIENT)
    assert judged(ran) == ("not_run", "was interrupted", None, "interrupted")


def test_a_check_whose_stop_was_asked_before_does_not_start(tmp_path: Path) -> None:
    stopper = Stopper()
    stopper.request()
    check, folder, scratch = Check("tests", "touch started"), tmp_path / "folder", tmp_path / "scratch"
    ran = asyncio.run(run_command(check, tmp_path, {}, folder=folder, scratch=scratch, stopper=stopper))
    assert judged(ran) == ("not_run", "was interrupted", None, "interrupted")
    assert not list(tmp_path.iterdir())


# --- what it leaves running


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Pids]:
    found = Pids(tmp_path / "pids")
    yield found
    for pid in found.alive():  # only when a test has failed
        send_signal(pid, SIGKILL)


@pytest.mark.parametrize(("code", "status"), [("0", "green"), ("3", "red")])
def test_what_it_leaves_running_is_ended_and_named(run: Run, pids: Pids, code: str, status: str) -> None:
    leaves = agent("child", "+", "daemon", "+", "tool", "+", "say", "done", "+", "exit-with", code)
    ran = run(leaves, through=("/usr/bin/env", f"AGENT_PIDS={pids.file}"))
    assert (ran.result.status, ran.output, ran.result.left) == (status, b"done", ("sh", *["sleep"] * 4))
    assert len(pids.all()) == 6
    assert pids.alive() == []


def test_nothing_of_an_interrupted_check_is_left(run: Run, pids: Pids) -> None:
    def interrupt(stopper: Stopper) -> None:
        assert eventually(pids.hang)
        stopper.request()

    leaves = agent("grandchild", "+", "daemon", "+", "tool", "+", "hang")
    ran = run(leaves, through=("/usr/bin/env", f"AGENT_PIDS={pids.file}"), meanwhile=interrupt, stop=HURRIED)
    assert (ran.result.not_run, pids.alive()) == ("interrupted", [])


# --- its output


def test_both_streams_come_in_the_order_in_which_they_were_written(run: Run) -> None:
    ran = run("for i in $(seq 200); do echo out $i; echo err $i >&2; done")
    assert ran.output == b"".join(b"out %d\nerr %d\n" % (i, i) for i in range(1, 201))


def test_bytes_stay_as_they_are(run: Run) -> None:
    ran = run(r"printf '\377\376\000\033[2J\r\n\303'; printf '\200' >&2")
    assert ran.output == b"\xff\xfe\0\x1b[2J\r\n\xc3\x80"


def test_of_much_output_the_beginning_and_the_end_are_kept(run: Run) -> None:
    ran = run("echo begins; head -c 10000000 /dev/zero; echo ends; exit 1")
    assert judged(ran) == ("red", "exit code 1", 1, None)
    assert ran.result.output_bytes == 10_000_000 + len("begins\nends\n") == parts(ran.output)
    assert LARGEST_OUTPUT - 100 < len(ran.output) <= LARGEST_OUTPUT
    assert (ran.output[:7], ran.output[-5:]) == (b"begins\n", b"ends\n")


def parts(output: bytes) -> int:
    """The bytes that are kept, and those of which a line between says that they are left out."""
    head, _, rest = output.partition("…\n(".encode())
    number, _, tail = rest.partition(" bytes left out)\n…".encode())
    assert len(head) == len(tail)
    return len(head) + int(number.replace(b",", b"")) + len(tail)


@given(st.lists(st.integers(0, 900), max_size=12))
def test_output_is_whole_or_has_its_beginning_and_end_in_bounded_memory(sizes: list[int]) -> None:
    output, data = CheckOutput(largest=500), bytes(number % 251 for number in range(sum(sizes)))
    for end, size in zip(accumulate(sizes), sizes, strict=True):
        output.add(data[end - size : end])
        assert len(output._head) + len(output._tail) <= 3 * 500
    kept = output.kept(len(data))
    if len(data) <= 500:
        assert kept == data
    else:
        head, _, tail = kept.partition(f"…\n({len(data) - 436:,} bytes left out)\n…".encode())
        assert (head, tail) == (data[:218], data[-218:])
        assert len(kept) <= 500


def test_of_more_output_than_the_limit_what_was_not_read_counts_too(run: Run) -> None:
    ran = run("yes", max_output=8 << 20)
    assert judged(ran) == ("red", "wrote more than 8 MiB and was stopped", None, None)
    assert ran.result.output_bytes == parts(ran.output) > 8 << 20


def test_more_output_than_the_limit_ends_it_red(run: Run) -> None:
    ran = run("yes", max_output=1 << 20)
    assert judged(ran) == ("red", "wrote more than 1 MiB and was stopped", None, None)
    assert ran.output == b"y\n" * (1 << 19)
    assert ran.result.output_bytes > 1 << 20


@pytest.mark.parametrize("again", ["echo two > /dev/stdout", "echo two > /dev/stderr", ": > /dev/stdout"])
def test_a_check_that_empties_its_own_output_is_not_green(run: Run, again: str) -> None:
    status, reason, code, _ = judged(run(f"echo one; {again}; echo three"))
    assert (status, code) == ("red", 0)
    assert "emptied its own output" in reason
    assert "not whole" in reason


def test_a_check_that_empties_its_own_output_and_fails_keeps_the_reason_of_its_own(run: Run) -> None:
    assert judged(run("echo one > /dev/stdout; exit 3")) == ("red", "exit code 3", 3, None)


def test_a_check_that_removes_its_own_output_is_judged_all_the_same(run: Run, tmp_path: Path) -> None:
    ran = run(f"echo one; rm -r {tmp_path}/folder; echo two; exit 1")
    assert (judged(ran), ran.output) == (("red", "exit code 1", 1, None), b"one\ntwo\n")
    assert ran.result.output_bytes == 8


# --- a full disk


@pytest.mark.parametrize("code", [0, 1])
def test_on_a_full_disk_no_end_counts(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int) -> None:
    monkeypatch.setattr("teamchat.core.files.room.room_in", lambda _: 0)
    reason = f"its output has filled the disk of {tmp_path}; make room there"
    assert judged(run(f"exit {code}")) == ("not_run", reason, None, "ended")


FILLS = """
import asyncio, sys
from pathlib import Path
from teamchat.core.check import Check
from teamchat.core.checks.command import run_command
from teamchat.runners.child.supervisor import Stopper
disk = Path(sys.argv[1])
check = Check("tests", "echo begins; yes")
run = run_command(
    check, Path("/"), {"PATH": "/usr/bin:/bin"}, folder=disk / "run", scratch=disk / "tmp", stopper=Stopper()
)
ran = asyncio.run(run)
print(ran.output[:7], len(ran.output) > 500_000, ran.result.reason, ran.result.not_run)
"""


def test_output_that_fills_the_disk_is_no_red(tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o size=1m tmpfs "$1" && cd "$2" && exec "$3" -c "$4" "$1"'
    done = apart(script, str(tmp_path), str(ROOT), sys.executable, FILLS)
    reason = f"its output has filled the disk of {tmp_path}; make room there"
    assert (done.stdout, done.stderr) == (f"b'begins\\n' True {reason} ended\n", "")


# --- what it is given


def test_it_runs_in_its_folder_with_a_private_one_and_nothing_to_read(run: Run, tmp_path: Path) -> None:
    Path("elsewhere").mkdir()
    (sub := Path("sub dir").absolute()).symlink_to("elsewhere")
    ran = run('pwd; echo "$PWD $TMPDIR"; stat -c %a "$TMPDIR"; wc -c', cwd=sub)
    assert ran.output.decode() == f"{sub}\n{sub} {tmp_path}/scratch\n700\n0\n"


def test_it_runs_through_a_program_of_ours(run: Run) -> None:
    assert run("echo $COLOUR", through=("/usr/bin/env", "COLOUR=red")).output == b"red\n"


def test_a_run_begins_with_its_environment_alone(tmp_path: Path) -> None:
    env = marked({"PATH": os.environ["PATH"], "ODD": "ä\udcff\n"})
    check, folder, scratch = Check("tests", ("/bin/cat", "/proc/self/environ")), tmp_path / "folder", tmp_path / "tmp"
    ran = asyncio.run(run_command(check, tmp_path, env, folder=folder, scratch=scratch, stopper=Stopper()))
    got = dict(entry.split(b"=", 1) for entry in ran.output.split(b"\0") if entry)
    given = {**env, "TMPDIR": str(scratch), "PWD": str(tmp_path)}
    assert {os.fsencode(name): os.fsencode(value) for name, value in given.items()}.items() <= got.items()
    assert got.keys() <= {*map(os.fsencode, given), b"_", b"SHLVL", b"OLDPWD"}  # a shell may add its own


@pytest.mark.parametrize(
    ("name", "value", "passed", "kept"),
    [
        ("PATH", "/bin", True, True),
        ("OLDPWD", "/home/u", True, True),
        ("DATABASE_URL", "postgres://localhost/x", True, True),
        ("DATABASE_URL", "postgres://u:secret@localhost/x", False, True),
        ("MY_TOKEN", "x", False, True),
        ("db_password", "x", False, True),
        ("CLAUDECODE", "1", False, True),
        ("TEAMCHAT_HOME", "/state", False, False),
        ("TEAMCHAT_", "", False, False),
        ("TEAMCHATTER", "1", True, True),
        *((name, "x", False, True) for name in sorted(GIT_LOCAL)),
        *((name, "x", False, True) for row in CLIS for name in sorted(row.keys)),
    ],
)
def test_a_check_gets_no_secrets_and_nothing_of_teamchats_unless_it_keeps_them(
    name: str, value: str, passed: bool, kept: bool
) -> None:
    inherited = {name: value, "LANG": "C"}
    keeps = Check("tests", "true", env_keep=(name,))
    assert check_environment(Check("tests", "true"), inherited) == {"LANG": "C", **({name: value} if passed else {})}
    assert check_environment(keeps, inherited) == {"LANG": "C", **({name: value} if kept else {})}


def test_what_the_team_file_adds_is_passed_on_whatever_it_is() -> None:
    check = Check("tests", "true", env={"LANG": "de", "API_KEY": "test"})
    assert check_environment(check, {"LANG": "C", "API_KEY": "real"}) == {"LANG": "de", "API_KEY": "test"}
