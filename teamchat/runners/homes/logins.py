"""Whether a CLI has a login, as far as can be seen without running it (observed at 2.1.197, 0.169.0 and 0.61.0).

This looks at variables, and at whether files exist. It never opens a file that may hold a login. If a keychain or a
settings file may have a login, the answer is that only the CLI knows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec.structs import replace

from teamchat.runners.agent_events import Failure, FailureKind
from teamchat.runners.base import Login, Runner


def variables_login(env: Mapping[str, str], *keys: str) -> Login | None:
    """Find a login by variables; None if none of them is set. The CLI sends all that are set."""
    names = tuple(name for name in keys if env.get(name))
    return Login(True, _set(names), variables=names) if names else None


def elsewhere(env: Mapping[str, str], switches: tuple[str, ...]) -> Login | None:
    """Find a switch to another service, which alone knows its login; None if none is set."""
    switch = next((name for name in switches if env.get(name)), None)
    return Login(None, f"{switch} is set: another service, with a login of its own") if switch else None


def stored(file: Path) -> Login:
    return Login(True, f"{file} is there", variables=())


def _set(names: tuple[str, ...]) -> str:
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} set"


def is_there(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # a folder without permission to search
        return False


def login_variables(runner: Runner, cwd: Path, env: Mapping[str, str], args: Collection[str]) -> tuple[str, ...] | None:
    """Find `Login.variables` of a turn with this environment; None if the member's own `args` may contain a login."""
    login = None if args else runner.login(cwd, env)
    return login.variables if login else None


def with_source(failure: Failure | None, variables: tuple[str, ...] | None) -> Failure | None:
    """Name the login in the failure of a turn whose login was refused; `variables` are as in `Login`.

    Other failures are returned unchanged. A refused variable has no command as its hint: a new login does not help
    while the CLI still sends the variable.
    """
    if failure is None or failure.kind is not FailureKind.LOGIN or variables is None:
        return failure
    if not variables:
        return replace(failure, reason=f"{failure.reason}; its stored login was refused")
    single = len(variables) == 1
    refused = "and was refused: correct or unset it" if single else "and were refused: correct or unset them"
    return Failure(failure.kind, f"{failure.reason}; {_set(variables)} {refused}")
