"""Trust: a team file comes with a project and can make teamchat run whatever its author likes.

Trust is given once, and remembered by the file's absolute path and by what needs trust. An edited instruction never
asks again. A changed command, or a changed script that a command names, asks again and says what changed.
"""

from __future__ import annotations

import json
from pathlib import Path

from msgspec import Struct

from teamchat.core.errors import NotTrusted, StoreError
from teamchat.core.files.folders import WRITABLE
from teamchat.core.files.whole_files import locked_beside, put_in_place, write_private
from teamchat.core.team.team import Team
from teamchat.core.team.trust_changes import Trusted, trust_changes
from teamchat.core.team.trust_needs import covered, fingerprint, needs
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import quote
from teamchat.runners.untrusted.regular_files import read_regular

LARGEST = 1 << 24  # bytes; enough for thousands of team files
REMEMBERED = 100  # The number of last trusted team files with more kept than the fingerprint.
FIRST = 3  # Changes named in an error.


class Standing(Struct, frozen=True):
    """The trust in a team: whether it is trusted, was trusted `before`, and each change since then, if known."""

    trusted: bool
    before: bool = False
    changes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The standing in words that follow the path of the team file."""
        if self.trusted:
            return "is trusted"
        return "has changed since you trusted it" if self.before else "is not trusted yet"


def require(team: Team, store: TrustStore) -> None:
    """Raise `NotTrusted`, with what changed or what would have run, unless the team is trusted."""
    standing = store.standing(team)
    if not standing.trusted:
        raise not_trusted(team, standing)


def not_trusted(team: Team, standing: Standing) -> NotTrusted:
    """Build the error of a team with that standing."""
    why = f"{printable(str(team.path))} {standing.text}"
    lines = "\n".join(f"  {need.line}" for need in needs(team))
    text = f"{why}: {_first(team, standing.changes)}" if standing.changes else f"{why}; with it\n{lines}"
    return NotTrusted(text, trust_command(team))


def _first(team: Team, found: tuple[str, ...]) -> str:
    more = len(found) - FIRST
    rest = (f"and {more} more, which `teamchat doctor{team.typed}` shows",) if more > 0 else ()
    return "; ".join((*found[:FIRST], *rest))


def trust_command(team: Team) -> str:
    """Return the command that trusts the team."""
    return f"teamchat trust{team.typed}"


class TrustStore:
    """The trusted contents of every team file, by its path. One file may have several, as a project has branches.

    Each is a fingerprint. For the one trusted last, its lines and files are also kept, to tell what changed.
    Several processes may use it at once: a writer holds a lock beside the file and replaces the whole file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def standing(self, team: Team) -> Standing:
        """Say whether the team is trusted, and what changed since it was last trusted. Raises `StoreError`."""
        team = team.as_written or team  # what a person types needs no further trust
        if not (wanted := covered(team)):
            return Standing(trusted=True)
        known = self._read().get(str(team.path), [])
        now = fingerprint(team, wanted)
        if any(given.fingerprint == now for given in known):
            return Standing(trusted=True)
        return Standing(trusted=False, before=bool(known), changes=trust_changes(known[-1], team) if known else ())

    def grant(self, team: Team) -> None:
        """Remember that the user trusts the team in its current form: on the disk at the end. Raises `StoreError`."""
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
            return {path: [Trusted.read(entry) for entry in known] for path, known in _object(content).items()}
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
    """Add `now` to the file's entry as the content trusted last."""
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
