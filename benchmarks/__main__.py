"""All benchmarks, or those that are named: `python -m benchmarks [NAME ...]`, `make bench`.

A name is that of a benchmark (`startup`) or of a measurement of it (`startup/send`); `*` stands for anything. A figure
over its bound is measured once more, because what else the machine does makes times longer, and the lower one counts.
The exit code is 1 if that is over the bound, too, and 3 if a benchmark failed or none has that name.

`--quick` (`make bench-quick`) takes a subset, in about two minutes. It fails if a figure is over 1.3 times the one that
the repository keeps (`figures.json`), both as multiples of their floors. A figure over that limit is measured up to
twice more, and does not count while other programs use the processors. `--keep` keeps the figures of the run. `make`
puts the files of a quick run into memory (`/dev/shm`) where that is possible, because disks differ.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from benchmarks import kept, table
from benchmarks.figure import Measures
from benchmarks.machine import busy
from benchmarks.running import Run, in_bounds, near_kept

OVER, FAILED = 1, 3  # exit codes
AGAIN, QUICK_AGAIN = 1, 2
QUICK = (
    "startup",
    "prompt",
    "group",
    "guardian",
    "hostile",
)
BENCHMARKS = (
    *QUICK,
    "first_delta",
    "streams",
    "storing",
    "echo",
    "watching",
    "clis",
    "long",
    "search",
    "memory",
    "replies",
    "checkpoint",
    "chain",
)


def main(
    argv: Sequence[str] | None = None,
    benchmarks: Mapping[str, Callable[[bool], Measures]] | None = None,
    busy: Callable[[], bool] = busy,
) -> int:
    """The exit code. `benchmarks` takes the place of those in this folder, `busy` of a look at this machine."""
    options = arguments(argv)
    names = benchmarks or (QUICK if options.quick else BENCHMARKS)
    judge = near_kept(kept.read(options.figures)) if options.quick else in_bounds
    run = Run(
        options.names or ["*"],
        (lambda *_: "") if options.keep else judge,
        again=QUICK_AGAIN if options.quick else AGAIN,
        busy=busy if options.quick else lambda: False,
    )
    print(table.HEAD)
    for name in filter(run.chooses, names):
        measures = (benchmarks or {}).get(name) or import_module(f"benchmarks.{name}").measures
        run.take(name, measures(options.quick))
    if options.json:
        options.json.write_bytes(run.in_json(options.json))
    if options.keep:
        kept.write(run.figures, options.figures)
    for name, why in (*run.over.items(), *run.failed.items()):
        print(f"{name}: {why}", file=sys.stderr)
    return FAILED if run.failed or not run.figures else OVER if run.over else 0


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark, or benchmark/measurement (default: all)")
    parser.add_argument("--quick", action="store_true", help="the subset that is compared with the kept figures")
    parser.add_argument("--keep", action="store_true", help="keep the figures of this run; with --quick")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the figures and the machine to FILE; its others remain"
    )
    parser.add_argument("--figures", type=Path, default=kept.FILE, metavar="FILE", help="where figures are kept")
    options = parser.parse_args(argv)
    if options.keep and not options.quick:
        parser.error("--keep keeps the figures of --quick only")
    return options


if __name__ == "__main__":
    sys.exit(main())
