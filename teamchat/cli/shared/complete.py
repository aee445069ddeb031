"""What Tab offers for names that only the team and the store know.

It runs in the middle of somebody's typing: it looks and makes nothing, and where something is wrong it offers nothing.
Names that a shell would take apart are left out, for shells evaluate what they are offered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from teamchat.core.team.team import Team

_LAST_NAME = re.compile(r"[^,，、+＋\s]*\Z")


def members(ctx: typer.Context, incomplete: str) -> list[str]:
    """For `--to max,sa`: everybody but the speaker and who is named already, each behind what was typed before."""
    before = _LAST_NAME.sub("", incomplete)

    def names() -> Iterable[str]:
        from teamchat.core.routing.markers import parse_targets

        team = _team(ctx)
        named = {name for target in parse_targets(before) for name in target.names}
        speaker = ctx.params.get("as_") or team.humans[0].name
        return (before + member.name for member in team.members if member.name not in {*named, speaker})

    return _offered(names, incomplete)


def people(ctx: typer.Context, incomplete: str) -> list[str]:
    """For `--as`."""
    return _offered(lambda: [human.name for human in _team(ctx).humans], incomplete)


def sessions(ctx: typer.Context, incomplete: str) -> list[str]:
    """For `--session`: those of this workspace, the last one first."""

    def names() -> Iterable[str]:
        from teamchat.cli.shared.workspace import find_root
        from teamchat.core.files.folders import STORE_NAME, workspace_path
        from teamchat.core.store.sessions import session_names

        return _plain(session_names(workspace_path(find_root(ctx.params.get("team"))) / STORE_NAME))

    return _offered(names, incomplete)


def teams(incomplete: str) -> list[str]:
    """For `--team NAME`; a file's name is the shell's own to complete."""

    def names() -> Iterable[str]:
        from teamchat.core.files.folders import config_dir

        return _plain(sorted(file.stem for file in (config_dir() / "teams").glob("*.toml")))

    return _offered(names, incomplete)


def _team(ctx: typer.Context) -> Team:
    from teamchat.core.files.folders import config_dir
    from teamchat.core.team.find import resolve_team

    return resolve_team(ctx.params.get("team"), Path.cwd(), config_dir())


def _plain(names: Iterable[str]) -> Iterable[str]:
    """Those that are written like a member's name: letters, digits, `_`, `.` and `-`."""
    from teamchat.core.routing.names import valid_name

    return (name for name in names if valid_name(name))


def _offered(names: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    try:
        return [name for name in names() if name.startswith(incomplete)]
    except Exception:  # noqa: BLE001 (a prompt is no place for any error)
        return []
