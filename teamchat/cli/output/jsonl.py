"""`--json`: one object a line on stdout, `{"v":1,"type":...}`, the last one `result`; nothing else (docs/json.md)."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from teamchat.assemblers.parts import Trimmed
from teamchat.cli.output.listing import SessionState
from teamchat.core.engine.state import Route
from teamchat.core.engine.workflow import Part
from teamchat.core.messages import ConversationMessage
from teamchat.core.receipt import QUANTITIES, Child, Outcome
from teamchat.core.routing.todos import Change
from teamchat.core.store.lessons import Lesson
from teamchat.core.store.listing import Listed
from teamchat.core.store.sessions import Session
from teamchat.core.turn.run_events import (
    AgentSpoke,
    CheckFinished,
    CheckStarted,
    Conclusion,
    ConversationEvent,
    GroupCompared,
    LessonsFound,
    MessageStored,
    ProcessMoved,
    Replied,
    RouteDropped,
    RouteQueued,
    RouteRefused,
    SummaryStored,
    TaskChanged,
    TodoChanged,
    TurnFinished,
    TurnStarted,
    Warned,
)
from teamchat.runners.agent_events import (
    AgentEvent,
    Denied,
    Error,
    Note,
    Question,
    Retry,
    Text,
    TextDelta,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from teamchat.runners.untrusted.file_changes import NoCheckpoint

if TYPE_CHECKING:
    from teamchat.core.engine.workflow import Process
    from teamchat.core.store.turns import Turn

VERSION = 1
STREAMED = ("text_delta", "text", "thinking")  # types of lines that only `--stream` prints
_in_json = json.JSONEncoder(ensure_ascii=False).encode


class JsonOutput:
    """With `stream` it also prints text as it arrives."""

    def __init__(self, session: str, *, stream: bool = False) -> None:
        self.session, self.stream = session, stream
        self._parts: dict[int, dict[str, Any] | None] = {}  # of the turns that run

    def __call__(self, event: ConversationEvent) -> None:
        match event:
            case AgentSpoke():  # the most frequent one
                self._agent(event)
            case MessageStored(message=message):
                write_line("message", **message_fields(message))
            case TaskChanged(task=task):
                write_line("task", text=task)
            case RouteQueued(route=route) | RouteDropped(route=route):
                write_line("queued" if isinstance(event, RouteQueued) else "dropped", **route_fields(route))
            case TurnStarted() | SummaryStored() | LessonsFound() | TurnFinished():
                self._turn(event)
            case RouteRefused(route=route, limit=limit):
                write_line("refused", **route_fields(route), limit=limit)
            case Replied(turn=turn, message=message):
                write_line("message", **message_fields(message), turn=turn.number)
            case CheckStarted(check=check) | CheckFinished(check=check):
                from teamchat.cli.output.checks import check_fields  # only `run until` and `check` have any

                kind = "check_started" if isinstance(event, CheckStarted) else "check_finished"
                write_line(kind, **check_fields(check))
            case TodoChanged(change=change):
                write_line(f"todo_{change.what}", **todo_fields(change))
            case GroupCompared(differences=differences, conflicts=conflicts, judged=judged):
                write_line(
                    "group_compared",
                    members=[to_builtins(difference) for difference in differences],
                    conflicts=[to_builtins(conflict) for conflict in conflicts],
                    judged=judged,
                )
            case ProcessMoved(process=process):
                write_line("process", **process_fields(process))
            case Warned(text=text):
                write_line("warning", text=text)

    def _turn(self, event: TurnStarted | SummaryStored | LessonsFound | TurnFinished) -> None:
        turn = event.turn
        at = {"turn": turn.number, "member": turn.member}
        match event:
            case TurnStarted(route=route):
                part = self._parts[turn.number] = part_fields(route.part if route else None)
                begun = {"agent": turn.agent, "agent_type": turn.protocol, "route": route.number if route else None}
                write_line("turn_started", **at, **begun, part=part, attempt=turn.setup.attempt, **_where(turn))
            case SummaryStored(summary=summary):
                write_line("compacted", **at, through=summary.through, kept=summary.kept, text=summary.text)
            case LessonsFound(found=found, kept=kept):
                write_line("lessons", **at, found=found)
                for lesson in kept:
                    write_line("lesson", **lesson_fields(lesson))
            case TurnFinished(outcome=outcome, partial=partial):
                part = self._parts.pop(turn.number, None)
                given = {
                    **_where(turn),
                    "part": part,
                    "redacted": turn.setup.redacted,
                    "trimmed": trimmed_fields(turn.setup.trimmed),
                }
                write_line("turn_finished", **at, **given, **outcome_fields(turn, outcome), partial=partial)

    def _agent(self, spoke: AgentSpoke) -> None:
        """Print what an agent did. The last of the events that were read together flushes the output."""
        kind, fields = _told(spoke.event)
        if kind and (self.stream or kind not in STREAMED):
            _put_line(kind, {"turn": spoke.turn, "member": spoke.member, **fields})
        if not spoke.more:
            sys.stdout.flush()

    def finish(self, conclusion: Conclusion) -> None:
        write_line("result", **_result_fields(self.session, conclusion))

    def close(self) -> None: ...


def _where(turn: Turn) -> dict[str, str | None]:
    return {"host": turn.setup.host, "place": turn.setup.place}


def _told(event: AgentEvent) -> tuple[str, dict[str, Any]]:
    """The type of an event's line and its fields; the type is empty if there is no line."""
    line: tuple[str, dict[str, Any]] = "", {}
    match event:
        case TextDelta(text=text):
            line = "text_delta", {"text": text}
        case Text(text=text):
            line = "text", {"text": text}
        case Thinking(text=text):
            line = "thinking", {"text": text}
        case ToolCall(id=tool, name=name, summary=summary):
            line = "tool_call", {"id": tool, "name": name, "summary": summary}
        case ToolResult(id=tool, failed=failed, paths=paths):
            line = "tool_result", {"id": tool, "failed": failed, "paths": paths}
        case Denied(tool=tool, detail=detail):
            line = "denied", {"tool": tool, "detail": detail}
        case Question(text=text):
            line = "question", {"text": text}
        case Retry(reason=reason, kind=kind, attempt=attempt):
            line = "retry", {"reason": reason, "failure": kind, "attempt": attempt}
        case Note(text=text) | Error(text=text):
            line = "note", {"text": text}
    return line


