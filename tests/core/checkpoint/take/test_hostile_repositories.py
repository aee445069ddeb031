"""A repository whose configuration, attributes and hooks run a command in every way that git has for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from teamchat.core.checkpoint.compare import changes, entries, patch, stat
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.plan import plan_restore
from teamchat.core.checkpoint.refs import prune
from teamchat.core.checkpoint.restore import Restore, restore
from teamchat.core.checkpoint.take import take
from teamchat.core.checkpoint.values import GitRepository, TurnChanges
from tests import hostile_git
from tests.core.checkpoint.worktree import WorkTree

HOOKS = (
    *("post-index-change", "post-checkout", "reference-transaction", "fsmonitor-watchman", "pre-commit", "post-commit"),
    *("pre-auto-gc", "post-rewrite", "update", "pre-push", "post-merge", "sendemail-validate", "prepare-commit-msg"),
)


@pytest.fixture
def traps(tmp_path: Path) -> Path:
    folder = tmp_path / "traps"
    folder.mkdir()
    return folder


@pytest.fixture
def hostile(tmp_path: Path, traps: Path) -> Path:
    top = hostile_git.make(tmp_path / "work")
    hostile_git.arm(top, lambda name: f"touch {traps}/{name}")
    with (top / ".git" / "config").open("a") as config:
        config.write(
            f"[core]\n\thooksPath = {top}/.git/hooks\n\tattributesFile = {top}/more\n\tgitProxy = touch {traps}/proxy\n"
            f"[core]\n\tuntrackedCache = true\n\tfsmonitorHookVersion = 1\n[trace2]\n\teventTarget = {traps}/trace\n"
            f"[alias]\n\tupdate-index = !touch {traps}/alias\n\twrite-tree = !touch {traps}/alias\n"
            f'[diff "text"]\n\tbinary = true\n\txfuncname = x\n[maintenance]\n\tauto = true\n[gc]\n\tauto = 1\n'
        )
    (top / "more").write_text("* filter=stream diff=evil\n")
    for where in (top / ".git", top / ".git" / "modules" / "part"):
        (where / "info").mkdir(exist_ok=True)
        (where / "info" / "attributes").write_text("* filter=evil diff=text\n")
        for name in HOOKS:
            hook = where / "hooks" / name
            hook.write_text(f"#!/bin/sh\ntouch {traps}/hook-{name}\n")
            hook.chmod(0o755)
    return top


def test_nothing_that_the_repository_names_is_run(hostile: Path, traps: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    found = find_repository(hostile, state)
    assert isinstance(found, GitRepository)
    before = take(found, state, "refs/teamchat/s/1/before")
    (hostile / "notes.txt").write_text("by an agent\n")
    (hostile / "blob.bin").unlink()
    (hostile / "new.txt").write_text("new\n")
    after = take(found, state, "refs/teamchat/s/1/after")
    made = changes(found, before.tree, after.tree)
    assert [change.path for change in made] == ["blob.bin", "new.txt", "notes.txt"]
    assert stat(found, before.tree, after.tree)
    assert b"".join(patch(found, before.tree, after.tree))
    known = entries(found, after.tree)
    plan = plan_restore([TurnChanges(made)], known)
    restore(state, [Restore(found, known, plan.restore)])
    assert (hostile / "notes.txt").read_text() == "first\nnot committed\n"
    assert prune(found, state, "s") == 2
    assert list(traps.iterdir()) == []


@pytest.mark.parametrize("command", [("status",), ("add", "--all"), ("diff",)])
def test_the_traps_are_real(command: tuple[str, ...], hostile: Path, traps: Path) -> None:
    subprocess.run(["git", *command], cwd=hostile, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    assert list(traps.iterdir()) != []


def test_a_configuration_that_breaks_meanwhile_stops_no_checkpoint(hostile: Path, tmp_path: Path) -> None:
    found = find_repository(hostile, tmp_path / "state")
    assert isinstance(found, GitRepository)
    config = hostile / ".git" / "config"
    config.write_text("no [ configuration")
    assert take(found, tmp_path / "state", "refs/teamchat/s/1/before").tree


@pytest.mark.parametrize("form", ["sha1", "sha256"])
@pytest.mark.parametrize("change", ["append", "empty", "remove", "link"])
def test_settings_of_the_store_that_somebody_changed_are_replaced_and_others_not_written(
    tmp_path: Path, traps: Path, change: str, form: str
) -> None:
    tree = WorkTree.make(tmp_path / "work", tmp_path / "state", f"--object-format={form}")
    tree.write("one", b"1")
    tree.take()
    files = [tree.repository.store / name for name in ("config", "info/attributes")]
    before = [(file.read_bytes(), file.stat().st_ino, file.stat().st_mtime_ns) for file in files]
    tree.take()
    assert [(file.read_bytes(), file.stat().st_ino, file.stat().st_mtime_ns) for file in files] == before
    hostile = f'[core]\n\tfsmonitor = touch {traps}/monitor\n[filter "x"]\n\tclean = touch {traps}/clean; cat\n'
    for file, text in zip(files, (hostile, "* filter=x\n"), strict=True):
        if change == "append":
            file.write_text(file.read_text() + text)
            continue
        file.unlink()
        if change == "empty":
            file.write_text(text)
        elif change == "link":
            (tmp_path / file.name).write_text(text)
            file.symlink_to(tmp_path / file.name)
    tree.write("one", b"2")
    tree.take("2/before")
    assert [file.read_bytes() for file in files] == [content for content, _, _ in before]
    assert not any(file.is_symlink() for file in files)
    assert list(traps.iterdir()) == []
