"""What a member's own CLI still remembers: which vendor session a turn goes on with, or why it begins a fresh one.

A thread is one vendor session of one member. It has been shown every message from `shown_from` to `shown_through`
exactly once, and holds the member's own replies as its own words. Whatever makes that untrue breaks it: then the next
turn is a fresh one with the full context, and its receipt says why.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from teamchat.core.context.context_manager import ContextManager
from teamchat.core.context.history import Since
from teamchat.core.engine.state import Route
from teamchat.core.messages import ConversationMessage
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import edits_of
from teamchat.core.store.turns import Turn, last_turn_of, turns_in
from teamchat.core.team.team import AgentSpec, Member
from teamchat.runners.events import Usage


@dataclass(frozen=True, slots=True)
class Thread:
    """A vendor session that a turn goes on with.

    It has had every message from `shown_from` on that `since` leaves out, and those `beside`, which may be older:
    requests, and what a summary keeps. `usage` is what its turns have used so far; `opened`: a person went on with it
    by hand since the last one, `by_hand`: since any of them.
    """

    session: str
    shown_from: str
    since: Since
    beside: frozenset[str]
    usage: Usage
    opened: bool = False
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class Past:
    """What the store knows of a member's last turn: `turn`, and all `turns` of its vendor session, it included.

    There is no turn before the first one. `edits` is how often messages of the session have been hidden or shown again.
    """

    turn: Turn | None = None
    turns: tuple[Turn, ...] = ()
    edits: int = 0


NOTHING_BEFORE = Past()


def past_of(db: Database, session: int, member: Member) -> Past:
    """What the store knows of `member` in this session."""
    turn = last_turn_of(db, session, member.name)
    turns = turns_in(db, session, member.name, turn.vendor_session) if turn and turn.vendor_session else ()
    return Past(turn, tuple(turns), edits_of(db, session))


def thread_key(member: Member, agent: AgentSpec, system_text: str) -> str:
    """What a vendor session is bound to: another program, model, access, folder or system text begins a fresh one."""
    bound = [
        agent.name, agent.command, member.model, member.access, member.allow, str(member.cwd), member.args,
        member.project_settings, member.web, member.mcp, member.git, system_text,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(bound, default=list).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def thread_for(
    member: Member, route: Route, past: Past, key: str, manager: ContextManager, answers: ConversationMessage
) -> Thread | str:
    """The thread that the turn of `route` goes on with, or why there is none."""
    if member.memory == "fresh":
        return "its memory is fresh"
    if member.name != route.target:
        return f"it answers in place of {route.target}"
    if past.turn is None:
        return "its first turn"
    broken = _broken(past.turn, past.edits, key)
    return broken or _thread(past.turn, past.turns, manager, answers) or "nothing was said since its last turn"


def _broken(turn: Turn, edits: int, key: str) -> str | None:
    if turn.status not in ("done", "answered"):
        return f"its turn {turn.number} {'was cut short' if turn.status == 'interrupted' else 'failed'}"
    if turn.vendor_session is None or turn.setup.memory == "fresh":
        return "its last turn left no session"
    if turn.setup.thread_key != key:
        return "its instructions, model, access or folder have changed"
    if turn.setup.edits != edits:
        return "messages were taken back"
    return None


def _thread(
    turn: Turn, turns: tuple[Turn, ...], manager: ContextManager, answers: ConversationMessage
) -> Thread | None:
    """None where the message to answer is one that the thread has had already."""
    own = frozenset(done.outcome.reply for done in turns if done.outcome and done.outcome.reply)
    if answers.id in own or not manager.is_after(answers.id, turn.shown_through):
        return None
    assert turn.vendor_session is not None, turn
    return Thread(
        session=turn.vendor_session,
        shown_from=turn.setup.shown_from or turn.shown_through,
        since=Since(turn.shown_through, own),
        beside=frozenset(had for done in turns for had in (done.setup.request, *done.setup.beside)),
        usage=total(done.outcome.usage for done in turns if done.outcome),
        opened=turn.opened,
        by_hand=any(done.opened for done in turns),
    )


def total(usages: Iterable[Usage | None]) -> Usage:
    """The sum of what turns have used; what one of them did not tell counts as nothing."""
    return reduce(_plus, usages, Usage(0, 0, 0, 0.0))


def _plus(one: Usage, other: Usage | None) -> Usage:
    if other is None:
        return one
    return Usage(
        (one.input_tokens or 0) + (other.input_tokens or 0),
        (one.cached_tokens or 0) + (other.cached_tokens or 0),
        (one.output_tokens or 0) + (other.output_tokens or 0),
        (one.cost_usd or 0.0) + (other.cost_usd or 0.0),
    )


def own_share(usage: Usage | None, before: Usage) -> Usage | None:
    """One turn's part of figures that add up over a session (Codex, observed at 0.169.0)."""
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
