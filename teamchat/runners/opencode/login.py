"""Whether opencode has a login, as far as that shows without running it (observed at 1.18.33).

Each model is a provider's, and each provider has a login of its own: a stored one, a variable, or one in the
configuration. Some models need none.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from teamchat.runners.base import Login
from teamchat.runners.homes.folders import user_home
from teamchat.runners.homes.logins import is_there


def opencode_login(env: Mapping[str, str]) -> Login:
    """Find opencode's login. The answer is never a plain no: a model without a login may be all that is asked."""
    if env.get("OPENCODE_AUTH_CONTENT"):
        return Login(True, "OPENCODE_AUTH_CONTENT is set", variables=("OPENCODE_AUTH_CONTENT",))
    folder = Path(env.get("XDG_DATA_HOME") or user_home(env) / ".local" / "share") / "opencode"
    if is_there(file := folder / "auth.json"):
        return Login(True, f"{file} is there", variables=None)
    if env.get("OPENCODE_API_KEY"):
        return Login(True, "OPENCODE_API_KEY is set", variables=("OPENCODE_API_KEY",))
    return Login(None, f"there is no {file}, but its configuration may name one, and some models need none")
