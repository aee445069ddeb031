"""Checks of a process before it begins."""

from __future__ import annotations

from teamchat.core.engine.process import Process
from teamchat.core.engine.processes.table import STRATEGIES
from teamchat.core.engine.state import State
from teamchat.core.errors import UsageError


def check_process(state: State, process: Process) -> None:
    """Raise `UsageError` for a process that cannot begin: by its own rules, or because another one is not over."""
    if problem := STRATEGIES[process.kind].check(process):
        raise UsageError(f"{process.name or process.kind}: {problem}")
    there = state.process
    if there and not there.over and any(route.part for route in state.queue):
        raise UsageError(
            f"the {there.name or there.kind} of {there.request} is not over; continue it, or drop it",
            "teamchat resume\nteamchat resume --drop",
        )
