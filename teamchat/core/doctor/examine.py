"""Checks what a team needs. It calls no model and creates nothing.

It runs only the built-in CLIs: with `--version`, and with `--help` if the member has `args`.
"""

from __future__ import annotations

import platform
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.doctor.checks import Check, failed, not_installed
from teamchat.core.doctor.members import check_members
from teamchat.core.doctor.versions import Ask
from teamchat.core.errors import AgentMissing, DamagedStore, ExitCode, NotTrusted, StoreError, TeamFileError
from teamchat.core.files.folders import STORE_NAME, TRUST_NAME, WRITABLE, state_path, workspace_path
from teamchat.core.store.database import CHECK, GONE, Database, was_there
from teamchat.core.store.origin import has_sessions, told_of_moved
from teamchat.core.store.schema import create
from teamchat.core.team.find import resolve_team
from teamchat.core.team.team import BUILTIN_AGENTS, INSTALL, Team
from teamchat.core.team.trust import TrustStore, needs, trust_command


def examine(option: str | None, cwd: Path, config_dir: Path, env: Mapping[str, str], ask: Ask) -> Iterator[Check]:
    """Every finding about the team of `--team`, or of this folder: its members, the store, its file, Python.

    Raises `UnknownName` when `option` names no team.
    """
    try:
        team = resolve_team(option, cwd, config_dir)
    except (TeamFileError, NotTrusted) as error:
        yield failed("team", error)
    except AgentMissing:
        yield from _absent(needed=True)
        yield from _stored(cwd)
    else:
        file = _file(team)
        yield from check_members(team, env, ask, trusted=file.state in {"ok", "note"})
        if team.path is None:
            yield from _absent(needed=False)
        yield from _stored(team.root)
        yield file
    yield Check(None, "python", "ok", f"{platform.python_version()}, {sys.executable}", platform.python_version())
    yield _sqlite()


def _absent(*, needed: bool) -> Iterator[Check]:
    """The built-in agents that are not installed, if no team file says which ones are needed."""
    for spec in BUILTIN_AGENTS.values():
        if not shutil.which(spec.command[0]):
            yield replace(not_installed(INSTALL[spec.name], needed=needed), member=spec.name)


def _file(team: Team) -> Check:
    if team.path is None:
        text = "no team file: the installed CLIs are the team, and only read"
        return Check(None, "team", "note", text, hint="teamchat init")
    path = str(team.path)
    try:
        standing = TrustStore(state_path() / TRUST_NAME).standing(team)
    except StoreError as error:
        return failed("team", error)
    wanted = [need.line for need in needs(team)]
    if standing.trusted:
        return Check(None, "team", "ok", f"{path}, {'trusted' if wanted else 'needs no trust'}", path)
    told = f"{path} {standing.text}: {'; '.join(standing.changes or wanted)}"
    return Check(None, "team", "warning", told, path, trust_command(team))


def _stored(root: Path) -> Iterator[Check]:
    """The store, and where it has no conversation, those that the folder may have had under another name."""
    yield _store(root)
    if not has_sessions(workspace_path(root)) and (moved := told_of_moved(root)):
        yield Check(None, "moved", "warning", moved[0], hint=moved[1])


def _store(root: Path) -> Check:
    """Checks whether the workspace's store can be written, or created."""
    file = workspace_path(root) / STORE_NAME
    try:
        if file.exists():
            db = Database(file)
            try:
                with db.taken_back():
                    return Check(None, "store", "ok", str(file), str(file))
            finally:
                db.close()
        if was_there(file):
            return failed("store", DamagedStore(f"the store {file} is damaged: {GONE}", CHECK))
        tempfile.TemporaryFile(dir=next(folder for folder in file.parents if folder.exists())).close()
    except StoreError as error:
        return failed("store", error)
    except OSError as error:
        return failed("store", StoreError(f"{file} cannot be made: {error.strerror}; {WRITABLE}"))
    return Check(None, "store", "ok", f"{file}, made by the first message", str(file))


def _sqlite() -> Check:
    """Checks whether Python's SQLite has the features that the store needs."""
    version = sqlite3.sqlite_version
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        create(connection)
    except sqlite3.Error as error:
        text = f"{version} cannot hold the store (3.37 or newer with FTS5 can): {error}"
        return Check(None, "sqlite", "failed", text, version, code=ExitCode.STORE)
    finally:
        connection.close()
    return Check(None, "sqlite", "ok", version, version)
