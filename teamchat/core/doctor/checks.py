"""What `teamchat doctor` finds out, as values: one finding of one thing each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from teamchat.core.errors import ExitCode, TeamchatError

State = Literal["ok", "note", "warning", "unknown", "failed"]


@dataclass(frozen=True, slots=True)
class Check:
    """One finding about a member, or about what all need (None), in one line for a person.

    `what` is the program, version, args, login, access, tools, reads or folder of a member; else the team, store,
    python or sqlite.
    `value` is the part of it that a script may want: a path, a version. `hint` is what to type, where that is known.
    `code` is the exit code that a failed one stands for.
    """

    member: str | None
    what: str
    state: State
    text: str
    value: str | None = None
    hint: str | None = None
    code: ExitCode = ExitCode.DONE


def failed(what: str, error: TeamchatError) -> Check:
    """The finding that an error is."""
    return Check(None, what, "failed", str(error), hint=error.hint, code=error.code)


def not_installed(install: str, *, needed: bool) -> Check:
    """The finding that an agent's program is not there; `install` is how to get it."""
    if needed:
        return Check(None, "program", "failed", "not installed", hint=install, code=ExitCode.AGENT_UNAVAILABLE)
    return Check(None, "program", "note", "not installed", hint=install)


def exit_code(checks: Iterable[Check]) -> ExitCode:
    """What the findings come to: a broken team file (2) before a member that cannot run (11) before the store (13)."""
    return min((check.code for check in checks if check.state == "failed"), default=ExitCode.DONE)
