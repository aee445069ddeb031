"""Codex's configuration, as far as a member's access, tools and login bear on it (observed at 0.169.0).

A member that only reads has no MCP servers except the ones that it is given. They run outside Codex's sandbox, so a
tool of theirs that the user's settings approve can write whatever the sandbox forbids. A server can only be switched
off by its name, and with a transport of the kind it has. So every file that may name one has to be understood. Codex
reads TOML 1.1, `tomllib` only 1.0: `read` is refused where a file of the user's or the machine's is beyond that. A
project's file does not count without `project_settings`, also where the user trusts the project.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from teamchat.runners import git_server
from teamchat.runners.base import Job
from teamchat.runners.untrusted.json import one_line
from teamchat.runners.untrusted.regular_files import read_regular_text
from teamchat.runners.untrusted.toml import in_toml, loads

OFF = {"command": 'command="false",enabled=false', "url": 'url="http://127.0.0.1:9",enabled=false'}
ON = 'enabled=true,default_tools_approval_mode="approve"'
AWAITED = f"required=true,startup_timeout_sec={git_server.STARTS_IN_S}"  # else the first tool calls come too early

DEEPEST = 80  # parts of a key; Codex 0.150 to 0.169 refuse the file with a deeper one (observed)
FILES = 8  # how many files' tables are kept: hardly anybody has more
PROFILE = ".config.toml"
SYSTEM = Path("/etc/codex/config.toml")


def servers(env: Mapping[str, str]) -> dict[str, str]:
    """List the MCP servers that the user has set up, each with the kind of its transport."""
    return {name: kind for file in user_files(env) for name, kind in _servers(file)}


def servers_of(job: Job) -> tuple[str, ...]:
    """Build the arguments that give a member its servers, and no others."""
    table = ",".join(f"{in_toml(name)}={{{said}}}" for name, said in sorted(_said_of_servers(job).items()))
    return ("-c", f"mcp_servers={{{table}}}") if table else ()


def _said_of_servers(job: Job) -> dict[str, str]:
    said = {}
    if job.servers is not None:
        known = servers(job.env)
        if job.project_settings:
            files = (folder / ".codex" / "config.toml" for folder in (job.cwd, *job.cwd.parents))
            known |= {name: kind for file in files for name, kind in _servers(file)}
        said = {name: ON if name in job.servers else OFF[kind] for name, kind in known.items()}
    if job.git:
        program, *arguments = git_server.server_command(job.cwd, job.git, job.env)
        words = ",".join(map(in_toml, arguments))
        said[git_server.NAME] = f"command={in_toml(program)},args=[{words}],{ON},{AWAITED}"
    return said


def misunderstood(env: Mapping[str, str]) -> str | None:
    """Find a file that cannot be parsed, and say why; None if all parse."""
    for file in user_files(env):
        try:
            loaded(file)
        except (OSError, ValueError) as error:
            return f"{file} cannot be read: {one_line(str(error))}"
    return None


def users_settings(env: Mapping[str, str]) -> dict[str, object]:
    """Read the user's configuration; empty if it is missing or cannot be read."""
    return _settings(home(env) / "config.toml")


def home(env: Mapping[str, str]) -> Path:
    """Return Codex's own folder."""
    return Path(env.get("CODEX_HOME") or Path(env.get("HOME", "/nonexistent")) / ".codex")


def trusting(cwd: Path) -> tuple[str, ...]:
    """Build the arguments that let the project's own configuration act, for this run only.

    `--trust` would write it down.
    """
    return ("-c", of_projects({root_of(cwd)}, "trusted"))


def of_projects(folders: set[Path], level: str) -> str:
    table = ",".join(f'{in_toml(str(folder))}={{trust_level="{level}"}}' for folder in sorted(folders))
    return f"projects={{{table}}}"


def root_of(cwd: Path) -> Path:
    repositories = (folder for folder in (cwd, *cwd.parents) if os.path.exists(folder / ".git"))  # noqa: PTH110
    return next(repositories, cwd)


def user_files(env: Mapping[str, str]) -> Iterator[Path]:
    """List the system's file, the user's, and the files of the user's profiles."""
    yield from (SYSTEM, home(env) / "config.toml")
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(home(env))  # noqa: PTH208 (`glob` compiles a pattern)
    yield from sorted(home(env) / name for name in names if name.endswith(PROFILE))


def _servers(file: Path) -> Iterator[tuple[str, str]]:
    servers = _settings(file).get("mcp_servers")
    for name, server in servers.items() if isinstance(servers, dict) else ():
        yield name, "url" if isinstance(server, dict) and "url" in server else "command"


def _settings(file: Path) -> dict[str, object]:
    try:
        return loaded(file)
    except (OSError, ValueError):
        return {}


def loaded(file: Path) -> dict[str, object]:
    """Read the tables of a file, without a byte order mark, which Codex skips. Raises `OSError` and `ValueError`."""
    return _tables(read_regular_text(file).removeprefix("\ufeff")) if file.is_file() else {}


@lru_cache(FILES)
def _tables(text: str) -> dict[str, object]:
    """Parse the tables of a text. A turn asks for the tables of each file five times."""
    return loads(text, DEEPEST)
