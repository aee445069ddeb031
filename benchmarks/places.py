"""A map-reduce of many subtasks of one second each, of one worker: at home, and over four hosts of five jobs each.

The floor is the arithmetic: the subtasks by the turns that run at the same time, a second each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.figure import Figure, Measures, Unavailable
from benchmarks.hosts import World as Hosts
from benchmarks.world import MEASURED, PERSON, World, member, peak_mb, world
from tests.workers.postgres import Unavailable as NoPostgres
from tests.workers.postgres import cluster

AT_HOME, ON_HOSTS, AT_ONCE = 500, 200, 20
TIMES, MOST_MB, MOST_S = 1.3, 300, 25
LIMITS = "[team.limits]\nturns = 600\n"
PLANNER = """case "$(cat)" in
*"JSON list"*) echo '{plan}' ;;
*"of a larger task"*) sleep 1; echo done ;;
*) echo merged ;;
esac"""
WORKER = ("sh", "-c", "cat > /dev/null; sleep 1; echo done")


def measures(_quick: bool) -> Measures:
    with tempfile.NamedTemporaryFile("w") as script, ExitStack() as stack:
        script.write(PLANNER.format(plan=plan(AT_HOME)))  # a command has at most 1,000 words
        script.flush()
        lead = member("lead", ("sh", script.name))
        at = stack.enter_context(world(f"{LIMITS}{PERSON}{lead}{member('sarah', WORKER)}"))
        yield f"{AT_HOME} subtasks at home", partial(at_home, at)
    try:
        with cluster() as postgres, tempfile.TemporaryDirectory() as name, ExitStack() as workers:
            members = (f'[[members]]\nname = "{each}"\nagent = "agent"\nhost = "any"\n' for each in ("lead", "sarah"))
            agent = f"#!/bin/sh\n{PLANNER.format(plan=plan(ON_HOSTS))}\n"
            hosts = Hosts(Path(name), postgres.database(), f"{LIMITS}{''.join(members)}", agent)
            for number in range(4):
                workers.enter_context(hosts.worker(f"gpu{number}", 5))
            yield f"{ON_HOSTS} subtasks on four hosts*", partial(on_hosts, hosts)
    except NoPostgres as why:
        raise Unavailable(str(why)) from None


def plan(number: int) -> str:
    return json.dumps([f"subtask {each}" for each in range(number)])


def at_home(at: World) -> Iterator[Figure]:
    run = ("run", "mapreduce", "--new", "--quiet", "--workers", "sarah", "--jobs", str(AT_ONCE), "Go")
    took = at.run((*MEASURED, *run))
    yield Figure(
        name=f"{AT_HOME} subtasks at home", unit="ms", value=took.wall_ms, floor=1000 * AT_HOME / AT_ONCE,
        floor_is="the arithmetic", by="ratio", bound=TIMES,
    )  # fmt: skip
    yield Figure(name=f"{AT_HOME} subtasks, memory", unit="MB", value=peak_mb(at.folder), by="value", bound=MOST_MB)


def on_hosts(hosts: Hosts) -> Iterator[Figure]:
    run = ("run", "mapreduce", "--new", "--quiet", "--workers", "sarah", "--jobs", str(AT_ONCE), "Go")
    began = time.monotonic()
    subprocess.run((sys.executable, "-m", "teamchat", *run), cwd=hosts.home, env=hosts.env("home"), check=True)
    yield Figure(
        name=f"{ON_HOSTS} subtasks on four hosts", unit="s", value=time.monotonic() - began, by="value", bound=MOST_S,
        note=f"the arithmetic is {ON_HOSTS // AT_ONCE} s",
    )  # fmt: skip
