"""Summaries: when one is due, how a member is asked for it, and which of the covered messages are kept.

The summariser also reads what members did in their turns: a reply alone often does not say it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from teamchat.assemblers.parts import SUMMARY, AssemblerOutput, BudgetExceeded
from teamchat.assemblers.truncation import BYTES_PER_TOKEN, byte_length, truncate_end, truncate_middle
from teamchat.core.context.build import BuiltPrompt, Exists, check_limit
from teamchat.core.context.conversation_view import ContextManager
from teamchat.core.context.history import Crossing
from teamchat.core.context.layers.sources import summary_told, worth_telling
from teamchat.core.errors import NoRecording, PromptTooLarge, StoreError, TeamchatError, UsageError
from teamchat.core.messages import Said, well_formed
from teamchat.core.routing.markers import quoted_text
from teamchat.core.store.database import Database
from teamchat.core.store.summaries import Summary, add_summary, summary_before
from teamchat.core.store.texts import pack
from teamchat.core.store.turn_events import ABORTED, StoredEvent, stored_events, tool_calls
from teamchat.core.store.turns import Turn, get_turn, last_summary_turn
from teamchat.core.team import wording
from teamchat.core.team.team import Member, Team
from teamchat.core.text.clean import told
from teamchat.core.turn.machine import TurnReason
from teamchat.core.turn.run import Run, TurnFailure
from teamchat.core.turn.run_events import SummaryStored, Warned
from teamchat.core.turn.side_turn import SideTurn, for_side_turn, run_side_turn

SHORT = 200  # bytes; a message up to this size is not cut for a summary


def recent_people(said: Sequence[Said], size_of: Callable[[str], int], tokens: int) -> tuple[str, ...]:
    """Return the ids of the newest messages of people, at most `tokens` (bytes / 4) together, oldest first.

    `said` is in order, oldest first. No message between two kept ones is left out.
    """
    newest_first = [quoted for quoted in reversed(said) if quoted.message.speaker.type == "human"]
    sizes = accumulate(size_of(quoted.text) for quoted in newest_first)
    ids = [
        quoted.message.id for quoted, size in zip(newest_first, sizes, strict=True) if size <= tokens * BYTES_PER_TOKEN
    ]
    return tuple(reversed(ids))


def reach(sizes: Iterable[int], tokens: int) -> bool:
    """Whether texts of these sizes in bytes are that many tokens together. Reads no more sizes than that takes."""
    return any(size >= tokens * BYTES_PER_TOKEN for size in accumulate(sizes))


def build_summary_prompt(
    team: Team,
    member: Member,
    manager: ContextManager,
    said: Sequence[Said],
    exists: Exists,
    so_far: Summary | None = None,
) -> tuple[BuiltPrompt, Sequence[Said]]:
    """Build the prompt that asks `member` to summarise `said`, oldest first. Returns the messages that fit, too.

    The oldest messages come first, so that no message is skipped; the next summary covers the rest. An oldest message
    that is too long alone loses its middle, or no summary could ever be made again. Raises `PromptTooLarge` when even
    that does not fit.
    """
    sizes = accumulate(manager.quoted_bytes(quoted.text) for quoted in said)
    fitting = [quoted for quoted, size in zip(said, sizes, strict=True) if size <= team.prompt_bytes] or list(said[:1])
    ask = wording.ASK_SUMMARY.format(so_far=wording.SUMMARY_SO_FAR if so_far else "")
    while fitting:
        asked = prompt_about(team, member, manager, fitting, ask, so_far)
        if asked.assembled.trimmed.layers:
            raise no_room(member)
        left_out = asked.assembled.trimmed.history_messages
        if not left_out:
            return asked.built(exists), fitting
        fitting = fitting[: len(fitting) - left_out] or _halved(fitting[0])
    raise no_room(member)


def _halved(said: Said) -> list[Said]:
    """Cut the middle half out of the message's text; return nothing if it is short already."""
    size = byte_length(said.text)
    return [replace(said, text=truncate_middle(said.text, size // 2).text)] if size > SHORT else []


class HistoryPrompt(Struct, frozen=True):
    """A question to `member` about the messages `said`, without messages that the budget left out."""

    team: Team
    member: Member
    said: Sequence[Said]
    quote: Crossing
    assembled: AssemblerOutput

    def built(self, exists: Exists) -> BuiltPrompt:
        """Build the prompt as it is sent. Raises `PromptTooLarge` above the CLI's own limit."""
        runner = self.team.agent_of(self.member).type.runner
        text, said = self.assembled.prompt, self.said
        prepared = runner.prepare(text, typed=range(0), exists=exists(self.member, runner))
        check_limit(self.member, runner.limit, prepared.stdin)
        return BuiltPrompt(
            self.assembled,
            prepared,
            answers=said[-1].message,
            vendor_session="its memory is fresh",
            key="",
            shown_from=said[0].message.id,
            shown_through=said[-1].message.id,
            fresh_bytes=byte_length(text),
            redacted=self.quote.count(quoted.message.id for quoted in said),
            gathered={},
        )


def prompt_about(
    team: Team, member: Member, manager: ContextManager, said: Sequence[Said], ask: str, so_far: Summary | None
) -> HistoryPrompt:
    """Ask `member` about the summary so far and the messages `said`, oldest first, which the prompt quotes above `ask`.

    Above the budget the oldest messages are left out first. Raises `PromptTooLarge` when that is not enough.
    """
    quote = Crossing(team, member, manager.is_imported)
    contexts = {SUMMARY: summary_told(so_far, team)} if so_far else {}
    given = manager.get_context_for_summary(said, ask, contexts=contexts, quote=quote)
    try:
        assembled = team.agent_of(member).type.assembler.assemble(given)
    except BudgetExceeded as error:
        raise no_room(member) from error
    return HistoryPrompt(team, member, said[assembled.trimmed.history_messages :], quote, assembled)


def no_room(member: Member) -> PromptTooLarge:
    return PromptTooLarge(
        f"{member.name}'s prompt has no room for the messages; raise max_bytes and max_prompt_tokens in the team file"
    )


AROUND = 64  # bytes for the heading and the fence around a quoted message, roughly
AGAIN = 4  # after a failure the next try waits for a quarter of `due_tokens` of new messages
WHY = "the conversation needs a summary"


def summariser_of(team: Team, name: str | None) -> Member:
    """Choose who summarises: the member with that name, or the team's `compactor`.

    Raises `UsageError` and `UnknownName`.
    """
    if not team.share_context:
        raise UsageError("members of this team get no summary; set share_context = true in the team file")
    chosen = name or team.compactor
    if chosen is None:
        raise UsageError("the team file names no compactor", _asking(team))
    member = team.member(chosen)
    if member.type == "human":
        raise UsageError(f"{member.name} is a person; only an agent can write the summary", _asking(team))
    return member


def _asking(team: Team) -> str | None:
    return next((f"teamchat compact --member {member.name}" for member in team.ai_members), None)


class Summariser:
    """Has members summarise the conversation of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._failed_at: str | None = None

    def due(self, up_to: str | None) -> Member | None:
        """Choose who summarises before the next prompt; None with less than the team's `due_tokens` to summarise.

        After a failure more messages have to come first. It reads no more than `due_tokens`, so its cost does not
        depend on the length of the conversation.
        """
        team = self._run.team
        if team.compactor is None or not team.share_context or not self._reaches(team.due_tokens, up_to):
            return None
        last = last_summary_turn(self._run.db, self._run.session)
        failed = last.shown_through if last and last.status != "done" else self._failed_at
        if failed is not None and not self._reaches(team.due_tokens // AGAIN, up_to, after=failed):
            return None
        return team.member(team.compactor)

    def _reaches(self, tokens: int, up_to: str | None, after: str | None = None) -> bool:
        def sizes() -> Iterator[int]:
            for said in self._run.manager.get_unsummarised(up_to=up_to):
                if said.message.id == after:
                    return
                yield self._run.manager.quoted_bytes(said.text)

        return reach(sizes(), tokens)

    def pending(self, up_to: str | None = None) -> list[Said]:
        """List the messages before the current one that no summary covers, oldest first."""
        return list(self._run.manager.get_unsummarised(up_to=up_to))[::-1]

    async def summarise_if_due(self, up_to: str | None) -> None:
        """Summarise what came before the message that the next prompt answers, if that is too long.

        A failure is told and stops nothing. A used-up budget ends it. Raises `StoreError` and `NoRecording`.
        """
        while not (self._run.stopped() or self._run.guard()) and (member := self.due(up_to)):
            if isinstance(done := await self.summarise(member, up_to), TurnFailure):
                self._run.emit(Warned(f"the conversation was not summarised: {done.reason}"))
                return

    async def summarise(self, member: Member, up_to: str | None = None) -> Summary | TurnFailure:
        """Have `member` summarise the pending messages, or as many of them as fit into its prompt.

        Raises `StoreError` and `NoRecording`.
        """
        said = self.pending(up_to)
        try:
            return await run_side_turn(self._run, self._side_turn(member, said, up_to))
        except (NoRecording, StoreError):
            raise
        except TeamchatError as error:
            self._failed_at = said[-1].message.id
            return TurnFailure(error.code, str(error), error.hint)

    def _side_turn(self, member: Member, said: Sequence[Said], up_to: str | None) -> SideTurn[Summary]:
        run = self._run
        answers = run.manager.get_current_message(up_to=up_to)
        so_far = summary_before(run.db, run.session, answers.id) if answers else None
        member = for_side_turn(member)
        done = with_tool_calls(run.db, said)
        prompt, fitting = build_summary_prompt(run.team, member, run.manager, done, run.machine.exists, so_far)

        def read(answer: str) -> Callable[[Turn], Summary]:
            before = so_far.kept if so_far else ()
            covered = [Said(message, quoted_text(message)) for message in map(run.manager.get_message, before)]
            people = [*covered, *said[: len(fitting)]]
            ids = recent_people(people, lambda text: run.manager.quoted_bytes(text) + AROUND, run.team.kept_tokens)
            text = well_formed(answer)
            packed = pack(text)
            summary = Summary(member.name, prompt.answers.id, ids, text)
            return lambda turn: add_summary(run.db, run.session, turn, summary, packed)

        reason = TurnReason(WHY, fitting[-1].message.id, purpose="summary")
        return SideTurn(member, prompt, reason, read, SummaryStored, fault=_fault)


def _fault(summary: str) -> str | None:
    return None if worth_telling(summary) else "wrote an empty summary"


MAX_BYTES = 2000  # of one message's tool calls
MAX_LINE = 200  # bytes of one call


def with_tool_calls(db: Database, said: Sequence[Said]) -> list[Said]:
    """Add to each message the tool calls of its turn. Outputs are left out: they are long."""
    return [replace(quoted, text=quoted.text + _told(db, quoted.message.turn_id)) for quoted in said]


def _told(db: Database, turn: int | None) -> str:
    lines = list(map(_line, tool_calls(stored_events(db, get_turn(db, turn).id)))) if turn is not None else []
    newest = list(_newest(lines))[::-1]
    gone = len(lines) - len(newest)
    more = [f"- {gone} earlier calls are left out"] if gone else []
    return "\n".join(["\n\nTool calls of this turn:", *more, *newest]) if newest else ""


def _newest(lines: Sequence[str]) -> Iterator[str]:
    """Yield the newest lines that fit into `MAX_BYTES`, newest first."""
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
