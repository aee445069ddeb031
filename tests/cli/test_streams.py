"""The standard streams and the machine as callers leave them: closed, full, read by nobody, or not writable."""

from __future__ import annotations

import fcntl
import json
import os
import re
import resource
import signal
import subprocess
import sys
import termios
import time
from array import array
from pathlib import Path
from typing import IO, Literal

import pytest

from tests.cli.helpers import actors, notes, objects, queue, refused, said, steady, turn
from tests.cli.test_terminal import claude
from tests.program import TIMEOUT_S, Result, Started, argv, cli, ended, run_here, start
from tests.runners.processes import Pids, eventually
from tests.scripted_team import Crew, crew

BEGINS = "session s1 begins"
LIKE_A_USER = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
"""What takes from root the right to write where nobody may."""


def full(*args: str, stream: Literal["stdout", "stderr"] = "stdout") -> Result:
    """Run the program with a full disk behind one of its streams."""
    with Path("/dev/full").open("wb") as disk:
        return ended(start(*args, stdout=disk) if stream == "stdout" else start(*args, stderr=disk))


def shell(redirect: str, *args: str) -> Result:
    """Run the program as a shell does with this redirection behind it."""
    command = ["sh", "-c", f'exec "$@" {redirect}', "sh", *argv(*args)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False)
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def made(world: Path) -> Crew:
    return crew(world, {"max": ["Hi."] * 3, "sarah": ["Me."], "carol": ["And me."]})


pair = pytest.mark.usefixtures("made")


# --- closed


@pair
def test_without_standard_input_a_message_is_sent_as_it_is() -> None:
    assert steady(shell("<&-", "send", "Go")) == Result(0, "max:\nHi.\n\n", notes(BEGINS, *turn("max", 1)))


@pair
def test_without_standard_input_there_is_nothing_to_read_from_it() -> None:
    ran = shell("<&-", "send", "-")
    assert (ran.code, refused(ran)) == (2, "standard input was empty")


def test_without_standard_input_nobody_is_asked_for_trust(made: Crew, world: Path) -> None:
    (world / "state" / "trust.json").unlink()
    ran = shell("<&-", "send", "Go")
    assert (ran.code, made.prompts("max")) == (5, [])
    assert "Traceback" not in ran.err


@pair
def test_without_standard_output_the_conversation_goes_on() -> None:
    assert steady(shell(">&-", "send", "Go")) == Result(0, "", notes(BEGINS, *turn("max", 1)))
    assert said() == [("kailai", "Go"), ("max", "Hi.")]


@pair
def test_without_standard_error_nothing_else_gets_into_the_output() -> None:
    assert shell("2>&-", "send", "Go") == Result(0, "max:\nHi.\n\n", "")
    assert objects(shell("2>&-", "send", "--json", "Go"))[-1]["outcome"] == "done"
    assert shell("2>&-", "nonsense") == Result(2, "", "")


@pair
def test_without_any_stream_the_conversation_goes_on() -> None:
    """The numbers of the streams are free then, and must not become the store's or an agent's."""
    assert shell("<&- >&- 2>&-", "send", "--to", "max,carol", "Go") == Result(0, "", "")
    assert [name for name, _ in said()] == ["kailai", "max", "carol"]


@pair
def test_no_command_minds_closed_streams() -> None:
    run_here("send", "Go")
    for command in (["log"], ["show", "--prompt"], ["sessions"], ["--help"], ["--version"], ["nonsense"], []):
        expected = 2 if command in ([], ["nonsense"]) else 0
        assert (command, shell("<&- >&- 2>&-", *command)) == (command, Result(expected, "", ""))


# --- read by nobody any more


@pytest.fixture
def closed(made: Crew, world: Path) -> Path:
    """The file for which sarah waits until she answers."""
    made.say("sarah", {"say": "Me.", "wait": str(world / "closed")})
    return world / "closed"


