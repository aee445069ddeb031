"""The OpenAI Responses protocol, as Codex speaks it."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from threading import Event

from tests.real.model.replies import Body, Message, Reply, ToolUse, objects, sse, string
from tests.real.model.selftest import NOTE, SelfTest

_numbers = count(1)
_Item = dict[str, object]


class Responses:
    def claims(self, path: str) -> bool:
        return path.startswith("/v1/responses")

    def stream(self, reply: Reply, closing: Event) -> Iterator[bytes]:
        for number, event in enumerate(_events(reply, closing)):
            yield sse({**event, "sequence_number": number}, string(event["type"]))

    def whole(self, body: Body, reply: Reply, closing: Event) -> bytes | None:  # noqa: ARG002  # Codex always streams
        return None

    def failure(self, status: int, message: str) -> bytes:
        return json.dumps({"error": {"message": message, "type": "scripted", "code": str(status)}}).encode()

    def mid_stream_error(self, message: str) -> bytes:
        error = {"code": "server_error", "message": message}
        response = {"id": "resp", "status": "failed", "error": error}
        return sse({"type": "response.failed", "response": response}, "response.failed")

    def system_text(self, body: Body) -> str:
        developer = [message.text for message in self.messages(body) if message.role == "developer"]
        return "\n".join([string(body.get("instructions")), *developer])

    def messages(self, body: Body) -> list[Message]:
        return [
            Message(string(item.get("role")), string(part.get("text")))
            for item in objects(body.get("input"))
            if item.get("type") == "message"
            for part in objects(item.get("content"))
        ]

    def tool_results(self, body: Body) -> list[str]:
        outputs = [item.get("output") for item in objects(body.get("input")) if "_output" in string(item.get("type"))]
        return [output if isinstance(output, str) else json.dumps(output) for output in outputs]


def _events(reply: Reply, closing: Event) -> Iterator[_Item]:
    begun = _response("in_progress", [], reply)
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    items: list[_Item] = []
    if reply.thinking:
        items.append(_reasoning_item(reply.thinking))
        yield from _item(0, items[-1])
    if reply.text:
        items.append((yield from _message(len(items), reply, closing)))
    for tool in reply.tools:
        items.append(_tool_item(tool))
        yield from _item(len(items) - 1, items[-1])
    yield {"type": "response.completed", "response": _response("completed", items, reply)}


def _item(index: int, item: _Item) -> Iterator[_Item]:
    yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "status": "in_progress"}}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _message(index: int, reply: Reply, closing: Event) -> Generator[_Item, None, _Item]:
    """The events of a message as it streams; the value is the finished item."""
    identity = f"msg_{next(_numbers)}"
    place: _Item = {"output_index": index, "content_index": 0, "item_id": identity}
    yield {"type": "response.output_item.added", "output_index": index, "item": _text_item(identity, [])}
    yield {"type": "response.content_part.added", **place, "part": _part("")}
    said: list[str] = []
    for piece in reply.pieces(closing):
        said.append(piece)
        yield {"type": "response.output_text.delta", **place, "delta": piece}
    text = "".join(said)
    item = _text_item(identity, [_part(text)])
    yield {"type": "response.output_text.done", **place, "text": text}
    yield {"type": "response.content_part.done", **place, "part": _part(text)}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}
    return item


def _part(text: str) -> _Item:
    return {"type": "output_text", "text": text, "annotations": []}


def _text_item(identity: str, content: list[_Item]) -> _Item:
    return {"type": "message", "id": identity, "role": "assistant", "status": "completed", "content": content}


def _reasoning_item(text: str) -> _Item:
    summary = [{"type": "summary_text", "text": text}]
    return {"type": "reasoning", "id": f"rs_{next(_numbers)}", "summary": summary, "encrypted_content": "c2NyaXB0ZWQ="}


def _tool_item(tool: ToolUse) -> _Item:
    number = next(_numbers)
    item: _Item = {"id": f"fc_{number}", "call_id": f"call_{number}", "name": tool.name, "status": "completed"}
    if set(tool.input) == {"input"}:
        return {"type": "custom_tool_call", **item, "input": tool.input["input"]}
    space = {"namespace": tool.namespace} if tool.namespace else {}
    return {"type": "function_call", **item, **space, "arguments": json.dumps(tool.input)}


def _response(status: str, output: list[_Item], reply: Reply) -> _Item:
    tokens = reply.tokens
    usage = {
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens.input + tokens.output,
    }
    done = usage if status == "completed" else None
    return {"id": "resp", "object": "response", "status": status, "output": output, "usage": done, "error": None}


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
