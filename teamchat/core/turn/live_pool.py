"""The processes of members with the memory "live": each stays for as long as its own session is gone on with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from teamchat.core.receipt import Setup
from teamchat.core.team.team import Member
from teamchat.core.turn.execution import FinishedTurn
from teamchat.core.turn.ready import ReadyTurn
from teamchat.runners.events import Usage
from teamchat.runners.process.live import LiveAgent


@dataclass(slots=True)
class _Life:
    """A member's process, what the turn that started it was given, and what its turns have cost."""

    member: str
    agent: LiveAgent
    setup: Setup
    speaks: bool = True  # in a turn that is not over
    session: str | None = None
    cost_usd: float = 0.0


class LivePool:
    """The processes between a member's first turn of a run and `close`.

    A member has one, and another one for what it answers in somebody's place at the same time.
    """

    def __init__(self) -> None:
        self._lives: list[_Life] = []
        self._given_up: set[str] = set()

    def kept(self, member: Member) -> Member:
        """The member as its next turn runs: with the memory "resume" where no process of it can be kept running."""
        return replace(member, memory="resume") if member.name in self._given_up else member

    def give_up(self, member: Member) -> None:
        """Keep no process of the member running any more."""
        self._given_up.add(member.name)

    async def take(self, turn: ReadyTurn) -> tuple[ReadyTurn, LiveAgent | None]:
        """The process for `turn`, where it wants one that stays; the turn's receipt then names what really runs."""
        rule, name = turn.command.live, turn.member.name
        if rule is None:
            return turn, None
        while life := next((life for life in self._lives if life.member == name and not life.speaks), None):
            if life.session and life.session == turn.setup.resumes and life.agent.runs():
                life.speaks = True
                setup = replace(turn.setup, argv=life.setup.argv, env=life.setup.env, same_process=True)
                return replace(turn, setup=setup), life.agent
            self._lives.remove(life)
            await life.agent.close()
            life.agent.remove()  # what stays is found by the next command
        self._lives.append(_Life(name, LiveAgent(rule), turn.setup))
        return turn, self._lives[-1].agent

    def give_back(self, agent: LiveAgent | None, finished: FinishedTurn) -> FinishedTurn:
        """The turn that `agent` has had, with its own cost: Claude tells that of its whole process (2.1.197)."""
        life, used = next((life for life in self._lives if life.agent is agent), None), finished.outcome.usage
        if life is None:
            return finished
        life.speaks, life.session = False, finished.vendor_session
        if used is None or used.cost_usd is None:
            return finished
        own, life.cost_usd = _own_cost(used, life.cost_usd), used.cost_usd
        return replace(finished, outcome=replace(finished.outcome, usage=replace(used, cost_usd=own)))

    async def close(self) -> list[str]:
        """End them all; what of their folders could not be removed."""
        await asyncio.gather(*(life.agent.close() for life in self._lives))
        left = [problem for life in self._lives if (problem := life.agent.remove())]
        self._lives.clear()
        return left


def _own_cost(used: Usage, before: float) -> float | None:
    """The turn's part of a cost that adds up; a sum that shrinks is none, and one that stands still tells nothing."""
    assert used.cost_usd is not None
    if used.cost_usd == before:
        return None if before or used.is_nothing else 0.0
    return used.cost_usd - before if used.cost_usd > before else used.cost_usd
