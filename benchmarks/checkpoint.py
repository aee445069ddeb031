"""What a checkpoint of 50,000 files costs, and putting 1,000 back, against what git takes for the same.

The floors are `git status` and `git add --all` with an index of its own over the same files, for the first checkpoint
also with a store of its own, and a `git checkout` of the same 1,000. The delay of a turn is what a command with one
turn of a shell member takes longer with its two checkpoints than where there is no git, and so none. A checkpoint looks
at every file twice, for its content and for its permissions, and so does its floor: `git status` and `find -ls`. The
bound is twice that.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.figure import Figure, Measures
from benchmarks.timing import interleaved
from benchmarks.world import World, member, world
from teamchat.core.checkpoint.compare import changes, entries
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.plan import plan_restore
from teamchat.core.checkpoint.restore import Restore, restore
from teamchat.core.checkpoint.take import take
from teamchat.core.checkpoint.values import Checkpoint, GitRepository, TurnChanges
from teamchat.core.conversation.undo.files import plan_undo_of_files
from teamchat.core.receipt import Outcome, Setup
from teamchat.core.store.turns import Turn
from teamchat.core.turn.work_trees import WorkTrees, refs_of
from teamchat.runners.untrusted.file_changes import FileChanges

RUNS = 5
IN_A_FOLDER = 20
CHANGED, UNDONE, TURNS = 20, 1000, 15
FILES = 50_000
WRITING = "cat > /dev/null; name=notes; echo more >> $name.txt; echo Hello"
TEAM = member("max", ("sh", "-c", "cat > /dev/null; echo Hello")) + member("sarah", ("sh", "-c", WRITING))


def make(top: Path, files: int) -> None:
    for number in range(files):
        folder = top / f"d{number // 1000}" / f"e{number % 1000 // IN_A_FOLDER}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}.py").write_text(f"line {number}\n" * (20 + number % 60))
    git(top, "init", "-q")
    git(top, "add", "--all")
    git(top, "-c", "user.name=kai", "-c", "user.email=kai@example.org", "commit", "-qm", "Begin")
    git(top, "repack", "-adq")


def git(top: Path, *arguments: str, **env: str) -> None:
    subprocess.run(["git", *arguments], cwd=top, env={**os.environ, **env}, stdout=subprocess.DEVNULL, check=True)


def edit(top: Path, number: int, run: int, part: int = 0) -> None:
    """Change that many files, which lie far from each other; with a `part` of 1 to 3 a third of them."""
    files = sorted(top.glob("d*/e*/f*.py"))
    chosen = files[:: len(files) // number][:number]
    for file in chosen[part - 1 :: 3] if part else chosen:
        file.write_text(f"changed {run}\n" * 30)


def seconds(work: Callable[[], object], before: Callable[[int], None] = lambda _run: None, runs: int = RUNS) -> float:
    took = []
    for run in range(runs):
        before(run)
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def measures(_quick: bool) -> Measures:
    with world() as at, cleared_environment(at):
        make(at.folder, FILES)
        state = at.folder.with_name("state")
        found = find_repository(at.folder, state)
        assert isinstance(found, GitRepository)

        def checkpoint(ref: str = "after") -> Checkpoint:
            return take(found, state, f"refs/teamchat/s/1/{ref}")

        yield "checkpoint", partial(checkpoints, checkpoint, at.folder, state)
        yield "undo", partial(undo, found, at.folder, state, checkpoint)
        yield "turn", partial(delay, at)


@contextmanager
def cleared_environment(at: World) -> Iterator[None]:
    """No settings of the user's git, while it lasts."""
    before = dict(os.environ)
    os.environ |= {"HOME": at.env["HOME"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


def figure(what: str, took: float, floor: str, least: float) -> Figure:
    return Figure(name=what, unit="ms", value=1000 * took, floor=1000 * least, floor_is=floor)


def checkpoints(checkpoint: Callable[[], object], top: Path, state: Path) -> Iterator[Figure]:
    def add_all(**env: str) -> None:
        git(top, "add", "--all", GIT_INDEX_FILE=str(state.with_name("fresh")), **env)

    git(top, "status")
    objects = Path(tempfile.mkdtemp(dir=state.parent))
    fresh = seconds(partial(add_all, GIT_OBJECT_DIRECTORY=str(objects)), runs=1)
    yield figure("checkpoint, the first", seconds(checkpoint, runs=1), "git add --all, empty store", fresh)
    checkpoint()
    status, unchanged = seconds(lambda: git(top, "status")), seconds(checkpoint)
    yield figure("checkpoint, nothing changed", unchanged, "git status", status)
    yield figure("checkpoint, nothing changed, to git add", unchanged, "git add --all", seconds(add_all))
    name, change = f"checkpoint, {CHANGED} changed", partial(edit, top, CHANGED)
    took = seconds(checkpoint, change)
    yield figure(name, took, "git status", seconds(lambda: git(top, "status"), change))
    yield figure(f"{name}, to git add", took, "git add --all", seconds(add_all, change))


def delay(at: World) -> Iterator[Figure]:
    """What the checkpoints of a turn cost its command."""
    at.team(TEAM)
    without = at.folder.with_name("bin")
    without.mkdir(exist_ok=True)
    for name in ("sh", "cat"):
        (without / name).unlink(missing_ok=True)
        (without / name).symlink_to(shutil.which(name) or name)
    no_git = World(at.folder, {**at.env, "PATH": str(without)})
    for name, what in (("max", "turn that changes nothing"), ("sarah", "turn that changes a file")):
        send = ("send", "--quiet", "--to", name, "Hi")
        with_git, bare, looks = interleaved(
            partial(at.teamchat, *send),
            partial(no_git.teamchat, *send),
            partial(at.run, ("sh", "-c", "git status && find . -ls")),
        )
        each = (with_git.wall_ms - bare.wall_ms) / 2
        yield Figure(
            name=what, unit="ms", value=with_git.wall_ms, floor=bare.wall_ms, floor_is="the same without checkpoints"
        )
        yield Figure(
            name=f"{what}, each checkpoint",
            unit="ms",
            value=each,
            floor=looks.wall_ms,
            floor_is="git status, find -ls",
            bound=2.0,
        )


def undo(found: GitRepository, top: Path, state: Path, checkpoint: Callable[[str], Checkpoint]) -> Iterator[Figure]:
    git(top, "checkout", "-q", ".")
    before = checkpoint("before")
    edit(top, UNDONE, 0)
    after = checkpoint("after")
    made = changes(found, before.tree, after.tree)
    known = entries(found, after.tree)
    plan = plan_restore([TurnChanges(made)], known)
    assert len(plan.restore) == UNDONE

    def change(_run: int) -> None:
        edit(top, UNDONE, 0)
        git(top, "status")

    took = seconds(lambda: restore(state, [Restore(found, known, plan.restore)]), change)
    floor = seconds(lambda: git(top, "checkout", "-q", "."), change)
    yield figure(f"undo, {UNDONE:,} put back", took, "git checkout", floor)

    def compared() -> None:
        known = entries(found, after.tree)
        plan = plan_restore([TurnChanges(changes(found, before.tree, after.tree))], known)
        restore(state, [Restore(found, known, plan.restore)])

    took = seconds(compared, change)
    yield figure(f"undo, {UNDONE:,} compared, planned, put back", took, "git checkout", floor)
    yield undo_of_turns(found, top, state, floor)


def undo_of_turns(found: GitRepository, top: Path, state: Path, floor: float) -> Figure:
    """All that `teamchat undo` does to the files after three turns, the checkpoints before and after it included."""
    trees = WorkTrees(state, refs_of("bench"))
    git(top, "checkout", "-q", ".")
    turns = []
    for number in (1, 2, 3):
        before = take(found, state, f"{trees.refs}/{number}/before").tree
        edit(top, UNDONE, number, part=number)
        after = take(found, state, f"{trees.refs}/{number}/after").tree
        turns.append(turn_of(number, FileChanges(str(found.top), before, after)))
    time.sleep(1.1)  # a file that is as new as the index is read again, and turns take longer than a second
    began = time.perf_counter()
    plan = plan_undo_of_files(trees, turns, "undo-1/before")
    plan.apply(trees, force=False)
    plan.take(trees, "undo-1/after", force=False)
    took = time.perf_counter() - began
    assert len(plan.files) == UNDONE
    return figure(f"undo, {UNDONE:,} of three turns", took, "git checkout", floor)


def turn_of(number: int, changes: FileChanges) -> Turn:
    setup = Setup((), {}, changes.top, "edit", "", "", "msg-1", "msg-1")
    outcome = Outcome(0, 0.0, changes=changes)
    return Turn(
        number, number, number, "max", "max", "plain", "done", 0.0, "msg-1", setup, Path(changes.top), outcome, None,
        opened=False, prompt_key="", system_key=None, partial_key=None,
    )  # fmt: skip
