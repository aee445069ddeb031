"""What members did in the turns of their messages, for the one who summarises: a reply alone often does not say it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from teamchat.assemblers.truncation import byte_length, truncate_end
from teamchat.core.messages import Said
from teamchat.core.store.database import Database
from teamchat.core.store.pairing import ABORTED, StoredEvent, tool_calls
from teamchat.core.store.turns import events_of, get_turn
from teamchat.core.text.clean import told

MAX_BYTES = 2000  # of one message's tool calls
MAX_LINE = 200  # bytes of one call


def with_tool_calls(db: Database, said: Sequence[Said]) -> list[Said]:
    """The messages, each followed by the tool calls of its turn. Outputs are left out: they are long."""
    return [replace(one, text=one.text + _told(db, one.message.turn_id)) for one in said]


def _told(db: Database, turn: int | None) -> str:
    lines = list(map(_line, tool_calls(events_of(db, get_turn(db, turn))))) if turn is not None else []
    newest = list(_newest(lines))[::-1]
    gone = len(lines) - len(newest)
    more = [f"- {gone} earlier calls are left out"] if gone else []
    return "\n".join(["\n\nTool calls of this turn:", *more, *newest]) if newest else ""


def _newest(lines: Sequence[str]) -> Iterator[str]:
    """The newest lines that `MAX_BYTES` hold, newest first."""
    room = MAX_BYTES
    for line in reversed(lines):
        room -= byte_length(line) + len("\n")
        if room < 0:
            return
        yield line


def _line(pair: tuple[StoredEvent, StoredEvent]) -> str:
    call, result = (event.data for event in pair)
    ended = "done" if not result["failed"] else ABORTED if result["output"] == ABORTED else "failed"
    what = " ".join(told(f"{call['name']}: {call['summary']}").split())
    return f"- {truncate_end(what, MAX_LINE)} ({ended})"
