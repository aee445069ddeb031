"""A CLI of a vendor that really asks its model: `vendor.py KNOBS ARGS...`, KNOBS being a JSON object.

`vendor` (claude, codex, gemini) says whose protocol and events it speaks. Any other spoils it: `rename` ({old type:
new type} of events), `refuse` (an argument that it does not know), `writes` (it does what it should refuse), `silent`
(reports no refusal), `untrue` (tells a command with an expansion as run that it refuses), `cut` (so many bytes of its
prompt), `deaf` (to all but SIGKILL), `forgets` (what was said in a session), `anew` (begins a session in place of
going on with one), `headstrong` (keeps its instructions from its model), `leaves` (after a turn, though it should
stay), `abrupt` (ends without a newline), `chatty` (with events of so many unknown names), `garbled` (asks its model in
what is no JSON), `narrow` (refuses a prompt of more characters, as Claude does), `knows` (answers by their prompts,
without its model), `expands` (texts in prompts, each with what its model is told then), `later` (it has tools that act
after a turn), `serves` (files whose MCP servers it starts, where they are there), `dotenv` (it obeys that of its
folder).

A proof starts it dozens of times: what takes long to import is imported where it is needed.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

KNOBS: dict[str, Any] = json.loads(sys.argv[1])
ARGS = sys.argv[2:]
VENDOR: str = KNOBS["vendor"]


class Item:
    """A piece of a reply: its kind (thinking, text or tool), its text, and a tool's name and input."""

    def __init__(self, kind: str, text: str = "", name: str = "", input: Any = None) -> None:  # noqa: A002
        self.kind, self.text, self.name, self.input = kind, text, name, input


def emit(event: dict[str, Any]) -> None:
    for part in (event, event.get("item"), event.get("event")):
        if isinstance(part, dict):
            part["type"] = KNOBS.get("rename", {}).get(part["type"], part["type"])
    print(json.dumps(event), end="" if KNOBS.get("abrupt") and event.get("type") == "result" else "\n", flush=True)


