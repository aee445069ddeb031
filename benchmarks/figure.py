"""A figure: what was measured, the floor measured in the same run, and the bound it has to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """`value` and `floor` in `unit`. None as a bound: the figure is only printed.

    `by` says what has to keep the bound: the ratio to the floor, the difference from it, or the value itself. Without
    a floor it is the value.
    """

    name: str
    unit: str
    value: float
    floor: float | None = None
    floor_is: str = ""
    bound: float | None = None
    by: Literal["ratio", "difference", "value"] = "ratio"
    note: str = ""  # printed behind the figure

    @property
    def ratio(self) -> float | None:
        """How many times the floor it is. None without a floor."""
        return self.value / self.floor if self.floor else None

    @property
    def measured(self) -> float:
        """What the bound is compared with: a ratio without a unit, or a difference in `unit`."""
        if self.floor is None or self.by == "value":
            return self.value
        return self.value / self.floor if self.by == "ratio" else self.value - self.floor

    @property
    def ok(self) -> bool:
        return self.bound is None or self.measured <= self.bound


class Unavailable(Exception):
    """Why a benchmark cannot be run on this machine. Its figures are left out, and nothing fails."""


Measures = Iterator[tuple[str, Callable[[], Iterable[Figure]]]]
"""What a benchmark yields: the name of a measurement and the function that takes it.

The function is called before the next one is yielded, so a world that several measurements share can be a `with`
around their `yield`s. It may be called again for a figure that is over its bound, or not at all. A measurement of one
figure has its name; the names of several figures begin with it.
"""
