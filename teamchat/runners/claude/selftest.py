"""What `teamchat doctor --offline` needs to prove Claude Code (event names as observed at the tested versions)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from teamchat.runners.claude.scripted import Anthropic
from teamchat.runners.scripted import ToolUse
from teamchat.runners.selftest import NOTE, SelfTest, json_hooks, json_server

_BLOCKS = ("text", "thinking", "tool_use")
_DELTAS = ("thinking_delta", "signature_delta", "input_json_delta")
_STREAM = ("content_block_stop", "message_delta", "message_stop", "ping")


class ClaudeSelfTest(SelfTest):
    protocol = Anthropic()
    model = "claude-opus-4-8"
    needed_events = (
        "system/init",
        "stream_event/message_start",
        "stream_event/content_block_delta/text_delta",
        "assistant/thinking",
        "assistant/text",
        "assistant/tool_use",
        "user/tool_result",
        "result",
    )
    known_events = frozenset(
        {
            *("system/status", "system/api_retry", "system/thinking_tokens", "system/model_fallback"),
            *("system/permission_denied", "system/hook_started", "system/hook_response", "user/text"),
            *(f"stream_event/content_block_start/{kind}" for kind in _BLOCKS),
            *(f"stream_event/content_block_delta/{kind}" for kind in _DELTAS),
            *(f"stream_event/{kind}" for kind in _STREAM),
        }
    )
    prover = ".claude/agents/prover.md"
    mentions = f'@agent-prover @"prover (agent)" @{NOTE}'
    keywords = ("ultrathink", "ultracode", "ultraplan", "ultrareview")  # 2.1.197 to 2.1.330
    later = (
        ToolUse("CronCreate", {"cron": "* * * * *", "prompt": "Go on.", "recurring": True, "durable": True}),
        ToolUse("ScheduleWakeup", {"delaySeconds": 60, "prompt": "Go on.", "reason": "to go on"}),
        ToolUse("Monitor", {"command": "ls", "description": "look", "timeout_ms": 60_000, "persistent": True}),
    )
    settings = ".claude.json"

    def event_name(self, event: Mapping[str, object]) -> str | None:
        match event:
            case {"type": "stream_event", "event": {"type": str(kind), "delta": {"type": str(part)}}} | {
                "type": "stream_event",
                "event": {"type": str(kind), "content_block": {"type": str(part)}},
            }:
                return f"stream_event/{kind}/{part}"
            case (
                {"type": "stream_event" as kind, "event": {"type": str(part)}}
                | {"type": "system" as kind, "subtype": str(part)}
                | {"type": str(kind), "message": {"content": [{"type": str(part)}, *_]}}
            ):
                return f"{kind}/{part}"
        return super().event_name(event)

    def variables(self, url: str) -> Mapping[str, str]:
        return {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "dummy-anthropic-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def looking(self) -> ToolUse:
        return ToolUse("Read", {"file_path": NOTE})

    def running(self, command: str) -> ToolUse:
        return ToolUse("Bash", {"command": command})

    def writing(self, target: Path) -> ToolUse:
        return ToolUse("Write", {"file_path": str(target), "content": "written"})

    def traps(self, work: Path, touch: Sequence[str]) -> Mapping[Path, str]:
        return {
            work / ".mcp.json": json.dumps(json_server(touch)),
            work / ".claude" / "settings.json": json.dumps(json_hooks(touch)),
        }


SELF_TEST = ClaudeSelfTest()
