"""A project that the user trusts in Claude: its instructions count, and what would run does not (observed at 2.1.330).

Claude reads a project's settings, servers, commands, subagents and skills from the folder that `--project-config-root`
names, and CLAUDE.md and CLAUDE.local.md from where it works. So it is given a folder of the turn with copies of the
project's commands, subagents and skills, without hooks, servers and permissions, and with no settings.

The user's hooks and plugins run in that folder, too, and would not find the project there. Users who have hooks or
plugins get only what an untrusted project shows: CLAUDE.md of the folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from teamchat.patterns import regex
from teamchat.runners import git_server
from teamchat.runners.base import Job
from teamchat.runners.homes.folders import claude_folder, claude_record, user_home
from teamchat.runners.homes.versions import installed_version
from teamchat.runners.untrusted.json import decode
from teamchat.runners.untrusted.markdown_head import harmless
from teamchat.runners.untrusted.regular_files import read_regular, read_regular_text
from teamchat.runners.untrusted.settings_json import table_in, table_of

# The folders of a project in Claude's view: those up to its root, and the one that its notes are about (2.1.330).

LONGEST = 1 << 16  # bytes of a file of git that only says where something is


def folders(cwd: Path) -> list[Path]:
    """The folder and its parents up to the root of its repository; all parents outside a repository."""
    upwards = [real := Path(os.path.realpath(cwd)), *real.parents]
    root = next((number for number, folder in enumerate(upwards) if os.path.lexists(folder / ".git")), len(upwards))
    return upwards[: root + 1]


def noted_at(cwd: Path) -> Path:
    """The folder under whose path Claude notes what belongs to a project, such as its local MCP servers.

    That is the root of the repository's main work tree, also for a linked worktree. Outside a repository it is `cwd`.
    """
    upwards = folders(cwd)
    root = upwards[-1]
    if not os.path.lexists(root / ".git"):
        return upwards[0]
    try:
        return _main_of(root)
    except (OSError, ValueError):
        return root


def _main_of(root: Path) -> Path:
    """The main work tree, or the bare repository. Raises `OSError` and `ValueError` if `root` is not a linked one.

    A folder's own word does not count: the repository has to name the folder, too.
    """
    own = _named(root, ".git")
    common = _named(own, "commondir")
    named = _named(own, "gitdir")
    if own.parent != common / "worktrees" or os.path.realpath(named) != str(root / ".git"):
        raise ValueError("no work tree of that repository")
    return common.parent if common.name == ".git" else common


def _named(folder: Path, name: str) -> Path:
    """The path in a file of one line, relative to the file's folder."""
    text = read_regular_text(folder / name, most=LONGEST).strip()
    return Path(os.path.normpath(folder / text.removeprefix("gitdir:").strip()))


PACKAGE = "@anthropic-ai/claude-code"
_INSTALLER = regex(r"/claude/versions/([0-9.]+)\Z")  # the place that its own installer gives a version (2.1.330)


def version_of(program: str, env: Mapping[str, str]) -> tuple[int, ...]:
    """The numbers of the version; empty if it is not known."""
    found = shutil.which(program, path=env.get("PATH", os.defpath))
    if found is None:
        return ()
    own = _INSTALLER.search(os.path.realpath(found))
    version = own[1] if own else installed_version(found, PACKAGE) or ""
    return tuple(map(int, re.findall("[0-9]{1,9}", version)[:3]))


SINCE = (2, 1, 330)  # the oldest version that was seen to know the option
SOURCES = ("--setting-sources", "user,project,local")
LARGEST = 1 << 20  # bytes of a file
MOST_BYTES, MOST_FILES = 8 << 20, 1000  # limits of all copies together


def of_trusted(job: Job) -> tuple[tuple[str, ...], dict[Path, bytes]] | None:
    """The arguments and files that show a trusted project's instructions; None where it is not shown them.

    The folder contains `.git`, so Claude does not search its parents, where others may have put commands.
    """
    if not shows(job):
        return None
    root = job.scratch / "project"
    copies = {root / ".claude" / name: content for name, content in _copied(job).items()}
    return (*SOURCES, "--project-config-root", str(root)), {root / ".git" / "HEAD": b"", **copies}


def shows(job: Job) -> bool:
    """True if the member sees the instructions of a project that its user trusts."""
    if job.project_settings or not trusts(job.cwd, job.env):
        return False
    return version_of(job.program[0], job.env) >= SINCE and _keeps_to_itself(job.env)


def lacks(job: Job) -> tuple[str, ...]:
    """The parts of its project that a member lacks and the plain CLI has."""
    if job.project_settings or shows(job):
        return ()
    return ("the project's instructions (except CLAUDE.md of its folder), skills and subagents",)


def trusts(cwd: Path, env: Mapping[str, str]) -> bool:
    """True if the user has trusted the folder in Claude, or one above it up to the repository's root.

    A linked work tree of a repository is trusted with its main one.
    """
    projects = _table(claude_record(env)).get("projects")
    if not isinstance(projects, dict) or env.get("CLAUDE_CODE_IGNORE_PERSISTED_TRUST"):
        return False
    own = Path(os.path.realpath(user_home(env)))
    records = (projects.get(str(folder)) for folder in (*folders(cwd), noted_at(cwd)) if folder != own)
    return any(isinstance(record, dict) and record.get("hasTrustDialogAccepted") is True for record in records)


def _keeps_to_itself(env: Mapping[str, str]) -> bool:
    """True if the user has neither hooks nor plugins."""
    file = claude_folder(env) / "settings.json"
    settings = _decoded(file) if file.exists() else {}
    return settings is not None and not (settings.get("hooks") or settings.get("enabledPlugins"))


