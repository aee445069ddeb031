"""Finds the database of hosts, and the engine that is installed for it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from importlib.util import find_spec

from teamchat.core.dispatch.dispatch import EXAMPLE, INSTALL, Away, Dispatch, HostClock
from teamchat.core.errors import HostUnavailable, UsageError

VARIABLE = "TEAMCHAT_DATABASE"
CLOCK = "TEAMCHAT_HOST_CLOCK"


def clock_of(env: Mapping[str, str]) -> HostClock:
    """Return the times of hosts; tests multiply them by `TEAMCHAT_HOST_CLOCK`. Raises `UsageError`."""
    clock, given = HostClock(), env.get(CLOCK) or "1"
    try:
        factor = float(given)
    except ValueError:
        factor = math.nan
    if not 0 < factor < math.inf:
        raise UsageError(f"{CLOCK}: expected a number above 0, got {given!r}")
    return HostClock(*(factor * seconds for seconds in (clock.beat_s, clock.dead_s, clock.wait_s, clock.alone_s)))


def need_address(env: Mapping[str, str] = os.environ) -> str:
    """Return the address of the database. Raises `HostUnavailable` without one, and without the engine."""
    if not (url := env.get(VARIABLE)):
        raise HostUnavailable(f"hosts are found in a database, and {VARIABLE} is not set", EXAMPLE)
    if find_spec("dbos") is None:
        raise HostUnavailable("turns on hosts need the extra `workers`; in the clone of teamchat", INSTALL)
    return url


def connect(env: Mapping[str, str] = os.environ) -> Dispatch:
    """Connect the engine. Raises `HostUnavailable`, also where the database does not answer, and `UsageError`."""
    url = need_address(env)
    from teamchat.core.dispatch.dbos.client import DbosDispatch

    try:
        return DbosDispatch(url, clock_of(env))
    except Away as away:
        raise HostUnavailable(str(away), away.hint) from None
