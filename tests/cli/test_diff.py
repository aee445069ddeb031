"""`teamchat diff`: what turns changed in the files, whoever wrote them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.helpers import notes, objects, refused
from tests.core.checkpoint.worktree import WorkTree, remove_checkpoints
from tests.program import cli, run_here
from tests.shell_team import repository, shell


@pytest.fixture
def tree(tmp_path: Path) -> WorkTree:
    return repository(tmp_path / "unused")


def test_a_pipe_gets_a_patch_that_git_applies(tree: WorkTree) -> None:
    work = r"rm -r tests; sed -i s/a/A/ app.py; printf '\000\377' > b.bin; chmod +x run.sh; ln -s app.py link"
    shell(max=f"{work}; mv app.py 'odd name.py'")
    before = tree.files()
    assert run_here("send", "Go").code == 0
    after = tree.files()
    ran = cli("diff")
    assert (ran.code, ran.err) == (0, "")
    subprocess.run(["git", "apply", "-R"], cwd=tree.top, input=ran.raw, check=True)
    assert tree.files() == before
    subprocess.run(["git", "apply"], cwd=tree.top, input=ran.raw, check=True)
    assert tree.files() == after


@pytest.mark.usefixtures("tree")
def test_by_itself_it_takes_the_last_turn_that_changed_files() -> None:
    shell(max="echo c >> app.py", eva=":")
    run_here("send", "--to", "max", "Go")
    run_here("send", "--to", "eva", "Go")
    assert run_here("diff").out == run_here("diff", "1").out == run_here("diff", "msg-2").out
    assert "+c\n" in run_here("diff").out
    assert run_here("diff", "2").out == ""


def test_several_turns_are_one_patch_with_what_was_done_between(tree: WorkTree) -> None:
    shell(max="echo c >> app.py", eva="rm run.sh")
    run_here("send", "--to", "max", "Go")
    tree.write("mine.txt", b"mine\n")
    run_here("send", "--to", "eva", "Go")
    assert run_here("diff", "1..2", "--stat").out == (
        "app.py  +1 −0\nmine.txt  +1 −0  new\nrun.sh  +0 −1  deleted\n3 files, +2 −1\n"
    )
    [first, *_] = objects(run_here("diff", "1..2", "--json"))
    assert first == {
        "v": 1, "type": "file", "path": "app.py", "what": "changed", "added": 1, "removed": 0,
        "top": str(tree.top), "turns": [1, 2],
    }  # fmt: skip


def test_a_turn_without_checkpoints_says_why() -> None:
    shell(max="echo more > app.py")
    assert run_here("send", "Go").code == 0
    ran = run_here("diff", "1")
    assert refused(ran) == "turn 1 (max) has no checkpoints: no git repository; its CLI reported no file"
    assert ran.code == 1
    assert run_here("diff").err == notes(f"no turn of session {session_name()} changed files")


def session_name() -> str:
    return str(objects(run_here("sessions", "--json"))[0]["name"])


@pytest.mark.usefixtures("tree")
def test_checkpoints_that_are_gone_are_said_to_be(world: Path) -> None:
    shell(max="echo c >> app.py")
    run_here("send", "Go")
    remove_checkpoints(world)
    ran = run_here("diff")
    assert refused(ran) == "the checkpoints of turn 1 are no longer there (keep_checkpoints)"


def test_a_turn_of_a_work_tree_that_is_gone_is_refused(tree: WorkTree) -> None:
    shell(max="echo c >> app.py")
    run_here("send", "Go")
    (tree.top / ".git").rename(tree.top / "moved")
    assert refused(run_here("diff")) == f"the files in {tree.top} cannot be compared: no git repository"


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("2..1", "turn 1 is before turn 2"),
        ("..2", "expected the number of a turn or a reply such as msg-2, got ''"),
        ("7", "session {} has no turn 7"),
        ("--stat --json", "--stat and --json exclude each other"),
    ],
)
def test_what_is_no_range_is_refused(typed: str, sentence: str) -> None:
    shell(max="echo c >> app.py")
    run_here("send", "Go")
    run_here("send", "Go on")
    assert refused(run_here("diff", *typed.split())) == sentence.format(session_name())
