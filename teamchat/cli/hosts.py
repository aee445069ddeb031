from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Coroutine, Iterator
from typing import Annotated, Any, TypeVar

import typer
from msgspec.structs import replace

from teamchat.cli.output.jsonl import write_line
from teamchat.cli.output.lines import note, size
from teamchat.cli.startup.options import JsonOption
from teamchat.cli.startup.workspace import need_person
from teamchat.core.dispatch.connect import connect, need_address
from teamchat.core.dispatch.dispatch import Away, Dispatch, HostClock, HostSeen
from teamchat.core.dispatch.order import is_host_name
from teamchat.core.dispatch.signing import HomeKeys, fingerprint
from teamchat.core.errors import HostUnavailable, UnknownName, UsageError
from teamchat.core.files.folders import config_dir
from teamchat.core.text.clean import printable

T = TypeVar("T")
hosts = typer.Typer(invoke_without_command=True)


@hosts.command()
def trust(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The host, as `teamchat hosts` calls it.")],
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="The key that it must have, as its worker says: SHA256:....")
    ] = None,
) -> None:
    """Trust the key of a host: turns go to it, and only ends that are signed with that key are taken from there."""
    need_person("trust is given")
    dispatch = connect()
    with contextlib.closing(dispatch):
        host = next((host for host in _asked(dispatch.hosts()) if host.name == name and is_host_name(name)), None)
        if host is None:
            raise UnknownName(f"there is no host {name!r}", "teamchat hosts")
        shown = fingerprint(host.key)
        if host.key and shown is None:
            raise HostUnavailable(f"{name} shows a key that cannot be read")
        if not (host.key or dispatch.keys.local):
            raise HostUnavailable(f"{name} has no key, which goes only with a database of this machine")
        if key not in (None, shown):
            has = f"the key {shown}" if shown else "no key"
            raise UsageError(f"{name} has {has}, not {key!r}: it is not trusted", "teamchat hosts")
        before = dispatch.keys.of(name)
        if host.trouble and before == host.key:
            raise HostUnavailable(f"{name}: {host.trouble}")
        dispatch.keys.trust(name, host.key)
    if before not in (None, host.key):
        note(f"{name} was trusted {f'with the key {fingerprint(before)}' if before else 'without a key'} so far")
    if shown is None:
        note(f"{name} is trusted without a key: whoever can write to the database can speak for it")
    else:
        said = "" if key else "; its worker must have said the same at its start"
        note(f"{name} is trusted with the key {shown}{said}")


@hosts.callback()
def list_hosts(
    ctx: typer.Context,
    init_database: Annotated[
        bool, typer.Option("--init-database", help="Make the tables of TEAMCHAT_DATABASE, once, as their owner.")
    ] = False,
    key: Annotated[
        bool, typer.Option("--key", help="Print the line that allowed_signers of each host must have.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Go on, and show what changes. Ctrl-C ends it.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the hosts on which members can run: their agents, projects and jobs, and when each was last seen."""
    if ctx.invoked_subcommand:
        if init_database or key or watch or as_json:
            raise UsageError("options go behind the command", f"teamchat hosts {ctx.invoked_subcommand} --help")
        return
    if init_database + key + watch > 1:
        raise UsageError("give one of --init-database, --key and --watch", "teamchat hosts --help")
    if init_database:
        _init_database()
    elif key:
        need_person("the key of this home is shown")
        typer.echo(HomeKeys(config_dir(), local=True).line())
    else:
        dispatch = connect()
        with contextlib.closing(dispatch):
            _watch(dispatch, as_json=as_json) if watch else _list(dispatch, as_json=as_json)


def _init_database() -> None:
    need_person("the database of hosts is made")
    url = need_address()
    from teamchat.core.dispatch.dbos.client import init_database as init

    try:
        role, lacks = init(url)
    except Away as away:
        raise HostUnavailable(str(away), away.hint) from None
    note("the tables are made")
    if role:
        note(
            f"no role {role} was made: {printable(lacks)}"
            if lacks
            else f"the role {role} may use them, not change them"
        )


def _asked(answer: Coroutine[Any, Any, T]) -> T:
    """Return the answer of the database. Raises `HostUnavailable`."""
    try:
        return asyncio.run(answer)
    except Away as away:
        raise HostUnavailable(str(away), away.hint) from None


def _list(dispatch: Dispatch, *, as_json: bool) -> None:
    seen, stored = _asked(dispatch.hosts()), _asked(dispatch.database())
    for host in seen:
        _show(host, dispatch.clock, as_json=as_json)
    if as_json:
        write_line("database", bytes=stored.size)
    elif seen:
        typer.echo(f"the database keeps {size(stored.size)}")
    else:
        note("no worker is there; on a host: teamchat worker --init, then teamchat worker")


def _watch(dispatch: Dispatch, *, as_json: bool) -> None:
    """List each host that changed, and hosts that left, as soon as they do."""
    told, away = dict[str, HostSeen](), ""
    while True:
        try:
            seen = {host.name: host for host in asyncio.run(dispatch.hosts())}
        except Away as error:
            if str(error) != away:
                note(printable(f"{error}; tries again"))
            away = str(error)
        else:
            if away:
                note("the database answers again")
            away = ""
            for name in [name for name in told if name not in seen]:
                del told[name]
                write_line("host_left", name=name) if as_json else typer.echo(f"{name}: has left")
            for name, host in seen.items():
                lasting = _lasting(host, dispatch.clock)
                if told.get(name) != lasting:
                    told[name] = lasting
                    _show(host, dispatch.clock, as_json=as_json)
            sys.stdout.flush()
        time.sleep(dispatch.clock.beat_s)


def _show(host: HostSeen, clock: HostClock, *, as_json: bool) -> None:
    if as_json:
        write_line("host", **_fields(host, clock))
        return
    for line in _lines(host, clock):
        typer.echo(printable(line))


def _lasting(host: HostSeen, clock: HostClock) -> HostSeen:
    """Return the host without the numbers that change with every look."""
    agents = {name: replace(agent, cools_s=float(agent.cools_s > 0)) for name, agent in host.agents.items()}
    return replace(host, seen_s=float(host.seen_s > clock.dead_s), ahead_s=0.0, agents=agents)


def _state(host: HostSeen, clock: HostClock) -> str:
    if host.trouble:
        return host.trouble
    if host.seen_s > clock.dead_s:
        return host.absence
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
        "key": fingerprint(host.key),
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
    if shown := fingerprint(host.key):
        yield f"  key {shown}"
    for refused in host.refused:
        yield f"  refused {refused}"
