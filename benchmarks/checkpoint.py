"""What a checkpoint of 10,000 and of 100,000 files costs, and putting 1,000 back, against what git takes for the same.

The floors are `git status` as a user has it, without a monitor of the file system, in turn with the checkpoints; for
the first checkpoint `git add --all` with an index and a store of its own; and a `git checkout` of the same 1,000. The
delay of a turn is what a command with one turn of a shell member takes longer with its two checkpoints than where there
is no git, and so none.

A checkpoint asks git which files have other times than its index has, and looks at the time of every folder. Where some
changed, git writes them and the index, and where a folder did, it lists all files once more.
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
from teamchat.core.checkpoint.values import GitRepository, TurnChanges
from teamchat.core.checkpoint.walk import SOON_S
from teamchat.core.conversation.undo.files import plan_undo_of_files
from teamchat.core.receipt import Outcome, Setup
from teamchat.core.store.turns import Turn
from teamchat.core.turn.work_trees import WorkTrees, refs_of
from teamchat.runners.untrusted.file_changes import FileChanges

RUNS = 5
IN_A_FOLDER = 20
CHANGED, UNDONE, TURNS = 20, 1000, 15
MANY, FEW = 100_000, 10_000
UNCHANGED, WRITTEN, REPLACED, FIRST = 1.6, 3.0, 3.8, 1.3  # bounds
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


def edit(top: Path, number: int, run: int, part: int = 0, *, replaced: bool = False) -> None:
    """Change that many files, which lie far from each other; with a `part` of 1 to 3 a third of them.

    `replaced`: as editors do that write another file and rename it.
    """
    files = sorted(top.glob("d*/e*/f*.py"))
    chosen = files[:: len(files) // number][:number]
    for file in chosen[part - 1 :: 3] if part else chosen:
        written = file.with_suffix(".new") if replaced else file
        written.write_text(f"changed {run}\n" * 30)
        written.rename(file)


def seconds(*ways: Callable[[], object], before: Callable[[int], None] = lambda _run: None) -> list[float]:
    """The medians of each way, which take turns. `before` is called before each."""
    took: list[list[float]] = [[] for _ in ways]
    for run in range(RUNS + 1):
        for number, way in enumerate(ways):
            before(len(ways) * run + number)
            began = time.perf_counter()
            way()
            took[number].append(time.perf_counter() - began)
    return [statistics.median(times[1:]) for times in took]


def measures(quick: bool) -> Measures:
    for files in (FEW,) if quick else (FEW, MANY):
        with world() as at, cleared_environment(at):
            make(at.folder, files)
            state = at.folder.with_name("state")
            found = find_repository(at.folder, state)
            assert isinstance(found, GitRepository)
            name = f"checkpoint of {files:,} files"
            if files == MANY:
                yield f"{name}, the first", partial(first, found, files)
            yield name, partial(later, found, state, files)
            if files == MANY:
                yield "undo", partial(undo, found, at.folder, state)
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


def figure(what: str, took: float, floor: str, least: float, bound: float | None = None) -> Figure:
    return Figure(name=what, unit="ms", value=1000 * took, floor=1000 * least, floor_is=floor, bound=bound)


def first(found: GitRepository, files: int) -> Iterator[Figure]:
    """The first checkpoint of all, into a store of its own."""
    with tempfile.TemporaryDirectory(dir=found.top.parent) as folder:
        own = {"GIT_INDEX_FILE": f"{folder}/index", "GIT_OBJECT_DIRECTORY": folder}
        fresh = time_of(lambda: git(found.top, "add", "--all", **own))
        repository = find_repository(found.top, Path(folder, "state"))
        assert isinstance(repository, GitRepository)
        took = time_of(lambda: take(repository, Path(folder, "state"), "refs/teamchat/s/1/after"))
    what = f"checkpoint of {files:,} files, the first"
    yield figure(what, took, "git add --all, empty store", fresh, FIRST)


def later(found: GitRepository, state: Path, files: int) -> Iterator[Figure]:
    """Those of a work tree of which there is one."""
    name, top = f"checkpoint of {files:,} files", found.top
    checkpoint = partial(take, found, state, "refs/teamchat/s/1/after")

    def status() -> None:
        git(top, "status")

    checkpoint()
    time.sleep(SOON_S + 1)  # what is as new as a look at it is looked at again
    took, least = seconds(checkpoint, status)
    yield figure(f"{name}, nothing changed", took, "git status", least, UNCHANGED)
    took, least = seconds(checkpoint, status, before=partial(edit, top, CHANGED))
    yield figure(f"{name}, {CHANGED} changed", took, "git status", least, WRITTEN)
    took, least = seconds(checkpoint, status, before=partial(edit, top, CHANGED, replaced=True))
    yield figure(f"{name}, {CHANGED} replaced", took, "git status", least, REPLACED)


def time_of(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def delay(at: World) -> Iterator[Figure]:
    """What the checkpoints of a turn cost its command."""
    at.team(TEAM)
    without = at.folder.with_name("bin")
    without.mkdir(exist_ok=True)
    for name in ("sh", "cat"):
        (without / name).unlink(missing_ok=True)
        (without / name).symlink_to(shutil.which(name) or name)
    no_git = World(at.folder, {**at.env, "PATH": str(without)})
    for name, what, bound in (("max", "changes nothing", UNCHANGED), ("sarah", "changes a file", WRITTEN)):
        send = ("send", "--quiet", "--to", name, "Hi")
        with_git, bare, status = interleaved(
            partial(at.teamchat, *send), partial(no_git.teamchat, *send), partial(at.run, ("git", "status"))
        )
        each = (with_git.wall_ms - bare.wall_ms) / 2
        turn, of = f"turn that {what}, {MANY:,} files", "the same without checkpoints"
        yield Figure(name=turn, unit="ms", value=with_git.wall_ms, floor=bare.wall_ms, floor_is=of)
        least = status.wall_ms
        yield Figure(
            name=f"{turn}, each checkpoint", unit="ms", value=each, floor=least, floor_is="git status", bound=bound
        )


def undo(found: GitRepository, top: Path, state: Path) -> Iterator[Figure]:
    git(top, "checkout", "-q", ".")
    before = take(found, state, "refs/teamchat/s/1/before")
    edit(top, UNDONE, 0)
    after = take(found, state, "refs/teamchat/s/1/after")
    made = changes(found, before.tree, after.tree)
    known = entries(found, after.tree)
    plan = plan_restore([TurnChanges(made)], known)
    assert len(plan.restore) == UNDONE

    def change(_run: int) -> None:
        edit(top, UNDONE, 0)
        git(top, "status")

    def put_back() -> None:
        restore(state, [Restore(found, known, plan.restore)])

    def checkout() -> None:
        git(top, "checkout", "-q", ".")

    took, floor = seconds(put_back, checkout, before=change)
    yield figure(f"undo, {UNDONE:,} put back", took, "git checkout", floor)

    def compared() -> None:
        known = entries(found, after.tree)
        plan = plan_restore([TurnChanges(changes(found, before.tree, after.tree))], known)
        restore(state, [Restore(found, known, plan.restore)])

    [took] = seconds(compared, before=change)
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
