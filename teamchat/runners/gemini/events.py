"""The events of `gemini --output-format stream-json` (0.61.0).

Text comes in deltas only; the tool events between them separate earlier text from the answer. `result` can say success
for an answer that loop detection cut off, so an `error` event is a failure. A warning is none if the agent goes on: a
hook (AfterAgent) has sent it back, and its text before that is not the answer. The user's prompt is echoed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from teamchat.patterns import regex
from teamchat.runners.agent_events import (
    AgentEvent,
    Denied,
    Done,
    Error,
    FailureKind,
    Note,
    Started,
    ToolCall,
    ToolResult,
    Usage,
    VendorSession,
)
from teamchat.runners.base import Verdict
from teamchat.runners.failures import FailureWords, plain
from teamchat.runners.json_events import JsonEvents, questions_text
from teamchat.runners.untrusted.file_changes import lines_of
from teamchat.runners.untrusted.json import count, flat, one_line, summary

VOICE = FailureWords(
    login="gemini",
    noise=regex(
        r"^(?:Security )?Warning: |^\[STARTUP\]|^Ripgrep is not|^YOLO mode is|^Approval mode|^Loaded cached|^\s+at "
        r"|^\s*[{}]\s*$|^\s+\w+: .*,?$|^Attempt \d+ failed|^Error executing tool "
    ),
)

_EDITORS = frozenset({"write_file", "replace"})
_ASKS = "ask_user"
_LOOP = "Loop detected"
_REFUSAL_TYPE = regex(r"tool_not_registered|policy|not_in_workspace")
_REFUSAL = regex(  # the types of these are those of a wrong argument and of any exception (0.55.1 to 0.61.0)
    r'Path not in workspace: |Tool execution for "[^"]*" requires user confirmation, which is not supported'
)
_SHELL = "run_shell_command"
_BLOCKED = "Blocked: command substitution detected in shell command."
"""The whole output of a command that has an expansion: it did not run, and the status is "success" (0.61.0)."""
_NO_EXPANSION = regex(r"""'[^']*'|\\.|("(?:[^"\\]|\\.)*")""", re.DOTALL)  # keeps what stands in double quotes
_WRAPPER = regex(r"\s*(?:\S*/)?(?:ba|z)?sh\s+-c\s")
_EXPANSION = regex(r"[$<>]\(|`")
_RETRY = regex(r"Attempt (\d{1,9}) failed(?: with status (\d{3}))?[:.]\s*(?:Retrying with backoff\.\.\. )?(.*)")
_CUT = regex(r"Warning: stdin input truncated to \d+ bytes")
_STATUS_BY_EXIT = {status & 0xFF: status for status in (400, 401, 403, 404, 408, 413, 429, 500, 502, 503, 504)}


