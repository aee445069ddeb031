"""The folders of a project in Claude's view: all up to its root, and the folder that its notes are about (2.1.330)."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from teamchat.patterns import regex
from teamchat.runners.homes.versions import installed_version
from teamchat.runners.untrusted.regular_files import read_regular_text

LONGEST = 1 << 16  # bytes of a file of git that only says where something is


def folders(cwd: Path) -> list[Path]:
    """List the folder and its parents up to the root of its repository; all parents outside a repository."""
    upwards = [real := Path(os.path.realpath(cwd)), *real.parents]
    root = next((number for number, folder in enumerate(upwards) if os.path.lexists(folder / ".git")), len(upwards))
    return upwards[: root + 1]


def noted_at(cwd: Path) -> Path:
    """Find the folder under whose path Claude notes a project's settings, such as its local MCP servers.

    That is the root of the repository's main work tree, also for a linked worktree. Outside a repository it is `cwd`.
    """
    upwards = folders(cwd)
    root = upwards[-1]
    if not os.path.lexists(root / ".git"):
        return upwards[0]
    try:
        return _main_of(root)
    except (OSError, ValueError):
        return root


def _main_of(root: Path) -> Path:
    """Find the main work tree, or the bare repository. Raises `OSError` and `ValueError` if `root` is not a linked one.

    A folder's own word does not count: the repository has to name the folder, too.
    """
    own = _named(root, ".git")
    common = _named(own, "commondir")
    named = _named(own, "gitdir")
    if own.parent != common / "worktrees" or os.path.realpath(named) != str(root / ".git"):
        raise ValueError("no work tree of that repository")
    return common.parent if common.name == ".git" else common


def _named(folder: Path, name: str) -> Path:
    """Read the path in a file of one line, relative to the file's folder."""
    text = read_regular_text(folder / name, most=LONGEST).strip()
    return Path(os.path.normpath(folder / text.removeprefix("gitdir:").strip()))


PACKAGE = "@anthropic-ai/claude-code"
_INSTALLER = regex(r"/claude/versions/([0-9.]+)\Z")  # the place that its own installer gives a version (2.1.330)


def version_of(program: str, env: Mapping[str, str]) -> tuple[int, ...]:
    """Find the numbers of the program's version, without running it; empty if it is not known."""
    executable = shutil.which(program, path=env.get("PATH", os.defpath))
    if executable is None:
        return ()
    own = _INSTALLER.search(os.path.realpath(executable))
    version = own[1] if own else installed_version(executable, PACKAGE) or ""
    return tuple(map(int, re.findall("[0-9]{1,9}", version)[:3]))