def test_a_closed_pipe_ends_the_conversation_quietly_and_loses_nothing(made: Crew, closed: Path) -> None:
    process = start("send", "--to", "max,sarah,carol", "Go")
    assert process.stdout
    assert process.stdout.readline() == b"max:\n"
    process.stdout.close()
    closed.touch()
    assert process.stderr
    err = process.stderr.read().decode()
    assert process.wait(TIMEOUT_S) == 130
    process.stderr.close()
    assert "Traceback" not in err
    names = [name for name, _ in said()]
    assert names in (["kailai", "max"], ["kailai", "max", "sarah"])  # it is noticed at the next write
    assert "held: carol, called by kailai in msg-1" in run_here("log").err
    assert ("held: sarah" in run_here("log").err) == ("sarah" not in names)
    assert made.prompts("carol") == []


def test_a_closed_pipe_behind_json_ends_it_the_same(closed: Path) -> None:
    process = start("send", "--json", "--to", "max,sarah,carol", "Go")
    assert process.stdout
    process.stdout.readline()
    process.stdout.close()
    closed.touch()
    assert process.wait(TIMEOUT_S) == 130
    assert process.stderr
    assert "Traceback" not in process.stderr.read().decode()
    process.stderr.close()


def test_a_reader_that_takes_nothing_does_not_keep_it_from_being_stopped(pids: Pids) -> None:
    """As a pager that waits for its user: what the pipe has no room for is being written until then."""
    actors({"max": ["child", "+", "flood", "1", "+", "hang"]})
    process = start("send", "--json", "--stream", "Go")

    def asked_again() -> bool:
        process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        return process.poll() is not None

    pids.await_count(2)
    assert eventually(asked_again)
    assert "Traceback" not in ended(process).err
    assert process.returncode in {143, -signal.SIGTERM}  # one may come when all is over but for the exit
    assert eventually(lambda: pids.alive() == [])
    assert queue() == [("max", "held")]


PAGE = 4096  # the least that a pipe holds


def is_full(pipe: IO[bytes]) -> bool:
    """Whether the next line has no room in it, if each line is written by itself."""
    unread = array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, unread)
    return unread[0] > PAGE * 3 // 4


def assert_the_second_ctrl_c_ends(process: Started, pids: Pids) -> None:
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)  # two at once are one to the system
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT_S) == 130
    ended(process)
    assert eventually(lambda: pids.alive() == [])
    assert queue() == [("max", "held")]


def test_the_second_ctrl_c_ends_a_line_that_nobody_reads_on(pids: Pids) -> None:
    """Who has seen the beginning of a line knows that the rest is being written."""
    actors({"max": claude(f"claude-delta {'x' * 5 * PAGE}", "hang")}, like="claude")
    with start("send", "--json", "--stream", "Go") as process:
        assert process.stdout
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PAGE)
        seen = b""
        while b"xxx" not in seen:
            seen += os.read(process.stdout.fileno(), PAGE)
        assert b"text_delta" in seen
        assert_the_second_ctrl_c_ends(process, pids)


def test_the_second_ctrl_c_ends_notes_that_nobody_reads(pids: Pids) -> None:
    """Standard error has a note on each line that is no event."""
    actors({"max": [*["reply", "x" * 600, "+"] * 15, "hang"]}, like="claude")
    with start("send", "Go") as process:
        pipe = process.stderr
        assert pipe
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PAGE)
        assert eventually(lambda: is_full(pipe))
        assert_the_second_ctrl_c_ends(process, pids)


def test_ctrl_c_ends_a_list_that_nobody_reads(world: Path) -> None:
    crew(world, {"max": ["Hi."]})
    run_here("send", "long " * 100_000)
    process = start("log")
    pipe = process.stdout
    assert pipe
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 2 * PAGE)  # the line above the message takes a page of its own
    assert eventually(lambda: is_full(pipe))
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT_S) == 130
    assert ended(process).err == ""


