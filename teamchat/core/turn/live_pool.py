"""The processes of members with the memory "live". Each is kept while further turns continue its vendor session."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.receipt import Setup
from teamchat.core.team.team import Member
from teamchat.core.turn.execution import FinishedTurn
from teamchat.core.turn.machine import ReadyTurn
from teamchat.runners.agent_events import Usage

if TYPE_CHECKING:
    from teamchat.runners.child.live import LiveAgent


class _Kept(Struct):
    """A member's process, the setup of the turn that started it, and the cost of its turns."""

    member: str
    agent: LiveAgent
    setup: Setup
    speaks: bool = True  # a turn of it runs
    session: str | None = None
    cost_usd: float = 0.0


class LivePool:
    """The processes that live from a member's first turn of a run to `close`.

    A member has one process, and another one while it answers as a fallback at the same time.
    """

    def __init__(self) -> None:
        self._processes: list[_Kept] = []
        self._given_up: set[str] = set()

    def effective(self, member: Member) -> Member:
        """Adapt the member to its next turn: with the memory "resume" if its process cannot be kept running."""
        return replace(member, memory="resume") if member.name in self._given_up else member

    def give_up(self, member: Member) -> None:
        """Stop keeping a process of the member."""
        self._given_up.add(member.name)

    def keeps(self, member: Member, session: str) -> bool:
        """Whether a process of the member waits for the next turn of that vendor session."""
        kept = (life for life in self._processes if life.member == member.name and life.session == session)
        return any(life.agent.runs() for life in kept)

    async def take(self, turn: ReadyTurn) -> tuple[ReadyTurn, LiveAgent | None]:
        """Return the kept process for `turn`, if it wants one. The turn's receipt then names what really runs."""
        rule, name = turn.command.live, turn.member.name
        if rule is None:
            return turn, None
        while life := next((life for life in self._processes if life.member == name and not life.speaks), None):
            if life.session and life.session == turn.setup.resumes and life.agent.runs():
                life.speaks = True
                setup = replace(turn.setup, argv=life.setup.argv, env=life.setup.env, same_process=True)
                return replace(turn, setup=setup), life.agent
            self._processes.remove(life)
            await life.agent.close()
            life.agent.remove()  # the next command finds what cannot be removed
        from teamchat.runners.child.live import LiveAgent

        self._processes.append(_Kept(name, LiveAgent(rule), turn.setup))
        return turn, self._processes[-1].agent

    def give_back(self, agent: LiveAgent | None, finished: FinishedTurn) -> FinishedTurn:
        """Give the turn its own cost, even if its CLI reports that of the whole process (Claude 2.1.197, 2.1.260)."""
        life, used = next((life for life in self._processes if life.agent is agent), None), finished.outcome.usage
        if life is None:
            return finished
        life.speaks, life.session = False, finished.vendor_session
        if finished.own_cost or used is None or used.cost_usd is None:
            return finished
        own, life.cost_usd = _own_cost(used, life.cost_usd), used.cost_usd
        return replace(finished, outcome=replace(finished.outcome, usage=replace(used, cost_usd=own)))

    async def close(self) -> list[str]:
        """End all processes. Return a sentence for each folder that cannot be removed."""
        await asyncio.gather(*(life.agent.close() for life in self._processes))
        problems = [problem for life in self._processes if (problem := life.agent.remove())]
        self._processes.clear()
        return problems


def _own_cost(used: Usage, before: float) -> float | None:
    """Return the turn's share of a growing sum. A smaller sum began anew; an unchanged one leaves the share unknown."""
    assert used.cost_usd is not None
    if used.cost_usd == before:
        return None if before or used.is_nothing else 0.0
    return used.cost_usd - before if used.cost_usd > before else used.cost_usd
