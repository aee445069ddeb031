"""Gemini CLI (observed at 0.61.0): everything in the prompt on stdin, system text included; text in deltas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from teamchat.runners.base import Access, Command, EventParser, Job, Limit, Prepared, StopRule
from teamchat.runners.gemini_events import GeminiEvents
from teamchat.runners.mentions import inert

ACCESS: Mapping[Access, tuple[str, ...]] = MappingProxyType(
    {
        "read": ("--approval-mode", "default"),
        "edit": ("--approval-mode", "auto_edit"),
        "full": ("--approval-mode", "yolo"),
    }
)
ACCESS_NOTES: Mapping[Access, str] = MappingProxyType(
    {
        "read": "reads files of the workspace; is denied to write or run (--approval-mode default, --admin-policy)",
        "edit": "edits files of the workspace and runs what `allow` names (--approval-mode auto_edit)",
        "full": "may do everything (--approval-mode yolo)",
    }
)
# an admin policy rules over every rule of the user's own settings
READ_POLICY = b"""\
[[rule]]
toolName = ["write_file", "replace", "run_shell_command", "save_memory", "activate_skill", "web_fetch"]
decision = "deny"
priority = 999
"""

_NEVER_A_PATH = frozenset(",;!?()[]{}")  # an `@` right before one of these was seen to stay text
READS = "GEMINI.md of its folder and of the user, the user's settings, MCP servers and extensions"


class GeminiRunner:
    vendor: Literal["claude", "codex", "gemini"] | None = "gemini"
    limit: Limit | None = Limit(4_500_000)
    stop = StopRule()  # the parent process ignores every soft signal; the group does not
    stall_s: float = 300.0
    reports_denials: bool = True

    def prepare(self, prompt: str, *, own_from: int, exists: Callable[[str], bool]) -> Prepared:  # noqa: ARG002
        """Every `@token` becomes inert: Gemini looks for files whose path contains the token when none has its name."""
        return inert(prompt, own_from=own_from, names=lambda text, start: text[start] not in _NEVER_A_PATH)

    def command(self, job: Job) -> Command:
        argv = [*job.program, "--output-format", "stream-json", *ACCESS[job.access]]
        env = {
            "GEMINI_CLI_NO_RELAUNCH": "true",  # one process less, and signals reach it
            "NO_COLOR": "1",
            # the user's own value wins; empty, it keeps a `.env` of the project from sending the key elsewhere
            "GOOGLE_GEMINI_BASE_URL": "",
        }
        files = {}
        if job.access == "read":
            policy = job.scratch / "read-only.toml"
            files[policy] = READ_POLICY
            argv += ("--admin-policy", str(policy))
        if job.access == "edit":
            for command in job.allow:
                argv += ("--allowed-tools", f"run_shell_command({command})")
        if job.project_settings:
            env["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
        else:
            argv.append("--skip-trust")
        if job.model:
            argv += ("-m", job.model)
        return Command((*argv, *job.args), env, files)

    def parser(self) -> EventParser:
        return GeminiEvents()

    def refusal(self, access: Access, env: Mapping[str, str]) -> str | None:  # noqa: ARG002 (it refuses nobody)
        return None

    def access_note(self, access: Access) -> str:
        return ACCESS_NOTES[access]

    def reads_note(self, *, project_settings: bool) -> str:
        return READS + (
            ", and all settings, hooks and MCP servers of the project"
            if project_settings
            else "; not the project's hooks, settings and MCP servers"
        )
