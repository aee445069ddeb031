"""The events of `opencode run --format json` (1.18.33).

A turn is a row of steps, one for each answer of the model, and the reason of the last one says how the turn ended.
Text comes in whole blocks, and a tool is told of once, when it has ended. Retries and the cause of an unexpected error
stand in the log on stderr alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from teamchat.patterns import regex
from teamchat.runners.agent_events import (
    AgentEvent,
    Denied,
    Done,
    Error,
    FailureKind,
    Started,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UsedSoFar,
    VendorSession,
)
from teamchat.runners.base import Verdict
from teamchat.runners.failures import FailureWords
from teamchat.runners.json_events import JsonEvents
from teamchat.runners.untrusted.file_changes import lines_of
from teamchat.runners.untrusted.json import amount, count, one_line, summary, total

VOICE = FailureWords(login="opencode auth login", noise=regex(r"^timestamp=|permission requested: "))
KINDS = {
    "ContextOverflowError": FailureKind.TOO_LARGE,
    "ProviderAuthError": FailureKind.LOGIN,
    "MessageAbortedError": FailureKind.INTERRUPTED,
}
_EDITORS = frozenset({"write", "edit", "apply_patch"})
_REFUSED = regex(
    r"The user (?:has specified a rule which prevents|rejected permission)|Model tried to call unavailable tool"
)
_LOG = regex(
    r'^timestamp=\S+ level=ERROR [^"]*\bmessage=(?P<what>"stream error"|failed) .*?'
    r'\berror(?:\.error)?(?:\.message)?=(?P<told>"(?:[^"\\]|\\.)*+"|\S++)'
)
_CLASS = regex(r"^\w+: ")
_TRIED_AGAIN = frozenset({FailureKind.RATE_LIMIT, FailureKind.OVERLOADED})
_NO_MODEL = "Model not found"
_UNTOLD = "UnknownError"


class OpencodeEvents(JsonEvents):
    def __init__(self) -> None:
        super().__init__(VOICE)
        self._session: str | None = None
        self._texts: dict[str, list[str]] = {}  # by the model's message: text may come after the end of its step
        self._answer = ""
        self._broke_off: str | None = None
        self._used = Usage()
        self._cause: str | None = None
        self._unknown = False

    def read(self, event: dict[str, object]) -> Iterator[AgentEvent]:
        session = event.get("sessionID")
        if isinstance(session, str) and session != self._session:
            self._session = session
            yield Started()
            yield VendorSession(session)
        match event:
            case {"type": "step_start"}:
                self.done, self._broke_off = False, None
            case {"type": "text", "part": {"text": str(text), "messageID": str(message)}}:
                self._texts.setdefault(message, []).append(text)
                yield from self.say(text)
            case {"type": "reasoning", "part": {"text": str(text)}} if text.strip():
                yield Thinking(text)
            case {"type": "tool_use", "part": {"tool": str(name), "callID": str(call), "state": dict(state)}}:
                yield from _tool(name, call, state)
            case {"type": "step_finish", "part": dict(step)}:
                yield from self._finished(step)
            case {"type": "error", "error": dict(error)}:
                yield from self._failed(error)

    def _finished(self, part: Mapping[str, object]) -> Iterator[AgentEvent]:
        self._used = _sum(self._used, _usage(part))
        used = self.used()
        if used and part.get("reason") != "stop":
            yield UsedSoFar(used)
        match part.get("reason"):
            case "tool-calls":
                return
            case "stop":
                self._answer, self.done = str(part.get("messageID")), True
            case reason:  # after some of these it asks its model again
                self._broke_off = one_line(str(reason))
                return
        if used:
            yield used
        yield Done(self.error is None)

    def _failed(self, error: dict[str, object]) -> Iterator[AgentEvent]:
        name, data = str(error.get("name")), error.get("data")
        details = data if isinstance(data, dict) else {}
        message = details.get("message")
        message = message if isinstance(message, str) and message.strip() else name
        self._unknown = name == _UNTOLD
        self.fail(message, status=count(details.get("statusCode")), kind=KINDS.get(name))
        yield Error(message)

    def read_stderr(self, line: str) -> Iterator[AgentEvent]:
        if line.endswith("Session not found"):
            self.fail("Session not found", kind=FailureKind.GONE)
        elif match := _LOG.search(line):
            reason = _CLASS.sub("", _unquoted(match["told"]))
            if match["what"] == "failed":
                self._cause = reason
            elif (retry := self.retry(reason)).kind in _TRIED_AGAIN:  # the log reports every error in the same words
                yield retry

    def used(self) -> Usage | None:
        return None if self._used.is_nothing else self._used

    def finish(self, exit_code: int, stderr_tail: str) -> Verdict:
        self.reply = "\n\n".join(self._texts.get(self._answer, ()))
        if self._unknown and self._cause:
            hint = "; a provider that is not connected has none" if self._cause.startswith(_NO_MODEL) else ""
            self.fail(self._cause + hint)
        elif self._broke_off and self.error is None:
            self.fail(f"its answer broke off: {self._broke_off}")
        return super().finish(exit_code, stderr_tail)


def _tool(name: str, call: str, state: dict[str, object]) -> Iterator[AgentEvent]:
    given, failed = state.get("input"), state.get("status") != "completed"
    action = _action(given)
    output = state.get("error" if failed else "output")
    text = output if isinstance(output, str) else ""
    yield ToolCall(call, name, action, lines_of(given))
    paths = () if failed or name not in _EDITORS else tuple(_paths(given))
    yield ToolResult(call, text, failed, paths)
    if failed and _REFUSED.match(text):
        yield Denied(name, action)


def _action(given: object) -> str:
    match given:
        case {"filePath": str(path)} if path.strip():
            return one_line(path)
    return summary(given)


def _paths(given: object) -> Iterator[str]:
    match given:
        case {"filePath": str(path)}:
            yield path
        case {"patchText": str(patch)}:
            yield from re.findall(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", patch, re.MULTILINE)


def _usage(part: Mapping[str, object]) -> Usage:
    """Read the usage of one step. opencode's `input` excludes cached tokens, and its `output` excludes reasoning."""
    match part.get("tokens"):
        case {"cache": dict(cache), **tokens}:
            read, written = count(cache.get("read")), count(cache.get("write"))
            given = total(count(tokens.get("input")), read, written)
            output = total(count(tokens.get("output")), count(tokens.get("reasoning")))
            return Usage(given, read, output, amount(part.get("cost")) or None)  # 0 without a known price
    return Usage()


def _sum(one: Usage, other: Usage) -> Usage:
    costs = [cost for cost in (one.cost_usd, other.cost_usd) if cost is not None]
    return Usage(
        total(one.input_tokens, other.input_tokens),
        total(one.cached_tokens, other.cached_tokens),
        total(one.output_tokens, other.output_tokens),
        sum(costs) if costs else None,
    )


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return text
