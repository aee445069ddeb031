"""The events of `codex exec --json` (0.169.0).

Text comes in whole messages, never in deltas. `error` events are mostly retries, and only `turn.failed` is final. A
command that the sandbox refuses and that ends at once leaves no event at all, so the denials seen are a lower bound.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from teamchat.patterns import regex
from teamchat.runners.agent_events import (
    AgentEvent,
    Denied,
    Done,
    Error,
    Note,
    Started,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    VendorSession,
)
from teamchat.runners.failures import FailureWords
from teamchat.runners.json_events import JsonEvents
from teamchat.runners.untrusted.json import count, flat, one_line, summary

VOICE = FailureWords(
    login="codex login",
    noise=regex(r"^(?:WARNING|warning):|^Reading (?:additional input|prompt)|failed to record rollout"),
)

_RETRY = regex(r"Reconnecting\.\.\. (?:(\d{1,9})/(\d{1,9})|waiting for network)(?: \((.*)\))?$", re.DOTALL)
_SANDBOX = regex(r"Read-only file system|Operation not permitted")
_ROUTER = regex(r"ERROR codex_core::tools::router: error=(.*)")
_STEPS = ("item.started", "item.completed")
_SUBAGENTS = "collab_tool_call"
_TOOLS = ("command_execution", "file_change", "web_search", "mcp_tool_call", _SUBAGENTS)
_UNCOUNTED = "the tokens of its subagents are not counted, since Codex does not report them"  # 0.150.0 to 0.171.0
_ASKS = "request_user_input"
_REFUSAL = regex(r"reject|blocked|approval|denied")
_SHELL = regex(r"(?:\S*/)?(?:ba|z|da|k)?sh")
_PLAINLY_WRAPPED = regex(r"(?:[\w./-]*/)?(?:ba|z|da|k)?sh -l?c '([^']*)'", re.ASCII)


class CodexEvents(JsonEvents):
    def __init__(self) -> None:
        super().__init__(VOICE)
        self._open: set[str] = set()
        self._has_subagents = False

    def read(self, event: dict[str, object]) -> Iterable[AgentEvent]:
        kind, item = event.get("type"), event.get("item")
        if kind in _STEPS and isinstance(item, dict):  # nearly all events
            return self._item(item, ended=kind == "item.completed")
        return self._turn(event)

    def _turn(self, event: dict[str, object]) -> Iterator[AgentEvent]:
        match event:
            case {"type": "thread.started", "thread_id": str(thread)}:
                yield Started()
                yield VendorSession(thread)
            case {"type": "turn.completed"}:
                yield usage_of(event.get("usage"))
                if self._has_subagents:
                    yield Note(_UNCOUNTED)
                self.reply, self.done = self.texts(-1), True
                yield Done(ok=True)
            case {"type": "turn.failed"}:
                match event:
                    case {"error": {"message": str(message)}}:
                        self.fail(message)
                    case _:
                        self.fail("no reason given")
                yield Done(ok=False)
            case {"type": "error", "message": str(message)}:
                retrying = _RETRY.match(message)
                if retrying is None:
                    yield Error(message)
                else:
                    number, most, reason = retrying.groups()
                    retry = self.retry(reason or message, int(number) if number else None)
                    yield replace(retry, most=int(most) if most else None)

    def _item(self, item: dict[str, object], *, ended: bool) -> Iterable[AgentEvent]:
        name, tool = item.get("type"), item.get("id")
        if name in _TOOLS and isinstance(tool, str):
            return self._tool(tool, str(name), item, ended=ended)
        return self._said(item, ended=ended)

    def _said(self, item: dict[str, object], *, ended: bool) -> Iterator[AgentEvent]:
        match item:
            case {"type": "agent_message", "text": str(text)} if ended:
                yield from self.say(text)
            case {"type": "reasoning", "text": str(text)} if ended and text.strip():
                yield Thinking(text)
            case {"type": "error", "message": str(message)}:
                yield Note(one_line(message, 500))

    def _tool(self, tool: str, name: str, item: dict[str, object], *, ended: bool) -> Iterator[AgentEvent]:
        self._has_subagents = self._has_subagents or name == _SUBAGENTS
        if tool not in self._open:
            self._open.add(tool)
            yield ToolCall(tool, name, _action(item))
        if not ended:
            return
        self._open.discard(tool)
        output, failed = _output(item), item.get("status") in ("failed", "declined")
        paths = () if failed or name != "file_change" else tuple(path for path, _ in _changes(item))
        yield ToolResult(tool, output, failed, paths, count(item.get("exit_code")))
        if item.get("status") == "declined" or (failed and name == "command_execution" and _SANDBOX.search(output)):
            yield Denied(name, _action(item))

    def read_stderr(self, line: str) -> Iterator[AgentEvent]:
        if match := _ROUTER.search(line):
            reason = one_line(match[1])
            if reason.startswith(_ASKS):  # the tool is offered, refused, and in no event (0.150.0 to 0.169.0)
                self._asked[_ASKS] = f"(a question that Codex did not pass on: {reason})"
                yield from self.unanswered(_ASKS)
                return
            if not _REFUSAL.search(reason):
                yield Note(reason)
            else:
                yield Denied("file_change" if "patch" in reason else "command_execution", reason)


def _action(item: dict[str, object]) -> str:
    match item:
        case {"type": "command_execution", "command": str(command)}:
            return one_line(_inside_shell(command))
        case {"type": "file_change"}:
            return one_line(", ".join(f"{kind} {path}" for path, kind in _changes(item)))
        case {"type": "mcp_tool_call"}:
            return one_line(f"{item.get('server')}.{item.get('tool')} {summary(item.get('arguments'))}")
        case {"type": "collab_tool_call"}:
            return one_line(f"{item.get('tool')} {item.get('prompt') or ''}")
        case {"query": str(query)}:
            return one_line(query)
    return ""


def _inside_shell(command: str) -> str:
    """Unwrap `ls -la` from `/bin/bash -lc 'ls -la'`: Codex wraps every command so."""
    if match := _PLAINLY_WRAPPED.fullmatch(command):  # nearly all are; `shlex` takes a hundred times as long
        return match[1]
    if len(command) > 4_000:  # too long for one line anyway
        return command
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    match words:
        case [shell, "-lc" | "-c", script] if _SHELL.fullmatch(shell):
            return script
    return command


def _changes(item: dict[str, object]) -> Iterator[tuple[str, str]]:
    match item.get("changes"):
        case list(changes):
            for change in changes:
                match change:
                    case {"path": str(path)}:
                        yield path, str(change.get("kind") or "change")


def _output(item: dict[str, object]) -> str:
    match item:
        case {"aggregated_output": str(output)} | {"error": {"message": str(output)}}:
            return output
        case {"result": {"content": content}}:
            return flat(content)
    return ""


def usage_of(usage: object) -> Usage:
    """Read a usage, which adds up over the whole thread.

    Cached tokens are part of the input, reasoning is part of the output.
    """
    known = usage if isinstance(usage, dict) else {}
    names = ("input_tokens", "cached_input_tokens", "output_tokens")
    given, cached, output = (count(known.get(name)) for name in names)
    counted = Usage(given, cached, output, cumulative=True)
    return Usage(cumulative=True) if counted.is_nothing else counted
