"""A conversation (`ContextManager`), and the parts of a prompt that quote it (`ContextComposer`).

`manager_of` makes the manager of a stored session. The composer is a pure function: equal parts make equal prompts.

Every text of a prompt comes through here. The user's input is the current message and nothing else, so that it reaches
a prompt exactly once. The assemblers bring the parts into each CLI's format.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from teamchat.assemblers.parts import LAYERS, MAX_BYTES, AssemblerInput, PromptContextMessage
from teamchat.assemblers.truncation import TruncationPolicy, byte_length, truncate_end
from teamchat.core.context.history import (
    Context,
    Quote,
    Since,
    Summaries,
    Summarised,
    fence_quotes,
    in_prompt,
    no_summaries,
    read_context,
    read_current,
    read_unsummarised,
    verbatim,
)
from teamchat.core.messages import MAX_TEAM_TASK_BYTES, ConversationMessage, NewMessage, Said, well_formed
from teamchat.core.store.database import Database
from teamchat.core.store.message_log import MemoryLog, MessageLog
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import fence_key
from teamchat.core.store.summaries import clear_before, summary_before
from teamchat.core.team import wording
from teamchat.core.team.team import Team

DEFAULT_CONTEXT_WINDOW_SIZE = 5
"""Messages that a `ContextManager` shows which is made by itself. A team file gives its own: `Team.context_window`."""
TASK_CUT = f"the task is longer than {MAX_TEAM_TASK_BYTES} bytes, and was cut to its beginning"

T = TypeVar("T")
_log = logging.getLogger(__name__)


class ContextManager:
    """One conversation: its messages, its task, and the parts that a prompt quotes.

    Without a `log` it is kept in memory. The window is in messages (0 is no history), every other size in UTF-8 bytes.
    With a `fence_key`, a secret of this conversation, prompts have a fence around what somebody said (`history.py`).
    `summaries` says which messages a summary replaces.

    `on_message_added` and `on_team_task_changed` are called once the change is stored, and cannot take it back: errors
    in them are logged.
    """

    def __init__(
        self,
        log: MessageLog | None = None,
        *,
        context_window_size: int = DEFAULT_CONTEXT_WINDOW_SIZE,
        max_bytes: int = MAX_BYTES,
        target_bytes: int | None = None,
        per_message: TruncationPolicy | None = None,
        fence_key: str | None = None,
        summaries: Summaries = no_summaries,
        on_message_added: Callable[[ConversationMessage], None] | None = None,
        on_team_task_changed: Callable[[str | None], None] | None = None,
    ) -> None:
        self._on_message_added, self._on_team_task_changed = on_message_added, on_team_task_changed
        self._messages = MemoryLog() if log is None else log
        self._window_size = context_window_size
        self._composer = ContextComposer(max_bytes, target_bytes, per_message, fence_key)
        self._summaries = summaries

    def add_message(self, message: NewMessage) -> ConversationMessage:
        """Store the message and return it with its id. Raises `TypeError` if it lacks a part."""
        _check(message)
        stored = self._messages.append(replace(message, content=well_formed(message.content)))
        _log.debug("[ContextManager] Message added: %s", stored.id)
        self._tell(self._on_message_added, stored)
        return stored

    def _tell(self, hook: Callable[[T], None] | None, value: T) -> None:
        def call() -> None:
            assert hook
            try:
                hook(value)
            except Exception:  # noqa: BLE001 (whatever it is, the change stays)
                _log.exception("[ContextManager] A hook failed")

        if hook:
            self._messages.when_stored(call)

    def get_messages(self) -> list[ConversationMessage]:
        """Return all messages in order, in a list of the caller's own."""
        return list(self._messages.all())

    def get_latest_message(self) -> ConversationMessage | None:
        return self._messages.latest()

    def get_latest_messages(self, count: int) -> list[ConversationMessage]:
        """Return the newest `count` messages, oldest first, at a cost of O(count)."""
        latest = self._messages.latest()
        return [*self._messages.window(latest.id, count - 1), latest] if latest else []

    def get_message(self, message_id: str) -> ConversationMessage:
        """Return the message with that id. Raises `KeyError` if there is none."""
        return self._messages.get(message_id)

    def get_current_message(self, *, up_to: str | None = None) -> ConversationMessage | None:
        """Return the newest message with text at or before the message with the id `up_to`."""
        return read_current(self._messages, up_to)

    def get_history(
        self,
        *,
        up_to: str | None = None,
        since: Since | None = None,
        quote: Quote = verbatim,
        window: int | None = None,
        answers: str | None = None,
    ) -> Context:
        """Return the current message and the history beside it, as a prompt quotes them.

        The current message has the id `answers`; by default it is the newest with text. Messages after the one with the
        id `up_to` are left out. Raises `KeyError` for an unknown id. With `since` the history is every message that the
        agent's own vendor session has not had, whatever the window. Messages of markers only do not count in the
        window. The cost is O(window), and `window` overrides its size. `quote` may change the text of a message.
        """
        size = self._window_size if window is None else window
        return read_context(self._messages, size, up_to, since, quote, self._summaries, answers)

    def get_unsummarised(self, *, up_to: str | None = None) -> Iterator[Said]:
        """Read the messages before the current one that no summary replaces, newest first, one by one."""
        return read_unsummarised(self._messages, up_to, self._summaries)

    def is_after(self, one: str, other: str) -> bool:
        """Whether the message `one` was said after the message `other`. Raises `KeyError` for an unknown id."""
        return self._messages.place(one) > self._messages.place(other)

    def is_imported(self, message_id: str) -> bool:
        """Whether the message with that id was read from a file, and said to nobody here. Raises `KeyError`."""
        return self._messages.is_imported(message_id)

    def set_team_task(self, task: str | None) -> None:
        """Set the task, or remove it with None. Above 5 KB it is cut at a character, with a logged warning."""
        self._messages.team_task = limited = None if task is None else _limited(well_formed(task))
        self._tell(self._on_team_task_changed, limited)

    def clear(self) -> None:
        """Begin anew: in memory without messages and task, and with the first id.

        A stored conversation keeps its messages and ids: prompts begin after the newest one, without summary and task.
        """
        self._messages.clear()
        self._tell(self._on_team_task_changed, None)

    def get_team_task(self) -> str | None:
        return self._messages.team_task

    def get_context_for_agent(
        self,
        history: Context | None = None,
        *,
        system_instruction: str | None = None,
        instruction_file_text: str | None = None,
        contexts: Mapping[str, str] | None = None,
        turn_note: str | None = None,
        request: str | None = None,
        with_task: bool = True,
    ) -> AssemblerInput:
        """Compose the parts of a prompt that answers the current message of `history`, by default of everything said.

        `contexts` are the layers, by name; `AssemblerInput` says what the texts are. Raises `ValueError` for an unknown
        layer.
        """
        context = history or self.get_history()
        return self._composer.compose(
            system_instruction=system_instruction,
            instruction_file_text=instruction_file_text,
            task=self.get_team_task() if with_task else None,
            contexts=contexts,
            history=context.history,
            message=context.current,
            newest=context.newest,
            turn_note=turn_note,
            request=request,
        )

    def get_context_for_summary(
        self, said: Sequence[Said], ask: str, *, contexts: Mapping[str, str] | None = None, quote: Quote = verbatim
    ) -> AssemblerInput:
        """Compose the parts of a prompt that quotes these messages, oldest first, and only asks about them."""
        return self._composer.compose(
            system_instruction=None,
            task=self.get_team_task(),
            contexts=contexts,
            history=[in_prompt(quoted.message, quote(quoted.message, quoted.text)) for quoted in said],
            message="",
            newest=said[-1].message.id if said else None,
            turn_note=f"{ask}{wording.FENCE}" if said and self._composer.fence_key else ask,
        )

    def quoted_bytes(self, text: str) -> int:
        """Count the UTF-8 bytes of a message's text that the history of a prompt quotes."""
        return byte_length(self._composer.per_message(text).text if self._composer.per_message else text)

    def export_snapshot(self) -> dict[str, object]:
        """Export the conversation as an object for `json.dumps`."""
        from teamchat.core.context.snapshot import to_json

        return to_json(self.get_messages(), self.get_team_task())

    def import_snapshot(self, snapshot: object) -> None:
        """Restore an exported conversation into this one, which must have no messages.

        `snapshot.from_json` says which parts may be missing. Raises `ValueError` for an object that is not a snapshot
        and `UsageError` if there are messages already. In both cases nothing changes.
        """
        from teamchat.core.context.snapshot import from_json

        conversation = from_json(snapshot)
        task = conversation.team_task
        self._messages.restore(conversation.messages, None if task is None else _limited(task))


