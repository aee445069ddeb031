"""Codex (observed at 0.169.0): everything in the prompt on stdin, system text included; whole messages, no deltas."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from teamchat.patterns import regex
from teamchat.runners.base import (
    Access,
    Command,
    EventParser,
    Images,
    Job,
    Limit,
    Login,
    Prepared,
    Runner,
    Sessions,
    StopRule,
)
from teamchat.runners.codex.configuration import misunderstood, servers_of, trusting
from teamchat.runners.codex.configuration import servers as users_servers
from teamchat.runners.codex.events import CodexEvents
from teamchat.runners.codex.git import without_filters
from teamchat.runners.codex.login import codex_login
from teamchat.runners.codex.project import without_project
from teamchat.runners.codex.records import kept_in
from teamchat.runners.codex.skills import known_skills
from teamchat.runners.codex.usage import used_in
from teamchat.runners.edits import edits
from teamchat.runners.mentions import Existing, inert
from teamchat.runners.untrusted.json import listed

WORKSPACE = (  # whatever the user's configuration adds to it
    *(
        "-c",
        "sandbox_workspace_write.exclude_slash_tmp=true",
    ),  # everybody shares /tmp; the turn's own TMPDIR stays writable
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
        any_folder="0.169.0",  # older versions are unknown
    )

    def prepare(self, prompt: str, *, typed: range, exists: Callable[[str], bool]) -> Prepared:
        """Escape the skills in a prompt: Codex appends the whole skill of a `$name`, even in code or in a quote.

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
        """Say which file might name an MCP server that could not be switched off; only "read" is refused for that."""
        wrong = misunderstood(env) if access == "read" else None
        return f"{wrong}; its MCP servers are not known" if wrong else None

    def reads_note(self, job: Job) -> str:
        users = listed("configuration", *(("MCP servers",) if job.servers is None else ()))
        return READS + users + ("" if job.project_settings else "; not the project's .codex/config.toml")

    def servers(self, cwd: Path, env: Mapping[str, str]) -> Collection[str]:  # noqa: ARG002 (they are the same everywhere)
        return users_servers(env)

    def login(self, cwd: Path, env: Mapping[str, str]) -> Login | None:  # noqa: ARG002 (it is the same everywhere)
        return codex_login(env)