@pytest.mark.parametrize("command", [["log"], ["log", "--json"]])
def test_a_pager_that_is_quit_is_no_error(world: Path, command: list[str]) -> None:
    crew(world, {"max": ["Hi."]})
    run_here("send", "--cut", "long " * 1_000_000)  # more than any pipe holds
    process = start(*command)
    assert process.stdout
    process.stdout.read(1)
    process.stdout.close()
    assert process.wait(TIMEOUT_S) == 130
    assert process.stderr
    assert process.stderr.read() == b""
    process.stderr.close()


@pair
def test_notes_that_nobody_reads_stop_nothing() -> None:
    process = start("send", "--to", "max,sarah,carol", "Go")
    assert process.stderr
    process.stderr.readline()
    process.stderr.close()
    assert process.stdout
    assert process.stdout.read().decode() == "max:\nHi.\n\nsarah:\nMe.\n\ncarol:\nAnd me.\n\n"
    process.stdout.close()
    assert process.wait(TIMEOUT_S) == 0
    assert [name for name, _ in said()] == ["kailai", "max", "sarah", "carol"]


# --- full


LOST = "teamchat: the output cannot be written: No space left on device\n"


@pair
@pytest.mark.parametrize("option", [[], ["--json"], ["--quiet"], ["--json", "--stream"]])
def test_a_full_disk_behind_the_output_is_one_line_and_the_turn_is_stored_or_held(option: list[str]) -> None:
    ran = full("send", *option, "--to", "max,sarah", "Go")
    assert (ran.code, ran.err.count("\nteamchat: ") + ran.err.startswith("teamchat: ")) == (13, 1), ran.err
    assert LOST in ran.err
    assert "Traceback" not in ran.err
    names = [name for name, _ in said()]
    assert names + [str(name) for name, _ in queue()] == ["kailai", "max", "sarah"]


@pair
def test_a_full_disk_behind_the_output_says_what_waits_and_how_to_go_on() -> None:
    ran = shell(">/dev/full", "send", "--to", "max,sarah", "Go")
    ends = notes("paused: interrupted; held: sarah", "try: teamchat resume", "the conversation is in: teamchat log")
    assert ran.err == notes("session s1 begins", "max begins (turn 1)") + LOST + ends
    assert queue() == [("sarah", "held")]
    assert run_here("resume", "--quiet").code == 0
    assert [name for name, _ in said()] == ["kailai", "max", "sarah"]


@pair
def test_a_full_disk_behind_a_run_elsewhere_names_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    run_here("send", "--session", "first", "--new", "Go")
    run_here("send", "--session", "other", "--new", "Go")
    monkeypatch.setenv("TEAMCHAT_SESSION", "other")
    ran = shell(">/dev/full", "send", "--session", "first", "Go on")
    assert ran.err.endswith("· the conversation is in: teamchat log --session first\n")


@pair
@pytest.mark.parametrize("option", [[], ["--json"], ["--quiet"]])
def test_a_full_disk_behind_the_last_words_of_a_run_is_no_success(option: list[str]) -> None:
    assert full("send", *option, "Go").code == 13
    assert run_here("resume", "--quiet").code in {0, 2}  # of JSON no line was written, so the turn did not begin
    assert said() == [("kailai", "Go"), ("max", "Hi.")]


FULL = [
    ["log"], ["log", "--json"], ["show"], ["show", "--json"], ["show", "--prompt"], ["show", "--diff"], ["sessions"],
    ["sessions", "--json"], ["usage"], ["usage", "--json"], ["team"], ["team", "--json"], ["doctor"],
    ["doctor", "--json"], ["send", "--dry-run", "x"], ["demo", "--speed", "0"], ["demo", "--json", "--speed", "0"],
    ["--help"], ["log", "--help"], ["--version"], [], ["--show-completion", "bash"],
]  # fmt: skip


@pair
def test_a_full_disk_behind_what_is_shown_is_one_line() -> None:
    run_here("send", "Go")
    for command in FULL:
        ran = full(*command)
        told = "".join(line for line in ran.err.splitlines(keepends=True) if line[0] != "·")
        assert (command, ran.code, told) == (command, 13, LOST)


NON_BLOCKING = "import os, sys; os.set_blocking(1, False); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"


