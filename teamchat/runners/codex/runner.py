"""Codex (observed at 0.169.0): everything in the prompt on stdin, system text included; whole messages, no deltas."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from teamchat.patterns import regex
from teamchat.runners.base import (
    Access,
    Command,
    EventParser,
    Images,
    Job,
    KeptSession,
    Limit,
    Login,
    Prepared,
    Runner,
    Sessions,
    StopRule,
)
from teamchat.runners.codex.configuration import (
    home,
    known_skills,
    misunderstood,
    servers_of,
    trusting,
    users_settings,
    without_project,
)
from teamchat.runners.codex.configuration import servers as users_servers
from teamchat.runners.codex.events import CodexEvents, usage_of
from teamchat.runners.edits import edits
from teamchat.runners.events import Usage
from teamchat.runners.homes.logins import is_there, stored, variables_login
from teamchat.runners.homes.records import MOST, first_lines, text_of, used_at
from teamchat.runners.mentions import Existing, inert
from teamchat.runners.untrusted.json import decode, listed
from teamchat.runners.untrusted.regular_files import open_regular

# Whether Codex has a login, as far as can be seen without running it (observed at 0.169.0).


def codex_login(env: Mapping[str, str]) -> Login:
    """It takes OPENAI_API_KEY only by `codex login`, or where a model provider of its configuration names it."""
    if wrong := misunderstood(env):
        return Login(None, wrong)
    settings = users_settings(env)
    if login := _of_provider(settings, env) or variables_login(env, "CODEX_API_KEY"):
        return login
    if is_there(file := home(env) / "auth.json"):
        return stored(file)
    if settings.get("cli_auth_credentials_store", "file") != "file":
        return Login(None, "the system's keyring may hold one")
    if env.get("OPENAI_API_KEY"):
        told = "printenv OPENAI_API_KEY | codex login --with-api-key"
        return Login(False, f"there is no {file}, and codex does not use OPENAI_API_KEY by itself", told)
    return Login(False, f"no CODEX_API_KEY is set, and there is no {file}", "codex login")


def _of_provider(settings: Mapping[str, object], env: Mapping[str, str]) -> Login | None:
    """The login of a model provider that the user defines; None if Codex's own login counts."""
    match settings:
        case {"model_provider": str(name), "model_providers": dict(tables)} if isinstance(tables.get(name), dict):
            provider = tables[name]
        case {"model_provider": str(name)} if name != "openai":
            provider = {}
        case _:
            return None
    if provider.get("requires_openai_auth") is True:
        return None
    key = provider.get("env_key")
    if not isinstance(key, str):
        return Login(None, f"its model provider {name!r} has a login of its own")
    if env.get(key):
        return Login(True, f"{key} is set, the key of its model provider {name!r}", variables=(key,))
    return Login(False, f"{key} is not set, the key of its model provider {name!r}")


def kept_in(env: Mapping[str, str], cwd: Path) -> Iterator[KeptSession]:
    """The sessions that were begun in that folder, the newest first."""
    here = os.path.realpath(cwd)
    files = sorted(home(env).glob("sessions/*/*/*/rollout-*.jsonl"), key=lambda file: file.name, reverse=True)
    found = (kept for file in files if (kept := _kept(file, here)))
    return iter(sorted(islice(found, MOST), key=lambda kept: kept.at, reverse=True))


def _kept(file: Path, here: str) -> KeptSession | None:
    session = None
    for line in first_lines(file):
        match line:
            case {"type": "session_meta", "payload": {"id": str(name), "cwd": str(cwd)}}:
                if os.path.realpath(cwd) != here:
                    return None
                session = session or name
            case {"payload": {"type": "item_completed", "item": {"type": "UserMessage", "content": content}}}:
                return KeptSession(session, used_at(file), text_of(content).strip()) if session else None
            case {"payload": {"type": "user_message", "message": str(said)}}:
                return KeptSession(session, used_at(file), said.strip()) if session else None
    return None


# The git that Codex itself runs, without the programs that a repository names (observed at 0.150.0 to 0.169.0).
#
# Codex asks git about the repository outside of its sandbox, under every access. It switches hooks and
# `core.fsmonitor` off for that, but `git status` still runs the filters of `.git/config`. So the first git on its
# PATH is a script that fails at this one call. Codex only tells its vendor from it whether there are changes. Every
# other call goes to the real git. The script lies in a folder `.codex`, which Codex's sandbox lets no command write.

_SCRIPT = """\
#!/bin/sh
case " $* " in *" core.fsmonitor=false"*" status "*) exit 128 ;; esac
exec {git} "$@"
"""


def without_filters(scratch: Path, env: Mapping[str, str]) -> tuple[dict[str, str], dict[Path, bytes]]:
    """The PATH with the script's folder before all others, and the script; nothing if git is missing."""
    search = env.get("PATH", os.defpath)
    git = shutil.which("git", path=search)
    if git is None:
        return {}, {}
    script = scratch / ".codex" / "bin" / "git"
    return {"PATH": f"{script.parent}{os.pathsep}{search}"}, {script: _SCRIPT.format(git=shlex.quote(git)).encode()}


# The total usage of a Codex session, from its own file (observed at 0.169.0).
#
# Codex's events count tokens over a session, including those that a person has used there by hand. The file says how
# many those were. It is an internal file of Codex: if it is not as expected, nothing is known.

TAIL = 1024 * 1024  # bytes at the end of a file; the count comes right after each answer


def used_in(env: Mapping[str, str], session: str) -> Usage | None:
    """The usage of that session up to now; None if its file does not show it."""
    from glob import escape  # few turns continue a session that somebody used by hand

    home = Path(env.get("CODEX_HOME") or Path(env.get("HOME", "/"), ".codex"))
    try:
        for file in home.glob(f"sessions/*/*/*/rollout-*-{escape(session)}.jsonl"):
            return _last_count(_tail(file))
    except (OSError, ValueError):  # a session's name that no file can have
        pass
    return None