def _check(message: object) -> None:
    speaker = getattr(message, "speaker", None)
    if message is None:
        raise TypeError("Message cannot be null or undefined")
    if not isinstance(getattr(message, "content", None), str):
        raise TypeError("Message content must be a string")
    if not speaker:
        raise TypeError("Message speaker is required")
    if not getattr(speaker, "role_id", None):
        raise TypeError("Message speaker.roleId is required")


def _limited(task: str) -> str:
    limited = truncate_end(task, MAX_TEAM_TASK_BYTES)
    if limited != task:
        if not _log.handlers:  # it is for programs that want it; teamchat itself says it in its own words
            _log.addHandler(logging.NullHandler())
        _log.warning(
            "[ContextManager] TeamTask exceeded 5KB limit (%d bytes), truncated to %d bytes",
            byte_length(task),
            byte_length(limited),
        )
    return limited


def manager_of(
    team: Team,
    db: Database,
    session: int,
    *,
    window: int | None = None,
    on_message_added: Callable[[ConversationMessage], None] | None = None,
    on_team_task_changed: Callable[[str | None], None] | None = None,
) -> ContextManager:
    """Make the manager of a stored session, with the sizes of the team file; `window` overrides its `context_window`.

    The functions are as in `ContextManager`.
    """
    log = SqliteLog(db, session)

    def left_out(before: str) -> Summarised | None:
        summary = summary_before(db, session, before) if team.share_context else None
        if summary:
            return Summarised(summary.through, summary.kept)
        cleared = clear_before(db, session, before)
        last = read_current(log, cleared) if cleared else None
        return Summarised(last.id) if last else None

    return ContextManager(
        log,
        context_window_size=team.context_window if window is None else window,
        max_bytes=team.max_bytes,
        target_bytes=TruncationPolicy(team.max_prompt_tokens, "tokens").byte_budget,
        per_message=TruncationPolicy(team.message_bytes),
        fence_key=fence_key(db, session) if team.fence else None,
        summaries=left_out,
        on_message_added=on_message_added,
        on_team_task_changed=on_team_task_changed,
    )


