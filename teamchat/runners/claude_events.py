"""The events of `claude -p --output-format stream-json --include-partial-messages` (2.1.197).

Deltas are not final: when a stream breaks, Claude asks again without streaming, and the text comes only in `assistant`.
`subtype` is "success" for failures too; `is_error` tells. Text of subagents (`parent_tool_use_id`) is not the member's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from teamchat.runners.agent_events import (
    AgentEvent,
    Denied,
    Done,
    Error,
    FailureKind,
    Note,
    Started,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    VendorSession,
)
from teamchat.runners.failures import Voice
from teamchat.runners.foreign import amount, count, flat, one_line, summary, total
from teamchat.runners.json_events import JsonEvents

VOICE = Voice(login="run `claude` and type /login")

_EDITORS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
_REFUSED = re.compile(  # a tool that is switched off is told only to the model, never in `permission_denials`
    r"Claude requested permissions to |Permission (?:to use|for this action) .*denied|.*exists but is not enabled"
    r"|.*was blocked\. For security|.*following parts? requires? approval|This command requires approval"
    r"|Cannot .* while in plan mode"
)


class ClaudeEvents(JsonEvents):
    def __init__(self) -> None:
        super().__init__(VOICE)
        self._calls: dict[str, ToolCall] = {}
        self._paths: dict[str, str] = {}
        self._denied: set[str] = set()

    def read(self, event: dict[str, object]) -> Iterator[AgentEvent]:
        own = event.get("parent_tool_use_id") is None
        match event:
            case {"type": "system"}:
                yield from self._system(event)
            case {"type": "stream_event", "event": dict(inner)} if own:
                yield from self._stream(inner)
            case {"type": "assistant", "message": {"content": list(blocks), **message}}:
                synthetic = "error" in event or message.get("model") == "<synthetic>"
                for block in blocks:
                    yield from self._block(block, own=own, synthetic=synthetic)
            case {"type": "user", "message": {"content": list(blocks)}}:
                for block in blocks:
                    yield from self._tool_result(block, event.get("tool_use_result"))
            case {"type": "result"}:
                yield from self._result(event)

    def _system(self, event: dict[str, object]) -> Iterator[AgentEvent]:
        match event:
            case {"subtype": "init"}:
                model, session = event.get("model"), event.get("session_id")
                yield Started(model if isinstance(model, str) else None)
                if isinstance(session, str):
                    yield VendorSession(session)
            case {"subtype": "api_retry"}:
                status = count(event.get("error_status"))
                words = str(event.get("error")).replace("_", " ")
                reason = f"{words} ({status})" if status else "no response"
                yield self.retry(reason, count(event.get("attempt")), status)
            case {"subtype": "model_fallback", "content": str(content)}:
                yield Note(one_line(content))

    def _stream(self, inner: dict[str, object]) -> Iterator[AgentEvent]:
        match inner:
            case {"type": "message_start"}:
                self.forget()  # what was streamed and never finished belongs to a request that is repeated
            case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": str(text)}}:
                yield from self.stream(text)

    def _block(self, block: object, *, own: bool, synthetic: bool) -> Iterator[AgentEvent]:
        match block:
            case {"type": "text", "text": str(text)} if synthetic:
                yield Error(text)
            case {"type": "text", "text": str(text)} if own:
                yield from self.say(text)
            case {"type": "thinking", "thinking": str(text)} if own and text.strip():
                yield Thinking(text)
            case {"type": "tool_use", "id": str(tool), "name": str(name), **rest}:
                call = self._calls[tool] = ToolCall(tool, name, summary(rest.get("input")))
                match rest.get("input"):
                    case {"file_path": str(path)} | {"notebook_path": str(path)} if name in _EDITORS:
                        self._paths[tool] = path
                yield call

    def _tool_result(self, block: object, detail: object) -> Iterator[AgentEvent]:
        match block:
            case {"type": "tool_result", "tool_use_id": str(tool), **rest}:
                output, failed = flat(rest.get("content")), rest.get("is_error") is True
                yield ToolResult(tool, output, failed, () if failed else self._changed(tool, detail))
                if failed and _REFUSED.match(output.removeprefix("<tool_use_error>")):
                    yield from self._deny(tool, "tool", one_line(output))

    def _changed(self, tool: str, detail: object) -> tuple[str, ...]:
        asked = self._paths.pop(tool, None)  # a call ends once: what says so again repeats no path
        match detail:
            case {"filePath": str(path)} if asked is not None:
                return (path,)
        return () if asked is None else (asked,)

    def _deny(self, tool: str, name: str, detail: str) -> Iterator[AgentEvent]:
        if tool not in self._denied:
            self._denied.add(tool)
            call = self._calls.get(tool)
            yield Denied(call.name, call.summary) if call else Denied(name, detail)

    def _result(self, event: dict[str, object]) -> Iterator[AgentEvent]:
        match event.get("permission_denials"):
            case list(denials):
                for denial in denials:
                    match denial:
                        case {"tool_name": str(name), "tool_use_id": str(tool), **rest}:
                            yield from self._deny(tool, name, summary(rest.get("tool_input")))
        yield _usage(event)
        self._judge(event)
        yield Done(self.done and self.error is None)

    def _judge(self, event: dict[str, object]) -> None:
        match event:
            case {"subtype": "success", "is_error": False, "num_turns": 0}:
                said = one_line(str(event.get("result") or "it said nothing"))
                self.fail(f"it took the prompt for a command of its own and asked no model ({said})")
            case {"subtype": "success", "is_error": False, "result": str(reply)}:
                # it is what was said last, which need not be kept twice
                self.reply, self.done = self.said[-1] if self.said[-1:] == [reply] else reply, True
            case {"terminal_reason": "aborted_streaming" | "aborted_tools"}:
                self.fail("", kind=FailureKind.INTERRUPTED)
            case {"errors": [str(), *_] as errors}:
                kind = FailureKind.BUDGET if event.get("subtype") == "error_max_budget_usd" else None
                self.fail("; ".join(error for error in errors if isinstance(error, str)), kind=kind)
            case _:
                told = event.get("result") or event.get("subtype") or "no reason given"
                self.fail(str(told), status=count(event.get("api_error_status")))


def _usage(event: dict[str, object]) -> Usage:
    """From `usage`, or summed over `modelUsage` when that is all zero (seen after a repeated request)."""
    cost = amount(event.get("total_cost_usd"))
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    found = _tokens([event.get("usage")], names)
    if not any(found):
        models = event.get("modelUsage")
        names = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens")
        summed = _tokens(list(models.values()) if isinstance(models, dict) else [], names)
        found = summed if any(summed) else found
    fresh, written, cached, output = found
    return Usage(total(fresh, written, cached), cached, output, cost)


def _tokens(tables: list[object], names: tuple[str, ...]) -> list[int | None]:
    known = [table for table in tables if isinstance(table, dict)]
    return [total(*(count(table.get(name)) for table in known)) for name in names]
