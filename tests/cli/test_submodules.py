"""Submodules: what a turn changes in one is told, and what a worktree has of one is merged by nobody and not lost."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from teamchat.core.errors import ExitCode
from tests.cli.helpers import objects
from tests.cli.test_worktrees import folder_of, shell
from tests.core.checkpoint.worktree import WorkTree
from tests.hostile_git import git
from tests.program import run_here

FETCH = "git -c protocol.file.allow=always submodule --quiet update --init"
IDENTITY = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b"
COMMITS = (
    f"{IDENTITY}; {FETCH}; cd lib; echo precious > g.txt; git add -A; git commit -qm one;"
    " git rm -q g.txt; git commit -qm two"
)
EDITS = f"{FETCH}; echo precious >> lib/f.txt"
RESETS = f"{COMMITS}; git reset -q --hard HEAD~2"
WORK = {
    "commits": COMMITS,
    "edits": EDITS,
    "an untracked file": f"{FETCH}; echo precious > lib/new.txt",
    "a reset": RESETS,
    "one that is no longer in the files": f"{COMMITS}; cd ..; git submodule -q deinit -f lib",
}


@pytest.fixture
def tree(world: Path, tmp_path: Path) -> WorkTree:
    """A repository with the fetched submodule `lib`, in which a hook and a filter would make `sprung`."""
    lib = tmp_path / "lib"
    lib.mkdir()
    git(lib, "init", "-q")
    (lib / "f.txt").write_text("f\n")
    git(lib, "add", "-A")
    git(lib, "commit", "-q", "-m", "s")
    made = WorkTree(world, tmp_path / "unused")
    made.git("init", "-q", "-b", "main")
    made.write(".gitignore", b"home/\nstate/\ntmp/\nwork/\nteamchat.toml\nsprung\n")
    made.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(lib), "lib")
    made.git("add", "--all")
    made.git("-c", "user.name=kai", "-c", "user.email=kai@example.invalid", "commit", "-q", "-m", "first")
    traps = world / ".git" / "modules" / "lib"
    for name in ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor"):
        hook = traps / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {world}/sprung\ncat\n")
        hook.chmod(0o755)
    with (traps / "config").open("a") as config:
        config.write(
            f'[filter "evil"]\n\tclean = touch {world}/sprung; cat\n[core]\n\tfsmonitor = {traps}/hooks/fsmonitor\n'
        )
    (traps / "info").mkdir(exist_ok=True)
    (traps / "info" / "attributes").write_text("* filter=evil\n")
    return made


SHARED = {"workspace": "shared"}


@pytest.mark.parametrize(
    "act",
    [
        "echo edit >> lib/f.txt",
        "echo new > lib/new.txt",
        "rm lib/f.txt",
        "mkdir lib/deep; echo x > lib/deep/x",
        "chmod +x lib/f.txt",
    ],
)
def test_a_turn_that_changes_files_in_one_says_so(tree: WorkTree, world: Path, act: str) -> None:
    shell(world, SHARED, a=act)
    assert run_here("send", "Go").code == 0
    changed = next(line for line in run_here("show").out.splitlines() if "changed" in line)
    assert changed.split()[:2] == ["changed", "lib"]
    assert "lib (changed)" in run_here("diff", "--stat").err
    undone = run_here("undo", "--yes")
    assert undone.code == 0
    assert "lib" in undone.out + undone.err
    assert not (tree.top / "sprung").exists()


@pytest.mark.parametrize(
    "before",
    [
        ":",
        "echo x >> lib/f.txt",
        "git submodule -q deinit -f lib",
        "rm -rf lib",
        "rm lib/.git",
        "git -C lib checkout -q --orphan none",
        "git rm -q --cached lib",
    ],
)
@pytest.mark.usefixtures("tree")
def test_a_turn_that_does_not_is_charged_with_nothing(world: Path, tmp_path: Path, before: str) -> None:
    shell(world, SHARED, a=f"sh {tmp_path}/act.sh")
    subprocess.run(["sh", "-c", before], cwd=world, check=True)
    (tmp_path / "act.sh").write_text(":")
    for turn in (1, 2):
        assert run_here("send", "--trust", "Go").code == 0
        outcome = json.loads(run_here("show", str(turn), "--json").out)["outcome"]
        assert outcome["files"] == []


@pytest.mark.parametrize("work", WORK)
def test_what_a_worktree_has_of_one_is_named_and_kept(tree: WorkTree, world: Path, work: str) -> None:
    shell(world, a=WORK[work])
    ran = run_here("send", "Go")
    assert ran.code == 0, ran.err
    assert "in a's worktree submodules are empty: lib" in ran.err
    listed = run_here("worktrees").out
    assert "all is merged" not in listed
    assert "only there: lib/" in listed
    merged = run_here("merge", "a")
    assert merged.code == 0
    assert "submodules are not merged: lib, in " in merged.err
    assert "nothing new" not in merged.err
    (line,) = objects(run_here("merge", "a", "--json"))
    assert line["submodules"] == ["lib"]
    refused = run_here("worktrees", "remove", "a")
    assert refused.code == ExitCode.USAGE
    assert "lib/" in refused.err
    assert folder_of(tree, "a").exists()
    assert run_here("sessions", "delete", "s1", "--yes").code != 0
    gone = run_here("worktrees", "remove", "--force", "a")
    assert gone.code == 0, gone.err
    kept = Path(gone.err.split("only that worktree had is at ")[1].splitlines()[0])
    if work in ("edits", "an untracked file"):
        assert "precious" in "".join(path.read_text() for path in (kept / "lib").glob("*.txt"))
    elif work == "one that is no longer in the files":
        assert "two" in git(kept.parent / "modules" / "lib", "log", "--format=%s").split()
    else:
        logged = git(kept / "lib", "log", "-g", "--format=%s")
        assert "one" in logged.split()
        assert git(kept / "lib", "rev-parse", "--show-toplevel").strip() == str(kept / "lib")


def test_one_that_is_not_fetched_needs_nothing(tree: WorkTree, world: Path) -> None:
    shell(world, a="echo a > a.txt")
    ran = run_here("send", "Go")
    assert ran.code == 0
    assert run_here("send", "Go").err.count("submodules are empty") == 0
    assert run_here("merge", "a").code == 0
    assert run_here("worktrees", "remove", "a").code == 0
    assert (tree.top / "lib" / "f.txt").read_text() == "f\n"


@pytest.mark.parametrize(
    "act",
    [
        "git commit -qm one; git reset -q --hard HEAD~1",
        "git checkout -q --detach; git commit -qm one; git checkout -q -",
        "git commit -qm one; git commit -q --amend -m two; git reset -q --hard HEAD~1",
    ],
)
def test_commits_that_only_a_reflog_knows_are_not_lost(tree: WorkTree, world: Path, act: str) -> None:
    shell(world, a=f"{IDENTITY}; echo precious > made.txt; git add -A; {act}")
    assert run_here("send", "Go").code == 0
    refused = run_here("worktrees", "remove", "a")
    assert refused.code == ExitCode.USAGE
    assert "on no branch" in refused.err
    gone = run_here("worktrees", "remove", "--force", "a")
    assert gone.code == 0, gone.err
    branches = tree.git("branch", "--list", "*-detached-*", "--format=%(refname)").split()
    assert branches
    for branch in branches:
        assert branch.removeprefix("refs/heads/") in gone.err
    assert "precious" in tree.git("show", f"{branches[0]}:made.txt")
