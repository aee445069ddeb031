"""Whether a host is there for each member that runs on one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from teamchat.core.dispatch.choose import Wanted, choose, why_none
from teamchat.core.dispatch.connect import connect
from teamchat.core.dispatch.dispatch import Away
from teamchat.core.dispatch.project import project_of
from teamchat.core.doctor.checks import DoctorCheck
from teamchat.core.errors import TeamchatError
from teamchat.core.team.team import Member


def check_hosts(members: Sequence[Member], env: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """The finding about each of the members; a single one if their database cannot be asked."""
    try:
        dispatch = connect(env)
    except TeamchatError as error:
        yield DoctorCheck(None, "hosts", "warning", str(error), hint=error.hint)
        return
    try:
        hosts = asyncio.run(dispatch.hosts())
    except Away as away:
        yield DoctorCheck(None, "hosts", "warning", str(away))
        return
    finally:
        dispatch.close()
    for member in members:
        try:
            wanted = Wanted(member.host, member.agent or "", member.access, project_of(member.cwd))
        except TeamchatError as error:
            yield DoctorCheck(member.name, "host", "warning", str(error), hint=error.hint)
            continue
        host = choose(hosts, wanted, dispatch.clock.dead_s, {})
        if host:
            yield DoctorCheck(
                member.name, "host", "ok", f"{host.name}, {host.free} of {host.jobs} jobs free", host.name
            )
        else:
            why = why_none(hosts, wanted, dispatch.clock.dead_s)
            yield DoctorCheck(member.name, "host", "warning", f"none can run it now: {why}", hint="teamchat hosts")
