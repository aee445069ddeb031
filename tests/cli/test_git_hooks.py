"""A teamchat that a hook of git starts: what git exports to hooks leads nobody to the repository of the hook."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from teamchat.runners.environment import GIT_LOCAL
from tests.cli.test_worktrees import commit, shell
from tests.core.checkpoint.worktree import WorkTree
from tests.program import ROOT, argv, run_here

COMMIT = "echo bot > bot.txt; git add -A; git commit -qm 'by bot'"
SCRATCH = 'mkdir "$TMPDIR/made"; cd "$TMPDIR/made"; git init -q; git add -A; git rm -rq --cached --ignore-unmatch .'


@pytest.fixture
def tree(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkTree:
    """A linked worktree of a repository, in which the user stands and git knows who commits."""
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "kai")
        monkeypatch.setenv(f"{name}_EMAIL", "kai@example.invalid")
    first = WorkTree(world / "work", tmp_path / "unused")
    first.git("init", "-q", "-b", "main")
    first.write("f.txt", b"one\n")
    first.write(".gitignore", b"teamchat.toml\n")
    first.git("add", "--all")
    commit(first, "one")
    first.git("worktree", "add", "-q", "../linked", "-b", "feature")
    monkeypatch.chdir(world / "linked")
    return WorkTree(world / "linked", tmp_path / "unused")


def hook(world: Path, name: str, *words: str) -> Path:
    """Have that hook run teamchat; the file with what it printed."""
    said = world / "said"
    line = " ".join(f"'{word}'" for word in argv("send", "--new", "Look at it", *words))
    file = world / "work" / ".git" / "hooks" / name
    path = f"PYTHONPATH='{ROOT}' "
    file.write_text(f"#!/bin/sh\n{path}{line} < /dev/null > {said} 2>&1\nexit 0\n")
    file.chmod(0o755)
    return said


@pytest.mark.parametrize("name", ["pre-commit", "post-commit", "commit-msg", "reference-transaction"])
@pytest.mark.parametrize("access", ["worktree", "scratch"])
def test_members_work_where_they_are_and_not_in_the_repository_of_a_hook(
    tree: WorkTree, world: Path, name: str, access: str
) -> None:
    own = access == "worktree"
    shell(tree.top, None if own else {"workspace": "shared"}, bot=COMMIT if own else SCRATCH)
    marked = world / "once"
    said = hook(world, name)
    file = world / "work" / ".git" / "hooks" / name
    file.write_text(file.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\nmkdir {marked} 2> /dev/null || exit 0\n"))
    tree.write("f.txt", b"two\n")
    tree.git("add", "f.txt")
    tree.git("commit", "-q", "-m", "two")
    assert "Done" in said.read_text()
    assert tree.git("log", "--format=%s").split() == ["two", "one"]
    assert tree.git("show", "HEAD:f.txt") == "two\n"
    assert tree.git("status", "--short") == ""


def test_a_worktree_stays_the_members_own_whatever_its_team_file_names(
    tree: WorkTree, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"GIT_DIR": str(world / "work" / ".git"), "GIT_WORK_TREE": str(world / "work"), "GIT_INDEX_FILE": "index"}
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    shell(
        tree.top,
        {"workspace": "worktree", "env_keep": sorted(env), **{f"env.{name}": value for name, value in env.items()}},
        bot=COMMIT,
    )
    for name in env:
        monkeypatch.delenv(name)
    assert run_here("send", "--trust", "Go").code == 0
    assert tree.git("log", "--all", "--format=%s").split("\n").count("by bot") == 1
    for branch in ("main", "feature"):
        assert "by bot" not in tree.git("log", "--format=%s", branch)


def test_the_team_file_of_a_member_that_shares_the_files_can_name_them(tree: WorkTree) -> None:
    shell(tree.top, {"workspace": "shared", "env.GIT_DIR": "/named"}, bot='echo "$GIT_DIR" > seen.txt')
    assert run_here("send", "--trust", "Go").code == 0
    assert (tree.top / "seen.txt").read_text() == "/named\n"


def test_a_program_that_runs_for_the_person_gets_none_of_them(tree: WorkTree, monkeypatch: pytest.MonkeyPatch) -> None:
    shell(tree.top, {"workspace": "shared"}, bot=":")
    for name in GIT_LOCAL:
        monkeypatch.setenv(name, "/of/a/hook")
    done = subprocess.run(
        argv("send", "--notify", "env > told", "Go"), stdin=subprocess.DEVNULL, env=os.environ, check=False
    )
    assert done.returncode == 0
    seen = {line.partition("=")[0] for line in (tree.top / "told").read_text().splitlines()}
    assert "HOME" in seen
    assert not GIT_LOCAL & seen
