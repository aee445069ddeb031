"""The choice of a turn's host: most free jobs among the hosts that offer the agent, the access and the project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from msgspec import Struct

from teamchat.core.agents import normalize_agent_type
from teamchat.core.dispatch.dispatch import HostSeen
from teamchat.core.dispatch.order import ANY, Project
from teamchat.runners.base import Access

ORDER: tuple[Access, ...] = get_args(Access)
"""From the least access to the most."""


class Wanted(Struct, frozen=True):
    """The requirements of a turn for its host. `names` are the hosts in the team file."""

    names: tuple[str, ...]
    agent: str
    access: Access
    project: Project

    def named(self, host: HostSeen) -> bool:
        return ANY in self.names or host.name in self.names

    def lacks(self, host: HostSeen, dead_s: float) -> str | None:
        """Say why the host cannot run the turn now, in words that follow its name; None if it can."""
        if host.trouble:
            return f"cannot be used: {host.trouble}"
        if host.seen_s > dead_s:
            return host.absence
        if host.ending:
            return "takes nothing new"
        offer = host.agents.get(normalize_agent_type(self.agent))
        if offer is None:
            return f"does not offer {self.agent}"
        if ORDER.index(self.access) > ORDER.index(offer.access):
            return f"offers {self.agent} with access {offer.access}, not {self.access}"
        if not any(project.is_of(self.project) for project in host.projects):
            return "does not offer this project"
        if offer.cools_s > 0:
            return f"has a rate limit of {self.agent} for {offer.cools_s:.0f} s"
        return None


def choose(hosts: Iterable[HostSeen], wanted: Wanted, dead_s: float, reserved: Mapping[str, int]) -> HostSeen | None:
    """Choose the host for a turn, or None if none can run it now. `reserved` are turns about to be given to hosts."""
    able = [host for host in hosts if wanted.named(host) and wanted.lacks(host, dead_s) is None]
    return max(able, key=lambda host: (host.jobs - host.busy - reserved.get(host.name, 0), host.name), default=None)


def why_none(hosts: Iterable[HostSeen], wanted: Wanted, dead_s: float) -> str:
    """Say why no host can run the turn, each by its name."""
    seen = [host for host in hosts if wanted.named(host)]
    reasons = [f"{host.name} {wanted.lacks(host, dead_s) or 'is there'}" for host in seen]
    missing = [f"{name} was never seen" for name in wanted.names if name != ANY and all(h.name != name for h in seen)]
    return "; ".join((*reasons, *missing)) or "no worker is there"
