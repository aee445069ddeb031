"""What a person or a team file asks of a process (`teamchat run`), and what each kind of process takes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

MOST_ROUNDS = 100
TAKES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "sequential": ("members", "rounds"),
        "hierarchical": ("members", "lead", "jobs"),
        "mapreduce": ("planner", "workers", "reducer", "jobs"),
        "debate": ("members", "rounds", "lead", "jobs"),
        "vote": ("members", "options", "jobs"),
        "best": ("members", "judge", "jobs"),
    }
)
"""The settings that each kind of process takes. Each is an option of `teamchat run` and a key of the team file."""


class ProcessSettings(Struct, frozen=True):
    """The settings of a process; None and () leave one to its default. Names of members are as they were written."""

    members: tuple[str, ...] = ()
    rounds: int | None = None
    planner: str | None = None
    workers: tuple[str, ...] = ()
    reducer: str | None = None
    judge: str | None = None
    lead: str | None = None
    options: tuple[str, ...] = ()
    jobs: int | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the settings that are not left to their defaults."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name) not in (None, ()))


DEFAULTS = ProcessSettings()


class NamedProcess(Struct, frozen=True):
    """A process of the team file. `prompt` is what every member of it is told."""

    name: str
    kind: str
    settings: ProcessSettings
    prompt: str = ""


def takers(setting: str) -> tuple[str, ...]:
    """The kinds that take the setting."""
    return tuple(kind for kind, settings in TAKES.items() if setting in settings)
