"""opencode (observed at 1.18.33): prompt on stdin, system text in an instruction file; whole blocks, no deltas.

opencode has no sandbox. A list of permissions bounds a member: teamchat defines an agent with them for the turn, in a
configuration that is passed in a variable and overrides every file. `--auto` stands for full access.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from teamchat.runners.base import Access, Command, EventParser, Images, Job, Limit, Login, Runner, Sessions
from teamchat.runners.edits import edits
from teamchat.runners.opencode.configuration import AGENT, content, misunderstood, unreadable
from teamchat.runners.opencode.configuration import servers as users_servers
from teamchat.runners.opencode.events import OpencodeEvents
from teamchat.runners.opencode.login import opencode_login
from teamchat.runners.opencode.project import OFF, START, plugins
from teamchat.runners.untrusted.json import listed, scalar

ACCESS: Mapping[Access, tuple[str, ...]] = MappingProxyType(
    {"read": ("--agent", AGENT), "edit": ("--agent", AGENT), "full": ("--auto",)}
)
ACCESS_NOTES: Mapping[Access, str] = MappingProxyType(
    {
        "read": "reads files of the workspace and what its links lead to; may not write or run anything (permissions)",
        "edit": "edits files of the workspace and what its links lead to; may not run anything (permissions)",
        "full": "may do everything that your own permissions do not deny (--auto)",
    }
)
READS = "AGENTS.md of its folder and of the user, the user's "


class OpencodeRunner(Runner):
    """Runs opencode. Its `run` expands no `@file`, no `/command` and no shell line in its stdin."""

    vendor = "opencode"
    limit = Limit(10_000_000)  # the largest that was tried
    stall_s = 900.0  # nothing is streamed, and a tool is told of when it has ended
    reports_denials = True
    images = Images()
    edits = edits(lets=("files", "links", ".claude", ".codex", ".gemini", ".vscode"))
    access_notes = ACCESS_NOTES
    sessions = Sessions(
        system_each_time=True,
        live=False,
        # its larger interface loads its code a second time, in that folder
        open=lambda session, cwd: (str(cwd), "--mini", "--session", session),
        starts_in=START,
        refused=lambda env: plugins({**env, **OFF}),
        stays_in="~/.local/share/opencode",
        keeps_all=True,
    )

    def command(self, job: Job) -> Command:
        argv = [*job.program, "run", "--dir", str(job.cwd), "--format", "json", "--thinking", *ACCESS[job.access]]
        # a title of its own keeps it from asking a model for one; only its log reports retries
        argv += ("--title", "teamchat", "--print-logs", "--log-level", "ERROR")
        if job.model:
            argv += ("--model", job.model)
        if job.resumes:
            argv += ("--session", job.resumes)
        argv += (f"--file={path}" for path in job.images)
        system = job.scratch / "system.md"
        files = {system: scalar(job.system_text).encode()} if job.system_text else {}
        env = {
            "OPENCODE_CONFIG_CONTENT": content(job, system if files else None),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            **({} if job.project_settings else OFF),
        }
        return Command((*argv, *job.args), env, files, starts_in=START)

    def parser(self) -> EventParser:
        return OpencodeEvents()

    def refusal(self, access: Access, env: Mapping[str, str]) -> str | None:  # noqa: ARG002 (as for every access)
        """Refuse where the project's plugins would run, or a rule or an MCP server of the user's is not known."""
        if why := plugins(env):
            return why
        wrong = misunderstood(env)
        return f"{wrong}; its rules and MCP servers are not known" if wrong else None

    def reads_note(self, job: Job) -> str:
        users = listed("configuration", "plugins", *(("MCP servers",) if job.servers is None else ()), "skills")
        if job.project_settings:
            return f"{READS}{users}, and of the project the same"
        return f"{READS}{users}; not the project's opencode.json and .opencode"

    def unreadable(self, job: Job) -> Iterable[tuple[Path, str]]:
        return unreadable(job.env)

    def servers(self, cwd: Path, env: Mapping[str, str]) -> Collection[str]:  # noqa: ARG002 (they are the same everywhere)
        return users_servers(env)

    def login(self, cwd: Path, env: Mapping[str, str]) -> Login | None:  # noqa: ARG002 (it is the same everywhere)
        return opencode_login(env)
