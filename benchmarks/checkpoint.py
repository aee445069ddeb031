"""What a checkpoint of 50,000 files costs, and putting 1,000 back, against what git takes for the same: `make bench`.

The floors are `git status`, `git add --all` with an index of its own and `git stash create` over the same files, and a
`git checkout` of the same 1,000. Every row is the middle one of several runs. `benchmarks/checkpoint.py FILES` has that
many files.

The delay of a turn is what a command with one turn of a shell member takes longer with its two checkpoints than where
there is no git, and so none. The two kinds take turns. The bound for each checkpoint is a tenth of `git status` and
20 ms. `chrt --rr 1` keeps other programs out of the figures.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from teamchat.core.checkpoint.compare import changes, entries  # noqa: E402 (found by the line above)
from teamchat.core.checkpoint.find import find_repository  # noqa: E402
from teamchat.core.checkpoint.plan import plan_restore  # noqa: E402
from teamchat.core.checkpoint.restore import restore  # noqa: E402
from teamchat.core.checkpoint.take import take  # noqa: E402
from teamchat.core.checkpoint.values import Checkpoint, GitRepository, Step  # noqa: E402
from teamchat.core.conversation.undo_files import plan_undo_of_files  # noqa: E402
from teamchat.core.receipt import Outcome, Setup  # noqa: E402
from teamchat.core.store.turns import Turn  # noqa: E402
from teamchat.core.turn.work_trees import WorkTrees, refs_of  # noqa: E402
from teamchat.runners.file_changes import FileChanges  # noqa: E402

RUNS = 5
IN_A_FOLDER = 20
CHANGED, UNDONE, TURNS = 20, 1000, 15
TEAM = """
[[members]]
name = "max"
agent = "hello"

[[members]]
name = "sarah"
agent = "writes"

[agents.hello]
command = ["sh", "-c", "cat > /dev/null; echo Hello"]

[agents.writes]
command = ["sh", "-c", "cat > /dev/null; name=notes; echo more >> $name.txt; echo Hello"]
"""


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


def main(files: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        top, state = Path(name) / "work", Path(name) / "state"
        top.mkdir()
        os.environ |= {"HOME": name, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        make(top, files)
        found = find_repository(top)
        assert isinstance(found, GitRepository)
        print(f"{files:,} files:")
        rows(found, top, state)
        delay(top, Path(name))


def rows(found: GitRepository, top: Path, state: Path) -> None:
    def checkpoint(ref: str = "after") -> Checkpoint:
        return take(found, state, f"refs/teamchat/s/1/{ref}")

    def add_all(index: str) -> None:
        git(top, "add", "--all", GIT_INDEX_FILE=index)

    git(top, "status")
    fresh = seconds(lambda: add_all(str(state.with_name("fresh"))), runs=1)
    first = seconds(checkpoint, runs=1)
    tell("first checkpoint", first, "git add --all, no index yet", fresh)
    checkpoint()
    status = seconds(lambda: git(top, "status"))
    tell("unchanged", seconds(checkpoint), "git status", status)
    warm = str(state.with_name("fresh"))
    tell("unchanged", seconds(checkpoint), "git add --all", seconds(lambda: add_all(warm)))
    took = seconds(checkpoint, lambda run: edit(top, CHANGED, run))
    tell(
        f"{CHANGED} changed",
        took,
        "git status",
        seconds(lambda: git(top, "status"), lambda run: edit(top, CHANGED, run)),
    )
    tell(
        f"{CHANGED} changed", took, "git add --all", seconds(lambda: add_all(warm), lambda run: edit(top, CHANGED, run))
    )
    stash = seconds(
        lambda: git(top, "-c", "user.name=k", "-c", "user.email=k@example.org", "stash", "create"),
        lambda run: edit(top, CHANGED, run),
    )
    tell(f"{CHANGED} changed", took, "git stash create", stash)
    undo(found, top, state, checkpoint)


def delay(top: Path, folder: Path) -> None:
    """What the checkpoints of a turn cost its command. `folder` gets its store."""
    (top / "teamchat.toml").write_text(TEAM)
    without = folder / "bin"
    without.mkdir()
    for name in ("sh", "cat"):
        (without / name).symlink_to(shutil.which(name) or name)
    env = os.environ | {"TEAMCHAT_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    teamchat = (sys.executable, "-m", "teamchat")

    def run(*arguments: str, path: str = os.environ["PATH"]) -> None:
        subprocess.run(
            [*teamchat, *arguments],
            cwd=top,
            env=env | {"PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )

    run("trust")
    for member, what in (("max", "turn that changes nothing"), ("sarah", "turn that changes a file")):
        send = ("send", "-q", "--to", member, "Hi")
        kinds = (
            lambda send=send: run(*send),
            lambda send=send: run(*send, path=str(without)),
            lambda: git(top, "status"),
        )
        took = [[seconds(kind, runs=1) for kind in kinds] for _ in range(TURNS + 1)][1:]
        turn, bare, status = (statistics.median(one) for one in zip(*took, strict=True))
        each = statistics.median(with_them - none for with_them, none, _ in took) / 2
        tell(what, turn, "the same turn without checkpoints", bare)
        tell("delay by each of its checkpoints", each, "their bound", status / 10 + 0.02)


def undo(found: GitRepository, top: Path, state: Path, checkpoint: Callable[[str], Checkpoint]) -> None:
    git(top, "checkout", "-q", ".")
    before = checkpoint("before")
    edit(top, UNDONE, 0)
    after = checkpoint("after")
    made = changes(found, before.tree, after.tree)
    plan = plan_restore([Step(made)], entries(found, after.tree))
    assert len(plan.restore) == UNDONE

    def change(run: int) -> None:
        edit(top, UNDONE, run)
        git(top, "status")

    took = seconds(lambda: restore(found, state, plan.restore), change)
    floor = seconds(lambda: git(top, "checkout", "-q", "."), change)
    tell(f"{UNDONE:,} put back", took, "git checkout", floor)
    took = seconds(
        lambda: restore(
            found,
            state,
            plan_restore([Step(changes(found, before.tree, after.tree))], entries(found, after.tree)).restore,
        ),
        change,
    )
    tell(f"{UNDONE:,} compared, planned, put back", took, "git checkout", floor)
    undo_of_turns(found, top, state, floor)


def undo_of_turns(found: GitRepository, top: Path, state: Path, floor: float) -> None:
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
    tell(f"{UNDONE:,} undone, three turns", took, "git checkout", floor)


def turn_of(number: int, changes: FileChanges) -> Turn:
    setup = Setup((), {}, changes.top, "edit", "", "", "msg-1", "msg-1")
    outcome = Outcome(0, 0.0, changes=changes)
    return Turn(
        number, number, number, "max", "max", "plain", "done", 0.0, "msg-1", setup, Path(changes.top), outcome, None,
        opened=False, prompt_key="", system_key=None, partial_key=None,
    )  # fmt: skip


def tell(what: str, took: float, floor: str, least: float) -> None:
    print(f"{what:<35} {took * 1000:8.0f} ms  {took / least:5.2f} x {least * 1000:6.0f} ms of {floor}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) == 2 else 50_000)
