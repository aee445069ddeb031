from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated

import typer

from teamchat.cli.output.jsonl import write_line
from teamchat.cli.output.lines import note
from teamchat.cli.startup.options import JsonOption
from teamchat.cli.startup.workspace import need_person
from teamchat.core.dispatch.connect import connect, need_address
from teamchat.core.dispatch.dispatch import Away, HostClock, HostSeen
from teamchat.core.errors import HostUnavailable
from teamchat.core.text.clean import printable


def hosts(
    init_database: Annotated[
        bool, typer.Option("--init-database", help="Make the tables of TEAMCHAT_DATABASE, once, as their owner.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the hosts on which members can run: their agents, projects and jobs, and when each was last seen."""
    if init_database:
        need_person("the database of hosts is made")
        url = need_address()
        from teamchat.core.dispatch.dbos.client import init_database as init
        from teamchat.core.dispatch.dbos.tables import ROLE

        try:
            lacks = init(url)
        except Away as away:
            raise HostUnavailable(str(away)) from None
        note("the tables are made")
        note(
            f"no role {ROLE} was made: {printable(lacks)}"
            if lacks
            else f"the role {ROLE} may use them, not change them"
        )
        return
    dispatch = connect()
    try:
        seen = asyncio.run(dispatch.hosts())
    except Away as away:
        raise HostUnavailable(str(away)) from None
    finally:
        dispatch.close()
    for host in seen:
        if as_json:
            write_line("host", **_fields(host, dispatch.clock))
        else:
            for line in _lines(host, dispatch.clock):
                typer.echo(printable(line))
    if not seen and not as_json:
        note("no worker is there; on a host: teamchat worker --init, then teamchat worker")


def _state(host: HostSeen, clock: HostClock) -> str:
    if host.trouble:
        return host.trouble
    if host.seen_s > clock.dead_s:
        return f"not seen for {host.seen_s:.0f} s"
    return "takes nothing new" if host.ending else f"{host.busy} of {host.jobs} jobs"


def _fields(host: HostSeen, clock: HostClock) -> dict[str, object]:
    return {
        "name": host.name,
        "there": host.seen_s <= clock.dead_s and not host.ending and host.trouble is None,
        "seen_s": round(host.seen_s, 1),
        "jobs": host.jobs,
        "busy": host.busy,
        "ending": host.ending,
        "agents": {
            name: {
                "like": agent.protocol,
                "access": agent.access,
                "version": agent.version,
                "cools_s": round(agent.cools_s, 1),
            }
            for name, agent in host.agents.items()
        },
        "projects": [{"remotes": list(project.remotes), "root": project.root} for project in host.projects],
        "teamchat": host.teamchat,
        "refused": list(host.refused),
        "trouble": host.trouble,
    }


def _lines(host: HostSeen, clock: HostClock) -> Iterator[str]:
    yield f"{host.name}: {_state(host, clock)}"
    for name, agent in host.agents.items():
        cools = f", cools down for {agent.cools_s:.0f} s" if agent.cools_s else ""
        like = "" if agent.protocol == name else f" like {agent.protocol}"
        yield f"  {name}{like}{f' {agent.version}' if agent.version else ''}: {agent.access}{cools}"
    for project in host.projects:
        yield f"  project {project.remotes[0] if project.remotes else project.root}"
    for refused in host.refused:
        yield f"  refused {refused}"
