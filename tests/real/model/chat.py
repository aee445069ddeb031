"""The OpenAI Chat Completions protocol, which most other agent CLIs speak to a provider of one's own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from threading import Event

from tests.real.model.replies import Body, Message, Reply, ToolUse, objects, sse, string

PATH = "/chat/v1"
MODEL = "scripted"
_numbers = count(1)


class ChatCompletions:
    def claims(self, path: str) -> bool:
        return path.startswith(f"{PATH}/chat/completions")

    def stream(self, reply: Reply, closing: Event) -> Iterator[bytes]:
        number = next(_numbers)
        yield _chunk(number, {"role": "assistant", "content": ""})
        if reply.text:
            for piece in reply.pieces(closing):
                yield _chunk(number, {"content": piece})
        for index, call in enumerate(_calls(reply.tools)):
            yield _chunk(number, {"tool_calls": [{"index": index, **call}]})
        yield _chunk(number, {}, "tool_calls" if reply.tools else "stop")
        yield sse({**_about(number), "choices": [], "usage": _usage(reply)})
        yield b"data: [DONE]\n\n"

    def whole(self, body: Body, reply: Reply, closing: Event) -> bytes | None:
        if body.get("stream"):
            return None
        message: dict[str, object] = {"role": "assistant", "content": "".join(reply.pieces(closing))}
        if reply.tools:
            message["tool_calls"] = list(_calls(reply.tools))
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.tools else "stop"}
        whole = {**_about(next(_numbers)), "object": "chat.completion", "choices": [choice], "usage": _usage(reply)}
        return json.dumps(whole).encode()

    def failure(self, status: int, message: str) -> bytes:
        return json.dumps({"error": {"message": message, "type": "scripted", "code": str(status)}}).encode()

    def mid_stream_error(self, message: str) -> bytes:
        return sse({"error": {"message": message, "type": "server_error", "code": "500"}})

    def system_text(self, body: Body) -> str:
        return "\n".join(message.text for message in self.messages(body) if message.role in ("system", "developer"))

    def messages(self, body: Body) -> list[Message]:
        return [
            Message(string(message.get("role")), text)
            for message in objects(body.get("messages"))
            if message.get("role") != "tool"
            for text in _texts(message.get("content"))
        ]

    def tool_results(self, body: Body) -> list[str]:
        return [
            "\n".join(_texts(message.get("content")))
            for message in objects(body.get("messages"))
            if message.get("role") == "tool"
        ]


def offered(body: Body) -> list[str]:
    """The names of the tools that a request offers to its model."""
    functions = (tool.get("function") for tool in objects(body.get("tools")))
    return sorted(string(function.get("name")) for function in functions if isinstance(function, dict))


def _texts(content: object) -> list[str]:
    return [content] if isinstance(content, str) else [string(part.get("text")) for part in objects(content)]


def _calls(tools: Sequence[ToolUse]) -> Iterator[dict[str, object]]:
    for tool in tools:
        function = {"name": tool.name, "arguments": json.dumps(tool.input)}
        yield {"id": f"call_{next(_numbers)}", "type": "function", "function": function}


def _about(number: int) -> dict[str, object]:
    return {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1_780_000_000, "model": MODEL}


def _chunk(number: int, delta: Mapping[str, object], reason: str | None = None) -> bytes:
    return sse({**_about(number), "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def _usage(reply: Reply) -> dict[str, object]:
    tokens = reply.tokens
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
    }
