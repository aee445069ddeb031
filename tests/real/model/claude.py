"""The Anthropic Messages protocol, as Claude Code speaks it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from threading import Event

from tests.real.model.replies import Body, Message, Reply, ToolUse, objects, sse, string
from tests.real.model.selftest import NOTE, SelfTest, json_hooks, json_server

_numbers = count(1)
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Anthropic:
    def claims(self, path: str) -> bool:
        return path.startswith("/v1/messages") and "count_tokens" not in path

    def stream(self, reply: Reply, closing: Event) -> Iterator[bytes]:
        yield _event("message_start", message={**_message(reply), "content": [], "stop_reason": None})
        yield _event("ping")
        indexes = count()
        part: Reply | None = reply
        while part:
            yield from _part(part, indexes, closing)
            part = part.then
        stop = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
        yield _event("message_delta", delta=stop, usage={"output_tokens": reply.tokens.output})
        yield _event("message_stop")

    def whole(self, body: Body, reply: Reply, closing: Event) -> bytes | None:
        """After a broken stream Claude Code asks again without one."""
        if body.get("stream"):
            return None
        text = "".join(reply.pieces(closing))
        content: list[Mapping[str, object]] = [{"type": "text", "text": text}] if text else []
        content += map(_tool_block, reply.tools)
        return json.dumps({**_message(reply), "content": content, "stop_reason": _stop_reason(reply)}).encode()

    def failure(self, status: int, message: str) -> bytes:
        return json.dumps(_error(_ERROR_TYPES.get(status, "api_error"), message)).encode()

    def mid_stream_error(self, message: str) -> bytes:
        return sse(_error("overloaded_error", message), "error")

    def system_text(self, body: Body) -> str:
        return "\n".join(string(block.get("text")) for block in _blocks(body.get("system")))

    def messages(self, body: Body) -> list[Message]:
        return [
            Message(string(message.get("role")), string(block.get("text")))
            for message in objects(body.get("messages"))
            for block in _blocks(message.get("content"))
            if block.get("type") == "text"
        ]

    def tool_results(self, body: Body) -> list[str]:
        return [
            "\n".join(string(part.get("text")) for part in _blocks(block.get("content")))
            for message in objects(body.get("messages"))
            for block in _blocks(message.get("content"))
            if block.get("type") == "tool_result"
        ]


def _event(name: str, **data: object) -> bytes:
    return sse({"type": name, **data}, name)


def _part(reply: Reply, indexes: Iterator[int], closing: Event) -> Iterator[bytes]:
    if reply.thinking:
        thinking = {"type": "thinking_delta", "thinking": reply.thinking}
        signature = {"type": "signature_delta", "signature": "c2NyaXB0ZWQ="}
        empty = {"type": "thinking", "thinking": "", "signature": ""}
        yield from _block(next(indexes), empty, [thinking, signature])
    if reply.text:
        deltas = ({"type": "text_delta", "text": piece} for piece in reply.pieces(closing))
        yield from _block(next(indexes), {"type": "text", "text": ""}, deltas)
    for tool in reply.tools:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(tool.input)}
        yield from _block(next(indexes), {**_tool_block(tool), "input": {}}, [delta])


def _block(index: int, start: Mapping[str, object], deltas: Iterable[Mapping[str, object]]) -> Iterator[bytes]:
    yield _event("content_block_start", index=index, content_block=start)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _tool_block(tool: ToolUse) -> dict[str, object]:
    return {"type": "tool_use", "id": f"toolu_{next(_numbers):08}", "name": tool.name, "input": tool.input}


def _message(reply: Reply) -> dict[str, object]:
    tokens = reply.tokens
    usage = {
        "input_tokens": tokens.input - tokens.cached,
        "cache_read_input_tokens": tokens.cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": tokens.output,
    }
    identity = {"id": f"msg_{next(_numbers):08}", "type": "message", "role": "assistant", "model": "claude-scripted"}
    return {**identity, "stop_sequence": None, "usage": usage}


def _stop_reason(reply: Reply) -> str:
    return reply.stop or ("tool_use" if reply.tools else "end_turn")


def _error(kind: str, message: str) -> dict[str, object]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def _blocks(content: object) -> list[Mapping[str, object]]:
    """The content of a message, which may be short for one block of text."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)


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