def frames(path: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What the model streams as its answer."""
    import socket

    if VENDOR == "codex":
        import tomllib

        config = tomllib.loads((Path(os.environ["HOME"]) / ".codex" / "config.toml").read_text())
        url = config["model_providers"]["mock"]["base_url"].removesuffix("/v1")
    else:
        url = os.environ["ANTHROPIC_BASE_URL" if VENDOR == "claude" else "GOOGLE_GEMINI_BASE_URL"]
    data = b"\x1f\x8b" if KNOBS.get("garbled") else json.dumps(body).encode()
    host, _, port = url.removeprefix("http://").partition(":")
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(data)}\r\n\r\n"
    with socket.create_connection((host, int(port))) as server, server.makefile("rb") as response:
        server.sendall(head.encode() + data)
        if b" 200 " not in response.readline():
            sys.exit("the model refused the request")
        headers = list(iter(response.readline, b"\r\n"))
        streams = any(b"chunked" in header for header in headers)
        for line in b"".join(chunks(response)).splitlines() if streams else ():
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


def chunks(response: BinaryIO) -> Iterator[bytes]:
    """A body of HTTP/1.1, whose parts have their sizes in front; `urllib` would take longer than all the rest."""
    while size := int(response.readline(), 16):
        yield response.read(size)
        response.readline()


def told(said: list[str]) -> list[str]:
    """What the model hears of what was said: with `expands` more than that."""
    expands = KNOBS.get("expands", {}).items()
    return [text for prompt in said for text in (prompt, *(more for word, more in expands if word in prompt))]


def session_of(prompt: str) -> tuple[str, list[str]]:
    """The session's id, and what was said in it so far: a new one unless it is told to go on with another."""
    told = next((ARGS[at + 1] for at, argument in enumerate(ARGS) if argument in ("resume", "--resume")), None)
    file = Path(os.environ["HOME"]) / f"session-{told or os.getpid()}.json"
    said = json.loads(file.read_text()) if told and not KNOBS.get("forgets") else []
    file.write_text(json.dumps([*said, prompt]))
    return told if told and not KNOBS.get("anew") else str(os.getpid()), [*said, prompt]


def start_servers(file: Path) -> None:
    """Run the commands of the MCP servers that the file names."""
    if file.exists():
        import subprocess
        import tomllib

        settings = (tomllib.loads if file.suffix == ".toml" else json.loads)(file.read_text())
        for server in (settings.get("mcpServers") or settings.get("mcp_servers") or {}).values():
            subprocess.run([server["command"], *server["args"]], check=False)


def instructions() -> str:
    """The system text, by a flag or by a file of it."""
    if "--append-system-prompt-file" in ARGS:
        return Path(ARGS[ARGS.index("--append-system-prompt-file") + 1]).read_text()
    return ARGS[ARGS.index("--append-system-prompt") + 1] if "--append-system-prompt" in ARGS else ""


def ask_claude(said: list[str]) -> list[Item]:
    blocks: list[Item] = []
    body = {
        "stream": True,
        "system": [{"type": "text", "text": "" if KNOBS.get("headstrong") else instructions()}],
        "messages": [{"role": "user", "content": prompt} for prompt in told(said)],
    }
    for frame in frames("/v1/messages", body):
        match frame:
            case {"type": "content_block_start", "content_block": {"type": kind, **rest}}:
                blocks.append(Item("tool" if kind == "tool_use" else kind, name=str(rest.get("name", ""))))
            case {"delta": {"text": text}} | {"delta": {"thinking": text}}:
                blocks[-1].text += text
            case {"delta": {"partial_json": text}}:
                blocks[-1].input = json.loads(text)
    return blocks


def ask_codex(said: list[str]) -> list[Item]:
    items = []
    parts = ([{"type": "input_text", "text": prompt}] for prompt in told(said))
    body = {"input": [{"type": "message", "role": "user", "content": content} for content in parts]}
    for frame in frames("/v1/responses", body):
        match frame:
            case {"type": "response.output_item.done", "item": {"type": "message", "content": [{"text": text}]}}:
                items.append(Item("text", text))
            case {"type": "response.output_item.done", "item": {"type": "reasoning", "summary": [{"text": text}]}}:
                items.append(Item("thinking", text))
            case {"type": "response.output_item.done", "item": {"name": name, "arguments": arguments}}:
                items.append(Item("tool", name=name, input=json.loads(arguments)))
            case {"type": "response.output_item.done", "item": {"name": name, "input": patch}}:
                items.append(Item("tool", name=name, input={"file_path": re.findall(r"Add File: (.*)", patch)[0]}))
    return items


def ask_gemini(said: list[str]) -> list[Item]:
    items = []
    body: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": prompt}]} for prompt in told(said)]}
    if KNOBS.get("dotenv") and Path(".env").exists():
        system = Path(".env").read_text().strip().partition("=")[2]
        body["systemInstruction"] = {"parts": [{"text": Path(system).read_text()}]}
    for frame in frames("/v1beta/models/m:streamGenerateContent", body):
        for part in frame["candidates"][0]["content"]["parts"]:
            match part:
                case {"text": text, **rest}:
                    items.append(Item("thinking" if rest.get("thought") else "text", text))
                case {"functionCall": {"name": name, "args": arguments}}:
                    items.append(Item("tool", name=name, input=arguments))
    return items


def use(tool: Item) -> bool:
    """Do what the tool was asked; whether it was refused, as everything that writes is."""
    command = str(tool.input.get("cmd") or tool.input.get("command") or "")
    writes = tool.name in ("Write", "write_file", "apply_patch") or command.startswith("touch ")
    if tool.name in ("CronCreate", "ScheduleWakeup", "Monitor"):
        return not KNOBS.get("later")
    if writes and not KNOBS.get("writes"):
        return True
    if writes:
        Path(tool.input.get("file_path") or command.removeprefix("touch ")).write_text("written")
    elif command and not ("$(" in command and KNOBS.get("untrue")):
        import subprocess

        subprocess.run(["sh", "-c", command], check=False, stdout=subprocess.DEVNULL, start_new_session=True)
    return False


def tell_claude(item: Item, number: int) -> None:
    tool = {"type": "tool_use", "id": f"t{number}", "name": item.name, "input": item.input}
    if item.kind == "text":
        emit({"type": "stream_event", "event": {"type": "message_start"}})
        delta = {"type": "text_delta", "text": item.text}
        emit({"type": "stream_event", "event": {"type": "content_block_delta", "delta": delta}})
    content = {"tool": tool, "text": {"type": "text", "text": item.text}}
    emit(
        {"type": "assistant", "message": {"content": [content.get(item.kind, {"type": "thinking", "thinking": "Hm"})]}}
    )
    if item.kind == "tool":
        refused = use(item)
        text = "Claude requested permissions to write" if refused and not KNOBS.get("silent") else "well"
        block = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text, "is_error": refused}
        emit({"type": "user", "message": {"content": [block]}})