def _tail(file: Path) -> bytes:
    with open_regular(file) as opened:
        opened.seek(max(os.fstat(opened.fileno()).st_size - TAIL, 0))
        return opened.read(TAIL)


def _last_count(tail: bytes) -> Usage | None:
    for line in reversed(tail.split(b"\n")):
        if b'"token_count"' in line:
            match decode(line):
                case {"payload": {"type": "token_count", "info": {"total_token_usage": dict(usage)}}}:
                    return usage_of(usage)
    return None


WORKSPACE = (  # whatever the user's configuration adds to it
    *(
        "-c",
        "sandbox_workspace_write.exclude_slash_tmp=true",
    ),  # it is everybody's; the turn's own TMPDIR stays writable
    *("-c", "sandbox_workspace_write.writable_roots=[]"),
    *("-c", "sandbox_workspace_write.network_access=false"),
)
ACCESS: Mapping[Access, tuple[str, ...]] = MappingProxyType(
    {
        "read": ("--sandbox", "read-only"),
        "edit": ("--sandbox", "workspace-write", *WORKSPACE),
        "full": ("--dangerously-bypass-approvals-and-sandbox",),
    }
)
ACCESS_NOTES: Mapping[Access, str] = MappingProxyType(
    {
        "read": "reads files, runs commands that cannot write or reach a network (--sandbox read-only)",
        "edit": "edits files and runs commands in the workspace only, no network (--sandbox workspace-write)",
        "full": "may do everything (--dangerously-bypass-approvals-and-sandbox)",
    }
)
_SKILL = regex(
    r"\[[$@](?=[\w:-]++\]\s*+\()|\$(?=(?P<name>[\w:-]++))",  # a link of `@` is one to a plugin
    re.ASCII,
)
READS = "AGENTS.md of its folder and of the user, the user's "


WEB = {False: ("-c", 'web_search="disabled"'), True: ("-c", 'web_search="live"')}


class CodexRunner(Runner):
    vendor = "codex"
    limit = Limit(1_048_576, "characters")
    stop = StopRule()  # on SIGINT its sandbox leaves empty folders in the workspace
    stall_s = 900.0  # nothing is streamed: silence is how it works
    images = Images()
    skills = staticmethod(known_skills)
    edits = edits(
        lets=(
            *("files", "looking", "file commands", "redirections", "modes", "programs"),
            *("inner .git", ".claude", ".gemini", ".vscode"),
        ),
        fails=("commits", "network", "outside", "links", "allowed", "allowed redirections"),
    )
    access_notes = ACCESS_NOTES
    sessions = Sessions(
        system_each_time=False,
        live=False,
        # its shared server would stay behind, and keep the session from the next turn ("already has an active writer")
        open=lambda session, _cwd: ("resume", session, "--no-daemon"),
        stays_in="~/.codex/sessions",
        used=used_in,
        kept=kept_in,
    )

    def prepare(self, prompt: str, *, typed: range, exists: Callable[[str], bool]) -> Prepared:
        """Codex appends the whole skill to a prompt that contains its `$name`, even in code or in a quote.

        In a link `[$any](path)` the path decides.
        """
        there = Existing(exists)

        def escaped(mention: re.Match[str]) -> str:
            name = mention["name"]
            return f"{mention[0]}\\" if name is None or there(f"${name}") else mention[0]

        return inert(prompt, typed, _SKILL, escaped)

    def command(self, job: Job) -> Command:
        argv = [*job.program, "exec", "--json", "--skip-git-repo-check", "--color", "never", "-C", str(job.cwd)]
        argv += ACCESS[job.access]
        # the user's rules could run a command outside the sandbox, and a reviewer model could approve it
        argv += ("--ignore-rules", "-c", 'approval_policy="never"', *WEB[job.web]) if job.access != "full" else ()
        argv += ("--disable", "plugins", "--disable", "apps") if job.servers is not None else ()  # they bring servers
        argv += servers_of(job)
        argv += ("--disable", "unbounded_connection_retries")  # without it a refused connection is tried for ever
        argv += trusting(job.cwd) if job.project_settings else without_project(job.cwd, job.env)
        if job.model:
            argv += ("-m", job.model)
        argv += (f"--image={path}" for path in job.images)
        argv += ("--ephemeral",) if job.memory == "fresh" else ()
        # it takes most options only before this word
        resume = ("fork", job.forks) if job.forks else ("resume", job.resumes) if job.resumes else ()
        variables, files = without_filters(job.scratch, job.env)
        env = {"RUST_LOG": "error", **variables}  # refusals are told on stderr only
        return Command((*argv, *job.args, *resume, "-"), env, files)

    def parser(self) -> EventParser:
        return CodexEvents()

    def refusal(self, access: Access, env: Mapping[str, str]) -> str | None:
        """Where an MCP server might be named that could not be switched off."""
        wrong = misunderstood(env) if access == "read" else None
        return f"{wrong}; its MCP servers are not known" if wrong else None

    def reads_note(self, job: Job) -> str:
        users = listed("configuration", *(("MCP servers",) if job.servers is None else ()))
        return READS + users + ("" if job.project_settings else "; not the project's .codex/config.toml")

    def servers(self, cwd: Path, env: Mapping[str, str]) -> Collection[str]:  # noqa: ARG002 (they are the same everywhere)
        return users_servers(env)

    def login(self, cwd: Path, env: Mapping[str, str]) -> Login | None:  # noqa: ARG002 (it is the same everywhere)
        return codex_login(env)
