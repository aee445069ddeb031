from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from teamchat.cli.output.lines import note
from teamchat.core.agents import normalize_agent_type
from teamchat.core.dispatch.connect import need_address
from teamchat.core.dispatch.order import ANY, is_host_name
from teamchat.core.errors import HostUnavailable, UnknownName, UsageError
from teamchat.core.text.clean import printable
from teamchat.core.worker.host_file import host_file, read_host_file, write_host_file
from teamchat.core.worker.serve import Ends, serve

MOST_JOBS = 64


def worker(
    name: Annotated[
        str | None, typer.Option("--name", help="The name of this host, by which team files call it.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=MOST_JOBS, help="How many turns run at once.")] = 1,
    agent: Annotated[
        list[str] | None, typer.Option("--agent", help="Offer only this agent of host.toml. May be repeated.")
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when no turn has come for ten seconds.")
    ] = False,
    init: Annotated[
        bool, typer.Option("--init", help="Write host.toml for the agents found here and the projects of --project.")
    ] = False,
    project: Annotated[
        list[Path] | None, typer.Option("--project", help="With --init: a clone of a project. May be repeated.")
    ] = None,
) -> None:
    """Run turns on this machine for teamchats that share a database, as far as its host.toml offers that.

    The first Ctrl-C takes nothing new and lets what runs end, a second one stops that.
    """
    path = host_file()
    if init:
        try:
            text = write_host_file(path, os.environ, project or [])
        except FileExistsError:
            raise UsageError(f"{path} is there already; change it there, or remove it first") from None
        typer.echo("".join(f"{printable(line)}\n" for line in text.splitlines()), nl=False)
        note(f"wrote {printable(str(path))}")
        if "\n[agents." not in text:
            note("found no agent on PATH; add those of this machine to the file: teamchat help workers")
        if not project:
            note("no project is offered; add [[projects]] with the folder of each to the file")
        return
    if project:
        raise UsageError("--project goes with --init")

    name = name or socket.gethostname().partition(".")[0]
    if name.casefold() == ANY:
        raise UsageError(f"--name: {name!r} is every host in a team file; give this one another")
    if not is_host_name(name):
        raise UsageError(f"--name: expected at most 40 letters, digits, _ . and -, got {name!r}")
    file = read_host_file(path)
    if agent:
        keys = [normalize_agent_type(agent_name) for agent_name in agent]
        if strange := next(
            (agent_name for agent_name, key in zip(agent, keys, strict=True) if key not in file.agents), None
        ):
            there = ", ".join(host_agent.spec.name for host_agent in file.agents.values())
            raise UnknownName(f"{path} offers no agent {strange!r} (there are: {there})")
        file = replace(file, agents={key: file.agents[key] for key in keys})
    for what, offered in (("agent", file.agents), ("project", file.projects)):
        if not offered:
            raise HostUnavailable(f"this machine offers nothing: {path} has no {what}", "teamchat help workers")
    ends = Ends()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ends.request())
    env = dict(os.environ)
    serve(
        need_address(), file, name, jobs, env, ends=ends, say=lambda text: note(printable(text)), until_idle=until_idle
    )
