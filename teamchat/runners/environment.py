"""The environment of an agent: the user's environment without other vendors' keys, plus its command's variables.

Every tool command of an agent sees its whole environment, so a key in it is given away. Logins in the home folder are
the user's and stay.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from teamchat.patterns import regex

USERS_OWN_WINS = frozenset({"CLAUDE_CODE_MAX_RETRIES"})  # a command's values for these give way to the user's own
BUILT_ON_THE_MEMBERS = frozenset({"NODE_OPTIONS", "PATH"})  # a command's values for these contain the member's own

GIT_LOCAL = frozenset(
    {
        *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"),
        *("GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE"),
        *("GIT_INDEX_FILE", "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_PREFIX", "GIT_SHALLOW_FILE"),
        *("GIT_INTERNAL_SUPER_PREFIX", "GIT_COMMON_DIR", "GIT_REF_STORAGE_FORMAT", "GIT_REFERENCE_BACKEND"),
    }
)
"""The variables that `git rev-parse --local-env-vars` names: git sets them for a hook, and every git below it obeys
them.

A teamchat that a hook starts would otherwise have its members' commits land in the repository of the hook.
"""

NOT_FOR_CHILDREN = ("TEAMCHAT_DATABASE=", "DBOS")
"""Beginnings of variables that no program started by teamchat gets, each name with its `=`.

They lead to the shared database, with its password, and belong to the engine behind it.
"""

HIDDEN = "(hidden)"
SECRET_NAME = regex(
    r"KEY|TOKEN|SECRET|(?<!ASK)PASS|CREDENTIAL|AUTH|COOKIE|WEBHOOK|DSN\b|(?:CONN(?:ECTION)?_?STR)|(?<=\w)(?<!\bOLD)PWD",
    re.IGNORECASE,
)
"""The name of a variable whose value counts as a secret. That of `GIT_ASKPASS` is a program, that of `PWD` a folder."""
_SECRET_VALUE = regex(r"://[^/\s@]+@")  # a password inside an address
_PASSWORD = regex(r"://[^/\s:@]*:([^/\s]+)@")


def for_child(env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` as a program that teamchat starts gets it. Every start goes through this."""
    return {name: value for name, value in env.items() if not is_teamchats_own(name)}


def is_teamchats_own(name: str) -> bool:
    """Whether the variable is withheld from every program that teamchat starts."""
    return f"{name}=".startswith(NOT_FOR_CHILDREN)


def environment(
    inherited: Mapping[str, str],
    *,
    foreign: Collection[str],
    homes: Collection[str],
    keep: Collection[str],
    add: Mapping[str, str],
    command_env: Mapping[str, str],
    tmpdir: Path | None = None,
) -> dict[str, str]:
    """Build the environment of an agent: without the keys of other vendors in `foreign`, except the keys in `keep`.

    The variables of a git hook (`GIT_LOCAL`) and variables that no child gets (`for_child`) are not passed on either.

    `add` is the team file's. It overrides everything except the variables that a command builds on it
    (`BUILT_ON_THE_MEMBERS`). `CLAUDECODE` is always removed: with it an agent thinks that it runs inside another one.
    `homes` are the variables that name a CLI's user folder. Empty ones are removed, too: with an empty
    CLAUDE_CONFIG_DIR, Claude (2.1.330) uses its working folder as the user's, and runs the hooks of a repository's
    settings.json. Without `tmpdir` TMPDIR stays unchanged.
    """
    left_out = set(foreign).difference(keep) | GIT_LOCAL
    result = {name: value for name, value in inherited.items() if name not in left_out}
    result |= {name: value for name, value in command_env.items() if name not in USERS_OWN_WINS or name not in result}
    result |= {**({"TMPDIR": str(tmpdir)} if tmpdir else {}), **add}
    result |= {name: value for name, value in command_env.items() if name in BUILT_ON_THE_MEMBERS}
    empty = {name for name in homes if not result.get(name)}
    return for_child({name: value for name, value in result.items() if name not in {"CLAUDECODE", *empty}})


def changed_variables(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    """List the variables that differ, by name: the new value, hidden if it looks secret, or None for a removed one."""
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return {name: _shown(name, after[name]) if name in after else None for name in names}


def password_in(value: str) -> str:
    """Find the password in an address such as `DATABASE_URL` has; empty if there is none."""
    match = _PASSWORD.search(value)
    return match[1] if match else ""


def is_secret(name: str, value: str) -> bool:
    """Whether the value of that variable must not be shown."""
    return bool(SECRET_NAME.search(name) or _SECRET_VALUE.search(value))


def _shown(name: str, value: str) -> str:
    return HIDDEN if value and is_secret(name, value) else value
