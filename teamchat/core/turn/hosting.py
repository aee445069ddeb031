"""Members on hosts: the place of their next turn, and the connection to it."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from teamchat.core.agents import AGENT_TYPES, ProtocolName, normalize_agent_type
from teamchat.core.context.build import BuiltPrompt
from teamchat.core.dispatch.choose import Wanted, choose, why_none
from teamchat.core.dispatch.connect import connect
from teamchat.core.dispatch.dispatch import Away, Dispatch, HostSeen
from teamchat.core.dispatch.hosted import HostedTurn
from teamchat.core.dispatch.order import Order, OrderFiles, Project
from teamchat.core.dispatch.project import project_of
from teamchat.core.errors import HostUnavailable, Interrupted
from teamchat.core.receipt import Ran
from teamchat.core.team.team import AgentSpec, Member, Team
from teamchat.core.turn.carried import Carried
from teamchat.runners.child.supervisor import Stopper
from teamchat.version import VERSION

LOOK_S = 0.5  # Seconds between two looks for a missing host.


class HostPlace(Struct, frozen=True):
    """The place of a turn: a host, the agent as the host runs it, and the project.

    `dispatch` carries it there; None in a replay. A turn in a worktree has it as `carried`, with its packed `files`.
    """

    host: HostSeen
    agent: AgentSpec
    project: Project
    dispatch: Dispatch | None
    say: Callable[[str], None]
    carried: Carried | None = None
    files: OrderFiles | None = None

    def on(self, team: Team, member: Member) -> tuple[Team, Member]:
        """Adapt the team and the member to a turn there."""
        agents = {**team.agents, normalize_agent_type(member.agent or ""): self.agent}
        return replace(team, agents=agents), replace(member, host=(self.host.name,))

    def turn(
        self, folder: Path, member: Member, prompt: BuiltPrompt, budget_usd: float | None, resumes: str | None
    ) -> HostedTurn | None:
        """Make the turn whose output goes to `folder`, whose name no other turn has; None in a replay."""
        if self.dispatch is None:
            return None
        order = Order(
            turn=folder.name,
            host=self.host.name,
            member=member.name,
            agent=self.agent.name,
            protocol=self.agent.protocol,
            project=self.project,
            prompt=prompt.prepared.stdin,
            system_text=prompt.system_text,
            access=member.access,
            timeout_s=member.timeout_s,
            first_byte_s=member.first_byte_s,
            stall_s=member.stall_s,
            allow=member.allow,
            model=member.model,
            web=member.web,
            memory=member.memory,
            resumes=resumes,
            budget_usd=budget_usd,
            teamchat=VERSION,
            files=self.files,
        )
        turn = HostedTurn(self.dispatch, order.turn, order.host, self.say, order)
        turn.returns = self.carried
        return turn

    def with_files(self, worktree: Carried) -> HostPlace:
        """Add the worktree's current files to the place. Blocks. Raises `HostUnavailable` and `CheckpointFailed`."""
        heads = [head for project, head in self.host.heads if project.is_of(self.project)]
        return replace(self, carried=worktree, files=worktree.files(heads))


def place_of_old(member: Member, host: str, protocol: ProtocolName) -> HostPlace:
    """Build the place of a turn that is replayed."""
    spec = AgentSpec(member.agent or "", (member.agent or "",), protocol)
    return HostPlace(HostSeen(host, "", 0.0), spec, Project(), None, lambda _text: None)


def ran_on(turn: HostedTurn) -> tuple[Ran, bool]:
    """Return the host's report on the turn for its receipt, and whether the end of its process is known."""
    began = turn.began
    if began is None:
        return Ran(turn.host, lost=turn.lost, gone=turn.gone), False
    details = (began.executor, began.cwd, began.argv, began.env, began.access_note, began.teamchat)
    return Ran(turn.host, *details, lost=turn.lost, gone=turn.gone), not turn.lost


