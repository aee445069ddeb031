"""teamchat's own read-only git for members: an MCP server on stdin and stdout that an agent CLI starts.

`repository.py` says how a repository that may be hostile is read, `commands.py` has the five tools, and `serve.py`
speaks the protocol. It alone needs the package `mcp`, an extra of the installation.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

NAME = "teamchat"
"""The server's name in a CLI's configuration: its tools are `mcp__teamchat__git_log`, or `mcp_teamchat_git_log`."""
STARTS_IN_S = 60  # the longest start that the CLIs are told to allow; it takes about a second
_NEEDED = "2"  # the major version of `mcp`


def server_command(cwd: Path, folder: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """Build the command that gives an agent CLI the server for the repository around `cwd`.

    git finds the files in `folder` in place of the repository's configuration. Whoever can write there can make git run
    a program, so it lies where no agent works. git itself is looked for now, by the member's environment: a program
    that an agent puts on its PATH later is not used.
    """
    from teamchat.runners.child.isolated import isolated_command

    return isolated_command("teamchat.runners.git_server.serve", str(cwd), str(folder), find_git(env) or "git")


def missing(env: Mapping[str, str]) -> tuple[str, str | None] | None:
    """Say what the server lacks on this machine, and how to get it; None if it lacks nothing."""
    from importlib import metadata

    if find_git(env) is None:
        return "git is not installed", None
    try:
        version = metadata.version("mcp")
    except metadata.PackageNotFoundError:
        return "the package mcp is not installed", _installing()
    if version.partition(".")[0] != _NEEDED:
        return f"the package mcp has version {version}, and {_NEEDED} is needed", _installing()
    return None


def find_git(env: Mapping[str, str]) -> str | None:
    """Find git, in no folder of PATH that is relative to the working folder."""
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which("git", path=os.pathsep.join(folder for folder in folders if Path(folder).is_absolute()))


def _installing() -> str:
    """Build the command for the interpreter that runs teamchat; an environment that uv made has no pip."""
    from importlib import util

    wanted = shlex.quote(f"mcp=={_NEEDED}.*")
    if util.find_spec("pip") is None and shutil.which("uv"):
        return f"uv pip install --python {shlex.quote(sys.executable)} {wanted}"
    return f"{shlex.quote(sys.executable)} -m pip install {wanted}"
