"""A program that has nothing but a terminal, from its prompt to its end; every program here is a real one."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.cassette.player import Player, RecordedTurn, Recorder
from teamchat.runners.agent_events import AgentEvent, Failure, FailureKind, Note, Started, Text, TextDelta
from teamchat.runners.base import Job, Terminal
from teamchat.runners.child.process import launch
from teamchat.runners.child.running import Launch, Running
from teamchat.runners.child.supervisor import Clocks, Stopper, TurnEnd, run_turn
from teamchat.runners.terminal.runner import TerminalRunner
from tests.program import fake
from tests.runners.processes import PATIENCE_S, Pids, clocks_wait_for, eventually

REPL = Path(__file__).parent.parent.parent / "fakes" / "repl.py"
PROMPT = Terminal(">>> ")
LONG = Clocks(PATIENCE_S, PATIENCE_S, PATIENCE_S, PATIENCE_S, PATIENCE_S)
RUNNER = TerminalRunner()


@dataclass
class Taken:
    """A turn at a terminal."""

    end: TurnEnd
    events: list[AgentEvent] = field(default_factory=list)
    recorded: list[RecordedTurn] = field(default_factory=list)
    launch: Launch | None = None

    @property
    def failure(self) -> Failure:
        assert self.end.failure is not None, self.end.text
        return self.end.failure

    @property
    def notes(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Note)]

    @property
    def streamed(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))


Take = Callable[..., Taken]


def repl(way: str) -> tuple[str, ...]:
    return (*fake(REPL), way)


@pytest.fixture
def take(tmp_path: Path, pids: Pids, monkeypatch: pytest.MonkeyPatch) -> Take:
    """Run one turn of a program: `say` is the prompt; `stop_on` is text at which Ctrl-C is pressed.

    The clocks wait for the text `clocks_from`.
    """

    def run(
        argv: tuple[str, ...],
        say: str = "hi",
        *,
        terminal: Terminal = PROMPT,
        clocks: Clocks = LONG,
        first_byte_s: float = PATIENCE_S,
        env: dict[str, str] | None = None,
        stop_on: str | None = None,
        clocks_from: str = "",
    ) -> Taken:
        job = Job(argv, tmp_path, tmp_path, terminal=terminal, first_byte_s=first_byte_s)
        command = RUNNER.command(job)
        program = shutil.which(command.argv[0])
        assert program
        given = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "AGENT_PIDS": str(pids.file), **command.env}
        what = Launch(
            argv=(program, *command.argv[1:]),
            cwd=tmp_path,
            env={**given, **(env or {})},
            stdin=RUNNER.prepare(say, typed=range(0), exists=lambda _: False).stdin,
            folder=tmp_path / "turn",
            through=command.through,
        )
        stopper = Stopper()
        recorded: list[RecordedTurn] = []
        events: list[AgentEvent] = []

        def emit(heard: Sequence[AgentEvent]) -> None:
            events.extend(heard)
            if stop_on and any(isinstance(event, TextDelta) and stop_on in event.text for event in heard):
                stopper.request()

        if clocks_from:
            clocks_wait_for(lambda: any(clocks_from in str(event) for event in events), monkeypatch)
        process = Recorder(launch, recorded.append)(what)
        end = asyncio.run(run_turn(process, RUNNER.parser(), clocks, stopper, emit))
        return Taken(end, events, recorded, what)

    return run


def test_the_answer_is_what_stands_between_two_prompts(take: Take) -> None:
    taken = take(repl("upper"), "good day")
    assert (taken.end.text, taken.end.failure) == ("GOOD DAY", None)
    assert taken.end.exit.code == 0
    assert taken.end.exit.left == ()
    assert taken.events == [Started(), TextDelta("GOOD DAY\n"), Text("GOOD DAY"), taken.events[-1]]


def test_a_program_is_on_a_wide_terminal_of_its_own(take: Take) -> None:
    shown = "(None, 'dumb', [True, True, True])"
    assert take(repl("tty"), env={"COLUMNS": "20"}).end.text == f"True {shown} True"


def test_the_environment_may_name_another_kind_of_terminal(take: Take) -> None:
    assert "'xterm'" in take(repl("tty"), env={"TERM": "xterm"}).end.text


@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("echo", "you said: hi"),
        ("colours", "red hi"),
        ("repaint", "One\ntwo"),
        ("quote", "type >>> to go on\n>>> is my prompt"),
        ("slow", "one two three"),
        ("pieces", "höflich 🎉"),
        ("odd", "a\ufffdb\ufffd c  \ufffdd"),
    ],
)
def test_the_answer_is_the_text_a_person_would_see(take: Take, way: str, text: str) -> None:
    taken = take(repl(way))
    assert (taken.end.text, taken.end.failure) == (text, None)


def test_several_lines_are_typed_as_one_and_a_note_says_so(take: Take) -> None:
    taken = take(repl("upper"), "one\n\ttwo\n\nthree\n")
    assert taken.end.text == "ONE  TWO  THREE"
    assert taken.notes == ["typed as one line: the program has not asked for pasted text"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_several_lines_are_pasted_whole_where_the_program_asked_for_that(take: Take) -> None:
    bash = ("bash", "--norc", "--noprofile")
    taken = take(bash, 'echo "one\n two\tthree"', terminal=Terminal(r"\$ "), env={"TERM": "xterm", "PS1": "$ "})
    assert (taken.end.text, taken.notes) == ("one\n two\tthree", [])


@pytest.mark.parametrize(
    ("way", "say", "answer"),
    [
        ("paste", "one\n\ttwo, three and four", r"pasted: 'one\r\ttwo, three and four'"),
        ("late", "one two", "you said: one two"),
    ],
)
def test_an_echo_that_comes_late_is_no_answer(take: Take, way: str, say: str, answer: str) -> None:
    taken = take(repl(way), say)
    assert (taken.end.text, taken.notes) == (answer, [])


@pytest.mark.parametrize("way", ["digest", "echo"])
def test_a_prompt_of_any_length_arrives_whole(take: Take, way: str) -> None:
    """The system's own line editing would keep the first 4,095 bytes of a line and lose the rest."""
    said = "0123456789abcdeö" * (60_000 if way == "digest" else 2_000)
    taken = take(repl(way), said)
    digest = hashlib.sha256(said.encode()).hexdigest()
    assert taken.end.text == (f"{len(said)} {digest}" if way == "digest" else f"you said: {said}")
    assert taken.end.exit.left == ()
    assert taken.notes == []


