"""What the CLIs call their events, as observed at the tested versions: which must come, and which may.

An event's name is its `type` and, after a slash, what tells it from others of that type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from teamchat.runners.base import Vendor
from teamchat.runners.untrusted_json import decode


@dataclass(frozen=True, slots=True)
class Shapes:
    """`needed` come in every turn that thinks, speaks and uses a tool, and are read; `known` may come, too."""

    needed: tuple[str, ...]
    known: frozenset[str]


SHAPES: Mapping[Vendor, Shapes] = MappingProxyType(
    {
        "claude": Shapes(
            (
                "system/init",
                "stream_event/message_start",
                "stream_event/content_block_delta/text_delta",
                "assistant/thinking",
                "assistant/text",
                "assistant/tool_use",
                "user/tool_result",
                "result",
            ),
            frozenset(
                {
                    *("system/status", "system/api_retry", "system/thinking_tokens", "system/model_fallback"),
                    "system/permission_denied",
                    *("system/hook_started", "system/hook_response", "user/text"),
                    *(f"stream_event/content_block_start/{kind}" for kind in ("text", "thinking", "tool_use")),
                    *(
                        f"stream_event/content_block_delta/{kind}"
                        for kind in ("thinking_delta", "signature_delta", "input_json_delta")
                    ),
                    *(
                        f"stream_event/{kind}"
                        for kind in ("content_block_stop", "message_delta", "message_stop", "ping")
                    ),
                }
            ),
        ),
        "codex": Shapes(
            (
                "thread.started",
                "item.completed/reasoning",
                "item.started/command_execution",
                "item.completed/command_execution",
                "item.completed/agent_message",
                "turn.completed",
            ),
            frozenset(
                {
                    *("turn.started", "turn.failed", "error", "item.completed/error"),
                    *(
                        f"item.{step}/{kind}"
                        for step in ("started", "completed")
                        for kind in ("file_change", "web_search")
                    ),
                }
            ),
        ),
        "gemini": Shapes(
            ("init", "message/assistant", "tool_use", "tool_result", "result"), frozenset({"message/user", "error"})
        ),
    }
)


def name_of(line: bytes) -> str | None:
    """The name of the event on a line of stdout; None where there is none."""
    match decode(line):
        case {"type": "stream_event", "event": {"type": str(kind), "delta": {"type": str(part)}}}:
            return f"stream_event/{kind}/{part}"
        case {"type": "stream_event", "event": {"type": str(kind), "content_block": {"type": str(part)}}}:
            return f"stream_event/{kind}/{part}"
        case (
            {"type": "stream_event" as kind, "event": {"type": str(part)}}
            | {"type": "system" as kind, "subtype": str(part)}
            | {"type": "message" as kind, "role": str(part)}
            | {"type": str(kind), "message": {"content": [{"type": str(part)}, *_]}}
            | {"type": str(kind), "item": {"type": str(part)}}
        ):
            return f"{kind}/{part}"
        case {"type": str(kind)}:
            return kind
    return None
