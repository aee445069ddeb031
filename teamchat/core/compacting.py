"""Having a member sum up the conversation: when it is due, the turn that does it, and what is stored of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from teamchat.core.answering import Answering
from teamchat.core.aside import Aside, apart, ask_aside
from teamchat.core.compaction import build_compaction, come_to, recent_people
from teamchat.core.conclusion import Failed
from teamchat.core.errors import NoRecording, StoreError, TeamchatError, UsageError
from teamchat.core.events import Compacted, Warned
from teamchat.core.history import Said, text_of
from teamchat.core.layers.compression import worth_telling
from teamchat.core.messages import well_formed
from teamchat.core.store.summaries import Summary, add_summary, summary_before
from teamchat.core.store.texts import pack_text
from teamchat.core.store.turns import Turn, last_compaction
from teamchat.core.team import Member, Team
from teamchat.core.turn.ready import Errand

AROUND = 64  # bytes, about: who said a message to whom, and its fence; many short ones must not fill a prompt
AGAIN = 4  # after a failure, not before a quarter of what it takes is new
WHY = "the conversation was to be summed up"


def compactor_of(team: Team, name: str | None) -> Member:
    """Who is to sum up: the member of that name, or the team's `compactor`. Raises `UsageError` and `UnknownName`."""
    if not team.share_context:
        raise UsageError("members of this team are told no summary; set share_context = true in the team file")
    chosen = name or team.compactor
    if chosen is None:
        raise UsageError("the team file names no compactor", _asking(team))
    member = team.member(chosen)
    if member.type == "human":
        raise UsageError(f"{member.name} is a person; only an agent can write the summary", _asking(team))
    return member


def _asking(team: Team) -> str | None:
    return next((f"teamchat compact --member {member.name}" for member in team.ai_members), None)


class Compacting:
    """Sums up one session, with what its turns are run with."""

    def __init__(self, answering: Answering) -> None:
        self._of = answering
        self._failed_at: str | None = None

    def due(self, up_to: str | None) -> Member | None:
        """Who is to sum up before the next prompt, if anybody: what is not summed up comes to the team's `due_tokens`.

        After a failure it has to grow on first. The cost is that of reading so much, however long the conversation is.
        """
        team = self._of.team
        if team.compactor is None or not team.share_context or not self._comes_to(team.due_tokens, up_to):
            return None
        last = last_compaction(self._of.db, self._of.session)
        failed = last.shown_through if last and last.status != "done" else self._failed_at
        if failed is not None and not self._comes_to(team.due_tokens // AGAIN, up_to, after=failed):
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

        A failure is told and stops nothing; a budget that is used up ends it. Raises `StoreError` and `NoRecording`.
        """
        while not (self._of.stopped() or self._of.guard()) and (member := self.due(up_to)):
            if isinstance(done := await self.sum_up(member, up_to), Failed):
                self._of.emit(Warned(f"the conversation was not summed up: {done.reason}"))
                return

    async def sum_up(self, member: Member, up_to: str | None = None) -> Summary | Failed:
        """Have `member` sum up what is left, or as much of it as its prompt has room for.

        Raises `StoreError` and `NoRecording`.
        """
        said = self.left(up_to)
        try:
            return await ask_aside(self._of, self._task(member, said, up_to))
        except (NoRecording, StoreError):
            raise
        except TeamchatError as error:
            self._failed_at = said[-1].message.id
            return Failed(error.code, str(error), error.hint)

    def _task(self, member: Member, said: Sequence[Said], up_to: str | None) -> Aside[Summary]:
        of = self._of
        answers = of.manager.get_current_message(up_to=up_to)
        so_far = summary_before(of.db, of.session, answers.id) if answers else None
        member = apart(member)
        prompt, fitting = build_compaction(of.team, member, of.manager, said, of.outside.exists, so_far)

        def keep(answer: str) -> Callable[[Turn], Summary]:
            before = so_far.kept if so_far else ()
            covered = [Said(message, text_of(message)) for message in map(of.manager.get_message, before)]
            people = [*covered, *said[: len(fitting)]]
            kept = recent_people(people, lambda text: of.manager.quoted_bytes(text) + AROUND, of.team.kept_tokens)
            text = well_formed(answer)
            packed = pack_text(text)
            summary = Summary(member.name, prompt.answers.id, kept, text)
            return lambda turn: add_summary(of.db, of.session, turn, summary, packed)

        errand = Errand(WHY, fitting[-1].message.id, purpose="summary")
        return Aside(member, prompt, errand, keep, Compacted, amiss=_amiss)


def _amiss(summary: str) -> str | None:
    return None if worth_telling(summary) else "gave a summary without text"