def _table(file: Path) -> dict[str, object]:
    return _decoded(file) or {}


def _decoded(file: Path) -> dict[str, object] | None:
    try:
        return decode(read_regular(file))
    except (OSError, ValueError):
        return None


def _copied(job: Job) -> dict[str, bytes]:
    """The files by their place below `.claude`; one of a nearer folder comes before others of the same place.

    The user's files, whose folder may lie above, are not the project's.
    """
    found: dict[str, bytes] = {}
    size = 0
    upwards = folders(job.cwd)
    own = Path(os.path.realpath(user_home(job.env)))
    root = upwards[-1] if os.path.lexists(upwards[-1] / ".git") else None
    for number, folder in enumerate(folder for folder in upwards if folder != own):
        for path in _files(folder / ".claude"):
            name = path.relative_to(folder / ".claude").as_posix()
            # a subagent has its name from its text, whatever its file is called
            place = name.replace("agents/", f"agents/{number}-", 1) if name.startswith("agents/") else name
            content = _content(path, name, root or folder) if place not in found else None
            if content is None:
                continue
            size += len(content)
            if size > MOST_BYTES or len(found) >= MOST_FILES:
                return found
            found[place] = content
    return found


def _files(settings: Path) -> Iterator[Path]:
    """What may be commands, subagents and skills; names with a dot in front are settings of something."""
    for kind in ("commands", "agents", "skills"):
        for folder, inner, names in os.walk(settings / kind):
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            yield from (Path(folder, name) for name in sorted(names) if not name.startswith("."))


def _content(path: Path, name: str, root: Path) -> bytes | None:
    """The content of a copy; None if it is not a regular file below `root`, or if what it would run is unknown."""
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
    """True if Claude reads the head of that file; only its model reads the other files of a skill."""
    lower = name.lower()
    return lower.endswith("/skill.md" if lower.startswith("skills/") else ".md")


# What Claude may use besides the tools of its access: the web, MCP servers and git (observed at 2.1.330).
#
# A member that reads has only the tools that `--tools` names; MCP tools come on top of these. In `edit` the web is
# taken away, since a rule of the user's may allow it. `full` has everything.

WEB = ("WebFetch", "WebSearch")
# With these a process that stays asks its model and writes between turns, which have no receipt. A member that reads
# has none of them.
ACTS_LATER = ("CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "Monitor", "Workflow")
LOOKING = ("Read", "Grep", "Glob")
_ODD = regex(r"[^A-Za-z0-9_-]")  # these characters of a server's name become `_` in the names of its tools


def servers(cwd: Path, env: Mapping[str, str]) -> dict[str, object]:
    """The MCP servers that the user has set up, globally or for that folder, each with its definition."""
    return table_of(table_in(claude_record(env)), "mcpServers") | local_servers(cwd, env)


def local_servers(cwd: Path, env: Mapping[str, str]) -> dict[str, object]:
    """The servers that the user has set up for that folder."""
    return table_of(table_in(claude_record(env)), "projects", str(noted_at(cwd)), "mcpServers")


def tools(job: Job) -> tuple[tuple[str, ...], dict[Path, bytes]]:
    """The arguments, and the file with the definitions of the servers that they name."""
    argv: list[str] = []
    if job.access == "read":
        argv += ("--tools", ",".join((*LOOKING, *(WEB if job.web else ()))))
    else:
        without_web = job.access == "edit" and not job.web
        argv += ("--disallowedTools", *ACTS_LATER, *(WEB if without_web else ()))
    given = _given(job)
    if job.servers is not None:
        # the settings stop servers that come another way than by configuration, such as those of plugins
        only = {"allowedMcpServers": [{"serverName": name} for name in given]}
        argv += ("--strict-mcp-config", "--settings", json.dumps(only, ensure_ascii=False, separators=(",", ":")))
    elif shows(job):
        argv.append("--strict-mcp-config")  # else Claude looks for some above the folder that it is given
    path = job.scratch / "mcp.json"
    defined = _unseen(job) | given
    if defined:
        argv += ("--mcp-config", str(path))
    if job.access != "full" and (allowed := tuple(_allowed(job, given))):
        argv += ("--allowedTools", *allowed)
    return tuple(argv), {path: json.dumps({"mcpServers": defined}).encode()} if defined else {}


def _unseen(job: Job) -> dict[str, object]:
    """The servers of a user who has them all that Claude does not find under the member's arguments.

    `--setting-sources user` leaves out those of the folder, and `--strict-mcp-config` leaves out all (2.1.330).
    """
    if job.servers is not None or job.project_settings:
        return {}
    return (servers if shows(job) else local_servers)(job.cwd, job.env)


def _given(job: Job) -> dict[str, object]:
    known = servers(job.cwd, job.env) if job.servers else {}
    named = {name: known[name] for name in job.servers or () if name in known}
    if job.git:
        program, *arguments = git_server.server_command(job.cwd, job.git, job.env)
        named[git_server.NAME] = {"command": program, "args": arguments}
    # without this Claude begins before a server has started, and leaves its tools out until they are searched for
    return {name: {**server, "alwaysLoad": True} for name, server in named.items() if isinstance(server, dict)}


def _allowed(job: Job, given: Mapping[str, object]) -> Iterator[str]:
    if job.access == "edit":
        yield from (f"Bash({command}:*)" for command in job.allow)
    if job.web:
        yield from WEB
    yield from (f"mcp__{_ODD.sub('_', name)}" for name in given)
