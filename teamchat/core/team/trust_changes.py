"""The changes of a team file since it was trusted, in lines for a person.

A digest of every value decides whether it changed. The line beside the digest only shows the old text to a person: it
may be cut, and it is not kept for a variable of `env`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Self, TypeAlias

from msgspec import Struct

from teamchat.core.team.team import Team
from teamchat.core.team.trust_needs import Need, covered, fingerprint
from teamchat.core.team.trusted_files import file_states
from teamchat.core.text.clean import printable
from teamchat.runners.environment import is_secret

LONGEST_LINE = 1_000  # characters kept of a line
LARGEST_KEPT = 1 << 15  # bytes kept of one team file

_Name: TypeAlias = tuple[str, str, str]
"""Member, key, and the variable of `env` or the path of `knowledge`."""


class _Value(Struct, frozen=True):
    line: str
    digest: str


class Trusted(Struct, frozen=True):
    """A trusted content. `values` and `files` are empty if only its fingerprint is known."""

    fingerprint: str
    values: Mapping[_Name, _Value]
    files: Mapping[str, str]

    @classmethod
    def of(cls, team: Team) -> Self:
        """Describe the team as it is now."""
        files = {str(file): state for file, state in file_states(team).items() if state != "none"}
        return cls(fingerprint(team, covered(team)), dict(_values(team)), files)

    @classmethod
    def read(cls, kept: object) -> Self:
        """Read from JSON what `kept()` returned. Raises `ValueError` or `TypeError` for anything else."""
        match kept:
            case str():
                return cls(kept, {}, {})
            case {"fingerprint": str() as given, "values": list() as rows, "files": dict() as files}:
                texts = [[_text(part) for part in row] for row in rows]
                values = {(member, key, which): _Value(line, digest) for member, key, which, line, digest in texts}
                return cls(given, values, {file: _text(state) for file, state in files.items()})
        raise ValueError(kept)

    def kept(self) -> str | dict[str, Any]:
        """Return the remembered content for JSON; only the fingerprint if the content is too large."""
        rows = [[*name, _kept_line(name, value.line), value.digest] for name, value in self.values.items()]
        whole = {"fingerprint": self.fingerprint, "values": rows, "files": dict(self.files)}
        return whole if len(json.dumps(whole)) <= LARGEST_KEPT else self.fingerprint


def trust_changes(before: Trusted, team: Team) -> tuple[str, ...]:
    """Write a line for each changed key and file; empty if the trusted content is unknown."""
    if not before.values:
        return ()
    after = Trusted.of(team)
    folder = team.path.parent if team.path else team.root
    lines = (*_changed_values(before.values, after.values), *_changed_files(before.files, after.files, folder))
    return tuple(map(printable, lines))


def _changed_values(before: Mapping[_Name, _Value], after: Mapping[_Name, _Value]) -> Iterator[str]:
    for name in dict.fromkeys((*after, *before)):
        old, new = before.get(name), after.get(name)
        if new is None:
            yield f"removed {_titled(name, before[name].line)}"
        elif old is None:
            yield f"added {_titled(name, new.line)}"
        elif old.digest != new.digest:
            yield _titled(name, _from_to(old.line, new.line))


def _titled(name: _Name, line: str) -> str:
    member, key, which = name
    title = f"env {which} of {member}" if key == "env" else f"{key} of {member}"
    return f"{title}: {line}" if line else title


def _from_to(old: str, new: str) -> str:
    if not new:
        return "another value"
    if not old:
        return f"now {new}"
    return f"{old} → {new}" if old != new else f"{new}, in a part that is not shown"


def _changed_files(before: Mapping[str, str], after: Mapping[str, str], folder: Path) -> Iterator[str]:
    for file in dict.fromkeys((*after, *before)):
        shown = Path(file).relative_to(folder) if Path(file).is_relative_to(folder) else file
        if file not in after:
            yield f"removed file {shown}"
        elif file not in before:
            yield f"added file {shown}"
        elif before[file] != after[file]:
            yield f"{shown} has changed"


def _values(team: Team) -> Iterator[tuple[_Name, _Value]]:
    for need in covered(team):
        for which, line, value in _need_parts(need):
            yield (need.member, need.key, which), _Value(line, _digest([str(team.path), need.member, need.key, *value]))


def _need_parts(need: Need) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """List the parts of a need that change separately, with the name, line and value of each."""
    if need.key == "env":
        for pair in need.value:
            variable, _, value = pair.partition("=")
            yield variable, "" if is_secret(variable, value) else printable(value), (pair,)
        return
    which = need.value[0] if need.key == "knowledge" else ""
    yield which, need.line.removeprefix(f"{printable(need.member)} "), need.value


def _kept_line(name: _Name, line: str) -> str:
    if name[1] == "env":
        return ""
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"


def _digest(parts: Iterable[str]) -> str:
    return sha256(json.dumps([*parts]).encode()).hexdigest()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
