"""A user with a setup of every kind, and a project with another: what each of it is shows in what the model is told.

Every text says `SAYS-...`; what runs makes a file of its name in `made`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teamchat.runners.base import Vendor
from tests.images import png
from tests.program import ROOT
from tests.real.test_servers import give_claude as give_plugins

RULE = "./allowed.sh"
EXPANDS = "echo $(echo text) > expanded"
"""A command that the user's own rules allow; it makes a file, and tells a variable of its environment."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where it all is: the user works in `cwd`, below the root of the repository; `outside` is another folder."""

    home: Path
    root: Path
    outside: Path
    made: Path

    @property
    def cwd(self) -> Path:
        return self.root / "pkg"


def wrote(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def plant(place: Place) -> None:
    """The project, for all three CLIs."""
    cwd, root = place.cwd, place.root
    for folder, name in ((root, "root"), (cwd, "cwd"), (cwd / "sub", "sub")):
        for file in ("CLAUDE.md", "AGENTS.md", "GEMINI.md"):
            wrote(folder / file, f"SAYS-instructions-{name}")
    wrote(root / "CLAUDE.local.md", "SAYS-local")
    wrote(root / ".claude" / "rules" / "r.md", "SAYS-rules")
    wrote(cwd / "sub" / "note.txt", "SAYS-note-read")
    wrote(cwd / "note.txt", "SAYS-mentioned")
    (cwd / "shot.png").write_bytes(png())
    wrote(place.outside / "note.txt", "SAYS-outside")
    wrote(cwd / RULE, "#!/bin/sh\ntouch ruled\necho SAYS-$PARITY\n")
    (cwd / RULE).chmod(0o755)
    of_project(place)


def of_project(place: Place) -> None:
    """The project's own settings of each CLI."""
    cwd, made = place.cwd, place.made
    hook = {"SessionStart": [{"hooks": [{"type": "command", "command": f"touch {made}/hook-project"}]}]}
    command = {"description": "SAYS-x", "prompt": "SAYS-command-project {{args}}"}
    for folder in (".claude", ".agents", ".gemini"):
        wrote(cwd / folder / "skills" / "of-project" / "SKILL.md", skill("of-project"))
    wrote(cwd / ".claude" / "agents" / "p.md", skill("agent-of-project"))
    wrote(cwd / ".gemini" / "agents" / "p.md", skill("agent-of-project"))
    wrote(cwd / ".claude" / "commands" / "theirs.md", "SAYS-command-project $ARGUMENTS")
    wrote(cwd / ".gemini" / "commands" / "theirs.toml", toml(command))
    rules = {"allow": ["Bash(./theirs.sh:*)"]}
    wrote(cwd / "theirs.sh", "#!/bin/sh\ntouch ruled-by-project\n")
    (cwd / "theirs.sh").chmod(0o755)
    wrote(cwd / ".claude" / "settings.json", {"hooks": hook, "permissions": rules})
    wrote(cwd / ".mcp.json", {"mcpServers": {"theirs": server(place, "mcp-project")}})
    wrote(cwd / ".gemini" / "settings.json", {"hooks": hook, "mcpServers": {"theirs": server(place, "mcp-project")}})
    wrote(cwd / ".opencode" / "agent" / "p.md", agent("agent-of-project"))
    wrote(cwd / ".opencode" / "skills" / "of-project" / "SKILL.md", skill("of-project"))
    wrote(cwd / ".codex" / "config.toml", toml_server("theirs", server(place, "mcp-project")))
    wrote(cwd / ".codex" / "agents" / "p.toml", role("theirs", "agent-of-project"))


def skill(name: str) -> str:
    return f"---\nname: {name}\ndescription: SAYS-{name}\n---\nDo it.\n"


def agent(name: str) -> str:
    """A subagent of opencode."""
    return f"---\ndescription: SAYS-{name}\nmode: subagent\n---\nDo it.\n"


def role(name: str, says: str) -> str:
    """A subagent of Codex."""
    return toml({"name": name, "description": f"SAYS-{says}", "developer_instructions": f"SAYS-{says}"})


def server(place: Place, name: str) -> dict[str, Any]:
    program = str(ROOT / "tests" / "fakes" / "mcp_server.py")
    return {"command": sys.executable, "args": [program, str(place.made / name), str(place.made / f"{name}-wrote")]}


def toml_server(name: str, values: Mapping[str, object]) -> str:
    return f"[mcp_servers.{name}]\n{toml(values)}"


def toml(values: Mapping[str, object]) -> str:
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


def give(vendor: Vendor, place: Place, *, hooks: bool) -> None:
    """The user's own setup of that CLI, who trusts the repository in it; with `hooks`, for Claude also plugins."""
    {"claude": give_claude, "codex": give_codex, "gemini": give_gemini, "opencode": give_opencode}[vendor](
        place, hooks=hooks
    )


def hook_of_user(place: Place) -> dict[str, Any]:
    return {"SessionStart": [{"hooks": [{"type": "command", "command": f"touch {place.made}/hook-user"}]}]}


def give_claude(place: Place, *, hooks: bool) -> None:
    folder = place.home / ".claude"
    if hooks:
        give_plugins(place.home, place.made)
    wrote(folder / "CLAUDE.md", "SAYS-instructions-user")
    wrote(folder / "skills" / "of-user" / "SKILL.md", skill("of-user"))
    wrote(folder / "agents" / "u.md", skill("agent-of-user"))
    wrote(folder / "commands" / "mine.md", "SAYS-command-user $ARGUMENTS")
    wrote(folder / "output-styles" / "parity.md", "---\nname: parity\ndescription: x\n---\nSAYS-style")
    rules = {"allow": [f"Bash({RULE}:*)"], "additionalDirectories": [str(place.outside)]}
    settings = {"permissions": rules, "outputStyle": "parity", "model": "claude-sonnet-5", "effortLevel": "low"}
    plugins = json.loads((folder / "settings.json").read_text()) if hooks else {}
    wrote(folder / "settings.json", {**plugins, **settings, **({"hooks": hook_of_user(place)} if hooks else {})})
    memory = folder / "projects" / str(place.root).replace("/", "-").replace(".", "-").replace("_", "-") / "memory"
    wrote(memory / "MEMORY.md", "SAYS-memory")
    trusted = {str(place.root): {"hasTrustDialogAccepted": True}}
    wrote(place.home / ".claude.json", {"projects": trusted, "mcpServers": {"mine": server(place, "mcp-user")}})


def give_codex(place: Place, *, hooks: bool) -> None:
    del hooks
    folder = place.home / ".codex"
    wrote(folder / "AGENTS.md", "SAYS-instructions-user")
    wrote(folder / "skills" / "of-user" / "SKILL.md", skill("of-user"))
    wrote(folder / "agents" / "u.toml", role("mine", "agent-of-user"))
    text = (folder / "config.toml").read_text()
    head = 'model_reasoning_effort = "low"\n' + text
    tables = toml_server("mine", server(place, "mcp-user")) + f'[projects."{place.root}"]\ntrust_level = "trusted"\n'
    (folder / "config.toml").write_text(f"{head}\n{tables}")


def give_gemini(place: Place, *, hooks: bool) -> None:
    folder = place.home / ".gemini"
    wrote(folder / "GEMINI.md", "SAYS-instructions-user")
    wrote(folder / "skills" / "of-user" / "SKILL.md", skill("of-user"))
    wrote(folder / "agents" / "u.md", skill("agent-of-user"))
    wrote(folder / "commands" / "mine.toml", 'prompt = "SAYS-command-user {{args}}"\n')
    extension = {"name": "ext", "version": "1.0.0", "mcpServers": {"of-extension": server(place, "mcp-plugin")}}
    wrote(folder / "extensions" / "ext" / "gemini-extension.json", extension)
    settings = json.loads((folder / "settings.json").read_text())
    rule = {"toolName": "run_shell_command", "commandPrefix": RULE, "decision": "allow", "priority": 500}
    wrote(folder / "policies" / "mine.toml", f"[[rule]]\n{toml(rule)}")
    settings |= {"mcpServers": {"mine": server(place, "mcp-user")}}
    settings |= {"context": {"includeDirectories": [str(place.outside)]}, "hooks": hook_of_user(place) if hooks else {}}
    wrote(folder / "settings.json", settings)
    wrote(folder / "trustedFolders.json", {str(place.root): "TRUST_FOLDER"})


def give_opencode(place: Place, *, hooks: bool) -> None:
    del hooks
    folder = place.home / ".config" / "opencode"
    wrote(folder / "AGENTS.md", "SAYS-instructions-user")
    wrote(folder / "skills" / "of-user" / "SKILL.md", skill("of-user"))
    wrote(folder / "agent" / "u.md", agent("agent-of-user"))
    settings = json.loads((folder / "opencode.json").read_text())
    rules = {"bash": {"*": "ask", RULE: "allow"}, "external_directory": {f"{place.outside}/**": "allow"}}
    settings |= {"mcp": local_server("mine", place, "mcp-user"), "permission": rules}
    wrote(folder / "opencode.json", {**settings, "model": "anthropic/claude-sonnet-5"})
    catalogue = place.home / ".cache" / "opencode" / "models.json"
    catalogue.write_text(catalogue.read_text().replace("claude-opus-4-8", "claude-sonnet-5"))


def give_settings(place: Place) -> None:
    """The file of a project for which opencode gives a member no turn."""
    wrote(place.cwd / "opencode.json", {"mcp": local_server("theirs", place, "mcp-project")})


def local_server(name: str, place: Place, makes: str) -> dict[str, Any]:
    """The same server, as opencode's settings have it."""
    own = server(place, makes)
    return {name: {"type": "local", "command": [own["command"], *own["args"]]}}