class GeminiEvents(JsonEvents):
    def __init__(self) -> None:
        super().__init__(VOICE)
        self._calls: dict[str, ToolCall] = {}
        self._paths: dict[str, str] = {}
        self._expands: set[str] = set()  # the calls of the shell whose commands have an expansion

    def piece(self, event: dict[str, object]) -> str | None:
        match event:
            case {"type": "message", "role": "assistant", "content": str(text)}:
                return text
        return None

    def read(self, event: dict[str, object]) -> Iterator[AgentEvent]:
        match event:
            case {"type": "init"}:
                model, session = event.get("model"), event.get("session_id")
                yield Started(model if isinstance(model, str) else None)
                if isinstance(session, str):
                    yield VendorSession(session)
            case {"type": "tool_use", "tool_id": str(tool), "tool_name": str(name)}:
                yield from self._tool_use(tool, name, event.get("parameters"))
            case {"type": "tool_result", "tool_id": str(tool)}:
                yield from self._tool_result(tool, event)
            case {"type": "error"}:
                message = str(event.get("message") or "no reason given")
                if event.get("severity") == "warning" and not message.startswith(_LOOP):
                    yield from self._segment()
                    yield Note(one_line(message))
                    self._trouble = Error(message)
                else:
                    self.fail(message)
                    yield Error(message)
            case {"type": "result"}:
                yield from self._result(event)

    def _tool_use(self, tool: str, name: str, parameters: object) -> Iterator[AgentEvent]:
        yield from self._segment()
        match parameters:
            case {"file_path": str(path)} if name in _EDITORS:
                self._paths[tool] = path
            case {"command": str(command)} if name == _SHELL and _expands(command):
                self._expands.add(tool)
        if name == _ASKS:
            self._asked[tool] = questions_text(parameters)
        call = self._calls[tool] = ToolCall(tool, name, summary(parameters), lines_of(parameters))
        yield call

    def _tool_result(self, tool: str, event: dict[str, object]) -> Iterator[AgentEvent]:
        yield from self._segment()
        output = flat(event.get("output"))
        blocked = tool in self._expands and output == _BLOCKED
        failed = blocked or event.get("status") != "success"
        path = self._paths.pop(tool, None)  # a call ends once: what says so again repeats no path
        yield ToolResult(tool, output, failed, () if failed or path is None else (path,))
        if tool in self._asked:
            yield from self.unanswered(tool, failed=failed)
            return
        call = self._calls.get(tool)
        match event.get("error"):
            case _ if blocked and call:
                yield Denied(call.name, call.summary)
            case {"type": str(kind), **rest} if failed and _is_refusal(kind, rest.get("message")):
                yield Denied(call.name if call else "tool", call.summary if call else kind)

    def _segment(self) -> Iterator[AgentEvent]:
        """Say the text since the last tool event; at the end of the turn, that is the answer."""
        self.cut, self.reply = self.live.over, str(self.live)
        yield from self.say(self.reply)

    def _result(self, event: dict[str, object]) -> Iterator[AgentEvent]:
        yield from self._segment()
        yield from self.all_unanswered()
        yield _usage(event.get("stats"))
        if self.error is None and isinstance(self._trouble, Error):
            self.fail(self._trouble.text)
        match event:
            case {"status": "success"}:
                self.done = True
            case {"error": {"message": str(message)}}:
                self.fail(message)
            case _:
                self.fail(self.error or "no reason given")
        yield Done(self.done and self.error is None)

    def read_stderr(self, line: str) -> Iterator[AgentEvent]:
        if _CUT.match(line):
            self.fail(line, kind=FailureKind.TOO_LARGE)
            yield Note(line)
        elif (match := _RETRY.match(line)) and "Max attempts reached" not in line:
            status = int(match[2]) if match[2] else None
            words = f"status {status}" if status else plain(match[3])
            yield self.retry(words, int(match[1]), status)

    def finish(self, exit_code: int, stderr_tail: str) -> Verdict:
        """Judge the process, whose exit code is the low byte of the HTTP status that ended it."""
        self.status = self.status or _STATUS_BY_EXIT.get(exit_code)
        return super().finish(exit_code, stderr_tail)


def _expands(command: str) -> bool:
    """Whether Gemini finds an expansion in the command. Of `sh -c '...'` it looks at the text in quotes (0.61.0)."""
    bare = command if _WRAPPER.match(command) else _NO_EXPANSION.sub(r"\1", command)
    return _EXPANSION.search(bare) is not None


def _is_refusal(kind: str, message: object) -> bool:
    return bool(_REFUSAL_TYPE.search(kind)) or (isinstance(message, str) and bool(_REFUSAL.match(message)))


def _usage(stats: object) -> Usage:
    """Read the usage of a turn. The output is the total beyond the input, as only `total_tokens` counts thinking."""
    known = stats if isinstance(stats, dict) else {}
    names = ("total_tokens", "input_tokens", "output_tokens", "cached")
    whole, given, output, cached = (count(known.get(name)) for name in names)
    if whole is not None and given is not None and output is not None:
        output = max(output, whole - given)
    counted = Usage(given, cached, output)
    return Usage() if counted.is_nothing else counted  # it reports zeros for a turn that failed
