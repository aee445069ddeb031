"""The Gemini protocol, as Gemini CLI speaks it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event

from tests.real.model.replies import Body, Message, Reply, ToolUse, objects, sse, string
from tests.real.model.selftest import NOTE, PLANTED, SelfTest, json_hooks, json_server

_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
}


class Gemini:
    def claims(self, path: str) -> bool:
        """`:generateContent` is for the CLI's own small questions, never for a turn."""
        return ":streamGenerateContent" in path

    def stream(self, reply: Reply, closing: Event) -> Iterator[bytes]:
        if reply.thinking:
            yield sse(_chunk({"text": reply.thinking, "thought": True}))
        if reply.text:
            for piece in reply.pieces(closing):
                yield sse(_chunk({"text": piece}))
        calls = [{"functionCall": {"name": tool.name, "args": tool.input}} for tool in reply.tools]
        yield sse({**_chunk(*calls, finishReason="STOP"), "usageMetadata": _usage(reply)})

    def whole(self, body: Body, reply: Reply, closing: Event) -> bytes | None:  # noqa: ARG002  # a turn always streams
        return None

    def failure(self, status: int, message: str) -> bytes:
        error = {"code": status, "message": message, "status": _STATUSES.get(status, "INTERNAL")}
        return json.dumps({"error": error}).encode()

    def mid_stream_error(self, message: str) -> bytes:
        return sse({"error": {"code": 500, "message": message, "status": "INTERNAL"}})

    def system_text(self, body: Body) -> str:
        instruction = body.get("systemInstruction")
        return "\n".join(string(part.get("text")) for part in _parts([instruction]))

    def messages(self, body: Body) -> list[Message]:
        return [
            Message(string(content.get("role")), string(part.get("text")))
            for content in objects(body.get("contents"))
            for part in _parts([content])
            if "text" in part
        ]

    def tool_results(self, body: Body) -> list[str]:
        results = objects([part.get("functionResponse") for part in _parts(body.get("contents"))])
        return [_output(result.get("response")) for result in results]


def _parts(contents: object) -> list[Mapping[str, object]]:
    return [part for content in objects(contents) for part in objects(content.get("parts"))]


def _output(response: object) -> str:
    """A tool's answer is one text under a name of its own (`output`, `error`), or something richer."""
    values = list(response.values()) if isinstance(response, dict) else []
    return values[0] if len(values) == 1 and isinstance(values[0], str) else json.dumps(response)


def _chunk(*parts: Mapping[str, object], **ending: object) -> dict[str, object]:
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"index": 0, "content": content, **ending}], "modelVersion": "gemini-scripted"}


def _usage(reply: Reply) -> dict[str, int]:
    tokens = reply.tokens
    return {
        "promptTokenCount": tokens.input,
        "cachedContentTokenCount": tokens.cached,
        "candidatesTokenCount": tokens.output,
        "totalTokenCount": tokens.input + tokens.output,
    }


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
