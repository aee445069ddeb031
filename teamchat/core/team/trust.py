"""Trust: a team file comes with a project and can make teamchat run whatever its author likes.

Trust is given once, and remembered by the file's absolute path and by what `trust_needs.py` names. An edited
instruction never asks again. A changed command, or a changed script that a command names, asks again and says what
changed.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from msgspec import Struct

from teamchat.core.errors import NotTrusted, StoreError
from teamchat.core.files.folders import WRITABLE
from teamchat.core.files.whole_files import locked_beside, put_in_place, write_private
from teamchat.core.team.trust_files import file_states
from teamchat.core.team.trust_needs import Need, covered, fingerprint, needs
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import quote
from teamchat.runners.environment import is_secret
from teamchat.runners.regular_files import read_regular

if TYPE_CHECKING:
    from teamchat.core.team.team import Team

__all__ = ["Need", "Standing", "TrustStore", "covered", "fingerprint", "needs", "require", "trust_command"]
LARGEST = 1 << 24  # bytes; enough for thousands of team files
REMEMBERED = 100  # team files, the last ones trusted, of which more than the fingerprint is kept
FIRST = 3  # changes named in an error


class Standing(Struct, frozen=True):
    """Whether a team is trusted. If not: whether it was (`before`), and each change since then, if known."""

    trusted: bool
    before: bool = False
    changes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The words after the path of the team file."""
        if self.trusted:
            return "is trusted"
        return "has changed since you trusted it" if self.before else "is not trusted yet"


def require(team: Team, store: TrustStore) -> None:
    """Raises `NotTrusted`, with what changed or what would have run, unless the team is trusted."""
    standing = store.standing(team)
    if not standing.trusted:
        raise not_trusted(team, standing)


def not_trusted(team: Team, standing: Standing) -> NotTrusted:
    """The error of a team with that standing."""
    why = f"{printable(str(team.path))} {standing.text}"
    lines = "\n".join(f"  {need.line}" for need in needs(team))
    told = f"{why}: {_first(team, standing.changes)}" if standing.changes else f"{why}; with it\n{lines}"
    return NotTrusted(told, trust_command(team))


def _first(team: Team, found: tuple[str, ...]) -> str:
    more = len(found) - FIRST
    rest = (f"and {more} more, which `teamchat doctor{team.typed}` shows",) if more > 0 else ()
    return "; ".join((*found[:FIRST], *rest))


def trust_command(team: Team) -> str:
    """The command that trusts the team."""
    return f"teamchat trust{team.typed}"


class TrustStore:
    """The trusted contents of every team file, by its path. One file may have several, as a project has branches.

    Each is a fingerprint. For the one trusted last, its lines and files are also kept, to tell what changed.
    Several processes may use it at once: a writer holds a lock beside the file and replaces the whole file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def standing(self, team: Team) -> Standing:
        """Whether the team is trusted, and what changed since it was last trusted. Raises `StoreError`."""
        if not (wanted := covered(team)):
            return Standing(trusted=True)
        known = self._read().get(str(team.path), [])
        now = fingerprint(team, wanted)
        if any(given.fingerprint == now for given in known):
            return Standing(trusted=True)
        return Standing(trusted=False, before=bool(known), changes=trust_changes(known[-1], team) if known else ())

    def grant(self, team: Team) -> None:
        """Remember that the user trusts the team as it is now, on the disk when this returns. Raises `StoreError`."""
        if not needs(team):
            return
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked_beside(self.file) as new:
                old = self._read()
                trusted = _with(old, str(team.path), Trusted.of(team))
                if _kept(trusted) != _kept(old):
                    write_private(new, json.dumps(_kept(trusted), indent=1).encode())
                    put_in_place(new, self.file)
        except OSError as error:
            raise StoreError(f"{self.file} cannot be written: {error.strerror}; {WRITABLE}") from error

    def _read(self) -> dict[str, list[Trusted]]:
        try:
            content = json.loads(read_regular(self.file, LARGEST))
            return {path: [Trusted.read(kept) for kept in known] for path, known in _object(content).items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StoreError(f"{self.file} cannot be read: {error.strerror}; {WRITABLE}") from error
        except (ValueError, TypeError, RecursionError) as error:
            raise StoreError(
                f"{self.file} is damaged; without it every team file asks for trust once more",
                f"rm {quote(str(self.file))}",
            ) from error


def _with(trusted: dict[str, list[Trusted]], path: str, now: Trusted) -> dict[str, list[Trusted]]:
    """The file's entry with `now` as the content trusted last."""
    others = {other: known for other, known in trusted.items() if other != path}
    return others | {path: [*(given for given in trusted.get(path, []) if given.fingerprint != now.fingerprint), now]}


def _kept(trusted: dict[str, list[Trusted]]) -> dict[str, list[object]]:
    lasting = [*trusted][-REMEMBERED:]
    return {
        path: [
            *(given.fingerprint for given in known[:-1]),
            *(given.kept() if path in lasting else given.fingerprint for given in known[-1:]),
        ]
        for path, known in trusted.items()
    }


def _object(content: object) -> dict[str, list[object]]:
    if not isinstance(content, dict) or not all(isinstance(known, list) for known in content.values()):
        raise ValueError(content)
    return content


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from teamchat.core.team.team import Team

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
        """The team as it is now."""
        files = {str(file): state for file, state in file_states(team).items() if state != "none"}
        return cls(fingerprint(team, covered(team)), dict(_values(team)), files)

    @classmethod
    def read(cls, kept: object) -> Self:
        """What `kept()` returned, read back from JSON. Raises `ValueError` or `TypeError` for anything else."""
        match kept:
            case str():
                return cls(kept, {}, {})
            case {"fingerprint": str() as given, "values": list() as rows, "files": dict() as files}:
                texts = [[_text(part) for part in row] for row in rows]
                values = {(member, key, which): _Value(line, digest) for member, key, which, line, digest in texts}
                return cls(given, values, {file: _text(state) for file, state in files.items()})
        raise ValueError(kept)

    def kept(self) -> str | dict[str, Any]:
        """What is remembered, for JSON. For a content that is too large, only the fingerprint."""
        rows = [[*name, _kept_line(name, value.line), value.digest] for name, value in self.values.items()]
        whole = {"fingerprint": self.fingerprint, "values": rows, "files": dict(self.files)}
        return whole if len(json.dumps(whole)) <= LARGEST_KEPT else self.fingerprint


def trust_changes(before: Trusted, team: Team) -> tuple[str, ...]:
    """A line for each key and each file that changed; empty if the trusted content is unknown."""
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
        for which, line, value in _parts(need):
            yield (need.member, need.key, which), _Value(line, _digest([str(team.path), need.member, need.key, *value]))


def _parts(need: Need) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The parts of a need that change separately: the name, line and value of each."""
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
