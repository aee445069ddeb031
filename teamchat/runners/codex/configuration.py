"""Codex's configuration, as far as a member's access, tools and login bear on it (observed at 0.169.0).

A member that only reads goes without MCP servers but those that it is given. They run outside Codex's sandbox, so a
tool of theirs that the user's settings approve can write whatever the sandbox forbids. A server can only be switched
off by its name, and with a transport of the kind it has. So every file that may name one has to be understood. Codex
reads TOML 1.1, `tomllib` only 1.0: `read` is refused where a file of the user's or the machine's is beyond that. A
project's file does not count without `project_settings`, also where the user trusts the project.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path

from teamchat.patterns import regex
from teamchat.runners import git_server
from teamchat.runners.base import Job
from teamchat.runners.untrusted.json import one_line, scalar
from teamchat.runners.untrusted.regular_files import open_regular, read_regular_text
from teamchat.runners.untrusted.toml import in_toml, loads

OFF = {"command": 'command="false",enabled=false', "url": 'url="http://127.0.0.1:9",enabled=false'}
ON = 'enabled=true,default_tools_approval_mode="approve"'
AWAITED = f"required=true,startup_timeout_sec={git_server.STARTS_IN_S}"  # else the first tool calls come too early
# The names of Codex's skills, as far as files tell them (observed at 0.169.0).
#
# A prompt that has `$name` of a skill gets all of its SKILL.md. A name is what the file says, not what its folder is
# called. A skill of a plugin is called `plugin:name`.

DEEPEST = 80  # parts of a key; Codex 0.150 to 0.169 refuse the file with a deeper one (observed)
FILES = 8  # whose tables are kept: hardly anybody has more
PROFILE = ".config.toml"
SYSTEM = Path("/etc/codex/config.toml")


def servers(env: Mapping[str, str]) -> dict[str, str]:
    """The MCP servers that the user has set up, each with the kind of its transport."""
    return {name: kind for file in user_files(env) for name, kind in _servers(file)}


def servers_of(job: Job) -> tuple[str, ...]:
    """The arguments that give a member the servers that are for it, and no others."""
    table = ",".join(f"{in_toml(name)}={{{said}}}" for name, said in sorted(_said_of_servers(job).items()))
    return ("-c", f"mcp_servers={{{table}}}") if table else ()


def _said_of_servers(job: Job) -> dict[str, str]:
    said = {}
    if job.servers is not None:
        known = servers(job.env)
        if job.project_settings:
            known |= {name: kind for file in _of_project(job.cwd) for name, kind in _servers(file)}
        said = {name: ON if name in job.servers else OFF[kind] for name, kind in known.items()}
    if job.git:
        program, *arguments = git_server.server_command(job.cwd, job.git, job.env)
        words = ",".join(map(in_toml, arguments))
        said[git_server.NAME] = f"command={in_toml(program)},args=[{words}],{ON},{AWAITED}"
    return said


def misunderstood(env: Mapping[str, str]) -> str | None:
    """The file that cannot be parsed, and why; None if all parse."""
    for file in user_files(env):
        try:
            loaded(file)
        except (OSError, ValueError) as error:
            return f"{file} cannot be read: {one_line(str(error))}"
    return None


def users_settings(env: Mapping[str, str]) -> dict[str, object]:
    """The user's configuration; empty if it is missing or cannot be read."""
    return _settings(home(env) / "config.toml")


def home(env: Mapping[str, str]) -> Path:
    """Codex's own folder."""
    return Path(env.get("CODEX_HOME") or Path(env.get("HOME", "/nonexistent")) / ".codex")


def trusting(cwd: Path) -> tuple[str, ...]:
    """The arguments that let the project's own configuration act, for this run only; `--trust` would write it down."""
    return ("-c", of_projects({root_of(cwd)}, "trusted"))


def of_projects(folders: set[Path], level: str) -> str:
    table = ",".join(f'{in_toml(str(folder))}={{trust_level="{level}"}}' for folder in sorted(folders))
    return f"projects={{{table}}}"


def root_of(cwd: Path) -> Path:
    repositories = (folder for folder in (cwd, *cwd.parents) if os.path.exists(folder / ".git"))  # noqa: PTH110
    return next(repositories, cwd)


