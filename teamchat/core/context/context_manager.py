"""The context manager of a session of the store, as the team file has it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from teamchat.assemblers.formats import PLAIN_TEXT
from teamchat.assemblers.parts import Assembler, AssemblerInput, AssemblerOutput
from teamchat.assemblers.truncation import TruncationPolicy, byte_length, truncate_end
from teamchat.core.agents import ASSEMBLERS, normalize_agent_type
from teamchat.core.context.composer import ContextComposer
from teamchat.core.context.history import (
    Context,
    Quote,
    Said,
    Since,
    Summaries,
    Summarised,
    in_prompt,
    no_summaries,
    read_context,
    read_current,
    read_unsummarised,
    verbatim,
)
from teamchat.core.context.quoting import fence_code, texts_of
from teamchat.core.messages import MAX_TEAM_TASK_BYTES, ConversationMessage, NewMessage, well_formed
from teamchat.core.store.database import Database
from teamchat.core.store.message_log import MemoryLog, MessageLog
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import fence_key
from teamchat.core.store.summaries import summary_before
from teamchat.core.team.team import Team

DEFAULT_CONTEXT_WINDOW_SIZE = 5
DEFAULT_MAX_BYTES = 768 * 1024
TASK_CUT = f"the task is longer than {MAX_TEAM_TASK_BYTES} bytes, and was cut to its beginning"

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # for programs that want it; teamchat itself says it in its own words


class ContextManager:
    """One conversation. The window is in messages (0 is no history), every other size in UTF-8 bytes.

    `assemblers` maps full agent type names (`claude-code`) to assemblers. Hooks run after the change they tell of.
    With a `fence_key`, a secret of this conversation, prompts have a fence around what somebody said (`quoting.py`).
    `summaries` tells what is summed up and not quoted any more.
    """

    def __init__(
        self,
        log: MessageLog | None = None,
        *,
        context_window_size: int = DEFAULT_CONTEXT_WINDOW_SIZE,
        max_bytes: int = DEFAULT_MAX_BYTES,
        target_bytes: int | None = None,
        per_message: TruncationPolicy | None = None,
        on_message_added: Callable[[ConversationMessage], object] | None = None,
        on_team_task_changed: Callable[[str | None], object] | None = None,
        assemblers: Mapping[str, Assembler] | None = None,
        fence_key: str | None = None,
        summaries: Summaries = no_summaries,
    ) -> None:
        self._messages = MemoryLog() if log is None else log
        self._window_size = context_window_size
        self._composer = ContextComposer(max_bytes, target_bytes, per_message)
        self._on_message_added = on_message_added
        self._on_team_task_changed = on_team_task_changed
        self._assemblers = ASSEMBLERS if assemblers is None else assemblers
        self._fence_key = fence_key
        self._summaries = summaries

    def add_message(self, message: NewMessage) -> ConversationMessage:
        """Store the message and return it with its id. Raises `TypeError` if it lacks a part."""
        _check(message)
        stored = self._messages.append(replace(message, content=well_formed(message.content)))
        _log.debug("[ContextManager] Message added: %s", stored.id)
        if self._on_message_added:
            self._on_message_added(stored)
        return stored

    def get_messages(self) -> list[ConversationMessage]:
        """All messages in order, in a list of the caller's own."""
        return list(self._messages.all())

    def get_latest_message(self) -> ConversationMessage | None:
        return self._messages.latest()

    def get_latest_messages(self, count: int) -> list[ConversationMessage]:
        """The newest `count` messages, oldest first, at a cost of O(count)."""
        latest = self._messages.latest()
        return [*self._messages.window(latest.id, count - 1), latest] if latest else []

    def get_message(self, message_id: str) -> ConversationMessage:
        """The message of that id; `KeyError` if there is none."""
        return self._messages.get(message_id)

    def get_current_message(self, *, up_to: str | None = None) -> ConversationMessage | None:
        """The message that `get_context_for_agent` makes the current one."""
        return read_current(self._messages, up_to)

    def get_history(self, *, up_to: str | None = None, since: Since | None = None, quote: Quote = verbatim) -> Context:
        """What `get_context_for_agent` shows of the conversation, which can be given to it."""
        return read_context(self._messages, self._window_size, up_to, since, quote, self._summaries)

    def get_unsummarised(self, *, up_to: str | None = None) -> Iterator[Said]:
        """What was said before the current message and is not summed up, newest first, read as it is asked for."""
        return read_unsummarised(self._messages, up_to, self._summaries)

    def is_after(self, one: str, other: str) -> bool:
        """Whether the message of the id `one` was said after the `other`; `KeyError` if there is none of an id."""
        return self._messages.place(one) > self._messages.place(other)

    def set_team_task(self, task: str) -> None:
        """Set the task, cut to 5 KB on a character boundary with a logged warning."""
        self._messages.team_task = _limited(well_formed(task))
        self._tell_task()

    def get_team_task(self) -> str | None:
        return self._messages.team_task

    def get_context_for_agent(
        self,
        agent_id: str,  # noqa: ARG002 (so that a member may get a window of its own)
        agent_type: str,  # noqa: ARG002 (likewise)
        *,
        window_size_override: int | None = None,
        system_instruction: str | None = None,
        instruction_file_text: str | None = None,
        up_to: str | None = None,
        since: Since | None = None,
        contexts: Mapping[str, str] | None = None,
        turn_note: str | None = None,
        request: str | None = None,
        quote: Quote = verbatim,
        history: Context | None = None,
    ) -> AssemblerInput:
        """The parts of a prompt: the newest message with text is the current one, those before it are the history.

        `up_to` is the id of the message to stand at: later ones are not seen; `KeyError` if there is none of that id.
        `since` leaves out what the agent's own session has had, and takes all that is newer, whatever the window.
        Messages of markers only are passed over and do not count in the window. The cost is O(window). `quote` may
        change what is told of a message. With `history`, which `get_history` gave, nothing is read again.
        """
        window = self._window_size if window_size_override is None else window_size_override
        context = history or read_context(self._messages, window, up_to, since, quote, self._summaries)
        given = self._composer.compose(
            system_instruction=system_instruction,
            instruction_file_text=instruction_file_text,
            task=self.get_team_task(),
            contexts=contexts,
            history=context.history,
            message=context.current,
            turn_note=turn_note,
            request=request,
        )
        return self._fenced(given, context.answers)

    def get_context_for_summary(
        self, said: Sequence[Said], *, contexts: Mapping[str, str] | None = None, quote: Quote = verbatim
    ) -> AssemblerInput:
        """The parts of a prompt in which these messages, oldest first, are the whole history, and none is current."""
        history = [in_prompt(one.message, quote(one.message, one.text)) for one in said]
        task = self.get_team_task()
        given = self._composer.compose(
            system_instruction=None, task=task, contexts=contexts, history=history, message=""
        )
        return self._fenced(given, said[-1].message if said else None)

    def quoted_bytes(self, text: str) -> int:
        """How much of a message's text the history of a prompt quotes."""
        return byte_length(self._composer.per_message(text).text if self._composer.per_message else text)

    def _fenced(self, given: AssemblerInput, newest: ConversationMessage | None) -> AssemblerInput:
        if self._fence_key is None or newest is None:
            return given
        return replace(given, fence=fence_code(self._fence_key, newest.id, texts_of(given)))

    def assemble_prompt(self, agent_type: str, given: AssemblerInput) -> AssemblerOutput:
        """The prompt in the agent's own format, or as plain text with a logged warning for an unknown type.

        Raises `BudgetExceeded` when what may not be cut is over the budget.
        """
        full_name = normalize_agent_type(agent_type)
        assembler = self._assemblers.get(full_name)
        if assembler is None:
            _log.warning(
                '[ContextManager] Unknown agentType "%s" (normalized: "%s"), using PlainTextAssembler',
                agent_type,
                full_name,
            )
            assembler = PLAIN_TEXT
        return assembler.assemble(given)

    def clear(self) -> None:
        """Begin a new conversation: no messages, no task; the next message is `msg-1`.

        A store begins a new session and keeps the old one, messages and turns. The coordinator of this manager goes
        over to it, with nothing waiting. Raises `UsageError`, and nothing changes, while a turn runs.
        """
        self._messages.clear()
        self._tell_task()

    def export_snapshot(self) -> dict[str, object]:
        """The conversation as an object that `json.dumps` takes."""
        from teamchat.core.context.snapshot import to_json

        return to_json(self.get_messages(), self.get_team_task())

    def import_snapshot(self, snapshot: object) -> None:
        """Take over an exported conversation, in a new session of the store as `clear` does.

        `snapshot.from_json` says what may be missing. Raises `ValueError` if it is none, and `UsageError` while a turn
        runs; nothing changes then.
        """
        from teamchat.core.context.snapshot import from_json

        conversation = from_json(snapshot)
        task = conversation.team_task
        self._messages.replace(conversation.messages, None if task is None else _limited(task))
        self._tell_task()

    def _tell_task(self) -> None:
        if self._on_team_task_changed:
            self._on_team_task_changed(self.get_team_task())


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
        _log.warning(
            "[ContextManager] TeamTask exceeded 5KB limit (%d bytes), truncated to %d bytes",
            byte_length(task),
            byte_length(limited),
        )
    return limited


def manager_of(team: Team, db: Database, session: int, moved: Callable[[int], None] = lambda _: None) -> ContextManager:
    """`moved` is told of the new session when the manager is cleared, or takes over a snapshot."""
    log = SqliteLog(db, session, moved)

    def summarised(before: str) -> Summarised | None:
        summary = summary_before(db, log.session, before)
        return Summarised(summary.through, summary.kept) if summary else None

    return ContextManager(
        log,
        context_window_size=team.context_window,
        max_bytes=team.max_bytes,
        target_bytes=TruncationPolicy(team.max_prompt_tokens, "tokens").byte_budget,
        per_message=TruncationPolicy(team.message_bytes),
        fence_key=fence_key(db, session) if team.fence else None,
        summaries=summarised if team.share_context else no_summaries,
    )
