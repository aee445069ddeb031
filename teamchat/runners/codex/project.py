"""A project that the user trusts in Codex: its instructions count, its configuration does not (observed at 0.169.0).

In a folder that is trusted, or that nothing is known of, Codex reads AGENTS.md; a project's own
`.codex/config.toml` acts where the folder is trusted, and a server that it names starts. A trust that the user's
file has cannot be taken back for a run but by the word "untrusted", and then Codex reads no AGENTS.md of the
project either. So it is handed that text in the words it would use itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from teamchat.runners.codex.configuration import loaded, of_projects, root_of, user_files
from teamchat.runners.untrusted.json import scalar
from teamchat.runners.untrusted.regular_files import read_regular_text
from teamchat.runners.untrusted.toml import in_toml

NAMES = ("AGENTS.override.md", "AGENTS.md")
MOST_INSTRUCTIONS = 32 * 1024  # bytes of AGENTS.md that Codex reads unless the user changes it
LARGEST = 100_000  # bytes of the text handed over, as TOML; the kernel takes 131,071 for one argument
CUT = "\n[teamchat cut the rest, which does not fit in an argument]"


def without_project(cwd: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """Build the arguments that keep the project's configuration from acting; none where the user does not trust it."""
    settings = _project_settings(env)
    if settings is not None and not _trusts(settings, cwd):
        return ()
    distrust = ("-c", of_projects({cwd, root_of(cwd)}, "untrusted"))
    instructions = _instructions(cwd, settings or [])
    return (*distrust, "-c", f"developer_instructions={in_toml(instructions)}") if instructions else distrust


def _project_settings(env: Mapping[str, str]) -> list[Mapping[str, object]] | None:
    """Read the user's settings; None if one of the files cannot be understood."""
    try:
        return [loaded(file) for file in user_files(env)]
    except (OSError, ValueError):
        return None


def _trusts(settings: list[Mapping[str, object]], cwd: Path) -> bool:
    """Whether any folder around `cwd` is trusted; in a linked work tree, whether any folder is trusted at all."""
    trusted = {path for table in settings for path in _trusted(table)}
    around = {str(folder) for folder in (cwd, *cwd.parents, *Path(os.path.realpath(cwd)).parents)}
    return bool(trusted if (root_of(cwd) / ".git").is_file() else trusted & (around | {os.path.realpath(cwd)}))


def _trusted(settings: Mapping[str, object]) -> Iterator[str]:
    projects = settings.get("projects")
    for path, project in projects.items() if isinstance(projects, dict) else ():
        if isinstance(project, dict) and project.get("trust_level") == "trusted":
            yield str(path).rstrip("/") or "/"


def _instructions(cwd: Path, settings: list[Mapping[str, object]]) -> str:
    """Collect AGENTS.md of the repository's root, of `cwd` and of all folders between; the user's text goes first."""
    root = root_of(cwd)
    folders = [folder for folder in (*reversed(cwd.parents), cwd) if folder == root or root in folder.parents]
    texts = [text for folder in folders if (text := _agents(folder, settings))]
    sizes = [size for table in settings if isinstance(size := table.get("project_doc_max_bytes"), int)]
    most = sizes[-1] if sizes else MOST_INSTRUCTIONS
    agents = "\n\n".join(texts).encode()[: max(most, 0)].decode(errors="ignore")
    own = [instruction for table in settings if isinstance(instruction := table.get("developer_instructions"), str)]
    return _told(scalar("".join(own[-1:])), agents, cwd) if agents else ""


def _told(own: str, agents: str, cwd: Path) -> str:
    """Join both texts within the size of an argument. The user's text comes first, and is cut last."""
    head, end = f"# AGENTS.md instructions for {cwd}\n\n<INSTRUCTIONS>\n", "\n</INSTRUCTIONS>"
    around = _size(f"\n\n{head}{CUT}{end}")
    own = _held(own, LARGEST - around)
    held = _held(agents, LARGEST - around - _size(own))
    return "\n\n".join(filter(None, (own, f"{head}{held}{end}")))


def _held(text: str, room: int) -> str:
    """Keep as much of the beginning as `room` bytes of TOML hold, with `CUT` after it if that is not everything."""
    from bisect import bisect_right  # hardly anybody has such texts

    if _size(text) <= room:
        return text
    short = text[: max(room, 0)]
    fits = bisect_right(range(len(short) + 1), room, key=lambda end: _size(short[:end] + CUT))
    return short[: max(fits - 1, 0)] + CUT


def _size(text: str) -> int:
    return len(in_toml(text).encode())


def _agents(folder: Path, settings: list[Mapping[str, object]]) -> str:
    """Read the first instruction file of that folder; empty if there is none."""
    others = [name for table in settings for name in _texts(table.get("project_doc_fallback_filenames"))]
    for name in (*NAMES, *others):
        try:
            if (folder / name).is_file():
                return scalar(read_regular_text(folder / name, errors="replace")).strip()
        except (OSError, ValueError):
            continue
    return ""


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