def test_keys_in_the_prompt_are_not_pressed(take: Take) -> None:
    assert take(repl("upper"), "a\x03b\x04c\x1b[201~d\x15e\x9b\r\nf").end.text == "ABC[201~DE F"


def test_a_prompt_behind_the_end_of_the_answer_is_found_by_its_group(take: Take) -> None:
    taken = take(repl("unfinished"), terminal=Terminal("(?P<answer>.*)>>> "))
    assert taken.end.text == "no line end after hi"
    taken = take(repl("unfinished"), "x" * 3000, terminal=Terminal("(?P<answer>.*)>>> "))
    assert taken.end.text == "no line end after " + "x" * 3000


def test_what_is_typed_at_the_end_and_how_it_is_submitted_can_be_said(take: Take) -> None:
    taken = take(repl("echo"), terminal=Terminal(">>> ", submit="\x18", exit="/bye"))
    assert (taken.end.text, taken.end.failure, taken.notes) == ("you said: hi", None, [])
    taken = take(repl("deaf"), terminal=Terminal(">>> ", exit="/bye"))
    assert (taken.end.text, taken.end.failure, taken.notes) == ("HI", None, [])


def test_a_program_that_will_not_end_has_answered_and_is_ended(take: Take, pids: Pids) -> None:
    taken = take(repl("deaf"))
    assert (taken.end.text, taken.end.failure) == ("HI", None)
    assert "hung up" in taken.notes[0]
    assert len(taken.end.exit.left) == 1
    assert pids.all()
    assert pids.alive() == []


def test_children_that_are_left_are_ended(take: Take, pids: Pids) -> None:
    taken = take(repl("children"))
    assert (taken.end.text, taken.end.failure, len(taken.end.exit.left)) == ("HI", None, 2)
    assert len(pids.all()) == 3
    assert pids.alive() == []


