"""Gemini CLI (observed at 0.61.0): everything in the prompt on stdin, system text included; text in deltas."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
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
    SlashRule,
    StopRule,
)
from teamchat.runners.edits import edits
from teamchat.runners.gemini.events import GeminiEvents
from teamchat.runners.gemini.login import gemini_login
from teamchat.runners.gemini.project import other_files
from teamchat.runners.gemini.records import forked, kept_in
from teamchat.runners.gemini.settings import machines_defaults, policy, settings_files, started, system_defaults
from teamchat.runners.gemini.settings import servers as users_servers
from teamchat.runners.gemini.slash_commands import find, with_command
from teamchat.runners.mentions import escaped_mention, inert, mention
from teamchat.runners.untrusted.json import listed
from teamchat.runners.untrusted.settings_json import broken

ACCESS: Mapping[Access, tuple[str, ...]] = MappingProxyType(
    {
        "read": ("--approval-mode", "default"),
        "edit": ("--approval-mode", "auto_edit"),
        "full": ("--approval-mode", "yolo"),
    }
)
ACCESS_NOTES: Mapping[Access, str] = MappingProxyType(
    {
        "read": "reads files of the workspace; may not write or run anything (--admin-policy)",
        "edit": "edits the workspace, runs what `allow` names, without a sandbox; your policies and folders widen it",
        "full": "may do everything (--approval-mode yolo)",
    }
)
SYSTEM_POLICIES = (Path("/etc/gemini-cli/policies"), Path("/Library/Application Support/GeminiCli/policies"))
_ENDS_A_PATH = regex(r"[\s\\,;!?()\[\]{}]")  # unless a backslash stands before it
_MENTION = regex(mention(r"[^\s,;!?()\[\]{}]"), re.ASCII)  # an `@` right before one of these was seen to stay text
READS = "GEMINI.md of its folder and of the user, the user's "


class GeminiRunner(Runner):
    vendor = "gemini"
    limit = Limit(
        4_000_000
    )  # from 4,194,304 on it asks no model and ends well: a quarter of the characters are tokens to it
    stop = StopRule()  # the parent process ignores every soft signal; the group does not
    reports_denials = True
    hides_denials = frozenset({"invoke_agent"})  # 0.61.0
    reads_mentions = True
    images = Images(lambda path: "@" + _ENDS_A_PATH.sub(r"\\\g<0>", path))
    slash = SlashRule(find, with_command)
    edits = edits(lets=("files", ".claude", ".codex", ".gemini", "allowed"))
    access_notes = ACCESS_NOTES
    sessions = Sessions(
        system_each_time=False,
        live=False,
        open=lambda session, _cwd: ("--resume", session),
        stays_in="~/.gemini/tmp",
        keeps_all=True,
        kept=kept_in,
    )

    def prepare(self, prompt: str, *, typed: range, exists: Callable[[str], bool]) -> Prepared:  # noqa: ARG002
        """Make every `@token` inert: it may name a file, a part of a file's path, an agent or a server's resource."""
        return inert(prompt, typed, _MENTION, lambda mention: escaped_mention(mention[0]))

    def command(self, job: Job) -> Command:
        argv = [*job.program, "--output-format", "stream-json", *ACCESS[job.access], *started(job)]
        # one process less, and signals reach it; and no folders from an editor that teamchat runs inside
        env = {"GEMINI_CLI_NO_RELAUNCH": "true", "NO_COLOR": "1", "GEMINI_CLI_IDE_WORKSPACE_PATH": ""}
        files = {}
        if rules := policy(job):
            path = job.scratch / "policy.toml"
            files[path] = rules.encode()
            argv += ("--admin-policy", str(path))
        if job.project_settings:
            env["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
        else:
            # both: --skip-trust alone runs the project's hooks where the user once trusted the folder
            argv.append("--skip-trust")
            env["GEMINI_CLI_TRUST_WORKSPACE"] = "false"
        variables, modules = other_files(job, system_defaults(job, machines_defaults(job.env)))
        env |= variables
        files |= modules
        if job.model:
            argv += ("-m", job.model)
        if job.images:  # it reads nothing outside of its workspace
            folder = str(job.images[0].parent)
            if "," in folder:  # the option is split there, and an editor's folders at ":"
                env["GEMINI_CLI_IDE_WORKSPACE_PATH"] = folder
            else:
                argv += ("--include-directories", folder)
        if job.forks:
            session, copied = forked(job.env, job.cwd, job.forks)
            argv += ("--resume", session)
            files |= copied
        elif job.resumes:
            argv += ("--resume", job.resumes)
        return Command((*argv, *job.args), env, files)

    def parser(self) -> EventParser:
        return GeminiEvents()

    def refusal(self, access: Access, env: Mapping[str, str]) -> str | None:
        """Refuse where a machine's policies would replace `--admin-policy`, which bounds `read` and `edit`.

        Refuse also a TMPDIR that Gemini would split. `--admin-policy` is split at commas, also where it is repeated.
        For images, which `full` may have as well, there are two ways to name a folder: one is split at commas, the
        other at colons.
        """
        folder = env.get("TMPDIR", "")
        if "," in folder and (access != "full" or ":" in folder):
            return "Gemini splits a folder's name at a comma, and TMPDIR has one: set another TMPDIR"
        there = next((folder for folder in SYSTEM_POLICIES if access != "full" and any(folder.glob("*.toml"))), None)
        return f"the policies in {there} switch off --admin-policy, which bounds its tools" if there else None

    def reads_note(self, job: Job) -> str:
        servers = ("MCP servers",) if job.servers is None else ()
        users = listed("settings", *servers, "extensions")
        if job.project_settings:
            return f"{READS}{users}, and of the project {listed('settings', 'hooks', *servers)}"
        return f"{READS}{users}; not the project's hooks, settings and MCP servers"

    def unreadable(self, job: Job) -> Iterable[tuple[Path, str]]:
        return ((file, why) for file in settings_files(job) if (why := broken(file)))

    def servers(self, cwd: Path, env: Mapping[str, str]) -> Collection[str]:  # noqa: ARG002 (they are the same everywhere)
        return users_servers(env)

    def login(self, cwd: Path, env: Mapping[str, str]) -> Login | None:
        return gemini_login(cwd, env)
