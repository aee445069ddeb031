"""What an export of 200,000 messages takes: the time of the command, and the most memory that it ever had.

The floor is a bare script that reads the same messages, turns and events with `sqlite3` and writes them as lines of
JSON: it checks nothing, and looks for no secret.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.figure import Figure, Measures, Unavailable
from benchmarks.filled_store import large
from benchmarks.world import MEASURED, World, peak_mb
from teamchat.core.files.folders import STORE_NAME

BOUNDS = {"md": (5.0, 100.0), "json": (5.0, 100.0), "jsonl": (5.0, 100.0), "html": (6.5, 150.0)}  # ratio and MB
FLOOR = Path(__file__).parent / "floors" / "export_lines.py"


def measures(_quick: bool) -> Measures:
    if not Path("/proc/self/status").exists():
        raise Unavailable("only Linux tells the most memory that a process had")
    many = large()
    for name in BOUNDS:
        yield name, partial(exported, many, name)


def exported(at: World, name: str) -> Iterator[Figure]:
    most, most_mb = BOUNDS[name]
    (store,) = Path(at.env["TEAMCHAT_HOME"]).rglob(STORE_NAME)
    floor = at.run((sys.executable, str(FLOOR), str(store), str(at.folder / "floor.jsonl"))).wall_ms / 1000
    took = at.run((*MEASURED, "export", "--format", name, "-o", f"talk.{name}")).wall_ms / 1000
    yield Figure(name=name, unit="s", value=took, floor=floor, floor_is="a bare script, as lines of JSON", bound=most)
    yield Figure(name=f"{name}, memory", unit="MB", value=peak_mb(at.folder), by="value", bound=most_mb)
