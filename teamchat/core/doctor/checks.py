"""The findings of `teamchat doctor`, as values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from teamchat.core.errors import ExitCode, TeamchatError

State = Literal["ok", "note", "warning", "unknown", "failed"]


class DoctorCheck(Struct, frozen=True):
    """A finding about a member (None: about all of them), in one line for a person.

    `what` is the program, version, args, login, access, tools, reads, folder, files or host of a member; else the
    team, hosts, database, host, version, store, moved, python or sqlite. `value` is the part that a script may need:
    a path, a version. `hint` has the commands to type, if any are known. `code` is the exit code of a failed check.
    """

    member: str | None
    what: str
    state: State
    text: str
    value: str | None = None
    hint: str | None = None
    code: ExitCode = ExitCode.DONE


def failed(what: str, error: TeamchatError) -> DoctorCheck:
    """The finding for an error."""
    return DoctorCheck(None, what, "failed", str(error), hint=error.hint, code=error.code)


def not_installed(install: str, *, needed: bool) -> DoctorCheck:
    """The finding that an agent's program is missing. `install` is the command that installs it."""
    if needed:
        return DoctorCheck(None, "program", "failed", "not installed", hint=install, code=ExitCode.AGENT_UNAVAILABLE)
    return DoctorCheck(None, "program", "note", "not installed", hint=install)


def exit_code(checks: Iterable[DoctorCheck]) -> ExitCode:
    """The exit code: a broken team file (2) comes before a member that cannot run (11), the store (13) last."""
    return min((check.code for check in checks if check.state == "failed"), default=ExitCode.DONE)