def user_files(env: Mapping[str, str]) -> Iterator[Path]:
    """The system's file, the user's, and those of the user's profiles."""
    yield from (SYSTEM, home(env) / "config.toml")
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(home(env))  # noqa: PTH208 (`glob` compiles a pattern)
    yield from sorted(home(env) / name for name in names if name.endswith(PROFILE))


def _of_project(cwd: Path) -> Iterator[Path]:
    return (folder / ".codex" / "config.toml" for folder in (cwd, *cwd.parents))


def _servers(file: Path) -> Iterator[tuple[str, str]]:
    servers = _settings(file).get("mcp_servers")
    for name, server in servers.items() if isinstance(servers, dict) else ():
        yield name, "url" if isinstance(server, dict) and "url" in server else "command"


# A project that the user trusts in Codex: its instructions count, its configuration does not (observed at 0.169.0).
#
# In a folder that is trusted, or that nothing is known of, Codex reads AGENTS.md; a project's own
# `.codex/config.toml` acts where the folder is trusted, and a server that it names starts. A trust that the user's
# file has cannot be taken back for a run but by the word "untrusted", and then Codex reads no AGENTS.md of the
# project either. So it is handed that text in the words it would use itself.


def _settings(file: Path) -> dict[str, object]:
    try:
        return loaded(file)
    except (OSError, ValueError):
        return {}


def loaded(file: Path) -> dict[str, object]:
    """The tables of the file; Codex passes over a mark of byte order. Raises `OSError` and `ValueError`."""
    return _tables(read_regular_text(file).removeprefix("\ufeff")) if file.is_file() else {}


@lru_cache(FILES)
def _tables(text: str) -> dict[str, object]:
    """The tables of that text. A turn asks for those of each file five times."""
    return loads(text, DEEPEST)


NAMES = ("AGENTS.override.md", "AGENTS.md")
MOST_INSTRUCTIONS = 32 * 1024  # bytes that Codex reads of a project's AGENTS.md where the user says nothing else
LARGEST = 100_000  # bytes of what is handed over, as TOML; the kernel takes 131,071 for one argument
CUT = "\n[teamchat cut the rest, which does not fit in an argument]"


