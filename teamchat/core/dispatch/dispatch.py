"""The interface that home needs of any engine that carries turns."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from msgspec import Struct, field

from teamchat.core.dispatch.order import Order, Piece, Project
from teamchat.core.dispatch.signing import HomeKeys
from teamchat.core.text.durations import roughly
from teamchat.runners.base import Access

EXAMPLE = "export TEAMCHAT_DATABASE='postgresql:///teamchat?host=/run/postgresql'"
MINUTE_S, DAY_S = 60.0, 86_400.0
INSTALL = "pipx install --force '.[workers]'"


class HostClock(Struct, frozen=True):
    """The times of hosts, in seconds. Tests make them shorter by one factor (`TEAMCHAT_HOST_CLOCK`).

    An agent runs for `lease_s` after its worker was there for the last time, and has `grace_s` to end then: it is gone
    before its worker counts as dead, so two agents of one turn never run at the same time.
    """

    beat_s: float = 3.0
    """How often a worker says that it is there."""
    dead_s: float = 30.0
    """How long after the last time a worker counts as dead. For as long after the database was away, nobody does."""
    wait_s: float = 60.0
    """How long to wait for a member's host."""
    alone_s: float = 10.0
    """How long to wait for a member's host without a person."""

    @property
    def lease_s(self) -> float:
        return self.dead_s * 2 / 3

    @property
    def grace_s(self) -> float:
        return self.dead_s / 30


class AgentOffer(Struct, frozen=True):
    """An agent of a host: how its output is read, the most that it may do, its version, its cool-down in seconds."""

    protocol: str
    access: Access = "read"
    version: str | None = None
    cools_s: float = 0.0


class HostSeen(Struct, frozen=True):
    """A worker as the database knows it."""

    name: str
    executor: str
    """The id of the worker's process."""
    seen_s: float
    """How many seconds ago it said that it was there."""
    jobs: int = 1
    """How many turns run there at once."""
    busy: int = 0
    """How many turns run or wait there."""
    agents: Mapping[str, AgentOffer] = field(default_factory=dict)
    projects: tuple[Project, ...] = ()
    heads: tuple[tuple[Project, str], ...] = ()
    """The commits of its clones, by their projects."""
    teamchat: str = ""
    refused: tuple[str, ...] = ()
    """The last orders that it did not take, and why."""
    running: tuple[str, ...] = ()
    """The names of the turns that it carries out."""
    ending: bool = False
    key: str = ""
    """Its public key."""
    ahead_s: float = 0.0
    """How much its clock is ahead of that of the database, in seconds."""
    trouble: str | None = None
    """Why this teamchat cannot use it."""

    @property
    def absence(self) -> str:
        """Since when it was not seen, in words that follow its name."""
        if self.seen_s < MINUTE_S:
            return f"not seen for {self.seen_s:.0f} s"
        at = time.strftime("%H:%M" if self.seen_s < DAY_S else "%d %b %H:%M", time.localtime(time.time() - self.seen_s))
        return f"not seen since {at} ({roughly(self.seen_s)})"

    @property
    def free(self) -> int:
        return max(0, self.jobs - self.busy)


class DatabaseSeen(Struct, frozen=True):
    """The database: who asks it (None: it is a file), its tables in words, and their bytes.

    The clock of this machine is `ahead_s` ahead of its own.
    """

    role: str | None
    tables: str
    size: int
    ahead_s: float


class TurnState(Struct, frozen=True):
    """The engine's state of a turn: it `waits` in its host's queue, was `taken` by `executor`, or is `over`."""

    waits: bool = False
    over: bool = False
    cancelled: bool = False
    executor: str | None = None


class Away(Exception):
    """The database does not answer; the message says which and why, and `hint` what to type, if that helps."""

    def __init__(self, why: str, hint: str | None = None) -> None:
        super().__init__(why)
        self.hint = hint


class Dispatch(Protocol):
    """Carries orders to hosts, and their pieces back. Every method may raise `Away`."""

    clock: HostClock
    keys: HomeKeys

    async def enqueue(self, order: Order) -> None:
        """Give the order to the queue of its host. Giving it a second time changes nothing."""
        ...

    def follow(self, turn: str, offset: int) -> AsyncIterator[Piece | None]:
        """Yield the pieces of a turn from a number on, as they come; None now and then while none comes.

        It ends when the engine expects no further piece; pieces of a stopped turn may come after that.
        """
        ...

    async def rest(self, turn: str) -> list[Piece] | None:
        """Return a host's report on a turn after it was cancelled; None while there is none."""
        ...

    async def state(self, turn: str) -> TurnState | None:
        """Return the engine's state of a turn; None if it knows no turn of that name."""
        ...

    async def cancel(self, turn: str) -> None:
        """Have a turn that waits never run, and one that runs stopped."""
        ...

    async def forget(self, turn: str) -> None:
        """Remove the engine's data on a turn that is over."""
        ...

    async def hosts(self) -> tuple[HostSeen, ...]:
        """List all hosts that the database knows."""
        ...

    async def database(self) -> DatabaseSeen:
        """Return how the database stands."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...
