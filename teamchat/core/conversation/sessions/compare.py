"""The answers of two sessions to the same message, and the differences of the files afterwards.

Both share the message; if they share none, it is one with the same text.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from teamchat.core.conversation.differences import TreeDifference, differences, why_unknown
from teamchat.core.conversation.sessions.branch import turns_after
from teamchat.core.errors import CheckpointFailed, UsageError
from teamchat.core.messages import ConversationMessage
from teamchat.core.store.database import Database
from teamchat.core.store.lineage import last_shared, place_of
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import Session
from teamchat.core.store.turns import Turn
from teamchat.core.text.commands import saying


class SessionAnswer(Struct, frozen=True):
    """The answer to the message `to` in a session: the `replies` up to the next message of a person.

    `asked` is what people said before the replies. `turns` gave the replies, failed attempts among them.
    """

    session: Session
    to: ConversationMessage
    asked: tuple[ConversationMessage, ...]
    replies: tuple[ConversationMessage, ...]
    turns: tuple[Turn, ...]


def compare_answers(
    db: Database, one: Session, other: Session, message: str | None = None
) -> tuple[SessionAnswer, SessionAnswer]:
    """Compare what came in both sessions after their last shared message, or after `message` of the first session.

    Raises `NoMessage`, and `UsageError` for sessions without a common message and where there is no reply yet.
    """
    if one.id == other.id:
        raise UsageError("these are one session; compare it with another one", "teamchat sessions")
    ids = _shared(db, one, other, message) or _alike(db, one, other, message)
    return _answer(db, one, ids[0]), _answer(db, other, ids[1])


def _shared(db: Database, one: Session, other: Session, message: str | None) -> tuple[str, str] | None:
    """Return the ids of a message that is in both sessions; None if they share none, or not the named one."""
    if message is None:
        shared = last_shared(db, one.id, other.id)
        return (shared, shared) if shared else None
    place = SqliteLog(db, one.id).place(message)
    there = place_of(db, other.id, message) == place and not SqliteLog(db, other.id).is_hidden(message)
    return (message, message) if there else None


def _alike(db: Database, one: Session, other: Session, message: str | None) -> tuple[str, str]:
    """Return the ids of the last messages of people with equal texts that were answered in both sessions."""
    answered: dict[str, str] = {}
    for said in _answered(SqliteLog(db, other.id).all()):
        answered.setdefault(said.content.strip(), said.id)
    for said in _answered(SqliteLog(db, one.id).all()):
        if message in (None, said.id) and said.content.strip() in answered:
            return said.id, answered[said.content.strip()]
    if message is None:
        raise UsageError(
            f"sessions {one.name} and {other.name} share no message, and no text was answered in both",
            "teamchat sessions",
        )
    raise UsageError(
        f"{message} of session {one.name} was not answered in session {other.name}, nor was a message of that text",
        "teamchat sessions",
    )


def _exchange(
    later: Iterable[ConversationMessage],
) -> tuple[tuple[ConversationMessage, ...], tuple[ConversationMessage, ...]]:
    """Return what people said first in these messages, and the replies to it. Nothing after them is read."""
    asked: list[ConversationMessage] = []
    replies: list[ConversationMessage] = []
    for message in later:
        if message.speaker.type != "human":
            replies.append(message)
        elif replies:
            break
        else:
            asked.append(message)
    return tuple(asked), tuple(replies)


def _answered(messages: Sequence[ConversationMessage]) -> Iterator[ConversationMessage]:
    """Find the messages of people that have a reply after them, the newest first."""
    replied = False
    for said in reversed(messages):
        if said.speaker.type != "human":
            replied = True
        elif replied:
            yield said


def _answer(db: Database, session: Session, to: str) -> SessionAnswer:
    log = SqliteLog(db, session.id)
    asked, replies = _exchange(log.later(to))
    if not replies:
        raise UsageError(f"session {session.name} has no reply after {to} yet", saying("--session", session.name))
    ids = {reply.turn_id for reply in replies}
    later = [entry.turn for entry in turns_after(db, session, to) if entry.turn.route is not None]
    last = max((place for place, turn in enumerate(later) if turn.id in ids), default=-1)
    return SessionAnswer(session, log.get(to), asked, replies, tuple(later[: last + 1]))


class Trees(Struct, frozen=True):
    """How the files after one answer differ from those after another. `unknown` says why some cannot be compared."""

    differences: tuple[TreeDifference, ...]
    unknown: tuple[str, ...]


def compare_trees(state_folder: Path, one: SessionAnswer, other: SessionAnswer) -> Trees:
    """Compare the checkpoints after the last turns of both answers, in each work tree with checkpoints of both."""
    unknown: list[str] = []
    first, second = _ends(state_folder, one, unknown), _ends(state_folder, other, unknown)
    differing = (
        TreeDifference(end.repository, end.new, second[top].new, end.last, second[top].last)
        for top, end in first.items()
        if top in second
    )
    if first and second:
        unknown += _alone(one, first, second)
        unknown += _alone(other, second, first)
    return Trees(tuple(differing), tuple(unknown))


def _alone(answer: SessionAnswer, here: Iterable[str], there: Container[str]) -> list[str]:
    return [f"only session {answer.session.name} worked in {top}" for top in here if top not in there]


def _ends(state_folder: Path, answer: SessionAnswer, unknown: list[str]) -> dict[str, TreeDifference]:
    """Find the difference that an answer made in each work tree, by its path."""
    name = answer.session.name
    try:
        by_top = {str(difference.repository.top): difference for difference in differences(state_folder, answer.turns)}
    except CheckpointFailed as failed:
        unknown.append(f"session {name}: {failed}")
        return {}
    if not by_top:
        whys = filter(None, map(why_unknown, answer.turns))
        unknown += [f"session {name}: {why}" for why in whys] or [f"session {name}: no turn gave its replies"]
    return by_top
