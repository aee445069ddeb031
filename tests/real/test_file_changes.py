"""A receipt has the files that a turn of a real CLI changed, by its shell and its edit tools, and no others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from teamchat.runners.base import Vendor
from tests.core.checkpoint.worktree import Files, WorkTree
from tests.real.file_changes import ALLOW, TurnOfChanges
from tests.real.model.server import tool_results
from tests.real.world import World

pytestmark = pytest.mark.real
TURNS = int(os.environ.get("CHANGES", "9"))  # of all three CLIs together
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
AT_ONCE = 3  # turns in a work tree
LETTERS = {"A": "added", "M": "changed", "D": "deleted", "T": "type"}


def pieces() -> list[tuple[Vendor, int, int]]:
    """The CLI, the seed and the number of turns of each work tree."""
    begins = range(0, TURNS, AT_ONCE)
    return [(VENDORS[at % len(VENDORS)], at, min(AT_ONCE, TURNS - begin)) for at, begin in enumerate(begins)]


@pytest.mark.parametrize(("vendor", "seed", "turns"), pieces())
def test_the_receipt_has_what_differs_on_disk_and_between_the_trees(
    user: World, tmp_path: Path, vendor: Vendor, seed: int, turns: int
) -> None:
    random = Random(seed)  # noqa: S311 (no secret)
    tree = WorkTree(user.cwd, tmp_path / "unused")
    tree.git("init", "-q")
    tree.write("first", b"1 first\n2\n")
    commit(tree)
    user.member(vendor, f'access = "edit"\nmemory = "fresh"\nallow = {list(ALLOW) if vendor != "codex" else []}')
    for number in range(1, turns + 1):
        by_hand(tree, random, number)
        turn = TurnOfChanges(vendor, tree.top, random, number=number)
        user.server.script(vendor, turn.replies)
        before = tree.files()
        ran = user.json("send", "--trust", "Go on")
        assert ran.result["text"] == f"Turn {number} is done.", ran.err
        outcome = user.receipt(number)["outcome"]
        answers = tool_results(user.last(vendor))
        assert (outcome["denied"] or [], outcome["failed_tools"]) == ([], 0), (turn.done, answers)
        found = outcome["changes"]
        receipt = {file["path"]: file["what"] for file in found["files"]}
        assert receipt == different(before, tree.files()), turn.done
        modes = {path: "changed" if what == "mode" else what for path, what in receipt.items()}
        state = Path(user.env["TEAMCHAT_HOME"])
        assert modes == between(tree, state, found["before"], found["after"]), turn.done
        assert turn.by_tools <= set(outcome["reported"]), turn.done


def commit(tree: WorkTree) -> None:
    tree.git("add", "--all")
    tree.git("-c", "user.name=kai", "-c", "user.email=kai@example.org", "commit", "-q", "--allow-empty", "-m", "So far")


def by_hand(tree: WorkTree, random: Random, number: int) -> None:
    """What the user does between two turns is on no receipt."""
    tree.write(f"by hand {number}", b"%d by hand\n" % random.randrange(10**9))
    match random.randrange(3):
        case 0:
            commit(tree)
        case 1:
            tree.git("add", "--all")


def different(old: Files, new: Files) -> Mapping[str, str]:
    """What became of each path on disk, as a receipt says it."""
    paths = [path for path in {*old, *new} if old.get(path) != new.get(path)]
    return {os.fsdecode(path): _what(old.get(path), new.get(path)) for path in paths}


def _what(old: tuple[str, bytes] | None, new: tuple[str, bytes] | None) -> str:
    if old is None:
        return "added"
    if new is None:
        return "deleted"
    if "link" in {old[0], new[0]} and old[0] != new[0]:
        return "type"
    return "mode" if old[1] == new[1] else "changed"


def between(tree: WorkTree, state: Path, before: str, after: str) -> Mapping[str, str]:
    """What git itself says of the checkpoints; an x bit is an `M` of it."""
    (head,) = state.glob("**/checkpoints/*/HEAD")
    words = tree.git("--git-dir", str(head.parent), "diff", "--name-status", "--no-renames", "-z", before, after).split(
        "\0"
    )[:-1]
    return {path: LETTERS[letter] for letter, path in zip(words[::2], words[1::2], strict=True)}
