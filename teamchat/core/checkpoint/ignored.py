"""What git ignored when a checkpoint was taken: it is in no checkpoint, although it may have been there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.checkpoint.compare import object_reader
from teamchat.core.checkpoint.git import GitFailed, GitProgram
from teamchat.core.checkpoint.paths import folders_of
from teamchat.core.checkpoint.shadow import open_shadow
from teamchat.core.checkpoint.values import GitRepository

RULES = ".gitignore"
_LONGEST_S = 240.0
_REFUSED = "GIT_LITERAL_PATHSPECS"  # by `git check-ignore`
_NONE = 1  # what `git check-ignore` ends with
_AT_ONCE = 500  # on a command line


def ignored_in(repository: GitRepository, state_folder: Path, tree: str, paths: Collection[str]) -> set[str]:
    """Those of `paths` that the `.gitignore` files of the tree, and the user's own rules of today, have git ignore.

    Raises `CheckpointFailed`.
    """
    if not paths:
        return set()
    with tempfile.TemporaryDirectory(prefix="teamchat-rules-") as name:
        rules = Path(name)
        with object_reader(repository) as git:
            for path, content in _rules(git, tree, paths):
                (rules / path).parent.mkdir(parents=True, exist_ok=True)
                (rules / path).write_bytes(content)
        with open_shadow(repository, state_folder, _LONGEST_S) as shadow:
            env = {key: value for key, value in shadow.git.env.items() if key != _REFUSED} | {"GIT_WORK_TREE": name}
            there = replace(shadow.looking, cwd=rules, env=env)
            given = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)  # no path begins with a `:`
            try:
                told = there("check-ignore", "--no-index", "-z", "--stdin", given=given)
            except GitFailed as failed:
                if failed.code != _NONE:
                    raise
                return set()
    return {os.fsdecode(path.removeprefix(b"./")) for path in told.split(b"\0") if path}


def _rules(git: GitProgram, tree: str, paths: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """The `.gitignore` files of the tree that are in a folder of one of the paths or above it."""
    folders = {folder for path in paths for folder in folders_of(path)}
    wanted = [RULES, *(f"{folder}/{RULES}" for folder in sorted(folders))]
    for at in range(0, len(wanted), _AT_ONCE):
        for entry in git("ls-tree", "-z", "--full-tree", tree, "--", *wanted[at : at + _AT_ONCE]).split(b"\0")[:-1]:
            head, _, path = entry.partition(b"\t")
            mode, _, blob = head.decode().split(" ")
            if mode.startswith("100"):  # git follows no link to rules
                yield os.fsdecode(path), git("cat-file", "blob", blob)
