"""MCP servers of the user's own: none starts for a member that only reads, wherever it comes from."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from teamchat.runners.base import Vendor
from tests.program import ROOT
from tests.real.model.replies import Reply, ToolUse
from tests.real.world import World

pytestmark = pytest.mark.real
TOOLS: dict[Vendor, list[ToolUse]] = {
    "claude": [ToolUse("mcp__own__write_it"), ToolUse("mcp__plugin_plug_own__write_it")],
    "codex": [ToolUse("write_it", namespace="mcp__own")],
    "gemini": [ToolUse("mcp_own_write_it"), ToolUse("mcp_of-extension_write_it")],
}
STARTS: dict[Vendor, list[str]] = {
    "claude": ["own", "plugin", "skill"],
    "codex": ["own"],
    "gemini": ["extension", "own"],
}


def server(folder: Path, name: str) -> dict[str, Any]:
    """The command of a server that tells that it has started, and whose tool tells that it was called."""
    program = str(ROOT / "tests" / "fakes" / "mcp_server.py")
    return {"command": sys.executable, "args": [program, str(folder / name), str(folder / f"{name} has written")]}


def wrote(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def give_claude(home: Path, folder: Path) -> None:
    """A server of the user's, one of an installed plugin and one of a plugin among the skills, all tools allowed."""
    wrote(home / ".claude.json", {"mcpServers": {"own": server(folder, "own")}, "hasCompletedOnboarding": True})
    market, plugin = home / "market", home / ".claude" / "plugins" / "cache" / "market" / "plug" / "1.0.0"
    listed = [{"name": "plug", "source": "./plug", "description": "x"}]
    wrote(
        market / ".claude-plugin" / "marketplace.json", {"name": "market", "owner": {"name": "me"}, "plugins": listed}
    )
    described = {"name": "plug", "version": "1.0.0", "description": "x"}
    for where, kind in ((market / "plug", "plugin"), (plugin, "plugin"), (home / ".claude/skills/skill", "skill")):
        wrote(where / ".claude-plugin" / "plugin.json", {**described, "name": "skill" if kind == "skill" else "plug"})
        wrote(where / ".mcp.json", {"mcpServers": {"own": server(folder, kind)}})
    source = {"source": "directory", "path": str(market)}
    at = "2026-01-01T00:00:00.000Z"
    installed = {"scope": "user", "installPath": str(plugin), "version": "1.0.0", "installedAt": at, "lastUpdated": at}
    plugins = home / ".claude" / "plugins"
    wrote(plugins / "installed_plugins.json", {"version": 2, "plugins": {"plug@market": [installed]}})
    known = {"source": source, "installLocation": str(market), "lastUpdated": at}
    wrote(plugins / "known_marketplaces.json", {"market": known})
    settings = {
        "enabledPlugins": {"plug@market": True},
        "extraKnownMarketplaces": {"market": {"source": source}},
        "permissions": {"allow": ["mcp__own", "mcp__plugin_plug_own", "mcp__*"], "defaultMode": "acceptEdits"},
    }
    wrote(home / ".claude" / "settings.json", settings)


def give_codex(home: Path, folder: Path) -> None:
    own = server(folder, "own")
    config = home / ".codex" / "config.toml"
    approved = '[mcp_servers.own.tools.write_it]\napproval_mode = "approve"\n'
    table = f"[mcp_servers.own]\ncommand = {json.dumps(own['command'])}\nargs = {json.dumps(own['args'])}\n{approved}"
    config.write_text(f"\ufeff{config.read_text()}\n{table}", "utf-8")


def give_gemini(home: Path, folder: Path) -> None:
    """A server of the user's and one of an extension, both trusted."""
    settings = json.loads((home / ".gemini" / "settings.json").read_text())
    wrote(home / ".gemini/settings.json", {**settings, "mcpServers": {"own": {**server(folder, "own"), "trust": True}}})
    extension = {"name": "ext", "version": "1.0.0", "mcpServers": {"of-extension": server(folder, "extension")}}
    wrote(home / ".gemini" / "extensions" / "ext" / "gemini-extension.json", extension)


GIVE: dict[Vendor, Callable[[Path, Path], None]] = {"claude": give_claude, "codex": give_codex, "gemini": give_gemini}


@pytest.mark.parametrize("vendor", ["claude", "codex", "gemini"])
def test_no_server_of_the_user_starts_for_a_member_that_reads(user: World, tmp_path: Path, vendor: Vendor) -> None:
    folder = tmp_path / "told"
    folder.mkdir()
    GIVE[vendor](Path(user.env["HOME"]), folder)
    user.server.script(vendor, [*(Reply(tools=(tool,)) for tool in TOOLS[vendor]), Reply("I tried.")])
    user.member(vendor)
    assert user.json("send", "Write").result["text"] == "I tried."
    assert list(folder.iterdir()) == []
    user.member(vendor, 'access = "edit"')
    assert user("send", "--trust", "Hi").code == 0
    assert sorted(path.name for path in folder.iterdir()) == STARTS[vendor]
