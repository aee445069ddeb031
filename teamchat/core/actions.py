"""What the engine tells the coordinator to do. A `final` action says how the conversation goes on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from teamchat.core.route import Route


class PauseKind(StrEnum):
    TURNS = "turns"
    TIME = "time"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Queued:
    final: ClassVar[bool] = False
    route: Route


@dataclass(frozen=True, slots=True)
class Dropped:
    final: ClassVar[bool] = False
    route: Route


@dataclass(frozen=True, slots=True)
class RunTurn:
    final: ClassVar[bool] = True
    route: Route


@dataclass(frozen=True, slots=True)
class Asked:
    """A person is to speak; the queue waits."""

    final: ClassVar[bool] = True
    route: Route


@dataclass(frozen=True, slots=True)
class Paused:
    """A guard, or the user, stopped it; everything is held."""

    final: ClassVar[bool] = True
    kind: PauseKind
    reason: str


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The turn of this route failed; it and the rest of the queue are held."""

    final: ClassVar[bool] = True
    route: Route


@dataclass(frozen=True, slots=True)
class Idle:
    """Nobody is left to speak."""

    final: ClassVar[bool] = True


Action = Queued | Dropped | RunTurn | Asked | Paused | TurnFailed | Idle
