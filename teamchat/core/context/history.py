"""A conversation as prompts quote it: messages that have text, their markers removed, with a fence around them.

It is read backwards from the current message, a window at a time, so the cost does not grow with the conversation.
"""

from __future__ import annotations

import logging
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, islice, takewhile

from msgspec import Struct
from msgspec.structs import replace

from teamchat.assemblers.parts import AssemblerInput, PromptContextMessage
from teamchat.core.messages import ConversationMessage, Said, name_of
from teamchat.core.routing.markers import quoted_text
from teamchat.core.store.message_log import MessageLog
from teamchat.core.team import wording
from teamchat.core.team.team import Member, Team
from teamchat.core.text.redact import redact_shapes

PAGE = 50  # Messages read at once if no window says how many.
LARGEST_PAGE = 1000

_log = logging.getLogger(__name__)
Quote = Callable[[ConversationMessage, str], str]
"""The text that a prompt shows for a message; it gets the message and its text without markers, the newest first."""


class Context(Struct, frozen=True):
    """The text of the current message, and the history before it, oldest first.

    `answers` is the current message itself, and `shown` has the ids of all messages in here, its own last. From index
    `unbroken` on, only messages that a summary replaces are left out. The last `later` messages of the history were
    said after the current one.
    """

    current: str
    history: tuple[PromptContextMessage, ...]
    answers: ConversationMessage | None = None
    shown: tuple[str, ...] = ()
    unbroken: int = 0
    later: int = 0

    @property
    def newest(self) -> str | None:
        """The id of the newest message in here."""
        return (self.shown[-2] if self.later else self.shown[-1]) if self.shown else None


def verbatim(message: ConversationMessage, text: str) -> str:
    """Quote a text unchanged."""
    del message
    return text


class Since(Struct, frozen=True):
    """The messages that a reader already has: all up to the one with the id `after`, and its `own`."""

    after: str
    own: frozenset[str] = frozenset()


class Summarised(Struct, frozen=True):
    """The messages that a summary replaces: all up to the one with the id `through`, except those `kept`.

    `kept` are ids, oldest first.
    """

    through: str
    kept: tuple[str, ...] = ()


Summaries = Callable[[str], Summarised | None]
"""The summary that replaces messages before the one of an id, or None."""


def no_summaries(before: str) -> None:
    """Return no summary, for a conversation without any."""
    del before


def read_context(
    log: MessageLog,
    window: int,
    up_to: str | None,
    since: Since | None = None,
    quote: Quote = verbatim,
    summaries: Summaries = no_summaries,
    answers: str | None = None,
) -> Context:
    """Read the message to answer, and up to `window` messages with text beside it, the newest at or before `up_to`.

    The message to answer has the id `answers`; by default it is the newest of all. Messages that a summary replaces are
    left out; messages that it keeps are added to the window (a window of 0 has no history). With `since` the history is
    every message after it, whatever the window and the summary.
    """
    window = max(window, 0)
    said = _said(log, up_to, page_size=min(max(window, 1), LARGEST_PAGE))
    newest = next(said, None)
    if newest is None:
        return Context("", ())
    current = newest if answers in (None, newest.message.id) else _quoted(log.get(answers or ""))

    def others(messages: Iterable[Said]) -> Iterator[Said]:
        return (other for other in messages if other.message.id != current.message.id)

    unbroken, newest_first = 0, chain((newest,), said)
    if since is None:
        summary = summaries(newest.message.id) if window else None
        newer = others(_newer(newest_first, summary))
        before = list(islice(newer, window))
        if summary:
            kept_messages = list(others(map(_quoted, map(log.get, reversed(summary.kept)))))
            unbroken = len(kept_messages) if next(newer, None) else 0
            before += kept_messages
    else:
        before = list(others(_unseen(newest_first, since)))
    history = deduplicate(before[::-1], current) if current is newest else before[::-1]
    current_text = quote(current.message, current.text)
    quoted = [in_prompt(past.message, quote(past.message, past.text)) for past in reversed(history)]
    return Context(
        current=current_text,
        history=tuple(reversed(quoted)),
        answers=current.message,
        shown=tuple(past.message.id for past in (*history, current)),
        unbroken=unbroken,
        later=0 if current is newest else _later(log, history, current),
    )


def _quoted(message: ConversationMessage) -> Said:
    return Said(message, quoted_text(message))


def _later(log: MessageLog, history: Sequence[Said], current: Said) -> int:
    """Count the messages of the history that were said after the current one."""
    place = log.place(current.message.id)
    return len(history) - bisect(history, place, key=lambda one: log.place(one.message.id))


def read_unsummarised(log: MessageLog, up_to: str | None, summaries: Summaries = no_summaries) -> Iterator[Said]:
    """Read the messages before the current one that no summary replaces, one by one, newest first.

    The current one is the newest message with text at or before `up_to`.
    """
    said = _said(log, up_to, page_size=PAGE)
    current = next(said, None)
    if current:
        yield from _newer(said, summaries(current.message.id))


