"""The events of `claude -p --output-format stream-json --include-partial-messages` (2.1.197, 2.1.260, 2.1.330).

Deltas are not final: when a stream breaks, Claude asks again without streaming, and the text comes only in `assistant`.
`subtype` is "success" for failures too; `is_error` tells. Text of subagents (`parent_tool_use_id`) is not the member's.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from teamchat.patterns import regex
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
    UsedSoFar,
    VendorSession,
)
from teamchat.runners.base import Verdict
from teamchat.runners.claude.usage import Requests, cost_since, models_in, usage_of
from teamchat.runners.failures import FailureWords, is_blank
from teamchat.runners.json_events import JsonEvents, questions_text
from teamchat.runners.untrusted.file_changes import lines_of
from teamchat.runners.untrusted.json import amount, count, flat, one_line, summary

VOICE = FailureWords(login="claude auth login")

_EDITORS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
_WRITERS = _EDITORS | {"Bash"}
_TOOL_ERROR = "<tool_use_error>"
# A tool that is switched off is told only to the model, never in `permission_denials`, and in other words by each
# version. So a failed call that would have written counts as refused, too, if `system/init` did not offer its tool.
_REFUSED = regex(
    r"Claude requested permissions to |Permission (?:to use|for this action) .*denied"
    r"|(?:Error: )?No such tool available"
    r"|.*was blocked\. For security|.*following parts? requires? approval|This command requires approval"
    r"|Cannot .* while in plan mode"
)
_GOES_ON = frozenset({"tool_use", "pause_turn"})  # reasons for which a message stops and the turn does not
_CUT = frozenset({"max_tokens", "pause_turn"})  # the next message continues the text of these (2.1.330)
_ASKS = "AskUserQuestion"
_NO_REFUSALS = frozenset({"interrupted", "cancelled"})  # reasons why a tool did not run that are no refusals (2.1.330)


class ClaudeEvents(JsonEvents):
    def __init__(self) -> None:
        super().__init__(VOICE)
        self._calls: dict[str, ToolCall] = {}
        self._paths: dict[str, str] = {}
        self._denied: set[str] = set()
        self._offered: frozenset[str] | None = None
        self._requests = Requests()
        self._told: Usage | None = None  # the usage of the last `UsedSoFar`
        self._message: object = None  # the id of the member's last message
        self._row = ""  # the row of the session's record with its end (the same name in both: 2.1.330)
        self._since = 0  # the first of its texts in `said`
        self.models_in: list[object] | None = None  # what each model has used, as the results of this turn report it
        self._streams = False  # whether this turn streams: then an answer is not complete before its stream says so
        self._calls_tools = False  # the message that is being streamed
        self._is_cut = False  # the last message: the next one continues its text

    def piece(self, event: dict[str, object]) -> str | None:
        match event:
            case {"type": "stream_event", "event": {"type": "content_block_delta", "delta": dict(delta)}}:
                if event.get("parent_tool_use_id") is not None:
                    return ""
                self._streams = True
                text = delta.get("text") if delta.get("type") == "text_delta" else ""
                return text if isinstance(text, str) else ""
        return None

    def read(self, event: dict[str, object]) -> Iterator[AgentEvent]:
        parent = event.get("parent_tool_use_id")
        own = parent is None
        match event:
            case {"type": "system"}:
                yield from self._system(event)
            case {"type": "stream_event", "event": dict(inner)}:
                yield from self._count(inner, parent)
                if own:
                    self._follow(inner)
            case {"type": "assistant", "message": {"content": list(blocks), **message}}:
                synthetic = "error" in event or message.get("model") == "<synthetic>"
                if not synthetic:
                    # The facts in a message beside its blocks.
                    name = message.get("id")
                    if "id" in message:  # a request that was not streamed
                        self._requests.begins(name, message.get("usage"), parent)
                        yield from self._used_so_far()
                    if parent is None and (name is None or name != self._message):
                        self._begin(name)
                match event.get("uuid"):
                    case str(row) if own and not synthetic:
                        self._row = row
                for block in blocks:
                    yield from self._block(block, own=own, synthetic=synthetic)
                self._is_cut = self._is_cut or (own and message.get("stop_reason") in _CUT)
            case {"type": "user", "message": {"content": list(blocks)}}:
                self.answered = self.answered and not own
                for block in blocks:
                    yield from self._tool_result(block, event)
            case {"type": "result"}:
                yield from self._result(event)

    def _count(self, inner: dict[str, object], parent: object) -> Iterator[AgentEvent]:
        match inner:
            case {"type": "message_start", "message": dict(message)}:
                self._requests.begins(message.get("id"), message.get("usage"), parent)
                yield from self._used_so_far()
            case {"type": "message_delta"}:
                self._requests.goes_on(inner.get("usage"), parent)
                yield from self._used_so_far()

    def _used_so_far(self) -> Iterator[AgentEvent]:
        if (used := self._requests.usage()) and used != self._told:
            self._told = used
            yield UsedSoFar(used)

    def _follow(self, inner: dict[str, object]) -> None:
        """Check whether the answer is complete: a message is over and calls no tool, whose result would begin one."""
        self._streams = True
        match inner:
            case {"type": "message_start", **rest}:
                message = rest.get("message")
                self._begin(message.get("id") if isinstance(message, dict) else None)
                self.forget()  # unfinished streamed text belongs to a request that is repeated
                self.answered = self._calls_tools = False
            case {"type": "content_block_start", "content_block": {"type": "tool_use"}}:
                self._calls_tools = True
            case {"type": "message_delta", "delta": {"stop_reason": str(why)}}:
                self._is_cut = why in _CUT and not self._calls_tools
                self._calls_tools = self._calls_tools or why in _GOES_ON
                self.answered = not self._calls_tools
            case {"type": "message_stop"}:
                self.answered = not self._calls_tools

    def _begin(self, message: object) -> None:
        """Begin a message of the member, or go on with one that was cut. One without an id ends with its event."""
        self._message = message
        if not self._is_cut:
            self._since, self.goes_on = len(self.said), False
        self._is_cut = False

    def finish(self, exit_code: int, stderr_tail: str) -> Verdict:
        own_cost = cost_since(self.models_in) is not None
        return replace(super().finish(exit_code, stderr_tail), own_cost=own_cost, last_row=self._row)

    def used(self) -> Usage | None:
        return self._requests.usage()

    def _system(self, event: dict[str, object]) -> Iterator[AgentEvent]:
        match event:
            case {"subtype": "init"}:
                model, session, version = (event.get(name) for name in ("model", "session_id", "claude_code_version"))
                match event.get("tools"):
                    case list(names) if all(isinstance(name, str) for name in names):
                        self._offered = frozenset(names)
                yield Started(
                    model if isinstance(model, str) else None, one_line(version) if isinstance(version, str) else None
                )
                if isinstance(session, str):
                    yield VendorSession(session)
            case {"subtype": "api_retry"}:
                status = count(event.get("error_status"))
                words = str(event.get("error")).replace("_", " ")
                reason = f"{words} ({status})" if status else "no response"
                delay = amount(event.get("retry_delay_ms"))
                yield replace(
                    self.retry(reason, count(event.get("attempt")), status),
                    most=count(event.get("max_retries")),
                    delay_s=None if delay is None else delay / 1000,
                )
            case {"subtype": "permission_denied", "tool_name": str(name), "tool_use_id": str(tool)}:
                yield from self._deny(tool, name, one_line(str(event.get("message") or "")))
            case {"subtype": "model_fallback", "content": str(content)}:
                yield Note(one_line(content))

    def _block(self, block: object, *, own: bool, synthetic: bool) -> Iterator[AgentEvent]:
        follows = self.goes_on
        self.goes_on = follows and not own
        match block:
            case {"type": "text", "text": str(text)} if synthetic:
                yield Error(text)
            case {"type": "text", "text": str(text)} if own:
                self.answered = self.answered or not self._streams
                self.goes_on = follows
                yield from self.say(text)
                self.goes_on = follows or not is_blank(text)
            case {"type": "thinking", "thinking": str(text)} if own and text.strip():
                yield Thinking(text)
            case {"type": "tool_use", "id": str(tool), "name": str(name), **rest}:
                self.answered = self.answered and not own
                call = self._calls[tool] = ToolCall(tool, name, summary(rest.get("input")), lines_of(rest.get("input")))
                match rest.get("input"):
                    case {"file_path": str(path)} | {"notebook_path": str(path)} if name in _EDITORS:
                        self._paths[tool] = path
                    case {"durable": True} if name == "CronCreate":
                        self._paths[tool] = ".claude/scheduled_tasks.json"
                if name == _ASKS and own:
                    self._asked[tool] = questions_text(rest.get("input"))
                    self._denied.add(tool)  # it is passed on, and not refused
                yield call

    def _tool_result(self, block: object, event: dict[str, object]) -> Iterator[AgentEvent]:
        match block:
            case {"type": "tool_result", "tool_use_id": str(tool), **rest}:
                output = flat(rest.get("content"))
                failed = rest.get("is_error") is True or output.startswith(_TOOL_ERROR)
                changed = () if failed else self._changed(tool, event.get("tool_use_result"))
                yield ToolResult(tool, output, failed, changed)
                yield from self.unanswered(tool, failed=failed)
                if failed and self._refused(tool, output, event.get("tool_result_meta")):
                    yield from self._deny(tool, "tool", one_line(output))

    def _refused(self, tool: str, output: str, meta: object) -> bool:
        """Whether the CLI refused this failed call, by any of the reports of its versions."""
        call = self._calls.get(tool)
        switched_off = call is not None and self._offered is not None and call.name in _WRITERS - self._offered
        return switched_off or _told_refused(tool, meta) or bool(_REFUSED.match(output.removeprefix(_TOOL_ERROR)))

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
        self._judge(event)
        yield from self.all_unanswered()
        if (models := models_in(event, "model_usage_since_last_result")) is not None:
            self.models_in = [*(self.models_in or ()), *models]
        yield usage_of(event, self.models_in, self._requests, failed=self.error is not None)
        yield Done(self.done and self.error is None)

    def _judge(self, event: dict[str, object]) -> None:
        match event:
            case {"subtype": "success", "is_error": False, "num_turns": 0}:
                said = one_line(str(event.get("result") or "it said nothing"))
                self.fail(f"it took the prompt for a command of its own and asked no model ({said})")
            case {"subtype": "success", "is_error": False, "result": str(result)}:
                answer = self.texts(self._since)
                self.reply, self.done = answer if result.strip() in answer else result, True
                self._begin(None)
            case {"subtype": "success", "is_error": False}:
                self.fail("its result has no answer")
            case {"terminal_reason": "aborted_streaming" | "aborted_tools"}:
                self.fail("", kind=FailureKind.INTERRUPTED)
            case {"errors": [str(), *_] as errors}:
                kind = FailureKind.BUDGET if event.get("subtype") == "error_max_budget_usd" else None
                self.fail("; ".join(error for error in errors if isinstance(error, str)), kind=kind)
            case {"error": {"message": str(message)}}:  # Qwen Code (0.24.4) prints events of this shape
                self.fail(message)
            case _:
                reason = event.get("result") or event.get("subtype") or "no reason given"
                self.fail(str(reason), status=count(event.get("api_error_status")))


def _told_refused(tool: str, meta: object) -> bool:
    """Whether `tool_result_meta` says that a call had no permission, or a rule stopped it."""
    for entry in meta if isinstance(meta, list) else []:
        match entry:
            case {"id": str(of), "permission_decision": {"decision": "reject"}} if of == tool:
                return True
            case {"id": str(of), "non_execution_kind": str(kind)} if of == tool:
                return kind not in _NO_REFUSALS
    return False