@pair
def test_output_that_another_program_has_made_non_blocking_is_written_whole() -> None:
    """As Node does with a terminal that it shares."""
    run_here("send", "long " * 100_000)
    command = [sys.executable, "-c", NON_BLOCKING, *argv("log")[1:]]
    done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stdout.count(b"long")) == (0, 100_000)


@pair
def test_a_full_disk_behind_the_notes_stops_nothing() -> None:
    assert full("send", "Go", stream="stderr") == Result(0, "max:\nHi.\n\n", "")
    assert full("nonsense", stream="stderr").code == 2


@pair
def test_a_store_that_can_not_grow_is_one_line_and_what_was_said_stays() -> None:
    run_here("send", "Go")

    def no_more() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    done = subprocess.run(
        argv("send", "x" * 100_000), capture_output=True, preexec_fn=no_more, timeout=TIMEOUT_S, check=False
    )
    ran = Result(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert ran.code == 13, ran.err
    assert "Traceback" not in ran.err
    assert "cannot be used: " in ran.err
    assert said() == [("kailai", "Go"), ("max", "Hi.")]


# --- not enough


@pair
def test_a_process_that_may_open_few_files_gets_one_line() -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))

    done = subprocess.run(argv("send", "Go"), capture_output=True, preexec_fn=few, timeout=TIMEOUT_S, check=False)
    told = notes(BEGINS) + "teamchat: Too many open files\n  try: ulimit -n 1024\n"
    assert Result(done.returncode, done.stdout.decode(), done.stderr.decode()) == Result(13, "", told)
    assert cli("send", "Go").code == 0


@pair
@pytest.mark.parametrize("most", [5, 6, 7, 8])
def test_one_that_may_open_hardly_any_gets_one_too_and_stores_nothing(most: int) -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    before = said()
    done = subprocess.run(argv("send", "Go"), capture_output=True, preexec_fn=few, timeout=TIMEOUT_S, check=False)
    *_, told, hint = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout, hint) == (13, b"", "  try: ulimit -n 1024")
    assert told.startswith("teamchat: Too many open files")
    assert "Traceback" not in done.stderr.decode()
    assert said() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user, whose processes are counted")
@pytest.mark.parametrize("most", [1, 2, 3], ids=["no thread", "no guardian", "no agent"])
def test_where_the_system_starts_no_more_processes_the_queue_is_kept(made: Crew, most: int) -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))

    own = f"command = {json.dumps(['/bin/echo', 'Hi'])}"  # another user may not run what lies in a folder of root
    made.file.write_text(re.sub(r"(?m)^command = .*$", own, made.file.read_text()))
    may_read = "-all,+dac_override,+dac_read_search"
    nobody = 61000 + os.getpid() % 1000  # another one in each process of the tests
    user = ["setpriv", f"--reuid={nobody}", "--clear-groups"]
    command = [
        *user,
        f"--inh-caps={may_read}",
        f"--ambient-caps={may_read}",
        *argv("send", "--trust", "--to", "max,sarah", "Go"),
    ]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        preexec_fn=few,
        env={**os.environ, "TMPDIR": "/tmp"},  # the folder of the tests is root's own
        timeout=TIMEOUT_S,
        check=False,
    )
    assert steady(Result(done.returncode, done.stdout.decode(), done.stderr.decode())) == Result(
        11,
        "",
        notes(
            BEGINS,
            "max begins (turn 1)",
            "max · N.Ns · 0 denied",
            "failed: max could not be started: Resource temporarily unavailable; held: max, sarah",
            "try: teamchat resume",
        ),
    )
    assert queue() == [("max", "held"), ("sarah", "held")]


# --- not writable


