"""`--json`: one object a line on stdout, `{"type":...,"v":1}`, the last one `result`; nothing else (docs/json.md)."""

from __future__ import annotations

import sys
from typing import Any

from msgspec import DecodeError, to_builtins
from msgspec.json import format as with_spaces

from teamchat.cli.output.listing import SessionState
from teamchat.core.routing.todos import Change
from teamchat.core.store.listing import Listed
from teamchat.core.store.rows import encoded
from teamchat.core.store.sessions import Session
from teamchat.core.turn.lines import LineMaker, printed, result_line, route_fields
from teamchat.core.turn.run_events import VERSION, AgentSpoke, Conclusion, ConversationEvent, JsonLine


class JsonOutput:
    """With `stream` it also prints text as it arrives. The file of the run may share `lines`, which makes them."""

    def __init__(self, session: str, lines: LineMaker | None = None, *, stream: bool = False) -> None:
        self.session, self.stream = session, stream
        self._lines = lines or LineMaker()

    def __call__(self, event: ConversationEvent) -> None:
        """Print the lines of an event. The last of several events read together flushes the output."""
        for line in self._lines.of(event):
            self.show(line)
        if not (isinstance(event, AgentSpoke) and event.more):
            sys.stdout.flush()

    def show(self, line: JsonLine) -> None:
        """Write one line, if `--json` has it, and maybe not yet to the descriptor."""
        if not line.of_file and (self.stream or not line.streamed):
            _put(printed(line) if line.live else line)

    def finish(self, conclusion: Conclusion) -> None:
        _put(result_line(self.session, conclusion))
        sys.stdout.flush()

    def close(self) -> None: ...


def write_line(kind: str, /, **fields: Any) -> None:
    """Print one line."""
    _put({"type": kind, "v": VERSION, **fields})
    sys.stdout.flush()


def print_line(line: JsonLine) -> None:
    """Print a line of a run."""
    _put(line)
    sys.stdout.flush()


def _put(line: object) -> None:
    """Write the object with a space behind each colon and comma: scripts look for `"code": 0`."""
    sys.stdout.write(_spaced(encoded(line)).decode() + "\n")


def _spaced(raw: bytes) -> bytes:
    try:
        return with_spaces(raw, indent=0)
    except DecodeError:  # half of a surrogate pair, of a name that is no text: that line has them
        return raw


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