@pytest.mark.parametrize(
    ("way", "reason", "partial"),
    [
        ("blank", "finished without an answer", ""),
        ("dies", "ended with exit code 3 before its prompt came: out of memory", "half an answer\nout of memory"),
        ("killed", "was ended by SIGKILL before its prompt came: >>>", ""),
        ("unnamed", "was ended by signal 40 before its prompt came: >>>", ""),
        ("closes", "closed its terminal before its prompt came: >>>", ""),
        ("leaves", "ended with exit code 0 before its prompt came: >>>", ""),
    ],
)
def test_without_an_answer_and_a_prompt_it_has_failed(take: Take, way: str, reason: str, partial: str) -> None:
    taken = take(repl(way))
    assert (taken.failure, taken.end.text) == (Failure(FailureKind.AGENT, reason), partial)


def test_a_program_that_ends_at_once_has_failed(take: Take) -> None:
    taken = take(("/bin/sh", "-c", "echo 'Error: no such model'; exit 1"))
    assert taken.failure.reason == "ended with exit code 1 before its prompt came: Error: no such model"
    assert taken.end.text == "Error: no such model"


def test_a_program_that_is_none_could_not_be_started(take: Take, tmp_path: Path) -> None:
    broken = tmp_path / "a program"
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o700)
    taken = take((str(broken),))
    assert taken.failure.kind is FailureKind.MISSING
    assert "could not be started: " in taken.failure.reason
    broken.write_text("#!/bin/sh\nprintf '>>> '; read line; echo \"$line\"; printf '>>> '; read line\n")
    assert take((str(broken),)).end.text == "hi"


def test_a_prompt_that_never_comes_runs_out_of_the_first_bytes_time(take: Take, pids: Pids) -> None:
    for seconds in (0.5, 2, 8, 32):  # until that is enough for it to show what it shows
        taken = take(repl("unread"), first_byte_s=seconds)
        if "no prompt here" in taken.failure.reason:
            break
    assert taken.failure.kind is FailureKind.TIMEOUT
    said = "no line matched prompt_pattern '>>> '; the last one is 'no prompt here:'"
    assert taken.failure.reason == f"showed no prompt in its first {seconds} s: {said}"
    assert pids.alive() == []


def test_a_prompt_that_does_not_come_again_is_a_stall_and_the_partial_text_is_kept(take: Take, pids: Pids) -> None:
    clocks = Clocks(PATIENCE_S, 0.3, PATIENCE_S, PATIENCE_S, PATIENCE_S)
    taken = take(repl("silent"), clocks=clocks, clocks_from="and a half")
    assert taken.failure == Failure(FailureKind.TIMEOUT, "was silent for 0.3 s (stall)")
    assert taken.end.text == "half an answer\nand a half"
    assert "no line matched prompt_pattern '>>> '; the last one is 'and a half'" in taken.notes
    assert pids.alive() == []


def test_a_program_that_shows_nothing_has_no_first_byte(take: Take) -> None:
    taken = take(("/bin/sleep", "600"), clocks=replace(LONG, first_byte_s=0.3))
    assert taken.failure == Failure(FailureKind.TIMEOUT, "wrote nothing in its first 0.3 s (first_byte)")
    assert (taken.end.first_byte_s, taken.events) == (None, [])


def test_an_interrupt_ends_it_and_keeps_what_was_said(take: Take, pids: Pids) -> None:
    taken = take(repl("silent"), stop_on="and a half")
    assert taken.failure.kind is FailureKind.INTERRUPTED
    assert taken.end.text == "half an answer\nand a half"
    assert pids.alive() == []


def test_a_pattern_that_costs_for_ever_costs_its_own_turn_only(take: Take, pids: Pids) -> None:
    clocks = Clocks(PATIENCE_S, 1.0, PATIENCE_S, PATIENCE_S, PATIENCE_S)
    taken = take(repl("upper"), "a" * 60 + "b", terminal=Terminal(">>> |(A+)+B?C"))
    assert taken.end.text == "A" * 60 + "B"
    taken = take(("/bin/sh", "-c", f"printf '>>> '; read line; printf {'a' * 60}; read line"),
                 terminal=Terminal(">>> |(a+)+b"), clocks=clocks)  # fmt: skip
    assert taken.failure.reason == "was silent for 1 s (stall)"
    assert pids.alive() == []


