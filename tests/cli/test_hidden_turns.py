"""A teamchat whose agent hides it in namespaces of its own, and people in other places who are nobody's agent."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pexpect
import pytest

from teamchat.cli.startup.workspace import store_file
from teamchat.core.conversation.permission import trust_store
from teamchat.core.store.database import BUSY_S
from tests.cli.inner import APART, errors, inner, select, spender, team
from tests.namespaces import refusal
from tests.program import TIMEOUT_S, argv, cli, ended, start
from tests.runners.processes import eventually
from tests.terminals import Terminal

HIDDEN = "runs outside of the namespaces (containers) of this command, which may be its own"
OTHER = ["unshare", "-r", "-p", "-f", "--mount-proc"]
namespaces = pytest.mark.skipif(bool(refusal()), reason=refusal())


@namespaces
@pytest.mark.parametrize("command", [("send", "--new", "Deeper"), ("run", "sequential", "Deeper"), ("trust",)])
@pytest.mark.parametrize("form", APART)
def test_where_a_namespace_hides_the_turn_nothing_runs_and_nobody_trusts(form: str, command: tuple[str, ...]) -> None:
    world = team(max=f"echo turn >> ../turns; {inner(*command, form=form)}")
    assert cli("send", "Go").code == 0
    assert (world / "turns").read_text() == "turn\n", errors(world)
    code = (world / "codes").read_text()
    assert code == "5\n" or (code == "7\n" and "that is over or cannot be found" in errors(world)), errors(world)
    assert errors(world).startswith("teamchat: ")
    assert errors(world).count("\n") == 1
    assert select("SELECT COUNT(*) FROM sessions") == [(1,)]


@namespaces
def test_the_refusal_names_the_turn_and_what_to_do() -> None:
    world = team(max=inner("send", "--trust", "--new", "Deeper", form="with its own /proc and a lower limit"))
    before = trust_store().file.read_text()
    assert cli("send", "Go").code == 0
    assert errors(world) == (
        f"teamchat: turn 1 of s1 (max) {HIDDEN}; run the command where that turn was started, or when it has ended\n"
    )
    assert trust_store().file.read_text() == before


@contextmanager
def a_turn_that_runs() -> Iterator[Path]:
    """The first message of a team whose member answers it when the test says so, and later ones at once."""
    hold = "test -e ../once || { touch ../once ../hold; while [ -e ../hold ]; do sleep 0.05; done; }"
    world = team(max=hold)
    with start("send", "--session", "long", "--new", "Go") as process:
        assert eventually((world / "hold").exists)
        yield world
        (world / "hold").unlink()
        assert ended(process).code == 0


def test_a_script_runs_beside_a_turn() -> None:
    with a_turn_that_runs():
        assert cli("send", "--new", "Hi").code == 0


def test_ci_runs_beside_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with a_turn_that_runs():
        ran = subprocess.run(
            ["setsid", "--wait", *argv("send", "--new", "--trust", "Hi")],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        assert (ran.returncode, ran.stdout) == (0, "max:\nDone\n\n"), ran.stderr


def test_a_second_terminal_runs_beside_a_turn() -> None:
    with a_turn_that_runs():
        program, *rest = argv("send", "--new", "Hi")
        terminal = Terminal(program, rest, env=dict(os.environ), encoding="utf-8", timeout=TIMEOUT_S)
        terminal.expect("Done")
        terminal.expect(pexpect.EOF)
        terminal.close()
        assert terminal.exitstatus == 0
        assert select("SELECT COUNT(*) FROM sessions") == [(2,)]


@namespaces
def test_a_person_in_a_container_runs_turns_where_none_runs_outside_of_it() -> None:
    with a_turn_that_runs():
        pass
    ran = subprocess.run([*OTHER, *argv("send", "--new", "Hi")], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@namespaces
def test_a_turn_whose_teamchat_was_killed_is_in_nobodys_way() -> None:
    """The store says that it runs, and no process has its session."""
    world = team(max="test -e ../once || { touch ../once; sleep 60; }")
    with start("send", "Go") as process:
        assert eventually((world / "once").exists)
        process.kill()
        ended(process)
    assert select("SELECT status FROM turns") == [("running",)]
    ran = subprocess.run([*OTHER, *argv("send", "--new", "Hi")], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_what_a_turn_may_do_is_in_the_store_and_goes_with_the_turn() -> None:
    world = team(max=f"find {os.environ['TEAMCHAT_HOME']} -name '*.json' > ../files")
    assert cli("send", "Go").code == 0
    assert "caller" not in (world / "files").read_text()
    assert select("SELECT admission FROM turns") == [(None,)]


def test_limits_that_an_agent_writes_beside_the_output_count_for_nothing() -> None:
    world = Path.cwd().parent
    spender(world)
    write = 'echo \'{"max_turns": 99, "left": 9}\' > $(dirname $(readlink /proc/$PPID/fd/1))/caller.json'
    send = inner("send", "--new", "--turns", "99", "Hi")
    team("turns = 2", max=f"{write}; cd ../other-team; {send}; {send}; cd ../work")
    assert cli("send", "Go").code == 0
    assert (world / "codes").read_text() == "0\n7\n", errors(world)


ELSEWHERE = (
    f"turn 1 of s1 (max) in {{work}} {HIDDEN}; run the command where that turn was started, or when it has ended"
)


def other_team(world: Path, name: str = "other-team") -> Path:
    """A folder of the agent's own whose team may do anything. It is not trusted."""
    (other := world / name).mkdir()
    (other / "teamchat.toml").write_text(
        '[[members]]\nname = "ann"\nagent = "ann-agent"\n[agents.ann-agent]\ncommand = ["/bin/true"]\n'
    )
    return other


