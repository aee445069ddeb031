"""The parts of a project that opencode obeys (observed at 1.18.33), and the variables that prevent it.

OPENCODE_DISABLE_PROJECT_CONFIG keeps the project's `opencode.json`, its agents, commands, tools and MCP servers
from a turn. Plugins are loaded a second time by code that looks at no variable: neither that one nor OPENCODE_PURE
keeps a project's plugin from running in a turn of any access. So a turn in such a project is refused before it
starts.

opencode is a program of Bun. Bun obeys the `tsconfig.json` and `jsconfig.json` of its start folder, and of the folders
above, for the program's own imports: their `paths` can replace any of them. So opencode starts in `/`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

START = Path("/")
_SWITCH = "OPENCODE_DISABLE_PROJECT_CONFIG"
OFF = {_SWITCH: "1", "OPENCODE_DISABLE_EXTERNAL_SKILLS": "1"}  # skills of .claude and .agents, also of the user
NAMES = (
    "opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc", ".opencode/plugin",
    ".opencode/plugins",
)  # fmt: skip


def plugins(env: Mapping[str, str]) -> str | None:
    """Say why no turn of this environment begins: it is to obey nothing of its project, whose plugins would run.

    None if none would. PWD is the folder of the turn. opencode's files in the home folder are the user's.
    """
    if not env.get(_SWITCH) or not env.get("PWD"):
        return None
    there = next((file for file in _places(Path(env["PWD"]), env.get("HOME")) if os.path.lexists(file)), None)
    return (
        f"opencode runs the plugins that {there} names, with any options; set project_settings = true"
        if there
        else None
    )


def _places(cwd: Path, home: str | None) -> Iterator[Path]:
    own = {Path(home), Path(os.path.realpath(home))} if home else set()
    real = Path(os.path.realpath(cwd))
    folders = dict.fromkeys((cwd, *cwd.parents, real, *real.parents))
    return (folder / name for folder in folders if folder not in own for name in NAMES)
