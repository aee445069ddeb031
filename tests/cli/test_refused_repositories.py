"""A repository that git does not read, of another user or behind a broken configuration: what is said of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.helpers import objects, refused
from tests.cli.test_worktrees import commit, shell, tree
from tests.core.checkpoint.worktree import WorkTree
from tests.program import Result, run_here

__all__ = ["tree"]
ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root gives a file to another user")
LOST = "no files are recorded, so undo cannot restore any: "


def owned_by_another(tree: WorkTree) -> str:
    """Give the repository to another user. Returns the command that has git read it even so."""
    os.chown(tree.top / ".git", 12345, 12345)
    return f"git config --global --add safe.directory {tree.top}"


def lost(ran: Result) -> list[str]:
    return [line.removeprefix(f"· {LOST}") for line in ran.err.splitlines() if LOST in line]


def files_row() -> list[tuple[object, object, object]]:
    found = objects(run_here("doctor", "--json"))
    return [(line["state"], line["text"], line["hint"]) for line in found if line.get("what") == "files"]


@ROOT
def test_the_first_turn_and_doctor_say_what_mends_it_and_it_does(world: Path, tree: WorkTree) -> None:
    shell(world, {}, max="echo two > app.txt")
    mends = owned_by_another(tree)
    why = f"git refuses the repository around {world}: it belongs to another user"
    assert lost(run_here("send", "Go")) == [f"{why}; this mends it: {mends}"]
    assert lost(run_here("send", "Go on")) == []
    assert files_row() == [("warning", f"what changes is not recorded, and undo cannot restore it: {why}", mends)]
    subprocess.run(["/bin/sh", "-c", mends], check=True)
    assert files_row() == []
    tree.write("app.txt", b"mine\n")
    assert lost(run_here("send", "Once more")) == []
    assert run_here("undo", "--yes", "--files").code == 0
    assert (tree.top / "app.txt").read_bytes() == b"mine\n"


@ROOT
def test_where_files_were_recorded_before_the_next_turn_says_it(world: Path, tree: WorkTree) -> None:
    shell(world, {}, max="echo two > app.txt")
    assert lost(run_here("send", "Go")) == []
    owned_by_another(tree)
    assert len(lost(run_here("send", "Go on"))) == 1


@ROOT
def test_a_worktree_and_a_process_name_the_same_command(world: Path, tree: WorkTree) -> None:
    shell(world, max="true", ann="true")
    mends = owned_by_another(tree)
    best = ("--members", "max,ann", "--judge", "max")
    for ran in (run_here("send", "--to", "max", "Go"), run_here("run", "best", "--new", *best, "Go")):
        assert ran.code == 2
        assert f"try: {mends}" in ran.err


@ROOT
@pytest.mark.parametrize("name", ["two words", "it's", "$HOME"])
def test_the_command_pastes_whatever_the_folder_is_called(
    world: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = WorkTree.make(world / name, tmp_path / "unused")
    made.write("app.txt", b"one\n")
    monkeypatch.chdir(made.top)
    shell(made.top, {}, max="true")
    owned_by_another(made)
    ((_, _, mends),) = files_row()
    subprocess.run(["/bin/sh", "-c", str(mends)], check=True)
    assert files_row() == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[user]\nname = kai\n[oops\n", "bad config line 3 in file {file}"),
        ("[core]\nbare = perhaps\n", "bad boolean config value 'perhaps' for 'core.bare'"),
        ("a\x1b[31m", "bad config line 1 in file {file}"),
    ],
)
def test_a_broken_configuration_is_named_with_its_file(world: Path, tree: WorkTree, content: str, said: str) -> None:
    commit(tree, "second")
    shell(world, {}, max="true")
    file = Path(os.environ["HOME"]) / ".gitconfig"
    file.write_text(content)
    why = f"git cannot read its configuration: {said.format(file=file)}"
    assert lost(run_here("send", "Go")) == [why]
    assert files_row() == [("warning", f"what changes is not recorded, and undo cannot restore it: {why}", None)]
    shell(world, max="true")
    ran = run_here("send", "--new", "Go")
    assert ran.code == 2
    assert f'{why}; there, set workspace = "shared" in the team file, or mend that' in ran.err
    assert "git -C" not in ran.err


def test_a_folder_without_a_repository_needs_no_warning(world: Path) -> None:
    shell(world, {}, max="true")
    assert lost(run_here("send", "Go")) == []
    assert files_row() == []
    assert refused(run_here("undo", "--yes", "--files")) == (
        "no file was undone: the files of turn 1 stay as they are: no git repository"
    )
