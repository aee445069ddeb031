"""What `teamchat doctor --offline` needs to prove Codex (event names as observed at the tested versions)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from teamchat.runners.codex.scripted import Responses
from teamchat.runners.scripted import ToolUse
from teamchat.runners.selftest import NOTE, SelfTest


class CodexSelfTest(SelfTest):
    protocol = Responses()
    model = "gpt-5.5"
    needed_events = (
        "thread.started",
        "item.completed/reasoning",
        "item.started/command_execution",
        "item.completed/command_execution",
        "item.completed/agent_message",
        "turn.completed",
    )
    known_events = frozenset(
        {
            *("turn.started", "turn.failed", "error", "item.completed/error"),
            *(f"item.{step}/{kind}" for step in ("started", "completed") for kind in ("file_change", "web_search")),
        }
    )
    prover = ".codex/skills/prover/SKILL.md"
    mentions = "$prover"
    settings = ".codex/config.toml"

    def event_name(self, event: Mapping[str, object]) -> str | None:
        match event:
            case {"type": str(kind), "item": {"type": str(part)}}:
                return f"{kind}/{part}"
        return super().event_name(event)

    def variables(self, url: str) -> Mapping[str, str]:  # noqa: ARG002 (its configuration has the address)
        return {"OPENAI_API_KEY": "dummy-openai-key"}

    def files(self, url: str) -> Mapping[str, str]:
        text = f"""
model_provider = "mock"
model = "{self.model}"
analytics.enabled = false
check_for_update_on_startup = false
features.plugins = false
features.apps = false

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
"""
        return {self.settings: text}

    def looking(self) -> ToolUse:
        return self.running(f"cat {NOTE}")

    def running(self, command: str) -> ToolUse:
        return ToolUse("exec_command", {"cmd": command})

    def writing(self, target: Path) -> ToolUse:
        patch = f"*** Begin Patch\n*** Add File: {target.name}\n+written\n*** End Patch"
        return ToolUse("apply_patch", {"input": patch})

    def traps(self, work: Path, touch: Sequence[str]) -> Mapping[Path, str]:
        notify = f"notify = {json.dumps(list(touch))}\n"
        return {work / ".codex" / "config.toml": self.with_server(notify, touch)}

    def with_server(self, before: str | None, touch: Sequence[str]) -> str:
        command, *args = touch
        table = f"[mcp_servers.trap]\ncommand = {json.dumps(command)}\nargs = {json.dumps(args)}\n"
        return f"{before or ''}\n{table}"


SELF_TEST = CodexSelfTest()
