"""What a group takes beside its slowest member: three that work, twenty that answer at once, fifty of a second each.

The floor of fifty is fifty bare Typer scripts at once, each with an agent. Of fifty, the processor time of each turn is
that of all processes of the command, less that of an agent by itself. A map-reduce has twelve subtasks of a second each
and four workers, and a planner and a reducer that answer at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

from benchmarks.figure import Figure, Measures
from benchmarks.startup import BARE
from benchmarks.timing import REPEATS, Took, compared, interleaved
from benchmarks.world import PERSON, World, member, world

GROUPS = (
    ("three at once", [f"cat > /dev/null; sleep {pause}; echo Hi" for pause in (0.6, 0.8, 1.0)], 1.4),
    ("twenty that answer at once", ["cat > /dev/null; echo Hi"] * 20, 5.0),
)
PLAN = json.dumps([f"subtask {number}" for number in range(12)])
LEAD = f"""case "$(cat)" in *"JSON list"*) echo '{PLAN}' ;; *) echo merged ;; esac"""
FIFTY = ["cat > /dev/null; sleep 1; echo Hi"] * 50
AT_ONCE = f'for _ in $(seq {len(FIFTY)}); do "$@" & done; wait'


def measures(quick: bool) -> Measures:
    for name, commands, bound in () if quick else GROUPS:
        with world(team(commands)) as at:
            slowest = partial(send, at, f"m{len(commands) - 1}")
            yield name, partial(compared, name, partial(send, at, everyone(commands)), slowest, "one alone", bound)
    with world(team(FIFTY)) as at:
        yield "fifty of 1 s", partial(fifty, at, 2 if quick else REPEATS)
    with world(team([LEAD, *FIFTY[:4]])) as at:
        if not quick:
            yield "map-reduce", partial(map_reduce, at)


def team(commands: list[str]) -> str:
    """A person, and a member `m0`, `m1`, ... for each shell command."""
    members = "".join(member(f"m{number}", ("sh", "-c", line)) for number, line in enumerate(commands))
    return f"[team.limits]\nturns = 100\n{PERSON}{members}"


def everyone(commands: list[str]) -> str:
    return "+".join(f"m{number}" for number in range(len(commands)))


def send(at: World, to: str) -> Took:
    return at.teamchat("send", "--quiet", "--new", "--to", to, "Hi")


def fifty(at: World, repeats: int) -> Iterator[Figure]:
    agent = partial(at.run, ("sh", "-c", FIFTY[0]), b"Hi")
    scripts = partial(at.run, ("sh", "-c", AT_ONCE, "sh", *BARE, "send", "--", "sh", "-c", FIFTY[0]), b"Hi")
    ours, bare, alone = interleaved(partial(send, at, everyone(FIFTY)), scripts, agent, repeats=repeats)
    yield Figure(
        name="fifty of 1 s", unit="ms", value=ours.wall_ms, floor=bare.wall_ms, floor_is="fifty bare scripts",
        bound=1.5,
    )  # fmt: skip
    yield Figure(
        name="fifty of 1 s, CPU of a turn", unit="ms", value=ours.cpu_ms / len(FIFTY), floor=alone.cpu_ms,
        floor_is="an agent by itself", by="difference",
    )  # fmt: skip


def map_reduce(at: World) -> Iterator[Figure]:
    agent = partial(at.run, ("sh", "-c", FIFTY[0]), b"Hi")
    ours, alone = interleaved(partial(at.teamchat, "run", "mapreduce", "--quiet", "--new", "Hi"), agent, repeats=4)
    yield Figure(
        name="map-reduce: 12 of 1 s, 4 workers", unit="ms", value=ours.wall_ms, floor=3 * alone.wall_ms,
        floor_is="three agents in a row", bound=4000, by="value",
    )  # fmt: skip
