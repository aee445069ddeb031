"""Claude Code (observed at 2.1.197): prompt on stdin, system text by flag or file, one JSON event a line on stdout."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from signal import Signals
from types import MappingProxyType

from teamchat.patterns import regex
from teamchat.runners.base import (
    Access,
    Command,
    EventParser,
    Images,
    Job,
    Limit,
    LiveRule,
    Login,
    Prepared,
    Runner,
    Sessions,
    SlashRule,
    StopRule,
)
from teamchat.runners.claude.events import ClaudeEvents
from teamchat.runners.claude.folders import version_of
from teamchat.runners.claude.login import claude_login
from teamchat.runners.claude.project import lacks, of_trusted
from teamchat.runners.claude.records import continued_rows, kept_in
from teamchat.runners.claude.slash_commands import find, input_line, with_command
from teamchat.runners.claude.tools import servers as servers_there
from teamchat.runners.claude.tools import tools
from teamchat.runners.edits import edits
from teamchat.runners.mentions import Existing, escaped_mention, inert, mention
from teamchat.runners.untrusted.json import listed, scalar

ACCESS: Mapping[Access, tuple[str, ...]] = MappingProxyType(
    {
        "read": ("--permission-mode", "default"),  # a user's rule may widen it: its tools are named one by one
        "edit": ("--permission-mode", "acceptEdits"),
        "full": ("--dangerously-skip-permissions",),
    }
)
ACCESS_NOTES: Mapping[Access, str] = MappingProxyType(
    {
        "read": "reads files; has no tool that writes or runs anything (--tools Read,Grep,Glob)",
        "edit": "edits, moves, deletes in the workspace, runs what `allow` names; your own rules and folders widen it",
        "full": "may do everything (--dangerously-skip-permissions)",
    }
)
# A process that stays carries out the .claude/scheduled_tasks.json of its folder (2.1.330), under every access, and by
# tasks in the background it writes between turns, which have no receipt.
IN_TURNS_ONLY = {"CLAUDE_CODE_DISABLE_CRON": "1", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}
STREAM = ("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages")
TAKES_FILE = (2, 1, 197)  # the oldest version that was seen to take the system text as a file
LONGEST_ARGUMENT = 100_000  # bytes; the kernel takes 131,071 for one argument

# An `@` right after one of `\w"`(` was seen to stay text. "The user included the keyword ..." (2.1.197 to 2.1.330); the
# hyphen is how it writes them itself where they are inert.
_MENTION = mention(text_behind=r'\w"`(')
_KEYWORD = r"(?i:ltra)(?=(?i:code|plan|review|think)\b)"
_INERT = regex(rf"{_MENTION}|u(?<=\bu){_KEYWORD}|U(?<=\bU){_KEYWORD}", re.ASCII)
_NO_FILE = regex(r'agent-|"[^"\n]{1,4096} \(agent\)"|[\w.-]+:\S', re.ASCII)  # an agent, or what an MCP server has
READS = "CLAUDE.md of its folder and of the user, all instructions of a folder that Claude trusts, the user's "


class ClaudeRunner(Runner):
    vendor = "claude"
    # 2.1.330 refuses more than 2,920,000 with its instructions for a model of a million tokens; 2.1.197 takes all
    limit = Limit(2_700_000, "characters")
    stop = StopRule(Signals.SIGINT, group=False)  # the one signal on which it ends its tools' processes itself
    reports_denials = True
    reads_mentions = True
    images = Images(lambda path: f'@"{path}"' if " " in path else f"@{path}")
    slash = SlashRule(find, with_command)
    edits = edits(lets=("files", "looking", "file commands", "redirections", ".codex", ".gemini", "allowed"))
    access_notes = ACCESS_NOTES
    sessions = Sessions(
        system_each_time=True,
        live=True,
        open=lambda session, _cwd: ("--resume", session),
        stays_in="~/.claude/projects",
        kept=kept_in,
        any_folder="2.1.260",  # not 2.1.197
        continues=continued_rows,
    )

    def prepare(self, prompt: str, *, typed: range, exists: Callable[[str], bool]) -> Prepared:
        known = Existing(exists)

        def escaped(mention: re.Match[str]) -> str:
            if not mention[0].endswith("@"):
                return f"{mention[0]}-"
            first = mention[0].index("@")
            sent = [mention[0][:first]]
            for at in range(first, len(mention[0])):
                if known.all:
                    return "".join((*sent, escaped_mention(mention[0][at:])))
                start = mention.start() + at + 1
                names_one = known.at(mention.string, start) or _NO_FILE.match(mention.string, start)
                sent.append("\\@" if names_one else "@")
            return "".join(sent)

        return inert(prompt, typed, _INERT, escaped)

    def command(self, job: Job) -> Command:
        system, files = _system_text(job)
        env = {"CLAUDE_CODE_MAX_RETRIES": "3", **IN_TURNS_ONLY}  # ten, the default, take three minutes
        given, definitions = tools(job)
        files |= definitions
        argv = [*job.program, *STREAM, *_session(job), *system, *ACCESS[job.access], *given]
        if trusted := of_trusted(job):
            argv += trusted[0]
            files |= trusted[1]
        elif not job.project_settings:
            # the project's hooks and MCP commands stay off; its CLAUDE.md is read all the same
            argv += ("--setting-sources", "user", "--add-dir", str(job.cwd))
            env["CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD"] = "1"
        if job.model:
            argv += ("--model", job.model)
        if job.budget_usd is not None:
            argv += ("--max-budget-usd", f"{job.budget_usd:.4f}")
        live = LIVE if job.memory == "live" else None
        return Command((*argv, *job.args), env, files, live)

    def parser(self) -> EventParser:
        return ClaudeEvents()

    def refusal(self, access: Access, env: Mapping[str, str]) -> str | None:
        if access == "full" and os.geteuid() == 0 and env.get("IS_SANDBOX") != "1":
            return "Claude refuses full access to root: be another user, or set IS_SANDBOX=1 if this is a sandbox"
        return None

    def reads_note(self, job: Job) -> str:
        servers = ("MCP servers",) if job.servers is None else ()
        users = listed("settings", *servers, *(() if job.access == "read" else ("skills",)))
        if job.project_settings:
            return f"{READS}{users}, and of the project {listed('settings', 'hooks', *servers)}"
        return f"{READS}{users}; not the project's hooks, .mcp.json and commands"

    def lacks(self, job: Job) -> tuple[str, ...]:
        return lacks(job)

    def servers(self, cwd: Path, env: Mapping[str, str]) -> Collection[str]:
        return servers_there(cwd, env)

    def login(self, cwd: Path, env: Mapping[str, str]) -> Login | None:  # noqa: ARG002 (it is the same everywhere)
        return claude_login(env)


def _session(job: Job) -> tuple[str, ...]:
    lines = ("--input-format", "stream-json") if job.memory == "live" or job.slash else ()
    if job.memory == "fresh":
        return (*lines, "--no-session-persistence")
    if job.forks:
        return (*lines, "--resume", job.forks, "--fork-session")
    return (*lines, "--resume", job.resumes) if job.resumes else lines


LIVE = LiveRule(
    line=input_line, interrupt=b'{"type":"control_request","request_id":"stop","request":{"subtype":"interrupt"}}\n'
)


def _system_text(job: Job) -> tuple[tuple[str, ...], dict[Path, bytes]]:
    """Build the flag that carries the system text, and its file.

    Everybody on the machine can read an argument while the turn runs. So the text goes by file to a version that is
    known to take one, and where no argument can hold it.
    """
    if not job.system_text:
        return (), {}
    text = scalar(job.system_text)
    content = text.encode()
    fits = len(content) <= LONGEST_ARGUMENT and b"\0" not in content
    if fits and version_of(job.program[0], job.env) < TAKES_FILE:
        return ("--append-system-prompt", text), {}
    path = job.scratch / "system.md"
    return ("--append-system-prompt-file", str(path)), {path: content}
