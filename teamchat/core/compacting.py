"""Having a member sum up the conversation: when it is due, the turn that does it, and what is stored of it.

The turn is a real one of the member's CLI, with a receipt, but no message comes of it and nothing is routed. Its end
and its summary are stored at once; until then, and whenever it fails, everything is as it was.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from teamchat.core.answering import Answering, new_turn, spent, turn_status
from teamchat.core.compaction import build_compaction, come_to, recent_people, worth_telling
from teamchat.core.conclusion import Failed
from teamchat.core.errors import NoRecording, StoreError, TeamchatError, UsageError
from teamchat.core.events import AgentSpoke, Compacted, TurnFinished, TurnStarted, Warned
from teamchat.core.history import Said, text_of
from teamchat.core.member_turn import Errand, FinishedTurn, ReadyTurn, run, settle
from teamchat.core.store.summaries import Summary, add_summary, summary_before
from teamchat.core.store.turns import Turn, begin_turn, end_turn, last_compaction
from teamchat.core.team import Member, Team
from teamchat.runners.base import AgentEvent, Failure, FailureKind

AGAIN = 4  # after a failure, not before a quarter of compact_at_tokens is new
WHY = "the conversation was to be summed up"


@dataclass(frozen=True, slots=True)
class _Task:
    """A turn that is ready to sum up `said`, oldest first, with the summary so far."""

    prepared: ReadyTurn
    said: Sequence[Said]
    so_far: Summary | None


def compactor_of(team: Team, name: str | None) -> Member:
    """Who is to sum up: the member of that name, or the team's `compactor`. Raises `UsageError` and `UnknownName`."""
    if not team.share_context:
        raise UsageError("members of this team are told no summary (share_context)", "share_context = true")
    chosen = name or team.compactor
    if chosen is None:
        raise UsageError("the team file names nobody to sum up (compactor)", "teamchat compact --member NAME")
    member = team.member(chosen)
    if member.type == "human":
        raise UsageError(f"{member.name} is a person: an AI member sums up", "teamchat compact --member NAME")
    return member


class Compacting:
    """Sums up one session, with what its turns are run with."""

    def __init__(self, answering: Answering) -> None:
        self._of = answering
        self._failed_at: str | None = None

    def due(self, up_to: str | None) -> Member | None:
        """Who is to sum up before the next prompt, if anybody: what is not summed up comes to `compact_at_tokens`.

        After a failure it has to grow on first. The cost is that of reading so much, however long the conversation is.
        """
        team = self._of.team
        if team.compactor is None or not team.share_context or not self._comes_to(team.compact_at_tokens, up_to):
            return None
        last = last_compaction(self._of.db, self._of.session)
        failed = last.shown_through if last and last.status != "done" else self._failed_at
        if failed is not None and not self._comes_to(team.compact_at_tokens // AGAIN, up_to, after=failed):
            return None
        return team.member(team.compactor)

    def _comes_to(self, tokens: int, up_to: str | None, after: str | None = None) -> bool:
        def sizes() -> Iterator[int]:
            for said in self._of.manager.get_unsummarised(up_to=up_to):
                if said.message.id == after:
                    return
                yield self._of.manager.quoted_bytes(said.text)

        return come_to(sizes(), tokens)

    def left(self, up_to: str | None = None) -> list[Said]:
        """What was said before the current message and is not summed up, oldest first."""
        return list(self._of.manager.get_unsummarised(up_to=up_to))[::-1]

    async def when_due(self, up_to: str | None) -> None:
        """Sum up what came before the message that the next prompt answers, where that has grown too long.

        A failure is told and stops nothing. Raises `StoreError` and `NoRecording`.
        """
        while not self._of.stopper.asked and (member := self.due(up_to)):
            if isinstance(done := await self.sum_up(member, up_to), Failed):
                self._of.emit(Warned(f"the conversation was not summed up: {done.reason}"))
                return

    async def sum_up(self, member: Member, up_to: str | None = None) -> Summary | Failed:
        """Have `member` sum up what is left, or as much of it as its prompt has room for.

        Raises `StoreError` and `NoRecording`.
        """
        folder = self._of.folder / secrets.token_hex(8)
        scratch = self._of.outside.scratch(folder)
        said = self.left(up_to)
        try:
            task = self._prepare(member, said, up_to, scratch)
            self._of.outside.check(task.prepared)
            with self._of.transaction():
                turn = begin_turn(self._of.db, new_turn(self._of.session, None, task.prepared, folder))
            return self._end(task, turn, await self._run(task.prepared, turn))
        except (NoRecording, StoreError):
            raise
        except TeamchatError as error:
            self._failed_at = said[-1].message.id
            return Failed(error.code, str(error), error.hint)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _prepare(self, member: Member, said: Sequence[Said], up_to: str | None, scratch: Path) -> _Task:
        of = self._of
        answers = of.manager.get_current_message(up_to=up_to)
        so_far = summary_before(of.db, of.session, answers.id) if answers else None
        member = replace(member, access="read", allow=(), memory="fresh")
        prompt, fitting = build_compaction(of.team, member, of.manager, said, of.outside.exists, so_far)
        errand = Errand(WHY, fitting[-1].message.id)
        prepared = settle(of.team, member, prompt, errand, of.outside, scratch=scratch, budget_usd=of.budget())
        return _Task(prepared, fitting, so_far)

    async def _run(self, prepared: ReadyTurn, turn: Turn) -> FinishedTurn:
        self._of.emit(TurnStarted(turn, None))

        def tell(event: AgentEvent) -> None:
            self._of.emit(AgentSpoke(turn.member, turn.number, event))

        finished = await run(prepared, turn.folder, self._of.outside.launcher, self._of.stopper, tell)
        if finished.outcome.failure is None and not worth_telling(finished.text):
            empty = Failure(FailureKind.AGENT, "gave a summary without text")
            finished = replace(finished, outcome=replace(finished.outcome, failure=empty))
        return finished

    def _end(self, task: _Task, turn: Turn, finished: FinishedTurn) -> Summary | Failed:
        of, outcome = self._of, finished.outcome
        partial = finished.text if outcome.failure else ""
        with of.transaction():
            end_turn(
                of.db,
                turn,
                turn_status(outcome.failure),
                outcome,
                partial=partial,
                vendor_session=finished.vendor_session,
                events=finished.events,
            )
            result = self._stored(task, turn, finished)
            of.note(spent(outcome.usage))
        of.tally.add(turn, outcome)
        if isinstance(result, Summary):
            of.emit(Compacted(turn, result))
        of.emit(TurnFinished(turn, outcome, partial))
        shutil.rmtree(turn.folder, ignore_errors=True)
        return result

    def _stored(self, task: _Task, turn: Turn, finished: FinishedTurn) -> Summary | Failed:
        of, failure = self._of, finished.outcome.failure
        if failure:
            return Failed(finished.outcome.code, f"{turn.member} {failure.reason}", failure.hint)
        before = task.so_far.kept if task.so_far else ()
        covered = [Said(message, text_of(message)) for message in map(of.manager.get_message, before)]
        kept = recent_people([*covered, *task.said], of.manager.quoted_bytes)
        return add_summary(of.db, of.session, turn, turn.shown_through, kept, finished.text)
