"""What `teamchat doctor --offline` needs to prove Gemini CLI (event names as observed at the tested versions)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from teamchat.runners.gemini.scripted import Gemini
from teamchat.runners.scripted import ToolUse
from teamchat.runners.selftest import NOTE, PLANTED, SelfTest, json_hooks, json_server


class GeminiSelfTest(SelfTest):
    protocol = Gemini()
    model = "gemini-2.5-flash"
    needed_events = ("init", "message/assistant", "tool_use", "tool_result", "result")
    known_events = frozenset({"message/user", "error"})
    prover = ".gemini/agents/prover.md"
    mentions = f"@prover @{NOTE}"
    settings = ".gemini/settings.json"
    reads_dotenv = True

    def event_name(self, event: Mapping[str, object]) -> str | None:
        match event:
            case {"type": "message" as kind, "role": str(part)}:
                return f"{kind}/{part}"
        return super().event_name(event)

    def variables(self, url: str) -> Mapping[str, str]:
        return {"GEMINI_API_KEY": "dummy-gemini-key", "GOOGLE_GEMINI_BASE_URL": url}

    def files(self, url: str) -> Mapping[str, str]:  # noqa: ARG002 (a variable has the address)
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "model": {"name": self.model},
        }
        return {self.settings: json.dumps(settings)}

    def looking(self) -> ToolUse:
        return ToolUse("read_file", {"file_path": NOTE})

    def running(self, command: str) -> ToolUse:
        return ToolUse("run_shell_command", {"command": command})

    def writing(self, target: Path) -> ToolUse:
        return ToolUse("write_file", {"file_path": str(target), "content": "written"})

    def traps(self, work: Path, touch: Sequence[str]) -> Mapping[Path, str]:
        system = work / ".gemini" / "system.md"
        return {
            work / ".gemini" / "settings.json": json.dumps(json_hooks(touch) | json_server(touch)),
            system: PLANTED,
            work / ".env": f"GEMINI_SYSTEM_MD={system}\n",
        }


SELF_TEST = GeminiSelfTest()
