"""opencode (observed at 1.18.33): the prompt on stdin, the system text in an instruction file; whole blocks, no deltas.

opencode has no sandbox. What a member may do is a list of permissions of an agent that teamchat defines for the turn,
in a configuration that is passed in a variable and overrides every file. `--auto` stands for full access.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from teamchat.runners.base import Access, Command, EventParser, Images, Job, Limit, Login, Runner, Sessions
from teamchat.runners.edits import edits
from teamchat.runners.homes.folders import user_home
from teamchat.runners.homes.logins import is_there
from teamchat.runners.opencode.configuration import AGENT, content, misunderstood, unreadable
from teamchat.runners.opencode.configuration import servers as users_servers
from teamchat.runners.opencode.events import OpencodeEvents
from teamchat.runners.untrusted.json import listed, scalar

# Whether opencode has a login, as far as that shows without running it (observed at 1.18.33).
#
# Each model is a provider's, and each provider has a login of its own: a stored one, a variable, or one in the
# configuration. Some models need none.


def opencode_login(env: Mapping[str, str]) -> Login:
    """Never a plain no: a model without a login may be all that is asked."""
    if env.get("OPENCODE_AUTH_CONTENT"):
        return Login(True, "OPENCODE_AUTH_CONTENT is set", variables=("OPENCODE_AUTH_CONTENT",))
    folder = Path(env.get("XDG_DATA_HOME") or user_home(env) / ".local" / "share") / "opencode"
    if is_there(file := folder / "auth.json"):
        return Login(True, f"{file} is there", variables=None)
    if env.get("OPENCODE_API_KEY"):
        return Login(True, "OPENCODE_API_KEY is set", variables=("OPENCODE_API_KEY",))
    return Login(None, f"there is no {file}, but its configuration may name one, and some models need none")


# The parts of a project that opencode obeys (observed at 1.18.33), and the variables that prevent it.
#
# OPENCODE_DISABLE_PROJECT_CONFIG keeps the project's `opencode.json`, its agents, commands, tools and MCP servers
# from a turn. Plugins are loaded a second time by code that looks at no variable: neither that one nor OPENCODE_PURE
# keeps a project's plugin from running in a turn of any access. So a turn in such a project is refused before it
# starts.
#
# opencode is a program of Bun. Bun obeys the `tsconfig.json` and `jsconfig.json` of the folder in which it starts,
# and of the folders above, for the program's own imports: their `paths` can replace any of them. So opencode starts
# in `/`.

START = Path("/")
_SWITCH = "OPENCODE_DISABLE_PROJECT_CONFIG"
OFF = {_SWITCH: "1", "OPENCODE_DISABLE_EXTERNAL_SKILLS": "1"}  # skills of .claude and .agents, also of the user
NAMES = (
    "opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc", ".opencode/plugin",
    ".opencode/plugins",
)  # fmt: skip


def plugins(env: Mapping[str, str]) -> str | None:
    """Why no turn of this environment begins: it would run plugins of its project."""
    there = _config_of_project(env)
    if there is None:
        return None
    return f"opencode runs the plugins that {there} names, with any options; set project_settings = true"


def _config_of_project(env: Mapping[str, str]) -> Path | None:
    """What may name plugins, in a turn of this environment that is to obey nothing of its project; None for nothing.

    PWD is the folder of the turn. What opencode finds in the home folder is the user's.
    """
    if not env.get(_SWITCH) or not env.get("PWD"):
        return None
    return next((file for file in _places(Path(env["PWD"]), env.get("HOME")) if os.path.lexists(file)), None)


def _places(cwd: Path, home: str | None) -> Iterator[Path]:
    own = {Path(home), Path(os.path.realpath(home))} if home else set()
    real = Path(os.path.realpath(cwd))
    folders = dict.fromkeys((cwd, *cwd.parents, real, *real.parents))
    return (folder / name for folder in folders if folder not in own for name in NAMES)


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
    """Its `run` expands no `@file`, no `/command` and no shell line of what comes on stdin."""

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
        """Where the project's plugins would run, or a rule or an MCP server of the user's is not known."""
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