def without_project(cwd: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """The arguments with which no configuration of the project acts; none where the user does not trust it anyway."""
    settings = _project_settings(env)
    if settings is not None and not _trusts(settings, cwd):
        return ()
    distrust = ("-c", of_projects({cwd, root_of(cwd)}, "untrusted"))
    told = _instructions(cwd, settings or [])
    return (*distrust, "-c", f"developer_instructions={in_toml(told)}") if told else distrust


def _project_settings(env: Mapping[str, str]) -> list[Mapping[str, object]] | None:
    """The user's settings; None if one of the files cannot be understood."""
    try:
        return [loaded(file) for file in user_files(env)]
    except (OSError, ValueError):
        return None


def _trusts(settings: list[Mapping[str, object]], cwd: Path) -> bool:
    """True if any folder around `cwd` is trusted; in a work tree of git, if any folder is trusted at all."""
    trusted = {path for one in settings for path in _trusted(one)}
    around = {str(folder) for folder in (cwd, *cwd.parents, *Path(os.path.realpath(cwd)).parents)}
    return bool(trusted if (root_of(cwd) / ".git").is_file() else trusted & (around | {os.path.realpath(cwd)}))


def _trusted(settings: Mapping[str, object]) -> Iterator[str]:
    projects = settings.get("projects")
    for path, project in projects.items() if isinstance(projects, dict) else ():
        if isinstance(project, dict) and project.get("trust_level") == "trusted":
            yield str(path).rstrip("/") or "/"


def _instructions(cwd: Path, settings: list[Mapping[str, object]]) -> str:
    """AGENTS.md of the repository's root, of `cwd` and of the folders between, after the user's instructions."""
    root = root_of(cwd)
    folders = [folder for folder in (*reversed(cwd.parents), cwd) if folder == root or root in folder.parents]
    texts = [text for folder in folders if (text := _agents(folder, settings))]
    sizes = [size for one in settings if isinstance(size := one.get("project_doc_max_bytes"), int)]
    most = sizes[-1] if sizes else MOST_INSTRUCTIONS
    agents = "\n\n".join(texts).encode()[: max(most, 0)].decode(errors="ignore")
    own = [told for one in settings if isinstance(told := one.get("developer_instructions"), str)]
    return _told(scalar("".join(own[-1:])), agents, cwd) if agents else ""


def _told(own: str, agents: str, cwd: Path) -> str:
    """Both texts within the size of an argument. The user's text comes first, and is cut last."""
    head, end = f"# AGENTS.md instructions for {cwd}\n\n<INSTRUCTIONS>\n", "\n</INSTRUCTIONS>"
    around = _size(f"\n\n{head}{CUT}{end}")
    own = _held(own, LARGEST - around)
    held = _held(agents, LARGEST - around - _size(own))
    return "\n\n".join(filter(None, (own, f"{head}{held}{end}")))


def _held(text: str, room: int) -> str:
    """As much of the beginning as `room` bytes of TOML hold, with `CUT` after it if that is not everything."""
    from bisect import bisect_right  # hardly anybody has such texts

    if _size(text) <= room:
        return text
    short = text[: max(room, 0)]
    fits = bisect_right(range(len(short) + 1), room, key=lambda end: _size(short[:end] + CUT))
    return short[: max(fits - 1, 0)] + CUT


def _size(text: str) -> int:
    return len(in_toml(text).encode())


def _agents(folder: Path, settings: list[Mapping[str, object]]) -> str:
    """The text of the first instruction file of that folder."""
    others = [name for one in settings for name in _texts(one.get("project_doc_fallback_filenames"))]
    for name in (*NAMES, *others):
        try:
            if (folder / name).is_file():
                return scalar(read_regular_text(folder / name, errors="replace")).strip()
        except (OSError, ValueError):
            continue
    return ""


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


DEEPEST_SKILL = 6  # folders below one of the places, as Codex itself looks; a plugin's skills lie deeper
MOST_SKILLS = 2000  # folders that are looked into in one place
HEAD = 16 * 1024  # bytes of a file in which its name is looked for
EVERY = "*"  # stands for any name: that of a skill whose own cannot be told
_NAME = regex(r"^name:[ \t]*(?P<quote>[\"']?)(?P<name>[\w:-]+)(?P=quote)[ \t\r]*$", re.MULTILINE | re.ASCII)


def known_skills(cwd: Path, env: Mapping[str, str]) -> Callable[[str], bool]:
    """A function that tells whether a mention names a skill that Codex would find from `cwd`.

    It searches at its first call.
    """
    names = cache(lambda: skill_names(cwd, env))
    return lambda mention: mention.startswith("$") and is_skill(mention, names())


def skill_names(cwd: Path, env: Mapping[str, str]) -> frozenset[str]:
    """The names of the skills that Codex would find from `cwd`, by which a prompt may mention them."""
    return frozenset(name for place in _places(cwd, env) for name in _names_in(place))


def is_skill(mention: str, names: frozenset[str]) -> bool:
    """True if `mention` (`$name`, `$plugin:name`) names a skill in `names`."""
    name = mention.removeprefix("$")
    return EVERY in names or name in names or name.rpartition(":")[2] in names


def _places(cwd: Path, env: Mapping[str, str]) -> Iterator[Path]:
    yield from (home(env) / "skills", home(env) / "plugins", Path("/etc/codex/skills"))
    yield Path(env.get("HOME", "/nonexistent")) / ".agents" / "skills"
    for folder in (cwd, *cwd.parents):
        yield from (folder / name / "skills" for name in (".codex", ".agents"))


def _names_in(place: Path) -> Iterator[str]:
    deepest = len(place.parts) + DEEPEST_SKILL * (2 if place.name == "plugins" else 1)
    walk = os.walk(place, followlinks=True)
    for folder, below, files in islice(walk, MOST_SKILLS):
        if "SKILL.md" in files:
            yield from _names_of(Path(folder))
        if len(Path(folder).parts) >= deepest:
            below.clear()
    if next(walk, None):
        yield EVERY


def _names_of(folder: Path) -> Iterator[str]:
    yield folder.name
    try:
        with open_regular(folder / "SKILL.md") as file:
            head = file.read(HEAD).decode(errors="replace").replace("\r", "\n")
    except OSError:
        return  # Codex cannot read it either
    names = [found["name"] for found in _NAME.finditer(head)]
    yield from names or (EVERY,)
