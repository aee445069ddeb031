"""Measurements of each of the real CLIs from npm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.figure import Figure, Measures, Unavailable
from teamchat.runners.base import Vendor
from tests.real import clis

VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")


def of_each_cli(name: str, figures: Callable[[Vendor, str], Iterator[Figure]]) -> Measures:
    """A measurement for each CLI, whose `name` has its own in place of `{}`. `figures` is also given their PATH."""
    try:
        programs = clis.installed(clis.chosen())
    except clis.Unavailable as reason:
        raise Unavailable(str(reason)) from reason
    for vendor in VENDORS:
        yield name.format(vendor), partial(figures, vendor, programs)
