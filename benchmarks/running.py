"""One run: the chosen measurements taken, printed and judged."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import table
from benchmarks.figure import Figure, Measures, Unavailable
from benchmarks.machine import describe


class Rows(msgspec.Struct, frozen=True):
    """What is written as JSON."""

    machine: Mapping[str, str]
    figures: list[dict[str, Any]]


@dataclass
class Run:
    """What is over its bound is measured up to `again` times more, and the lowest counts."""

    chosen: Sequence[str]
    again: int = 1
    figures: dict[str, Figure] = field(default_factory=dict)
    over: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def chooses(self, benchmark: str) -> bool:
        return any(fnmatchcase(benchmark, one.partition("/")[0]) for one in self.chosen)

    def chooses_one(self, name: str) -> bool:
        """Whether a measurement of that name, `benchmark/measurement`, is chosen."""
        return any(fnmatchcase(name, one if "/" in one else f"{one}/*") for one in self.chosen)

    def take(self, benchmark: str, measures: Measures) -> None:
        """Take the chosen measurements of a benchmark, and print them as they come."""
        print(benchmark)
        with self._saying_why_not(benchmark):
            for name, take in measures:
                if self.chooses_one(f"{benchmark}/{name}"):
                    with self._saying_why_not(f"{benchmark}/{name}"):
                        for figure in self._taken(take):
                            print(table.row(figure), flush=True)
                            self._judge(f"{benchmark}/{figure.name}", figure)

    @contextmanager
    def _saying_why_not(self, name: str) -> Iterator[None]:
        """What cannot be measured or fails is said, and all else is measured all the same."""
        try:
            yield
        except Unavailable as reason:
            print(f"  left out: {reason}")
        except Exception as error:  # noqa: BLE001 (whatever a benchmark may raise)
            traceback.print_exc()
            self.failed[name] = f"failed: {error}"

    def _taken(self, take: Callable[[], Iterable[Figure]]) -> list[Figure]:
        """The figures of one measurement, of each the lowest if some had to be measured again."""
        found = list(take())
        for _ in range(self.again):
            if all(figure.ok for figure in found):
                break
            found = [min(pair, key=lambda figure: figure.measured) for pair in zip(found, take(), strict=True)]
        return found

    def _judge(self, name: str, figure: Figure) -> None:
        self.figures[name] = figure
        if not figure.ok and figure.bound is not None:
            measured, bound = (table.measured(figure, value) for value in (figure.measured, figure.bound))
            self.over[name] = f"{measured}, at most {bound}"

    def in_json(self, file: Path) -> bytes:
        """The machine, and every figure with what its bound is compared with. Of `file` the others remain."""
        rows = msgspec.json.decode(file.read_bytes(), type=Rows).figures if file.exists() else []
        others = [
            row
            for row in rows
            if not self.chooses_one(name := f"{row['benchmark']}/{row['name']}") and name not in self.figures
        ]
        others += [
            {"benchmark": name.partition("/")[0], **msgspec.to_builtins(one), "measured": one.measured, "ok": one.ok}
            for name, one in self.figures.items()
        ]
        return msgspec.json.format(msgspec.json.encode(Rows(describe(), others)), indent=2) + b"\n"