@pair
@pytest.mark.parametrize("command", [["send", "Go"], ["log"], ["sessions"]])
def test_a_state_folder_that_can_not_be_written_is_one_line(world: Path, command: list[str]) -> None:
    run_here("send", "Go")
    everything = [world / "state", *(world / "state").rglob("*")]
    for path in everything:
        path.chmod(0o500 if path.is_dir() else 0o400)
    done = subprocess.run(
        [*LIKE_A_USER, *argv(*command)], stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False
    )
    for path in everything:
        path.chmod(0o700)
    ran = Result(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert (ran.code, ran.err.count("\n")) == (13, 1), ran.err
    assert refused(ran).startswith("the store ")
    assert ran.err.endswith("; set TEAMCHAT_HOME to a folder that can be written\n")


READ_ONLY = """\
mkdir -p "$TMPDIR/modules/one"
touch "$TMPDIR/modules/one/file"
ln -s "$HOME" "$TMPDIR/modules/home"
chmod 555 "$TMPDIR/modules/one" "$TMPDIR/modules"
echo Hi
"""


def test_what_an_agent_made_read_only_in_its_private_folder_goes_with_it(world: Path) -> None:
    """As Go does with what it downloads; where its links lead nothing is touched."""
    (world / "home").chmod(0o755)
    Path("agent.sh").write_text(READ_ONLY)
    Path("teamchat.toml").write_text(
        '[[members]]\nname = "max"\nagent = "own"\n[agents.own]\ncommand = ["sh", "agent.sh"]\n'
    )
    command = [*LIKE_A_USER, *argv("send", "--trust", "Go")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stdout) == (0, b"max:\nHi\n\n"), done.stderr
    assert list((world / "tmp").iterdir()) == []
    assert (world / "home").stat().st_mode & 0o777 == 0o755


@pair
@pytest.mark.parametrize("command", [["team"], ["send", "Go"], ["log"]])
def test_a_folder_that_is_gone_is_one_line(world: Path, command: list[str]) -> None:
    gone = world / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", 'rmdir "$0" && exec "$@"', str(gone), *argv(*command)],
        cwd=gone, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    ran = Result(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert (ran.code, refused(ran)) == (2, "the folder you are in cannot be read: No such file or directory")


@pair
def test_no_temporary_folder_is_one_line() -> None:
    ran = cli("send", "Go", env={"TMPDIR": "/nonexistent"})
    assert ran.code == 0, "Python finds another one"


# --- other alphabets


def test_a_folder_whose_name_is_no_utf8_is_a_workspace_like_any_other(world: Path) -> None:
    made = crew(world, {"max": ["Hi."]}, team={"name": "crew"})
    text = made.file.read_text().replace('name = "crew"\n', "", 1)
    folder = Path(os.fsdecode(os.fsencode(world / "work") + b"/caf\xe9"))
    folder.mkdir()
    (folder / "teamchat.toml").write_text(text)
    ran = cli("send", "--trust", "Go", cwd=folder)
    assert (ran.code, ran.out) == (0, "max:\nHi.\n\n")
    for command in (
        ["log"],
        ["show"],
        ["show", "--json"],
        ["sessions"],
        ["team"],
        ["team", "--json"],
        ["send", "--dry-run", "x"],
    ):
        shown = cli(*command, cwd=folder)
        assert (shown.code, shown.err) == (0, ""), shown.err


def test_a_state_folder_whose_name_is_no_utf8_keeps_what_is_said(world: Path) -> None:
    crew(world, {"max": ["Hi."]})
    home = os.fsdecode(os.fsencode(world) + b"/caf\xe9")
    ran = cli("send", "--trust", "Go", env={"TEAMCHAT_HOME": home})
    assert (ran.code, ran.out) == (0, "max:\nHi.\n\n")
    for command in (["log"], ["show"], ["resume"]):
        assert "Traceback" not in cli(*command, env={"TEAMCHAT_HOME": home}).err


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8"])
def test_every_script_is_sent_and_shown_whatever_the_locale(world: Path, locale: str) -> None:
    made = crew(world, {"max": ["水 🙂 é"]})
    ran = cli("send", "--quiet", "水 🙂 é", env={"LC_ALL": locale, "LANG": locale})
    assert ran == Result(0, "水 🙂 é\n", "")
    assert made.prompts("max")[0].endswith("水 🙂 é")
