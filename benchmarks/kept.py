"""The figures that the repository keeps: how many times its floor each is, which holds on other machines, too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from benchmarks.figure import Figure

FILE = Path(__file__).parent / "figures.json"
REGRESSION = 1.3  # times the kept figure


def read(file: Path = FILE) -> Mapping[str, float]:
    """The kept ratios by name: `benchmark/figure`."""
    return msgspec.json.decode(file.read_bytes(), type=dict[str, float]) if file.exists() else {}


def write(figures: Mapping[str, Figure], file: Path = FILE) -> None:
    """Keep the ratios of these figures instead of the earlier ones."""
    ratios = {name: round(figure.ratio, 3) for name, figure in figures.items() if figure.ratio is not None}
    file.write_bytes(msgspec.json.format(msgspec.json.encode(ratios), indent=2) + b"\n")


def regression(figure: Figure, ratio: float | None) -> str:
    """What is worse than the kept ratio allows, in words; empty if nothing is. Without a floor nothing is compared."""
    if figure.ratio is None:
        return ""
    if ratio is None:
        return "no kept figure (make bench-keep)"
    if figure.ratio > REGRESSION * ratio:
        return f"{figure.ratio:.2f} x its floor, {figure.ratio / ratio:.2f} times the kept {ratio:.2f} x"
    return ""
