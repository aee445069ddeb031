"""A project's folder is renamed or moved: its conversations are found, and `sessions move` takes them over."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pexpect
import pytest

from teamchat.cli.startup.workspace import lock_file, store_file
from teamchat.core.checkpoint import restore
from teamchat.core.conversation.permission import trust_store
from teamchat.core.conversation.sessions import move as moving
from teamchat.core.files.folders import workspace_path
from teamchat.core.store.origin import NAME
from teamchat.core.team.find import load
from tests.cli.helpers import notes, objects, refused, said
from tests.lock_holder import holder
from tests.program import TIMEOUT_S, argv, run_here
from tests.terminals import Terminal

GIT = ("git", "-c", "user.name=kai", "-c", "user.email=kai@example.invalid")


def project(folder: Path, *, git: bool = True, workspace: str = "shared", command: str = "echo two > file.txt") -> Path:
    """A folder with a team of one program that may edit; the shell is in it."""
    folder.mkdir(parents=True)
    (folder / "file.txt").write_text("one\n")
    run = ["/bin/sh", "-c", f"cat > /dev/null; {command}; echo Done"]
    (folder / "teamchat.toml").write_text(
        '[[members]]\nname = "kai"\ntype = "human"\n[[members]]\nname = "max"\nagent = "max-agent"\naccess = "edit"\n'
        f'workspace = "{workspace}"\n[agents.max-agent]\ncommand = {json.dumps(run)}\n'
    )
    if git:
        for words in (["init", "-q"], ["add", "--all"], ["commit", "-q", "-m", str(folder)]):
            subprocess.run([*GIT, *words], cwd=folder, check=True)
    enter(folder)
    return folder


def enter(folder: Path) -> None:
    os.chdir(folder)
    trust_store().grant(load(folder / "teamchat.toml"))


def renamed(old: Path, new: Path) -> Path:
    new.parent.mkdir(parents=True, exist_ok=True)
    old.rename(new)
    enter(new)
    return new


def copied(old: Path, new: Path) -> Path:
    """Moved as to another disk: nothing is left of the place of the old folder."""
    new.mkdir(parents=True)  # first: it must not get the old one's inode
    shutil.copytree(old, new, dirs_exist_ok=True)
    shutil.rmtree(old)
    enter(new)
    return new


@pytest.fixture(autouse=True)
def _back(world: Path) -> object:
    yield
    os.chdir(world)


def send(text: str = "Go") -> None:
    assert run_here("send", text).code == 0


def offers(*old: Path) -> str:
    """What `log` proposes to type, line by line."""
    return "".join(f"  try: teamchat sessions move {folder}\n" for folder in old)


@pytest.mark.parametrize("git", [True, False])
def test_a_renamed_folder_is_told_of_and_one_command_takes_it_over(world: Path, *, git: bool) -> None:
    old = project(world / "old", git=git)
    send()
    new = renamed(old, world / "new")
    told = f"{old} is gone and has conversations, which may be this folder's"
    assert run_here("sessions").err == notes(
        "there is no conversation here yet", told, f"try: teamchat sessions move {old}"
    )
    ran = run_here("log")
    assert ran.code == 4
    assert refused(ran) == f"there is no conversation here yet; {told}"
    assert ran.err.endswith(offers(old))
    (check,) = (line for line in objects(run_here("doctor", "--json")) if line.get("what") == "moved")
    assert (check["state"], check["text"], check["hint"]) == ("warning", told, f"teamchat sessions move {old}")
    moved = run_here("sessions", "move", "--yes", str(old))
    assert (moved.code, moved.out) == (0, "")
    assert moved.err == notes(f"1 conversation of {old}: taken over; what the team file may do is asked anew")
    assert said() == [("kai", "Go"), ("max", "Done")]
    assert json.loads((workspace_path(new) / NAME).read_text())["folder"] == str(new)
    assert not any("moved" in line.values() for line in objects(run_here("doctor", "--json")))
    send("Go on")
    assert len(said()) == 4


@pytest.mark.parametrize(
    ("git", "new", "found"),
    [(True, "elsewhere/other", True), (False, "elsewhere/old", True), (False, "elsewhere/other", False)],
)
def test_on_another_disk_the_root_commit_counts_else_the_name(world: Path, new: str, *, git: bool, found: bool) -> None:
    old = project(world / "old", git=git)
    send()
    copied(old, world / new)
    assert ("try:" in run_here("log").err and str(old) in run_here("log").err) is found


def test_another_repository_of_the_same_name_is_not_meant(world: Path) -> None:
    old = project(world / "old")
    send()
    shutil.rmtree(old)
    project(world / "elsewhere" / "old")
    assert run_here("sessions").err == notes("there is no conversation here yet")


def test_a_folder_that_is_still_there_is_neither_told_of_nor_merged(world: Path) -> None:
    old = project(world / "old")
    send()
    shutil.copytree(old, world / "new")
    enter(world / "new")
    assert run_here("sessions").err == notes("there is no conversation here yet")
    ran = run_here("sessions", "move", "--yes", str(old))
    assert ran.code == 2
    assert refused(ran) == f"{old} is still there, and conversations are never merged; continue them there"


def test_several_are_named_with_the_newest_first(world: Path) -> None:
    first, second = project(world / "a" / "old", git=False), project(world / "b" / "old", git=False)
    for folder, time in ((first, 2_000_000_000), (second, 1_000_000_000)):
        os.chdir(folder)
        send()
        for file in store_file(folder).parent.glob("teamchat.db*"):
            os.utime(file, (time, time))
        shutil.rmtree(folder)
    project(world / "c" / "old", git=False)
    ran = run_here("log")
    assert refused(ran).endswith(f"{first} and {second} are gone and have conversations, which may be this folder's")
    assert ran.err.endswith(offers(first, second))


def test_a_folder_inside_of_a_repository_is_found_by_where_it_is_in_it(world: Path) -> None:
    project(world / "old")
    one, two = (project(world / "old" / name, git=False) for name in ("one", "two"))
    for folder in (one, two):
        enter(folder)
        send(folder.name)
    os.chdir(world)
    copied(world / "old", world / "new")
    enter(world / "new" / "two")
    assert run_here("log").err.endswith(offers(two))
    assert run_here("sessions", "move", "--yes", str(two)).code == 0
    assert said() == [("kai", "two"), ("max", "Done")]
    assert run_here("undo", "--yes", "1").code == 0
    assert (world / "new" / "two" / "file.txt").read_text() == "one\n"


@pytest.mark.parametrize("turn_of", ["before", "after"])
def test_files_of_turns_before_the_move_come_back(world: Path, turn_of: str) -> None:
    old = project(world / "old")
    send()
    if turn_of == "before":
        assert run_here("undo", "--yes").code == 0
    new = renamed(old, world / "new")
    assert run_here("sessions", "move", "--yes", str(old)).code == 0
    assert run_here("redo" if turn_of == "before" else "undo", "--yes").code == 0
    assert (new / "file.txt").read_text() == ("two\n" if turn_of == "before" else "one\n")
    assert run_here("doctor", "--store").code == 0


@pytest.mark.parametrize("mine", ["", "mine\n"])
def test_an_undo_that_was_killed_before_the_move_is_completed_after_it(
    world: Path, mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = project(world / "old")
    send()
    if mine:
        (old / "file.txt").write_text(mine)

    def killed(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(restore._Work, "look_again", killed)
        assert run_here("undo", "--yes", "--force").code == 130
    new = renamed(old, world / "new")
    assert run_here("sessions", "move", "--yes", str(old)).code == 0
    ran = run_here("undo", "--yes")
    assert (ran.code, (new / "file.txt").read_text()) == (0, "one\n")
    assert not (workspace_path(new) / "restoring").exists()
    assert run_here("redo", "--yes").code == 0
    assert (new / "file.txt").read_text() == (mine or "two\n")


def test_a_worktree_of_a_member_moves_along(world: Path) -> None:
    old = project(world / "old", workspace="worktree")
    send()
    new = renamed(old, world / "new")
    assert run_here("sessions", "move", "--yes", str(old)).code == 0
    assert (new / "file.txt").read_text() == "one\n"
    linked = subprocess.run([*GIT, "worktree", "list", "--porcelain"], capture_output=True, text=True, check=True)
    assert str(store_file(new).parent.resolve()) in linked.stdout
    assert "prunable" not in linked.stdout
    ran = run_here("merge", "max")
    assert (ran.code, (new / "file.txt").read_text()) == (0, "two\n")
    send("Go on")
    assert run_here("worktrees", "remove", "max").code == 0


def test_a_worktree_moves_along_where_the_state_folder_has_moved_with_it(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAMCHAT_HOME", str(world / "home-of-a" / "state"))
    old = project(world / "home-of-a" / "old", workspace="worktree")
    send()
    monkeypatch.setenv("TEAMCHAT_HOME", str(world / "home-of-b" / "state"))
    (world / "home-of-a").rename(world / "home-of-b")
    new = world / "home-of-b" / "old"
    enter(new)
    assert run_here("log").err.endswith(offers(old))
    assert run_here("sessions", "move", "--yes", str(old)).code == 0
    assert run_here("merge", "max").code == 0
    assert (new / "file.txt").read_text() == "two\n"


@pytest.mark.parametrize("name", ["two words", "it's $HOME", "日本語", "-x"])
def test_the_command_takes_over_whatever_the_folder_was_called(world: Path, name: str) -> None:
    old = project(world / name)
    send()
    renamed(old, world / "new")
    (told,) = (line for line in run_here("log").err.splitlines() if line.startswith("  try: "))
    program, *words = shlex.split(told.removeprefix("  try: "))
    assert program == "teamchat"
    assert run_here(*words, "--yes").code == 0
    assert said() == [("kai", "Go"), ("max", "Done")]


def test_a_name_that_no_terminal_shows_is_told_without_a_command(world: Path) -> None:
    old = project(world / "a\udcff\n\x1b[31m")
    send()
    renamed(old, world / "new")
    ran = run_here("log")
    assert refused(ran).startswith(f"there is no conversation here yet; {world}/a\\udcff")
    assert "try: " not in ran.err.replace("try: teamchat send", "")
    assert run_here("sessions").code == 0
    assert run_here("sessions", "move", "--yes", str(old)).code == 0


def test_what_an_agent_made_of_its_git_file_leads_nowhere(world: Path) -> None:
    mine = world / "mine.txt"
    mine.write_text("mine\n")
    old = project(world / "old", workspace="worktree", command=f"rm .git; ln -s {mine} .git")
    run_here("send", "Go")
    renamed(old, world / "new")
    assert run_here("sessions", "move", "--yes", str(old)).code == 0
    assert mine.read_text() == "mine\n"


@pytest.mark.parametrize("step", ["_follow", "_move_checkpoints", "_move_worktree", "_put_aside"])
def test_after_a_kill_the_same_command_completes_it(world: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old = project(world / "old", workspace="worktree")
    send()
    new = renamed(old, world / "new")

    assert run_here("log").code == 4  # which makes an empty store
    done = getattr(moving, step)

    def killed(*given: object) -> None:
        done(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(moving, step, killed)
        assert run_here("sessions", "move", "--yes", str(old)).code == 130
    assert run_here("log").err.endswith(offers(old))
    assert run_here("sessions", "move", "--yes", str(old)).code == 0
    assert run_here("merge", "max").code == 0
    assert (new / "file.txt").read_text() == "two\n"


def test_a_link_at_the_old_place_is_not_the_old_folder(world: Path) -> None:
    old = project(world / "old")
    send()
    new = renamed(old, world / "new")
    old.symlink_to(new)
    assert run_here("log").err.endswith(offers(old))
    assert run_here("sessions", "move", "--yes", str(old)).code == 0
    assert run_here("undo", "--yes").code == 0
    assert (new / "file.txt").read_text() == "one\n"


def test_the_old_folder_is_found_by_a_relative_path_and_through_a_link(world: Path) -> None:
    (world / "real").mkdir()
    (world / "link").symlink_to(world / "real")
    old = project(world / "real" / "old")
    send()
    renamed(old, world / "real" / "new")
    assert run_here("sessions", "move", "--yes", "../../link/old").code == 0
    assert len(said()) == 2


def test_a_folder_with_conversations_of_its_own_takes_none_over(world: Path) -> None:
    old = project(world / "old")
    send()
    new = renamed(old, world / "new")
    began = run_here("send", "Hello")
    assert f"· try: teamchat sessions move {old}" in began.err.splitlines()
    ran = run_here("sessions", "move", "--yes", str(old))
    assert ran.code == 2
    assert refused(ran) == (
        f"{new} has conversations of its own, and those of two folders are never merged; delete these first"
    )
    assert ran.err.endswith("  try: teamchat sessions delete s1\n")
    assert run_here("sessions", "delete", "--yes", "s1").code == 0
    assert run_here("sessions", "move", "--yes", str(old)).code == 0
    assert said() == [("kai", "Go"), ("max", "Done")]


def test_a_conversation_that_runs_is_not_moved(world: Path) -> None:
    old = project(world / "old")
    send()
    lock = lock_file(old, 1)
    renamed(old, world / "new")
    process = holder(lock)
    try:
        ran = run_here("sessions", "move", "--yes", str(old))
        assert ran.code == 13
        assert refused(ran).startswith(f"conversation s1 of {old} is being run by process {process.pid} ")
        assert ran.err.endswith(f"  try: kill {process.pid}\n")
    finally:
        process.communicate(b"\n")
    assert run_here("sessions", "move", "--yes", str(old)).code == 0


@pytest.mark.parametrize("name", ["never", "new", "."])
def test_a_folder_without_conversations_has_none_to_move(world: Path, name: str) -> None:
    old = project(world / "old")
    send()
    renamed(old, world / "new")
    ran = run_here("sessions", "move", "--yes", str(world / name))
    assert ran.code == 4
    assert refused(ran).startswith("no conversation of a folder ")


def test_it_asks_and_without_a_terminal_says_how(world: Path) -> None:
    old = project(world / "it's old")
    send()
    renamed(old, world / "new")
    ran = run_here("sessions", "move", str(old))
    assert ran.code == 2
    assert refused(ran) == f"1 conversation of {old} would be taken over, and there is no terminal to ask on"
    for answer, left in (("n", 4), ("y", 0)):
        program, *rest = argv("sessions", "move", str(old))
        child = Terminal(program, rest, env={**os.environ, "TERM": "xterm"}, timeout=TIMEOUT_S, encoding="utf-8")
        child.expect(r"\?")
        child.sendline(answer)
        child.expect(pexpect.EOF)
        child.close()
        assert run_here("log").code == left


def test_chat_tells_of_it_before_its_prompt(world: Path) -> None:
    old = project(world / "old")
    send()
    renamed(old, world / "new")
    program, *rest = argv("chat")
    child = Terminal(program, rest, env={**os.environ, "TERM": "xterm"}, timeout=TIMEOUT_S, encoding="utf-8")
    with contextlib.closing(child):
        child.expect_exact(f"try: teamchat sessions move {old}")
        child.expect_exact("Ctrl-D")
        child.sendeof()
        child.expect(pexpect.EOF)


def test_nothing_is_looked_for_where_there_is_a_conversation(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = project(world / "old")
    send()
    renamed(old, world / "new")
    send()

    def looked(_: Path) -> None:
        raise AssertionError

    monkeypatch.setattr("teamchat.core.store.origin.told_of_moved", looked)
    assert [run_here(command).code for command in ("log", "sessions")] == [0, 0]
    assert run_here("send", "Go on").code == 0
