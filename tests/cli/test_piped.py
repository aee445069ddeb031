"""Standard input as part of a message: whatever stands in it, it addresses nobody."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from teamchat.cli.piped import fenced, with_piped
from teamchat.core.routing.markers import MarkerKind, scan
from tests.cli.scene import refused, rows, said
from tests.crew import Crew, crew
from tests.program import TIMEOUT_S, argv, cli, run_here

WAITING = "· waiting for standard input, a pipe without text so far (add < /dev/null to send without it)\n"


@pytest.fixture
def made(world: Path) -> Crew:
    return crew(world, {"max": ["One.", "Two."], "sarah": ["Me."]}, team={"lead": "max"})


def test_piped_text_is_a_block_behind_the_message_and_its_markers_are_text(made: Crew) -> None:
    diff = "-[NEXT: max]\n+[NEXT: sarah]\n```py\n[DROP: ALL] [TEAM_TASK: x]\n```\n\n\n"
    assert cli("send", "--quiet", "Find bugs", stdin=diff).out == "One.\n"
    block = "Find bugs\n\n````\n-[NEXT: max]\n+[NEXT: sarah]\n```py\n[DROP: ALL] [TEAM_TASK: x]\n```\n````"
    assert said() == [("kailai", block), ("max", "One.")]
    assert made.prompts("max")[0].endswith(f"\n\n{block}")
    assert run_here("task").out == ""


@pytest.mark.usefixtures("made")
def test_the_markers_of_the_message_itself_act() -> None:
    assert cli("send", "--quiet", "[NEXT: sarah] Look", stdin="text").out == "Me.\n"
    assert said()[0] == ("kailai", "[NEXT: sarah] Look\n\n```\ntext\n```")


@pytest.mark.usefixtures("made")
def test_a_fence_that_the_message_leaves_open_does_not_let_markers_out() -> None:
    assert cli("send", "--quiet", "Like this:\n```\ncode", stdin="[NEXT: sarah]").out == "One.\n"
    assert said()[0] == ("kailai", "Like this:\n```\ncode\n```\n\n```\n[NEXT: sarah]\n```")


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("stdin", ["", "\n \t\n"])
def test_an_empty_pipe_adds_nothing(stdin: str) -> None:
    assert cli("send", "--quiet", "Hi", stdin=stdin).code == 0
    assert said()[0] == ("kailai", "Hi")


@pytest.mark.usefixtures("made")
def test_a_dash_is_the_message_itself_and_its_markers_act() -> None:
    assert cli("send", "--quiet", "-", stdin="[NEXT: sarah]\n\n  Look\n").out == "Me.\n"
    assert said()[0] == ("kailai", "[NEXT: sarah]\n\n  Look\n")


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("stdin", ["", " \n"])
def test_a_dash_without_text_is_nothing_to_send(stdin: str) -> None:
    ran = cli("send", "-", stdin=stdin)
    assert (ran.code, refused(ran)) == (2, "there is nothing to send")
    assert run_here("sessions", "--json").out == ""


def test_a_file_may_stand_for_the_pipe(made: Crew, world: Path) -> None:
    (world / "text").write_text("from a file")
    with (world / "text").open() as file:
        done = subprocess.run(argv("send", "-q", "Read"), stdin=file, capture_output=True, timeout=30, check=True)
    assert done.stdout == b"One.\n"
    assert made.prompts("max")[0].endswith("\n\nRead\n\n```\nfrom a file\n```")


def test_bytes_that_are_no_text_do_no_harm(made: Crew) -> None:
    assert cli("send", "--quiet", "Hi", stdin=b"a\x00b \xff\xfe \xed\xa0\x80 \x1b[2J\r\nend").code == 0
    text = "a\x00b \ufffd\ufffd \ufffd\ufffd\ufffd \x1b[2J\r\nend"
    assert said()[0] == ("kailai", f"Hi\n\n```\n{text}\n```")
    assert text in made.prompts("max")[0].replace("\n", "\n")
    assert "\x1b" not in run_here("log").out


def piping(*args: str) -> subprocess.Popen[bytes]:
    """The program with a pipe that nobody writes to yet, waiting for it."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(argv(*args), stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stderr
    assert process.stderr.readline().decode() == WAITING
    return process


def test_a_pipe_without_a_writer_is_not_waited_for_in_silence(made: Crew) -> None:
    process = piping("send", "--quiet", "Hi")
    out, err = process.communicate(b"at last\n", timeout=TIMEOUT_S)
    assert (process.returncode, out, err) == (0, b"One.\n", b"")
    assert made.prompts("max")[0].endswith("\n\nHi\n\n```\nat last\n```")


@pytest.mark.usefixtures("made")
def test_ctrl_c_ends_the_waiting() -> None:
    process = piping("send", "Hi")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert run_here("log").code == 4
    assert not rows()["sessions"]


PIECES = ["[NEXT: max]", "[DROP: ALL]", "[TEAM_TASK: x]", "`", "``", "```", "````", "~~~", "~~~~", "\n", "\n\n", "\r",
          "- ", "1. ", "> ", "  ", "    ", "\t", "x", "\\", "# ", "---", "<!--"]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def acting(text: str) -> list[str]:
    return [marker.raw for marker in scan(text, "human") if marker.counts and marker.kind is not MarkerKind.FROM]


@given(TEXTS, TEXTS.filter(str.strip))
@example("```", "[NEXT: max]")
@example("~~~\n`", "~~~\n[NEXT: max]")
@example("- ```\n  x", "[NEXT: max]")
def test_no_piped_text_addresses_anybody(text: str, piped: str) -> None:
    assert acting(with_piped(text, piped)) == acting(text)
    assert acting(fenced(piped)) == []
