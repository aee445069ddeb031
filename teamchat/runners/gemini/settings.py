"""Gemini's settings, variables and trusted folders, and its tools besides its access (observed at 0.55.1 and 0.61.0).

An admin policy overrides the user's policies and adds to them, while `--policy` and `--allowed-tools` would replace
them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from teamchat.runners import git_server
from teamchat.runners.base import Job
from teamchat.runners.homes.folders import gemini_folder
from teamchat.runners.untrusted.settings_json import table_in, table_of
from teamchat.runners.untrusted.toml import in_toml

LOOKING = ("list_directory", "read_file", "read_many_files", "grep_search", "glob")
WEB = ("google_web_search", "web_fetch")
MACHINES_FOLDER = Path("/Library/Application Support/GeminiCli" if sys.platform == "darwin" else "/etc/gemini-cli")
NO_SERVER = "(none)"  # servers of other names do not start, and the policy denies the tools of one of this name
DENY = 'decision = "deny"\npriority = 100\n'
ALLOW = 'decision = "allow"\npriority = 200\n'


def servers(env: Mapping[str, str]) -> dict[str, object]:
    """List the MCP servers that the user has set up, and the servers of the user's extensions."""
    folder = gemini_folder(env)
    extensions = sorted(folder.glob("extensions/*/gemini-extension.json"))
    tables: dict[str, object] = {}
    for file in (*extensions, folder / "settings.json"):
        tables |= table_of(table_in(file), "mcpServers")
    return tables


def settings_files(job: Job) -> tuple[Path, ...]:
    """List the settings of a turn: the machine's, the user's and, where the member has them, the project's."""
    project = (job.cwd / ".gemini",) if job.project_settings else ()
    folders = (gemini_folder(job.env), *project)
    return (_defaults_of_machine(job.env), *(folder / "settings.json" for folder in folders))


def started(job: Job) -> tuple[str, ...]:
    """Build the arguments that keep all servers but the member's from starting."""
    if job.servers is None:
        return ()
    names = (*job.servers, *((git_server.NAME,) if job.git else ())) or (NO_SERVER,)
    return tuple(word for name in names for word in ("--allowed-mcp-server-names", name))


def policy(job: Job) -> str | None:
    """Write the rules that bound the member's tools; None where the mode alone does."""
    return "\n".join(_rules(job)) if job.access != "full" else None


def _rules(job: Job) -> Iterator[str]:
    if job.access == "read":
        yield _rule("toolName", "*", f'{DENY}denyMessage = "this member may only read"\n')
        yield _rule("toolName", [*LOOKING, *(WEB if job.web else ())], ALLOW)
    else:
        yield _rule("toolName", WEB, ALLOW if job.web else f'{DENY}denyMessage = "this member has no web"\n')
        for command in job.allow:
            yield _rule("toolName", "run_shell_command", f"argsPattern = {in_toml(_plain(command))}\n{ALLOW}")
    for name in (*(job.servers or ()), *((git_server.NAME,) if job.git else ())):
        yield _rule("mcpName", name, f'toolName = "*"\n{ALLOW}')


def _plain(command: str) -> str:
    """Build a pattern of the tool's arguments: the command with any words that make a shell run or write nothing more.

    Gemini's own `commandPrefix` lets such a command write by `>` and run in the background, and takes a command in any
    other argument for this one. Its patterns may have no group with a quantifier that is repeated.
    """
    head = re.escape(json.dumps(command, ensure_ascii=False)[:-1])
    return rf"""\0"command":{head}("| ([^"\\<>;&|`$]|\\["\\])*")"""


def _rule(key: str, value: str | Sequence[str], rest: str) -> str:
    return f"[[rule]]\n{key} = {in_toml(value)}\n{rest}"


def system_defaults(job: Job, there: dict[str, object]) -> str:
    """Write the machine's default settings without the clean-up of sessions, and with teamchat's server for git.

    The clean-up deletes other members' sessions: one that was resumed in another minute than it began in has a second
    record without messages, and the next start in that folder takes the session for an empty one (0.61.0).

    Gemini takes servers from these defaults and from the user's and the project's files, and from nowhere else.
    """
    general = table_of(there, "general")
    kept = {**table_of(general, "sessionRetention"), "enabled": False}
    ours = {**there, "general": {**general, "sessionRetention": kept}}
    if job.git:
        program, *arguments = git_server.server_command(job.cwd, job.git, job.env)
        server = {git_server.NAME: {"command": program, "args": arguments}}
        ours["mcpServers"] = {**table_of(there, "mcpServers"), **server}
    return json.dumps(ours)


def machines_defaults(env: Mapping[str, str]) -> dict[str, object]:
    """Read the machine's default settings; empty if anyone but root can change them, as Gemini skips them then."""
    file = _defaults_of_machine(env)
    return table_in(file) if only_roots(file) else {}


def _defaults_of_machine(env: Mapping[str, str]) -> Path:
    if moved := env.get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH"):
        return Path(moved)
    settings = env.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH")
    return (Path(settings).parent if settings else MACHINES_FOLDER) / "system-defaults.json"


def only_roots(file: Path) -> bool:
    """Whether the file is there and root alone can change it, or put another one in its place."""
    try:
        found = [path.stat() for path in (file.resolve(), *file.resolve().parents)]
    except OSError:
        return False
    return all(one.st_uid == 0 and not one.st_mode & 0o022 for one in found)