@namespaces
@pytest.mark.parametrize("command", [("trust",), ("send", "--trust", "Hi"), ("run", "sequential", "--trust", "Hi")])
@pytest.mark.parametrize("form", APART)
def test_nobody_trusts_a_folder_of_its_own_where_a_namespace_hides_the_turn(
    form: str, command: tuple[str, ...]
) -> None:
    world = team(max=f"cd ../other-team; {inner(*command, form=form)}; cd ../work")
    other_team(world)
    before = trust_store().file.read_text()
    assert cli("send", "Go").code == 0
    assert trust_store().file.read_text() == before
    assert (world / "codes").read_text() in {"5\n", "7\n"}, errors(world)
    assert errors(world).startswith("teamchat: ")
    if form == "with its own /proc and a lower limit":
        assert errors(world) == f"teamchat: {ELSEWHERE.format(work=world / 'work')}\n"


@namespaces
def test_a_team_file_that_is_made_there_is_not_trusted() -> None:
    form = "with its own /proc and a lower limit"
    world = team(max=f"mkdir ../made; cd ../made; {inner('init', '--template', 'offline', form=form)}; cd ../work")
    before = trust_store().file.read_text()
    assert cli("send", "Go").code == 0
    assert (trust_store().file.read_text(), (world / "codes").read_text()) == (before, "5\n"), errors(world)
    assert not list((world / "made").iterdir())


@namespaces
def test_the_question_at_a_terminal_is_not_asked_there() -> None:
    with a_turn_that_runs() as world:
        os.chdir(other_team(world))
        program, *rest = [*OTHER, *argv("send", "Hi")]
        terminal = Terminal(
            program, rest, env=dict(os.environ), encoding="utf-8", timeout=TIMEOUT_S, dimensions=(24, 400)
        )
        terminal.expect(pexpect.EOF)
        terminal.close()
        os.chdir(world / "work")
    assert ELSEWHERE.format(work=world / "work").replace("turn 1 of s1", "turn 1 of long") in terminal.before
    assert "Trust it?" not in terminal.before
    assert terminal.exitstatus == 5


def beside(*words: str, apart: bool = False) -> subprocess.CompletedProcess[str]:
    line = [*(OTHER if apart else ()), *argv(*words)]
    return subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)


@pytest.mark.parametrize("command", [("trust",), ("send", "--trust", "Hi")])
def test_a_person_trusts_another_folder_while_a_turn_runs(command: tuple[str, ...]) -> None:
    with a_turn_that_runs() as world:
        os.chdir(other_team(world))
        ran = beside(*command)
        os.chdir(world / "work")
    assert ran.returncode == 0 or "ann" in ran.stderr, ran.stderr
    assert str(world / "other-team") in trust_store().file.read_text()


@namespaces
@pytest.mark.parametrize("command", [("send", "Hi"), ("send", "--trust", "Hi"), ("trust",)])
def test_a_person_in_a_container_runs_what_is_trusted_already_while_a_turn_runs_elsewhere(
    command: tuple[str, ...],
) -> None:
    with a_turn_that_runs() as world:
        spender(world)
        os.chdir(world / "other-team")
        ran = beside(*command, apart=True)
        os.chdir(world / "work")
    assert ran.returncode == 0, ran.stderr


@namespaces
def test_a_turn_elsewhere_whose_teamchat_was_killed_keeps_nobody_from_giving_trust() -> None:
    world = team(max="test -e ../once || { touch ../once; sleep 60; }")
    with start("send", "Go") as process:
        assert eventually((world / "once").exists)
        process.kill()
        ended(process)
    assert select("SELECT status FROM turns") == [("running",)]
    os.chdir(other_team(world))
    ran = beside("trust", apart=True)
    os.chdir(world / "work")
    assert ran.returncode == 0, ran.stderr


@namespaces
@pytest.mark.parametrize("kind", ["damaged", "empty", "of another version", "locked", "a folder", "a link"])
def test_a_store_that_cannot_be_read_keeps_nobody_from_giving_trust(kind: str) -> None:
    world = team(max="true")
    assert cli("send", "Go").code == 0
    file = store_file(world / "work")
    os.chdir(other_team(world))
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        match kind:
            case "damaged":
                file.write_bytes(b"x" * 5000)
            case "empty":
                file.write_bytes(b"")
            case "of another version":
                db.execute("ALTER TABLE turns DROP COLUMN admission")
            case "locked":
                db.execute("PRAGMA journal_mode = DELETE")
                db.execute("BEGIN EXCLUSIVE")
            case "a folder":
                file.unlink()
                file.mkdir()
            case "a link":
                file.unlink()
                file.symlink_to("/dev/zero")
        began = time.monotonic()
        ran = beside("trust", apart=True)
    assert ran.returncode == 0, ran.stderr
    assert time.monotonic() - began < BUSY_S
    os.chdir(world / "work")