def tell_codex(item: Item, number: int) -> None:
    if item.kind != "tool":
        kind = "agent_message" if item.kind == "text" else "reasoning"
        emit({"type": "item.completed", "item": {"id": f"i{number}", "type": kind, "text": item.text}})
        return
    tool = {"id": f"i{number}", "type": "command_execution", "command": str(item.input), "status": "in_progress"}
    emit({"type": "item.started", "item": dict(tool)})
    refused = use(item)
    status = "declined" if refused and not KNOBS.get("silent") else "completed"
    emit({"type": "item.completed", "item": {**tool, "status": status, "aggregated_output": ""}})


def tell_gemini(item: Item, number: int) -> None:
    if item.kind == "text":
        emit({"type": "message", "role": "assistant", "content": item.text, "delta": True})
    elif item.kind == "tool":
        emit({"type": "tool_use", "tool_id": f"t{number}", "tool_name": item.name, "parameters": item.input})
        refused = use(item) and not KNOBS.get("silent")
        result = {"status": "error", "error": {"type": "policy_violation"}} if refused else {"status": "success"}
        emit({"type": "tool_result", "tool_id": f"t{number}", "output": "", **result})


def end(text: str) -> None:
    tokens = {"input_tokens": 11, "output_tokens": 7}
    ends: dict[str, dict[str, Any]] = {
        "claude": {"type": "result", "subtype": "success", "is_error": False, "result": text, "usage": tokens},
        "codex": {"type": "turn.completed", "usage": tokens},
        "gemini": {"type": "result", "status": "success", "stats": {"total_tokens": 18, **tokens}},
    }
    emit(ends[VENDOR])


def answer(session: str, said: list[str]) -> None:
    """A whole turn."""
    asks = {"claude": ask_claude, "codex": ask_codex, "gemini": ask_gemini}
    tells = {"claude": tell_claude, "codex": tell_codex, "gemini": tell_gemini}
    emit(
        {
            "claude": {"type": "system", "subtype": "init", "session_id": session, "model": "m"},
            "codex": {"type": "thread.started", "thread_id": session},
            "gemini": {"type": "init", "session_id": session, "model": "m"},
        }[VENDOR]
    )
    if len(said[-1]) > KNOBS.get("narrow", math.inf):
        emit({"type": "result", "subtype": "success", "is_error": True, "result": "Prompt is too long"})
        sys.exit(1)
    for unknown in range(KNOBS.get("chatty", 0)):
        emit({"type": f"news-{unknown}"})
    if known := KNOBS.get("knows", {}).get(said[-1]):
        tells[VENDOR](Item("text", known), 1)
        end(known)
        return
    number = 0
    while True:
        items = asks[VENDOR](said)
        for item in items:
            number += 1
            tells[VENDOR](item, number)
        if not any(item.kind == "tool" for item in items):
            end("".join(item.text for item in items if item.kind == "text"))
            return


def main() -> int:
    if KNOBS.get("refuse") in ARGS:
        print(f"error: unexpected argument {KNOBS['refuse']!r} found", file=sys.stderr)
        return 2
    if KNOBS.get("deaf"):
        import signal

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for file in KNOBS.get("serves", ()):
        start_servers(Path(file).expanduser())
    if "--input-format" in ARGS:
        said: list[str] = []
        for line in sys.stdin:
            said.append(json.loads(line)["message"]["content"])
            answer(str(os.getpid()), said)
            if KNOBS.get("leaves"):
                return 0
    else:
        answer(*session_of(sys.stdin.buffer.read()[: KNOBS.get("cut")].decode()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
