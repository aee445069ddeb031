"""Trust: a team file comes with a project and can make teamchat run what its author likes (design section 4).

It is given once, and remembered by the file's absolute path and by what `trust_needs.py` names: editing an instruction
never asks again, while a changed command, or a changed script that a command names, does.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from teamchat.core.errors import NotTrusted, StoreError
from teamchat.core.printable import printable
from teamchat.core.team.trust_needs import Need, fingerprint, needs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from teamchat.core.team import Team

__all__ = ["Need", "TrustStore", "fingerprint", "needs", "require", "trust_command"]


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
            with self._lock():
                trusted = self._read()
                known = trusted.setdefault(str(team.path), [])
                if (given := fingerprint(team)) not in known:
                    known.append(given)
                    self._write(trusted)
        except OSError as error:
            raise StoreError(f"{self.file} can not be written: {error.strerror}") from error

    def _read(self) -> dict[str, list[str]]:
        try:
            content = json.loads(self.file.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StoreError(f"{self.file} can not be read: {error.strerror}") from error
        except ValueError:
            content = None
        if not isinstance(content, dict) or not all(isinstance(known, list) for known in content.values()):
            raise StoreError(
                f"{self.file} is damaged; without it every team file asks for trust once more",
                f"rm {shlex.quote(str(self.file))}",
            )
        return content

    def _write(self, trusted: dict[str, list[str]]) -> None:
        # mkstemp makes the file for its owner alone.
        handle, name = tempfile.mkstemp(dir=self.file.parent, prefix=f"{self.file.name}.")
        try:
            with os.fdopen(handle, "w") as file:
                json.dump(trusted, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self.file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    @contextmanager
    def _lock(self) -> Iterator[None]:
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self.file.with_name(f"{self.file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
