"""Which session a command continues without `--session`: a person at a terminal and scripts each have their own."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from tests.cli.helpers import objects
from tests.program import TIMEOUT_S, argv, run_here
from tests.screens import screen
from tests.scripted_team import crew
from tests.terminals import Terminal


@pytest.fixture(autouse=True)
def _made(world: Path) -> None:
    crew(world, {"max": ["Yes."] * 9})


@contextmanager
def at_terminal(*words: str) -> Iterator[pexpect.spawn]:
    env = {**os.environ, "TERM": "dumb", "PS1": "ready> "}
    child = Terminal(words[0], list(words[1:]), env=env, timeout=TIMEOUT_S, echo=False, encoding="utf-8")
    try:
        yield child
    finally:
        child.close(force=True)


def typed(*args: str) -> str:
    """What a command prints that a person types at a terminal."""
    with at_terminal(*argv(*args)) as child:
        child.expect(pexpect.EOF)
        return str(child.before).replace("\r\n", "\n")


def by_script(*args: str) -> str:
    """What a command tells a script, which has no terminal."""
    return run_here(*args).err


def current() -> list[str]:
    """The session that a script continues."""
    return [str(line["name"]) for line in objects(run_here("sessions", "--json")) if line["current"]]


def test_a_script_does_not_change_which_session_a_person_continues() -> None:
    assert "session s1 begins" in typed("send", "Mine")
    assert "session hook begins" in by_script("send", "--new", "--session", "hook", "Check it")
    assert "session s1 continues" in typed("send", "Mine again")
    assert typed("log", "-n", "1").startswith("msg-4 max")


def test_a_script_continues_what_a_script_used_last() -> None:
    assert "session s1 begins" in by_script("send", "--new", "One")
    assert "session s2 begins" in typed("send", "--new", "Mine")
    assert "session s1 continues" in by_script("send", "Two")
    assert current() == ["s1"]
    assert len(objects(run_here("log", "--json"))) == 4


def test_a_first_script_continues_the_session_of_the_person_and_the_other_way_around() -> None:
    assert "session s1 begins" in typed("send", "Mine")
    assert "session s1 continues" in by_script("send", "From a script")
    assert "session s1 continues" in typed("send", "Mine")


def test_a_person_who_has_used_none_sees_the_session_of_the_scripts() -> None:
    by_script("send", "From CI")
    assert "From CI" in typed("log")
    assert "session s1 continues" in typed("send", "Mine")


def test_a_session_that_a_chat_begins_is_the_one_that_the_person_continues() -> None:
    by_script("send", "From a script")
    with screen("chat", "--new") as shown:
        shown.until(lambda text: "›" in text)
        shown.child.send("Mine\r")
        shown.until(lambda text: "Yes." in text)
        shown.child.send("\x04")
        shown.to_the_end()
    assert "session s2 continues" in typed("send", "Again")
    assert current() == ["s1"]


def test_a_mark_shows_which_session_continues_at_this_terminal() -> None:
    typed("send", "Mine")
    by_script("send", "--new", "Check it")
    listed = typed("sessions").splitlines()
    assert [line[:4] for line in listed] == ["  s2", "▸ s1"]
    assert current() == ["s2"]


def test_a_hint_of_a_script_names_the_session_that_a_person_would_not_continue(world: Path) -> None:
    crew(world, {"max": ["Yes.", {"say": "No", "exit": 3}, {"say": "No", "exit": 3}]})
    typed("send", "Mine")
    assert "try: teamchat resume --session s2" in by_script("send", "--new", "Check it")
    assert "try: teamchat resume\n" in typed("send", "Mine")


def test_what_a_script_runs_at_a_terminal_is_not_typed() -> None:
    typed("send", "Mine")
    script = f"{shlex.join(argv('send', '--new', 'Check it'))}; true"
    with at_terminal("/bin/sh", "-c", script) as child:
        child.expect("session s2 begins")
        child.expect(pexpect.EOF)
    assert "session s1 continues" in typed("send", "Mine again")


def test_a_pipe_that_is_typed_in_a_shell_is_typed() -> None:
    by_script("send", "--new", "Check it")
    with at_terminal("/bin/bash", "--norc", "--noprofile", "-i") as shell:
        shell.expect_exact("ready> ")
        shell.sendline(f"echo words | {shlex.join(argv('send', '--new', 'Read this'))} | cat")
        shell.expect("session s2 begins")
        shell.expect_exact("ready> ")
        shell.sendline("exit")
        shell.expect(pexpect.EOF)
    by_script("send", "--new", "Check it")
    assert "session s2 continues" in typed("send", "Mine")
