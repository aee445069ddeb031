"""What `teamchat doctor --offline` needs to prove opencode (event names as observed at the tested version)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from teamchat.runners.opencode.scripted import PATH, Opencode
from teamchat.runners.scripted import ToolUse
from teamchat.runners.selftest import NOTE, SelfTest

_PLUGIN = json.dumps({"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}})


class OpencodeSelfTest(SelfTest):
    protocol = Opencode()
    model = "anthropic/claude-opus-4-8"
    needed_events = ("step_start", "reasoning", "text", "tool_use", "step_finish")
    known_events = frozenset({"error"})
    prover = ".config/opencode/agent/prover.md"
    mentions = f"@prover @{NOTE}"
    settings = ".config/opencode/opencode.json"

    def variables(self, url: str) -> Mapping[str, str]:  # noqa: ARG002 (its configuration has the address)
        return {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}

    def files(self, url: str) -> Mapping[str, str]:
        options = {"baseURL": f"{url}{PATH}", "apiKey": "dummy-opencode-key"}
        settings = {"provider": {"anthropic": {"options": options}}, "model": self.model}
        folder = Path(self.settings).parent
        return {  # without the others it gets a package from the registry at every start
            self.settings: json.dumps(settings),
            str(folder / "package-lock.json"): _PLUGIN,
            str(folder / "node_modules" / ".package-lock.json"): _PLUGIN,
        }

    def looking(self) -> ToolUse:
        return ToolUse("read", {"filePath": NOTE})

    def running(self, command: str) -> ToolUse:
        return ToolUse("bash", {"command": command, "description": "Run it"})

    def writing(self, target: Path) -> ToolUse:
        return ToolUse("write", {"filePath": str(target), "content": "written"})

    def traps(self, work: Path, touch: Sequence[str]) -> Mapping[Path, str]:
        return {work / "opencode.json": self.with_server(None, touch)}

    def with_server(self, before: str | None, touch: Sequence[str]) -> str:
        server = {"type": "local", "command": list(touch), "enabled": True}
        return json.dumps({**json.loads(before or "{}"), "mcp": {"trap": server}})


SELF_TEST = OpencodeSelfTest()
