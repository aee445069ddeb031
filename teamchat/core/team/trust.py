"""Trust: a team file comes with a project and can make teamchat run what its author likes (design section 4).

It is given once, and remembered by the file's absolute path and by what `trust_needs.py` names: editing an instruction
never asks again, while a changed command, or a changed script that a command names, does.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from teamchat.core.errors import NotTrusted, StoreError
from teamchat.core.folders import WRITABLE
from teamchat.core.printable import printable
from teamchat.core.team.trust_needs import Need, fingerprint, needs
from teamchat.core.whole_files import locked_beside, put_in_place, read_regular, write_private

if TYPE_CHECKING:
    from teamchat.core.team import Team

__all__ = ["Need", "TrustStore", "fingerprint", "needs", "require", "trust_command"]
LARGEST = 1 << 24  # bytes; thousands of team files


def require(team: Team, store: TrustStore) -> None:
    """Raises `NotTrusted`, with what would have run, unless the team is trusted."""
    if store.is_trusted(team):
        return
    lines = "\n".join(f"  {need.line}" for need in needs(team))
    raise NotTrusted(f"{printable(str(team.path))} is not trusted yet; with it\n{lines}", trust_command(team))


def trust_command(team: Team) -> str:
    """What to type to trust the team."""
    return f"teamchat trust{team.typed}"


class TrustStore:
    """The trusted fingerprints of every team file, by its path; several of one file, as of a project's branches.

    Safe with several processes at once: a writer holds a lock beside the file and replaces it whole.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def is_trusted(self, team: Team) -> bool:
        """Whether the team needs no trust, or was given it as it is now. Raises `StoreError`."""
        return not needs(team) or fingerprint(team) in self._read().get(str(team.path), [])

    def grant(self, team: Team) -> None:
        """Remember that the user trusts the team as it is now; on the disk when this returns. Raises `StoreError`."""
        if not needs(team):
            return
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked_beside(self.file) as new:
                trusted = self._read()
                known = trusted.setdefault(str(team.path), [])
                if (given := fingerprint(team)) not in known:
                    known.append(given)
                    write_private(new, json.dumps(trusted, indent=1).encode())
                    put_in_place(new, self.file)
        except OSError as error:
            raise StoreError(f"{self.file} cannot be written: {error.strerror}; {WRITABLE}") from error

    def _read(self) -> dict[str, list[str]]:
        try:
            content = json.loads(read_regular(self.file, LARGEST))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StoreError(f"{self.file} cannot be read: {error.strerror}; {WRITABLE}") from error
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict) or not all(isinstance(known, list) for known in content.values()):
            raise StoreError(
                f"{self.file} is damaged; without it every team file asks for trust once more",
                f"rm {shlex.quote(str(self.file))}",
            )
        return content
