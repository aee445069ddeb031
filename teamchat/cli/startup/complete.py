"""The completions by Tab for names that only the team and the store know.

It runs while somebody types. So it only looks, creates nothing, and offers nothing after an error. It leaves out names
that a shell would split, because shells evaluate completions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from teamchat.patterns import regex

if TYPE_CHECKING:
    from teamchat.core.team.team import Team

_LAST_NAME = regex(r"[^,，、+＋\s]*\Z")


def members(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete `--to max,sa` with everybody except the speaker and those already named, each after the typed text."""
    before = _LAST_NAME.sub("", incomplete)

    def names() -> Iterable[str]:
        from teamchat.core.routing.targets import parse_targets

        team = _team(ctx)
        named = {name for target in parse_targets(before) for name in target.names}
        speaker = ctx.params.get("as_") or team.humans[0].name
        return (before + member.name for member in team.members if member.name not in {*named, speaker})

    return _offered(names, incomplete)


def ai_members(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete `--members max,sa` and the like with the AI members, each after the text typed so far."""
    before = _LAST_NAME.sub("", incomplete)

    def names() -> Iterable[str]:
        from teamchat.core.routing.targets import parse_targets

        named = {name for target in parse_targets(before) for name in target.names}
        return (before + member.name for member in _team(ctx).ai_members if member.name not in named)

    return _offered(names, incomplete)


def doers(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete `--do` with the AI members that may edit."""
    return _offered(lambda: [member.name for member in _team(ctx).ai_members if member.access != "read"], incomplete)


def processes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete `run` with the kinds, and the names of the team file."""
    from teamchat.core.engine.processes.table import TAKES

    return [*_offered(lambda: TAKES, incomplete), *_offered(lambda: _team(ctx).processes, incomplete)]


def checks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the checks of the team file."""
    return _offered(lambda: _team(ctx).checks, incomplete)


def people(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete `--as` with the people of the team."""
    return _offered(lambda: [human.name for human in _team(ctx).humans], incomplete)


def anybody(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete `--member` with all members."""
    return _offered(lambda: [member.name for member in _team(ctx).members], incomplete)


def sessions(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete `--session` with the sessions of this workspace, the newest first."""

    def names() -> Iterable[str]:
        from teamchat.cli.startup.workspace import find_root
        from teamchat.core.files.folders import STORE_NAME, workspace_path
        from teamchat.core.store.sessions import session_names

        return _plain(session_names(workspace_path(find_root(ctx.params.get("team"))) / STORE_NAME))

    return _offered(names, incomplete)


def moved(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete `sessions move` with the folders that are gone and may be this one."""

    def names() -> Iterable[str]:
        from teamchat.cli.startup.workspace import find_root
        from teamchat.core.store.origin import moved_from
        from teamchat.core.text.commands import quote

        folders = map(str, moved_from(find_root(ctx.params.get("team"))))
        return (name for name in folders if quote(name) == name)

    return _offered(names, incomplete)


def teams(incomplete: str) -> list[str]:
    """Complete `--team NAME`. The shell completes file names itself."""

    def names() -> Iterable[str]:
        from teamchat.core.files.folders import config_dir

        return _plain(sorted(file.stem for file in (config_dir() / "teams").glob("*.toml")))

    return _offered(names, incomplete)


def _team(ctx: typer.Context) -> Team:
    from teamchat.core.files.folders import config_dir
    from teamchat.core.team.find import resolve_team

    return resolve_team(ctx.params.get("team"), Path.cwd(), config_dir())


def _plain(names: Iterable[str]) -> Iterable[str]:
    """Return the words that are spelled like a member's name: letters, digits, `_`, `.` and `-`."""
    from teamchat.core.routing.names import valid_name

    return (name for name in names if valid_name(name))


def _offered(names: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    try:
        return [name for name in names() if name.startswith(incomplete)]
    except Exception:  # noqa: BLE001 (a prompt is no place for any error)
        return []