def _result_fields(session: str, conclusion: Conclusion) -> dict[str, Any]:
    return {
        "session": session,
        "code": int(conclusion.code),
        "outcome": conclusion.code.name.lower(),
        "text": conclusion.text,
        "reason": conclusion.reason,
        "hint": conclusion.hint,
        "waiting": conclusion.waiting_for,
        "paused": conclusion.paused,
        "held": [route_fields(route) for route in conclusion.held],
        "turns": conclusion.turns,
        "denied": conclusion.denied,
        "usage": usage_fields(conclusion.usage),
        "process": conclusion.process and to_builtins(conclusion.process),
        **({"verdict": conclusion.verdict.word} if conclusion.verdict else {}),
    }


def result_line(session: str, conclusion: Conclusion) -> dict[str, Any]:
    """The last line of `--json`."""
    return {"v": VERSION, "type": "result", **_result_fields(session, conclusion)}


def write_line(kind: str, /, **fields: Any) -> None:
    """Print one line."""
    _put_line(kind, fields)
    sys.stdout.flush()


def _put_line(kind: str, fields: dict[str, Any]) -> None:
    """Write one line, maybe not yet to the descriptor."""
    sys.stdout.write(_in_json({"v": VERSION, "type": kind, **fields}) + "\n")


def message_fields(message: ConversationMessage) -> dict[str, Any]:
    speaker = message.speaker
    return {
        "id": message.id,
        "from": speaker.role_name,
        "kind": speaker.type,
        "stands_for": message.stands_for,
        "to": list(message.routing.resolved_addressees),
        "text": message.content,
        "time_ms": message.timestamp,
    }


def lesson_fields(lesson: Lesson) -> dict[str, Any]:
    return {"number": lesson.number, "text": lesson.text, "session": lesson.session, "learned_at": lesson.learned_at}


def route_fields(route: Route) -> dict[str, Any]:
    fields = ("number", "target", "priority", "group", "parent", "by", "status", "attempt")
    return {**{name: getattr(route, name) for name in fields}, "part": part_fields(route.part)}


