"""The processes of members with the memory "live": each stays for as long as its own session is gone on with."""

from __future__ import annotations

from dataclasses import dataclass, replace

from teamchat.core.member_turn import FinishedTurn, ReadyTurn
from teamchat.core.receipt import Setup
from teamchat.runners.live import LiveAgent


@dataclass(slots=True)
class _Life:
    """A process, what the turn that started it was given, and what its turns have cost."""

    agent: LiveAgent
    setup: Setup
    session: str | None = None
    cost_usd: float = 0.0


class Living:
    """At most one process a member, between its first turn of a run and `close`."""

    def __init__(self) -> None:
        self._lives: dict[str, _Life] = {}

    async def take(self, turn: ReadyTurn) -> tuple[ReadyTurn, LiveAgent | None]:
        """The process for `turn`, where it wants one that stays; the turn's receipt then names what really runs."""
        rule, name = turn.command.live, turn.member.name
        if rule is None:
            return turn, None
        life = self._lives.get(name)
        if life and life.session and life.session == turn.setup.resumes and life.agent.runs():
            setup = replace(turn.setup, argv=life.setup.argv, env=life.setup.env, same_process=True)
            return replace(turn, setup=setup), life.agent
        if life:
            await life.agent.close()
        self._lives[name] = _Life(LiveAgent(rule), turn.setup)
        return turn, self._lives[name].agent

    def give_back(self, turn: ReadyTurn, finished: FinishedTurn) -> FinishedTurn:
        """The turn with its own cost: Claude tells that of its whole process (observed at 2.1.197)."""
        life, used = self._lives.get(turn.member.name), finished.outcome.usage
        if turn.command.live is None or life is None:
            return finished
        life.session = finished.vendor_session
        if used is None or used.cost_usd is None:
            return finished
        own, life.cost_usd = max(used.cost_usd - life.cost_usd, 0.0), used.cost_usd
        return replace(finished, outcome=replace(finished.outcome, usage=replace(used, cost_usd=own)))

    async def close(self) -> None:
        """End them all."""
        for life in self._lives.values():
            await life.agent.close()
        self._lives.clear()
