"""The tables of docs/performance.md, from the figures that `make bench-page` keeps in benchmarks/measured.json."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from benchmarks.__main__ import BENCHMARKS
from benchmarks.figure import Figure
from benchmarks.table import amount, measured

FOLDER = Path(__file__).parents[1] / "benchmarks"
MEASURED = FOLDER / "measured.json"
MOST_ROWS = 12
TITLES = {
    "startup": "Start of a command",
    "prompt": "Prompts",
    "group": "Groups",
    "guardian": "The guardian of a turn",
    "hostile": "Hostile text",
    "first_delta": "The first visible text",
    "storing": "Storing",
    "echo": "Keys in chat",
    "watching": "Watching from another terminal",
    "clis": "The real CLIs",
    "long": "200,000 messages",
    "export": "Exports of 200,000 messages",
    "search": "Search of 200,000 messages",
    "replies": "Large outputs",
    "streams": "Streams of JSON lines",
    "checkpoint": "Checkpoints and undo",
    "chain": "What memory saves",
    "until": "Rounds of until",
    "hosts": "Turns on hosts",
    "places": "Many subtasks of one worker",
}
HEAD = "| | teamchat | floor | floor is | measured | at most |\n|---|--:|--:|---|--:|--:|\n"


class Taken(Figure, frozen=True, kw_only=True):
    """A figure of a benchmark, as `--json` writes it."""

    benchmark: str


class Run(msgspec.Struct, frozen=True):
    machine: dict[str, str]
    figures: list[Taken]


def run() -> Run:
    return msgspec.json.decode(MEASURED.read_bytes(), type=Run)


def sections() -> str:
    """The machine, and each benchmark with what it measures and its figures."""
    taken = run()
    ordered = sorted(taken.figures, key=lambda figure: BENCHMARKS.index(figure.benchmark))
    told = "".join(
        f"\n## {TITLES[name]}\n\n{about(name)}\n\n{HEAD}{''.join(rows(list(figures)))}"
        for name, figures in groupby(ordered, lambda figure: figure.benchmark)
    )
    return f"{machine(taken.machine)}\n{told}"


def with_figure(text: str) -> str:
    """README.md with the figure of the sentence on `send`, as it was measured last."""
    (send,) = (one for one in run().figures if (one.benchmark, one.name) == ("startup", "send"))
    told, count = re.subn(r"(?<=A `send` takes )[\d.]+(?= times as long as a script)", f"{send.measured:.1f}", text)
    assert count == 1, "the sentence on `send` is not in README.md"
    return told


def machine(given: dict[str, str]) -> str:
    named = given.copy()
    cpu, cores, memory, system, python = (named.pop(name) for name in ("cpu", "cores", "memory", "os", "python"))
    packages = ", ".join(f"{name} {version}" for name, version in named.items())
    return f"The machine: {cores} cores of an {cpu}, {memory} of memory, {system}, Python {python}, {packages}."


def about(name: str) -> str:
    """What the benchmark says of itself."""
    return ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))) or ""


def rows(figures: Sequence[Taken]) -> Iterable[str]:
    """A row for each figure; of many, for the highest of each bound and those over it."""
    few = len(figures) <= MOST_ROWS
    for figure in figures:
        alike = [one for one in figures if (one.bound, one.by, one.unit) == (figure.bound, figure.by, figure.unit)]
        highest = max(alike, key=lambda one: one.measured)
        if few or figure is highest or not figure.ok:
            yield row(figure, f" (highest of {len(alike)})" if len(alike) > 1 and not few and figure is highest else "")


def row(figure: Figure, more: str) -> str:
    floor = "" if figure.floor is None else amount(figure.floor, figure.unit)
    bound = "" if figure.bound is None else measured(figure, figure.bound)
    found = measured(figure, figure.measured)
    cells = (
        f"`{figure.name}`{more}", amount(figure.value, figure.unit), floor, figure.floor_is,
        found if figure.ok else f"**{found}**", bound,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |\n"
