"""The Anthropic Messages protocol, as opencode speaks it to a provider whose address has a path of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.real.model.claude import Anthropic
from tests.real.model.replies import ToolUse
from tests.real.model.selftest import NOTE, SelfTest

PATH = "/opencode/v1"


class Opencode(Anthropic):
    def claims(self, path: str) -> bool:
        return path.startswith(f"{PATH}/messages")


_CATALOGUE = ".cache/opencode/models.json"
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
        return {  # without the locks it gets a package from the registry at every start
            self.settings: json.dumps(settings),
            str(folder / "package-lock.json"): _PLUGIN,
            str(folder / "node_modules" / ".package-lock.json"): _PLUGIN,
            _CATALOGUE: json.dumps(self._catalogue()),
        }

    def _catalogue(self) -> Mapping[str, object]:
        """A list of one model. Reading its own list, of thousands, is a third of what opencode takes to start."""
        provider, _, name = self.model.partition("/")
        model = {
            "id": name,
            "name": name,
            "release_date": "2026-01-01",
            "last_updated": "2026-01-01",
            "attachment": True,
            "reasoning": True,
            "temperature": True,
            "tool_call": True,
            "open_weights": False,
            "modalities": {"input": ["text", "image", "pdf"], "output": ["text"]},
            "limit": {"context": 1_000_000, "output": 64_000},
            "cost": {"input": 5, "output": 25, "cache_read": 0.5, "cache_write": 6.25},
        }
        found = {"id": provider, "name": provider, "npm": "@ai-sdk/anthropic", "env": [], "models": {name: model}}
        return {provider: found}

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
