"""All benchmarks, or those that are named: `python -m benchmarks [NAME ...]`, `make bench`.

A name is that of a benchmark (`startup`) or of a measurement of it (`startup/send`); `*` stands for anything. A figure
over its bound is measured up to three times more, because what else the machine does makes times longer, and the lowest
counts. The exit code is 1 if that is over the bound, too, and 3 if a benchmark failed or none has that name.

`--quick` (`make bench-quick`) takes a subset, in about two minutes. The files of a quick run are in memory
(`/dev/shm`) if there is room, because disks differ.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import table
from benchmarks.figure import Measures
from benchmarks.running import Run
from tests.folders import folder_of_a_run, place

OVER, FAILED = 1, 3  # exit codes
AGAIN = 3
QUICK = ("startup", "prompt", "group", "guardian", "hostile", "checkpoint")
BENCHMARKS = (
    "startup",
    "prompt",
    "group",
    "guardian",
    "hostile",
    "first_delta",
    "streams",
    "storing",
    "echo",
    "watching",
    "clis",
    "long",
    "export",
    "search",
    "replies",
    "checkpoint",
    "chain",
    "until",
    "hosts",
    "places",
)


def main(argv: Sequence[str] | None = None, benchmarks: Mapping[str, Callable[[bool], Measures]] | None = None) -> int:
    """The exit code. `benchmarks` takes the place of those in this folder."""
    options = arguments(argv)
    names = benchmarks or (QUICK if options.quick else BENCHMARKS)
    run = Run(options.names or ["*"], again=AGAIN)
    print(table.HEAD)
    with folder_of_a_run(place(in_memory=options.quick)) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))
        for name in filter(run.chooses, names):
            measures = (benchmarks or {}).get(name) or import_module(f"benchmarks.{name}").measures
            run.take(name, measures(options.quick))
    if options.json:
        options.json.write_bytes(run.in_json(options.json))
    for name, why in (*run.over.items(), *run.failed.items()):
        print(f"{name}: {why}", file=sys.stderr)
    return FAILED if run.failed or not run.figures else OVER if run.over else 0


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark, or benchmark/measurement (default: all)")
    parser.add_argument("--quick", action="store_true", help="a subset, in about two minutes")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the figures and the machine to FILE; its others remain"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