def test_nothing_of_a_program_that_ignores_every_polite_signal_is_left(take: Take, pids: Pids) -> None:
    taken = take(repl("stubborn"), stop_on="and a half")
    assert taken.failure.kind is FailureKind.INTERRUPTED
    assert taken.end.text == "half an answer\nand a half"
    assert len(pids.all()) == 2
    assert pids.alive() == []


@pytest.mark.parametrize("way", ["flood", "endless_line"])
def test_an_endless_screen_is_stopped_at_its_limit(take: Take, pids: Pids, way: str) -> None:
    assert "MiB to its terminal" in take(repl(way)).failure.reason
    assert pids.alive() == []


def test_the_turns_file_keeps_what_was_said_as_it_came(take: Take, tmp_path: Path) -> None:
    taken = take(repl("slow"))
    assert taken.streamed.split() == ["one", "two", "three"]
    assert b'"two "' in (tmp_path / "turn" / "stdout").read_bytes()


def test_a_recording_is_played_back_to_the_same_end(take: Take) -> None:
    taken = take(repl("repaint"))
    assert taken.launch is not None
    (turn,) = taken.recorded
    assert turn.argv[0] == Path(sys.executable).name
    assert turn.argv[-1] == "repaint"
    played: Running = Player([turn], 1000.0)(taken.launch)
    end = asyncio.run(run_turn(played, RUNNER.parser(), LONG, Stopper(), lambda _: None))
    assert (end.text, end.failure) == ("One\ntwo", None)


PYTHON = ("python3", "-q", "-i")
BASH = ("bash", "--norc", "--noprofile")


@pytest.mark.parametrize("term", ["dumb", "xterm"])
@pytest.mark.parametrize(
    ("argv", "pattern", "say", "answer"),
    [
        (PYTHON, ">>> ", "print('ä' * 3); 6 * 7", "äää\n42"),
        (PYTHON, r">>> |\.\.\. ", "1/0", None),
        (BASH, r"(?P<answer>.*)\$ ", "printf one; printf two", "onetwo"),
        (BASH, r"\$ ", "seq 3; exit 1 | cat", "1\n2\n3"),
    ],
)
def test_real_programs(
    take: Take, argv: tuple[str, ...], pattern: str, say: str, answer: str | None, term: str
) -> None:
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    env = {"TERM": term, "PS1": "$ ", "PYTHON_COLORS": "0", "PYTHON_BASIC_REPL": "1"}
    taken = take(argv, say, terminal=Terminal(pattern), env=env)
    assert taken.end.failure is None
    if answer is None:
        assert taken.end.text.endswith("ZeroDivisionError: division by zero")
    else:
        assert taken.end.text == answer
    assert taken.end.exit.left == ()
    assert taken.notes == []


def test_a_guardians_tree_dies_with_teamchat(take: Take, pids: Pids) -> None:
    """Closing the control socket is all that a killed teamchat does."""
    del take
    import subprocess

    program = f"""
import asyncio, os, sys
from pathlib import Path
from teamchat.runners.base import Job, Terminal
from teamchat.runners.child.process import ChildProcess, Launch
from teamchat.runners.terminal.runner import TerminalRunner
folder = Path({str(pids.file.parent)!r})
command = TerminalRunner().command(Job({repl("silent")!r}, folder, folder, terminal=Terminal(">>> ")))
env = {{"PATH": os.environ["PATH"], "AGENT_PIDS": {str(pids.file)!r}}}
process = ChildProcess(Launch(command.argv, folder, env, b"hi", folder / "turn", through=command.through))
async def main():
    async for chunk in process.chunks():
        if b"and a half" in chunk.data:
            os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == -9, done.stderr
    pids.await_count(1)
    assert eventually(lambda: pids.alive() == [])
