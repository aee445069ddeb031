"""Whether a turn continues the vendor session of the member's last turn, or why it begins a fresh one.

A vendor session is the memory of a member's own CLI. It has been shown every message from `shown_from` to
`shown_through` exactly once, and it holds the member's own replies as its own words. A turn that finds this untrue
begins a fresh session with the full context, and its receipt says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from hashlib import sha256

from msgspec import Struct

from teamchat.core.context.conversation_view import ContextManager
from teamchat.core.context.history import Since
from teamchat.core.engine.state import Route
from teamchat.core.messages import ConversationMessage
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import edits_of
from teamchat.core.store.summaries import cleared_since
from teamchat.core.store.turns import Turn, has_turn, last_turn_of
from teamchat.core.store.vendor_sessions import VendorTurns, adoption_of
from teamchat.core.team.team import AgentSpec, Member
from teamchat.runners.agent_events import FailureKind, Usage


class ContinuedSession(Struct, frozen=True):
    """A vendor session that a turn continues.

    It has been shown every message from `shown_from` on that `since` leaves out, and what its `turns` had beside: older
    requests, and what a summary keeps. `opened` means that a person continued it by hand after its last turn.
    It has `lost` the turns of these numbers, because somebody continued it beside them.
    """

    session: str
    shown_from: str
    since: Since
    turns: VendorTurns
    opened: bool = False
    lost: tuple[int, ...] = ()


class AdoptedSession(Struct, frozen=True):
    """A vendor session that a person began; the turn continues a copy of it. It has been shown no message."""

    session: str


class Past(Struct, frozen=True):
    """A member's past in a session: its last turn in the store, and everything done since."""

    turn: Turn | None = None
    """None before the first turn, and for a member without memory, which continues none."""
    turns: VendorTurns | None = None
    """The turns of its vendor session, if it left one."""
    edits: int = 0
    """The number of the session's hidden messages, without messages that a redo brought back."""
    adopted: AdoptedSession | None = None
    """The session that the next turn adopts."""
    first: bool = True
    """Whether there is no turn yet."""
    cleared: bool = False
    """Whether the conversation was cleared since the turn."""
    held: Turn | None = None
    """The newest turn that the vendor session still has."""


NOTHING_BEFORE = Past()
LOST = "its session has lost its turn"
"""How the reason for a fresh session begins where no turn of the last one is left."""


RowsOf = Callable[[str], Collection[str] | None]
"""Gives the rows of a vendor session's record that its next turn continues; None where they are not known."""


def past_of(
    db: Database, session: int, member: Member, agent: AgentSpec, rows_of: RowsOf = lambda _session: None
) -> Past:
    """Read the last turn of `member` in this session, and the session that a person had it adopt since."""
    if member.memory == "fresh":  # to read a turn whole takes a millisecond
        return Past(edits=edits_of(db, session), first=not has_turn(db, session, member.name))
    turn = last_turn_of(db, session, member.name)
    turns = VendorTurns(db, session, member.name, turn.vendor_session) if turn and turn.vendor_session else None
    held = turn
    if turns and turn and turn.vendor_session and turn.outcome and turn.outcome.last_row:
        rows = rows_of(turn.vendor_session)
        held = turn if rows is None else turns.held(rows)
    adopted = adoption_of(db, session, member.name)
    waits = adopted is not None and adopted.agent == agent.name and not _gone(turn, adopted.vendor_session)
    return Past(
        turn,
        turns,
        edits_of(db, session),
        AdoptedSession(adopted.vendor_session) if adopted and waits else None,
        first=turn is None,
        cleared=turn is not None and cleared_since(db, session, turn.number),
        held=held,
    )


def _gone(turn: Turn | None, session: str) -> bool:
    """Whether the turn failed to find the session that it was to adopt."""
    failure = turn.outcome.failure if turn and turn.setup.adopted == session and turn.outcome else None
    return failure is not None and failure.kind is FailureKind.GONE


def session_key(member: Member, agent: AgentSpec, system_text: str) -> str:
    """Compute the key of a vendor session.

    A changed program, model, access or system text changes it, and so begins a fresh session. So does another folder,
    unless the CLI continues its sessions in any.
    """
    sessions = agent.type.runner.sessions
    folder = "" if sessions and sessions.any_folder else str(member.cwd)
    bound = [
        agent.name, agent.command, member.model, member.access, member.allow, folder, member.args,
        member.project_settings, member.web, member.mcp, member.git, system_text,
    ]  # fmt: skip
    if member.host:
        bound.append(member.host)
    return sha256(json.dumps(bound, default=list).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def session_for(
    member: Member, route: Route, past: Past, key: str, manager: ContextManager, answers: ConversationMessage
) -> ContinuedSession | AdoptedSession | str:
    """Choose the vendor session that the turn of `route` continues or adopts, or say why it begins a fresh one."""
    if member.memory == "fresh":
        return "its memory is fresh"
    if member.name != route.target:
        return f"it answers in place of {route.target}"
    if past.adopted:
        return past.adopted
    if past.turn is None:
        return "its first turn"
    broken = "the conversation was cleared" if past.cleared else _broken(past.turn, past.edits, key)
    if (there := past.turn.setup.host) != next(iter(member.host), None):
        broken = f"its session is {f'on {there}' if there else 'on this machine'}"
    if broken or past.turns is None:
        return broken or "its last turn left no session"
    if past.held is None:
        return f"{LOST} {past.turn.number}: somebody continued it beside that"
    return _continued(past.held, past.turns, manager, answers) or "its session has had the message that it answers"


def _broken(turn: Turn, edits: int, key: str) -> str | None:
    if turn.undone is not None:
        return f"its turn {turn.number} was undone"
    if turn.status not in ("done", "answered"):
        return f"its turn {turn.number} {'was cut short' if turn.status == 'interrupted' else 'failed'}"
    if turn.vendor_session is None or turn.setup.memory == "fresh":
        return "its last turn left no session"
    if turn.setup.thread_key != key:
        return "its instructions, model, access or folder have changed"
    if turn.setup.edits != edits:
        return "messages were undone"
    return None


def _continued(
    turn: Turn, turns: VendorTurns, manager: ContextManager, answers: ConversationMessage
) -> ContinuedSession | None:
    """Continue the turn's session; None if it has already had the message to answer."""
    own = turns.replies_after(turn.shown_through)
    if answers.id in own or not manager.is_after(answers.id, turn.shown_through):
        return None
    assert turn.vendor_session is not None, turn
    return ContinuedSession(
        session=turn.vendor_session,
        shown_from=turn.setup.shown_from or turn.shown_through,
        since=Since(turn.shown_through, own),
        turns=turns,
        opened=turn.opened,
        lost=tuple(lost.number for lost in reversed(turns.lost)),
    )


def own_share(usage: Usage | None, before: Usage) -> Usage | None:
    """Return one turn's part of figures that add up over a session (Codex, observed at 0.169.0)."""
    if usage is None or not usage.cumulative:
        return usage
    return Usage(
        _less(usage.input_tokens, before.input_tokens),
        _less(usage.cached_tokens, before.cached_tokens),
        _less(usage.output_tokens, before.output_tokens),
        usage.cost_usd,
    )


def _less(value: int | None, before: int | None) -> int | None:
    return None if value is None else max(value - (before or 0), 0)
