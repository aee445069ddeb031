"""A project that the user trusts in Claude: its instructions count, and it runs nothing (observed at 2.1.330).

Claude reads a project's settings, servers, commands, subagents and skills from the folder that `--project-config-root`
names, and CLAUDE.md and CLAUDE.local.md from where it works. So it is given a folder of the turn with copies of the
project's commands, subagents and skills, without hooks, servers and permissions, and with no settings.

The user's hooks and plugins run in that folder, too, and would not find the project there. Users who have hooks or
plugins get no more than of an untrusted project: CLAUDE.md of the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from teamchat.runners.base import Job
from teamchat.runners.claude.folders import folders, noted_at, version_of
from teamchat.runners.homes.folders import claude_folder, claude_record, user_home
from teamchat.runners.untrusted.json import object_in
from teamchat.runners.untrusted.markdown_head import harmless
from teamchat.runners.untrusted.regular_files import read_regular

SINCE = (2, 1, 330)  # the oldest version that was seen to know the option
SOURCES = ("--setting-sources", "user,project,local")
LARGEST = 1 << 20  # bytes of a file
MOST_BYTES, MOST_FILES = 8 << 20, 1000  # limits of all copies together


def of_trusted(job: Job) -> tuple[tuple[str, ...], dict[Path, bytes]] | None:
    """Build the arguments and files that show a trusted project's instructions; None where they are not shown.

    The folder contains `.git`, so Claude does not search its parents, where others may have put commands.
    """
    if not shows(job):
        return None
    root = job.scratch / "project"
    copies = {root / ".claude" / name: content for name, content in _copied(job).items()}
    return (*SOURCES, "--project-config-root", str(root)), {root / ".git" / "HEAD": b"", **copies}


def shows(job: Job) -> bool:
    """Whether the member sees the instructions of a project that its user trusts."""
    if job.project_settings or not trusts(job.cwd, job.env):
        return False
    return version_of(job.program[0], job.env) >= SINCE and _keeps_to_itself(job.env)


def lacks(job: Job) -> tuple[str, ...]:
    """List the parts of its project that a member lacks and the plain CLI has."""
    if job.project_settings or shows(job):
        return ()
    return ("the project's instructions (except CLAUDE.md of its folder), skills and subagents",)


def trusts(cwd: Path, env: Mapping[str, str]) -> bool:
    """Whether the user has trusted the folder in Claude, or one above it up to the repository's root.

    A linked work tree of a repository is trusted with its main one.
    """
    projects = (object_in(claude_record(env)) or {}).get("projects")
    if not isinstance(projects, dict) or env.get("CLAUDE_CODE_IGNORE_PERSISTED_TRUST"):
        return False
    own = Path(os.path.realpath(user_home(env)))
    records = (projects.get(str(folder)) for folder in (*folders(cwd), noted_at(cwd)) if folder != own)
    return any(isinstance(record, dict) and record.get("hasTrustDialogAccepted") is True for record in records)


def _keeps_to_itself(env: Mapping[str, str]) -> bool:
    """Whether the user has neither hooks nor plugins."""
    file = claude_folder(env) / "settings.json"
    settings = object_in(file) if file.exists() else {}
    return settings is not None and not (settings.get("hooks") or settings.get("enabledPlugins"))


def _copied(job: Job) -> dict[str, bytes]:
    """Collect the files by their place below `.claude`; a nearer folder's file comes before others of the same place.

    The user's files, whose folder may lie above, are not the project's.
    """
    contents: dict[str, bytes] = {}
    size = 0
    upwards = folders(job.cwd)
    own = Path(os.path.realpath(user_home(job.env)))
    root = upwards[-1] if os.path.lexists(upwards[-1] / ".git") else None
    for number, folder in enumerate(folder for folder in upwards if folder != own):
        for path in _files(folder / ".claude"):
            name = path.relative_to(folder / ".claude").as_posix()
            # a subagent's name is in its text, whatever the name of its file
            place = name.replace("agents/", f"agents/{number}-", 1) if name.startswith("agents/") else name
            content = _content(path, name, root or folder) if place not in contents else None
            if content is None:
                continue
            size += len(content)
            if size > MOST_BYTES or len(contents) >= MOST_FILES:
                return contents
            contents[place] = content
    return contents


def _files(settings: Path) -> Iterator[Path]:
    """List possible commands, subagents and skills; names with a dot in front are settings of something."""
    for kind in ("commands", "agents", "skills"):
        for folder, inner, names in os.walk(settings / kind):
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            yield from (Path(folder, name) for name in sorted(names) if not name.startswith("."))


def _content(path: Path, name: str, root: Path) -> bytes | None:
    """Read the content of a copy; None if it is not a regular file below `root`, or may run something unknown."""
    real = Path(os.path.realpath(path))
    try:
        if not (real.is_relative_to(root) and real.is_file() and real.stat().st_size <= LARGEST):
            return None
        content = read_regular(real, LARGEST)
        if not _is_read(name):
            return content
        text = harmless(content.decode())
    except (OSError, ValueError):
        return None
    return None if text is None else text.encode()


def _is_read(name: str) -> bool:
    """Whether Claude reads the head of that file; only its model reads the other files of a skill."""
    lower = name.lower()
    return lower.endswith("/skill.md" if lower.startswith("skills/") else ".md")
