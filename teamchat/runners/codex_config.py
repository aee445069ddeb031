"""Codex's configuration, as far as a member's access and login bear on it (observed at 0.169.0).

A member that only reads goes without MCP servers. They run outside Codex's sandbox, so a tool of theirs that the user's
settings approve can write whatever the sandbox forbids. A server can only be switched off by its name, and with a
transport of the kind it has.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from teamchat.runners.toml import loads

OFF = {"command": 'command="false",enabled=false', "url": 'url="http://127.0.0.1:9",enabled=false'}
DEEPEST = 80  # parts of a key; Codex 0.150 to 0.169 refuse the file with a deeper one (observed)


def without_servers(cwd: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """The arguments that switch off every server which the user's or the project's configuration names."""
    servers = {name: kind for file in _files(cwd, env) for name, kind in _servers(file)}
    if not servers:
        return ()
    table = ",".join(
        f"{json.dumps(name, ensure_ascii=False)}={{{OFF[kind]}}}" for name, kind in sorted(servers.items())
    )
    return ("-c", f"mcp_servers={{{table}}}")


def users_settings(env: Mapping[str, str]) -> dict[str, object]:
    """What the user's own configuration says; nothing where there is none, or none that can be read."""
    return _settings(home(env) / "config.toml")


def home(env: Mapping[str, str]) -> Path:
    """Codex's own folder."""
    return Path(env.get("CODEX_HOME") or Path(env.get("HOME", "/nonexistent")) / ".codex")


def trusting(cwd: Path) -> tuple[str, ...]:
    """The arguments that let the project's own configuration act, for this run only; `--trust` would write it down."""
    repositories = (folder for folder in (cwd, *cwd.parents) if os.path.exists(folder / ".git"))  # noqa: PTH110
    root = next(repositories, cwd)
    return ("-c", f'projects={{{json.dumps(str(root), ensure_ascii=False)}={{trust_level="trusted"}}}}')


def _files(cwd: Path, env: Mapping[str, str]) -> Iterator[Path]:
    yield home(env) / "config.toml"
    yield from (folder / ".codex" / "config.toml" for folder in (cwd, *cwd.parents))


def _servers(file: Path) -> Iterator[tuple[str, str]]:
    servers = _settings(file).get("mcp_servers")
    for name, server in servers.items() if isinstance(servers, dict) else ():
        yield name, "url" if isinstance(server, dict) and "url" in server else "command"


def _settings(file: Path) -> dict[str, object]:
    try:
        return loads(file.read_text(), DEEPEST)
    except (OSError, ValueError):
        return {}  # Codex itself says what is wrong with it