class Hosting(Struct):
    """The hosts of one run. `person`: somebody sees that it waits, and can end that."""

    person: bool = False
    _dispatch: Dispatch | None = None
    _projects: dict[Path, Project] = field(default_factory=dict)
    _reserved: Counter[str] = field(default_factory=Counter)
    _over: list[str] = field(default_factory=list)
    _limited: dict[tuple[str, str], float] = field(default_factory=dict)

    def connected(self) -> Dispatch:
        """Connect to the hosts, once. Raises `HostUnavailable` and `UsageError`."""
        if self._dispatch is None:
            self._dispatch = connect(os.environ)
        return self._dispatch

    async def place(self, member: Member, team: Team, say: Callable[[str], None], stopper: Stopper) -> HostPlace:
        """Choose the host of the member's next turn, waiting for one if none is there. Raises `HostUnavailable`."""
        dispatch = await asyncio.to_thread(self.connected)
        wanted = Wanted(member.host, member.agent or "", member.access, await self._project(member.cwd))
        clock = dispatch.clock
        wait_s = (
            member.host_wait_s if member.host_wait_s is not None else clock.wait_s if self.person else clock.alone_s
        )
        until, announced = time.monotonic() + wait_s, False
        while True:
            try:
                hosts = [self._as_known(host) for host in await dispatch.hosts()]
                chosen, why = choose(hosts, wanted, clock.dead_s, self._reserved), ""
                if chosen is None:
                    why = why_none(hosts, wanted, clock.dead_s)
            except Away as away:
                hosts, chosen, why = [], None, str(away)
            if chosen:
                self._reserved[chosen.name] += 1
                return HostPlace(chosen, self._agent(member, team, chosen), wanted.project, dispatch, say)
            if stopper.asked:
                raise Interrupted(f"{member.name} was interrupted before its turn began")
            named = [host for host in hosts if wanted.named(host)]
            if time.monotonic() >= until or (named and all(host.trouble for host in named)):
                raise HostUnavailable(f"{member.name} has no host now: {why}", "teamchat hosts")
            if not announced:
                say(f"waiting for a host: {why}")
                announced = True
            await stopper.sleep(LOOK_S)

    def limited(self, host: str, agent: str) -> None:
        """Note that an agent of the host met a rate limit, which the host itself reports only with its next beat."""
        if self._dispatch:
            self._limited[host, normalize_agent_type(agent)] = time.monotonic() + 2 * self._dispatch.clock.beat_s

    def _as_known(self, host: HostSeen) -> HostSeen:
        """Add to the host the rate limits that it met after its last report."""
        now = time.monotonic()
        agents = {
            name: replace(offer, cools_s=max(offer.cools_s, self._limited.get((host.name, name), now) - now))
            for name, offer in host.agents.items()
        }
        return replace(host, agents=agents)

    def ordered(self, place: HostPlace) -> None:
        """Note that the turn of a place counts among the host's own turns now, or does not run."""
        self._reserved[place.host.name] -= 1

    async def _project(self, folder: Path) -> Project:
        if folder not in self._projects:
            self._projects[folder] = await asyncio.to_thread(project_of, folder)
        return self._projects[folder]

    @staticmethod
    def _agent(member: Member, team: Team, host: HostSeen) -> AgentSpec:
        key = normalize_agent_type(member.agent or "")
        protocol = host.agents[key].protocol
        if protocol not in AGENT_TYPES:
            raise HostUnavailable(
                f"{host.name} runs {member.agent} like {protocol!r}, which this teamchat does not know"
            )
        here = team.agents.get(key)
        return AgentSpec(here.name if here else member.agent or "", (member.agent or "",), protocol)

    def forget(self, turn: str) -> None:
        """Note that the end of a turn is stored: at the end its order and output leave the database."""
        self._over.append(turn)

    async def close(self) -> None:
        """Remove the turns stored here from the database, if it answers, and close the connection."""
        if self._dispatch is None:
            return
        try:
            for turn in self._over:
                await self._dispatch.forget(turn)
        except Away:
            pass  # it stays in the database, and is read by nobody: no order is made twice
        dispatch, self._dispatch = self._dispatch, None
        await asyncio.to_thread(dispatch.close)