def part_fields(part: Part | None) -> dict[str, Any] | None:
    """What a turn does in a process. A role that is not counted has neither number nor total."""
    return None if part is None else {"role": part.role, "number": part.number or None, "of": part.total or None}


def process_fields(process: Process) -> dict[str, Any]:
    """How far a process is."""
    from teamchat.core.engine.processes.table import STRATEGIES  # only `teamchat run` needs the processes

    return {
        "name": process.name or None,
        "request": process.request,
        "over": process.over,
        "process": to_builtins(STRATEGIES[process.kind].report(process)),
    }


def session_fields(session: Session, title: str) -> dict[str, Any]:
    return {
        **{name: getattr(session, name) for name in ("id", "name", "team", "task", "created_at", "used_at")},
        "title": title,
        "messages": session.messages,
        "turns": session.turns,
        "cost_usd": session.cost_usd,
        "turns_with_cost": session.turns_with_cost,
    }


def listed_fields(listed: Listed, state: SessionState, *, current: bool) -> dict[str, Any]:
    of = listed.branch_of
    return {
        **session_fields(listed.session, listed.title),
        "current": current,
        "state": state.name,
        "running": [to_builtins(turn) for turn in listed.running],
        "queue": [route_fields(route) for route in listed.queue],
        "last": listed.last and {"message": listed.last.id, "from": listed.last.speaker, "at": listed.last.at},
        "branch_of": of and {"session": of[0], "at": of[1]},
        "caller": listed.session.caller and to_builtins(listed.session.caller),
    }


def todo_fields(change: Change) -> dict[str, Any]:
    return {name: getattr(change, name) for name in ("number", "text", "by", "message")}


def outcome_fields(turn: Turn, outcome: Outcome) -> dict[str, Any]:
    failure, tools_are_known = outcome.failure, turn.type.reports_tools
    return {
        "ok": failure is None,
        "code": int(outcome.code),
        "failure": failure and {"kind": failure.kind, "reason": failure.reason, "hint": failure.hint},
        "reply": outcome.reply,
        "exit_code": outcome.exit_code,
        "seconds": outcome.seconds and round(outcome.seconds, 3),
        "first_byte_s": outcome.first_byte_s and round(outcome.first_byte_s, 3),
        "model": outcome.model,
        "version": outcome.version,
        "usage": outcome.usage and usage_fields(outcome.usage),
        "denied": None if outcome.denied is None else [to_builtins(denied) for denied in outcome.denied],
        "files": list(outcome.files),
        "changes": _changes(outcome),
        "reported": list(outcome.reported),
        "files_that_run": list(outcome.files_that_run),
        "not_all_looked_at": outcome.not_all_looked_at,
        "tools": outcome.tools if tools_are_known else None,
        "failed_tools": outcome.failed_tools,
        "left": list(outcome.left),
        "children": [child_fields(child) for child in outcome.children],
    }


def child_fields(child: Child) -> dict[str, Any]:
    """What a session has used that an agent ran in its turn, with null for a sum that is not whole."""
    sums = {name: getattr(child, name) for name in QUANTITIES}
    unknown = {name: getattr(child, f"no_{name}") for name in QUANTITIES}
    return {
        "session": child.session,
        "store": child.store,
        "turns": child.turns,
        **{name: None if unknown[name] else known for name, known in sums.items()},
        "at_least": {name: known if unknown[name] < child.turns else None for name, known in sums.items()},
    }


def _changes(outcome: Outcome) -> dict[str, Any] | None:
    """How the files changed, or why that is unknown; None for a turn that never started."""
    changes = outcome.changes
    if changes is None:
        return None
    if isinstance(changes, NoCheckpoint):
        return {"unknown": changes.reason}
    return {
        "files": [{**to_builtins(change), "reported": change.path in outcome.reported} for change in changes.files],
        "more": changes.more,
        "left_out": list(changes.left_out),
        "shared_with": list(changes.shared_with),
        "before": changes.before,
        "after": changes.after,
    }


def trimmed_fields(trimmed: Trimmed) -> dict[str, Any] | None:
    return to_builtins(trimmed) if trimmed else None


def usage_fields(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
    }
