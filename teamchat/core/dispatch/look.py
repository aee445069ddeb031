"""How the database of hosts and its hosts stand, and whether a host is there for each member that runs on one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from teamchat.core.agents import AGENT_TYPES
from teamchat.core.dispatch.choose import Wanted, choose, why_none
from teamchat.core.dispatch.connect import connect
from teamchat.core.dispatch.dispatch import Away, HostSeen
from teamchat.core.dispatch.order import ANY
from teamchat.core.dispatch.project import project_of
from teamchat.core.doctor.checks import DoctorCheck
from teamchat.core.doctor.versions import known_version
from teamchat.core.errors import TeamchatError
from teamchat.core.team.team import INSTALL, Member

SKEW_S = 60.0  # the largest difference allowed between two clocks


def check_hosts(members: Sequence[Member], env: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """Check the database, the hosts and the members; only one finding if the database cannot be asked."""
    try:
        dispatch = connect(env)
    except TeamchatError as error:
        yield DoctorCheck(None, "hosts", "warning", str(error), hint=error.hint)
        return
    try:
        hosts, database = asyncio.run(dispatch.hosts()), asyncio.run(dispatch.database())
    except Away as away:
        yield DoctorCheck(None, "hosts", "warning", str(away), hint=away.hint)
        return
    finally:
        dispatch.close()
    whose = f"answers as {database.role}" if database.role else "is a file"
    yield _at_time(None, "database", f"{whose}: {database.tables}", -database.ahead_s)
    named = {name for member in members for name in member.host}
    for host in hosts:
        if (ANY in named or host.name in named) and host.trouble is None and host.seen_s <= dispatch.clock.dead_s:
            yield from _check_host(host, database.ahead_s)
    for member in members:
        try:
            wanted = Wanted(member.host, member.agent or "", member.access, project_of(member.cwd))
        except TeamchatError as error:
            yield DoctorCheck(member.name, "host", "warning", str(error), hint=error.hint)
            continue
        chosen = choose(hosts, wanted, dispatch.clock.dead_s, {})
        if chosen:
            free = f"{chosen.name}, {chosen.free} of {chosen.jobs} jobs free"
            yield DoctorCheck(member.name, "host", "ok", free, chosen.name)
        else:
            why = why_none(hosts, wanted, dispatch.clock.dead_s)
            yield DoctorCheck(member.name, "host", "warning", f"none can run it now: {why}", hint="teamchat hosts")


def _check_host(host: HostSeen, home_ahead_s: float) -> Iterator[DoctorCheck]:
    """Check a host that is there: its clock, and what is known of its CLIs."""
    yield _at_time(None, "host", f"{host.name}, {host.free} of {host.jobs} jobs free", host.ahead_s - home_ahead_s)
    for name, agent in host.agents.items():
        vendor = AGENT_TYPES[agent.protocol].runner.vendor if agent.protocol in AGENT_TYPES else None
        if agent.version and vendor:
            found = known_version(agent.version, vendor, INSTALL[vendor])
            yield replace(found, text=f"{name} {found.text}, on {host.name}")


def _at_time(member: str | None, what: str, text: str, ahead_s: float) -> DoctorCheck:
    """Make a finding that is good unless the clock there differs from the one here."""
    if abs(ahead_s) < SKEW_S:
        return DoctorCheck(member, what, "ok", text)
    side = "ahead of" if ahead_s > 0 else "behind"
    text = f"{text}; its clock is {abs(ahead_s):,.0f} s {side} the one here, and an order is good for 24 h only"
    return DoctorCheck(member, what, "warning", text)