class ContextComposer(Struct, frozen=True):
    """`max_bytes` is the hard ceiling, `target_bytes` what a prompt may cost, `per_message` for each of the history.

    With a `fence_key`, a secret of the conversation, a prompt that answers a message has a fence around what somebody
    said.
    """

    max_bytes: int
    target_bytes: int | None = None
    per_message: TruncationPolicy | None = None
    fence_key: str | None = None

    def compose(
        self,
        *,
        system_instruction: str | None,
        instruction_file_text: str | None = None,
        task: str | None = None,
        contexts: Mapping[str, str] | None = None,
        history: Sequence[PromptContextMessage] = (),
        message: str,
        newest: str | None = None,
        turn_note: str | None = None,
        request: str | None = None,
    ) -> AssemblerInput:
        """Compose the parts, with the layers in the order of `LAYERS`. Raises `ValueError` for an unknown layer.

        `newest` is the id of the newest message in the prompt, None without one. The code of the fence depends on it,
        and ends the turn note.
        """
        contexts = contexts or {}
        unknown = sorted(set(contexts) - set(LAYERS))
        if unknown:
            raise ValueError(f"no layer is called {unknown[0]!r}")
        given = AssemblerInput(
            context_messages=tuple(history),
            current_message=message,
            team_task=task,
            system_instruction=_well_formed(system_instruction),
            instruction_file_text=_well_formed(instruction_file_text),
            max_bytes=self.max_bytes,
            target_bytes=self.target_bytes,
            per_message=self.per_message,
            contexts={name: well_formed(contexts[name]) for name in LAYERS if name in contexts},
            turn_note=_well_formed(turn_note),
            request=_well_formed(request),
        )
        if self.fence_key is None or newest is None:
            return given
        return fence_quotes(given, self.fence_key, newest)


def _well_formed(text: str | None) -> str | None:
    return None if text is None else well_formed(text)