def _newer(newest_first: Iterator[Said], summary: Summarised | None) -> Iterator[Said]:
    if summary is None:
        return newest_first
    return takewhile(lambda said: said.message.id != summary.through, newest_first)


def read_current(log: MessageLog, up_to: str | None) -> ConversationMessage | None:
    """Read the newest message with text at or before `up_to`, and nothing older."""
    newest = next(_said(log, up_to, page_size=1), None)
    return newest.message if newest else None


def deduplicate(history: Sequence[Said], current: Said) -> Sequence[Said]:
    """Drop the last message of `history` if it is the AI's current one again: by id, or by speaker and text."""
    if not history or current.message.speaker.type != "ai":
        return history
    last = history[-1]
    same_words = (last.message.speaker.role_name, last.text) == (current.message.speaker.role_name, current.text)
    if last.message.id != current.message.id and not same_words:
        return history
    _log.debug("[ContextManager] Deduplicated context for AI→AI")
    return history[:-1]


def format_addressees(names: Sequence[str]) -> str:
    return ", ".join(names) or "all"


def _said(log: MessageLog, up_to: str | None, page_size: int) -> Iterator[Said]:
    """Read the messages with text, newest first, one page at a time."""
    newest = log.latest(up_to)
    page: Sequence[Said] = [_quoted(newest)] if newest else []
    while page:
        yield from (said for said in reversed(page) if said.text.strip())
        page = [_quoted(earlier) for earlier in log.window(page[0].message.id, page_size)]


def _unseen(newest_first: Iterator[Said], since: Since) -> Iterator[Said]:
    new = takewhile(lambda said: said.message.id != since.after, newest_first)
    return (said for said in new if said.message.id not in since.own)


def in_prompt(message: ConversationMessage, text: str) -> PromptContextMessage:
    return PromptContextMessage(
        from_=name_of(message), to=format_addressees(message.routing.resolved_addressees), content=text
    )


class Crossing:
    """Quotes messages to one member and counts the secrets that it removes from each.

    A vendor is an agent of the team file: two entries are two vendors. A speaker has the vendor that its turn had,
    whatever its member has now. A text that `is_imported`, by the id of its message, is no vendor's. If the team does
    not `redact`, everything is quoted unchanged.
    """

    def __init__(self, team: Team, receiver: Member, is_imported: Callable[[str], bool]) -> None:
        self._redact, self._is_imported = team.redact, is_imported
        self._vendors = {member.name: team.agent_of(member).name for member in team.ai_members}
        self._vendor = self._vendors[receiver.name]
        self._taken: dict[str, int] = {}

    def __call__(self, message: ConversationMessage, text: str) -> str:
        """Return the text of the message as the member gets it."""
        if not self._redact or self._is_known(message):
            return text
        text, self._taken[message.id] = redact_shapes(text)
        return text

    def count(self, message_ids: Iterable[str]) -> int:
        """Count the secrets removed from these messages."""
        return sum(self._taken.get(message_id, 0) for message_id in set(message_ids))

    def _is_known(self, message: ConversationMessage) -> bool:
        """Whether the receiver's vendor already has the whole message."""
        if message.speaker.type == "human":
            addressed = (self._vendors.get(name) == self._vendor for name in message.routing.resolved_addressees)
            return any(addressed) and not self._is_imported(message.id)
        return message.agent == self._vendor


LENGTH = 8  # hexadecimal digits


def fence_code(key: str, message_id: str, texts: Iterable[str]) -> str:
    """Compute the code of a prompt whose newest message is `message_id`; building the prompt again gives the same code.

    `key` is the conversation's secret. None of the `texts` contains the code, in upper or lower case.
    """
    texts = list(texts)  # not joined: what is beyond ASCII is lowered slowly, and would make all of it slow
    codes = (_code(key, f"{message_id} {number}") for number in count())
    return next(code for code in codes if not any(code in text.lower() for text in texts))


def _code(key: str, what: str) -> str:
    import hmac  # it loads OpenSSL

    return hmac.new(key.encode(), what.encode(), "sha256").hexdigest()[:LENGTH]


def fence_quotes(given: AssemblerInput, key: str, message_id: str) -> AssemblerInput:
    """Put a fence around what somebody said. The turn note, if there is one, ends with its code."""
    code = fence_code(key, message_id, _texts_of(given))
    note = given.turn_note and given.turn_note + wording.CODE.format(code=code)
    return replace(given, fence=code, turn_note=note)


def _texts_of(given: AssemblerInput) -> Iterator[str]:
    """List all texts of a prompt. None of them may contain the code of its fence."""
    yield from {name for message in given.context_messages for name in (message.from_, message.to or "")}
    yield from (message.content for message in given.context_messages)
    others = (given.current_message, given.request, given.team_task, given.turn_note)
    system = (given.system_instruction, given.instruction_file_text, *given.contexts.values())
    yield from (text for text in (*others, *system) if text)
