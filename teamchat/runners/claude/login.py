"""Whether Claude Code has a login, as far as can be seen without running it (observed at 2.1.197 and 2.1.330)."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from teamchat.runners.base import Login
from teamchat.runners.homes.folders import claude_folder, claude_record
from teamchat.runners.homes.logins import elsewhere, is_there, stored, variables_login

CLAUDE_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")  # it sends both (observed at 2.1.197 and 2.1.330)
CLAUDE_TOKEN = "CLAUDE_CODE_OAUTH_TOKEN"  # noqa: S105 (its name); sent without a key only, and before a stored login
CLAUDE_CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")


def claude_login(env: Mapping[str, str], platform: str = sys.platform) -> Login:
    if (
        login := elsewhere(env, CLAUDE_CLOUDS)
        or variables_login(env, *CLAUDE_KEYS)
        or variables_login(env, CLAUDE_TOKEN)
    ):
        return login
    folder = claude_folder(env)
    if is_there(credentials := folder / ".credentials.json"):
        return stored(credentials)
    if platform == "darwin":
        return Login(None, "the macOS keychain may hold one")
    for file in (claude_record(env), folder / "settings.json"):
        if is_there(file):
            return Login(None, f"no key is set and there is no {credentials}, but {file} may name one")
    keys = f"{', '.join(CLAUDE_KEYS)} or {CLAUDE_TOKEN}"
    return Login(False, f"no {keys} is set, and there is no {credentials}", "claude auth login")
