"""The findings of `teamchat doctor`, as values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from teamchat.core.errors import ExitCode, TeamchatError

State = Literal["ok", "note", "warning", "unknown", "failed"]


class DoctorCheck(Struct, frozen=True):
    """A finding about a member (None: about all of them), in one line for a person."""

    member: str | None
    what: str
    """The program, version, args, login, access, tools, reads, folder, files or host of a member.

    A finding about all of them is about the team, hosts, database, host, version, store, moved, python or sqlite.
    """
    state: State
    text: str
    value: str | None = None
    """The part that a script may need: a path, a version."""
    hint: str | None = None
    """The commands to type, if any are known."""
    code: ExitCode = ExitCode.DONE
    """The exit code of a failed check."""


def failed(what: str, error: TeamchatError) -> DoctorCheck:
    """Build the finding for an error."""
    return DoctorCheck(None, what, "failed", str(error), hint=error.hint, code=error.code)


def not_installed(install: str, *, needed: bool) -> DoctorCheck:
    """Build the finding that an agent's program is missing. `install` is the command that installs it."""
    if needed:
        return DoctorCheck(None, "program", "failed", "not installed", hint=install, code=ExitCode.AGENT_UNAVAILABLE)
    return DoctorCheck(None, "program", "note", "not installed", hint=install)


def exit_code(checks: Iterable[DoctorCheck]) -> ExitCode:
    """Choose the exit code: a broken team file (2) comes before a member that cannot run (11), the store (13) last."""
    return min((check.code for check in checks if check.state == "failed"), default=ExitCode.DONE)
