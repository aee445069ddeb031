"""Whether Codex has a login, as far as can be seen without running it (observed at 0.169.0)."""

from __future__ import annotations

from collections.abc import Mapping

from teamchat.runners.base import Login
from teamchat.runners.codex.configuration import home, misunderstood, users_settings
from teamchat.runners.homes.logins import is_there, stored, variables_login


def codex_login(env: Mapping[str, str]) -> Login:
    """Find Codex's login.

    Codex takes OPENAI_API_KEY only by `codex login`, or where a model provider of its configuration names it.
    """
    if wrong := misunderstood(env):
        return Login(None, wrong)
    settings = users_settings(env)
    if login := _of_provider(settings, env) or variables_login(env, "CODEX_API_KEY"):
        return login
    if is_there(file := home(env) / "auth.json"):
        return stored(file)
    if settings.get("cli_auth_credentials_store", "file") != "file":
        return Login(None, "the system's keyring may hold one")
    if env.get("OPENAI_API_KEY"):
        command = "printenv OPENAI_API_KEY | codex login --with-api-key"
        return Login(False, f"there is no {file}, and codex does not use OPENAI_API_KEY by itself", command)
    return Login(False, f"no CODEX_API_KEY is set, and there is no {file}", "codex login")


def _of_provider(settings: Mapping[str, object], env: Mapping[str, str]) -> Login | None:
    """Find the login of a model provider that the user defines; None if Codex's own login counts."""
    match settings:
        case {"model_provider": str(name), "model_providers": dict(tables)} if isinstance(tables.get(name), dict):
            provider = tables[name]
        case {"model_provider": str(name)} if name != "openai":
            provider = {}
        case _:
            return None
    if provider.get("requires_openai_auth") is True:
        return None
    key = provider.get("env_key")
    if not isinstance(key, str):
        return Login(None, f"its model provider {name!r} has a login of its own")
    if env.get(key):
        return Login(True, f"{key} is set, the key of its model provider {name!r}", variables=(key,))
    return Login(False, f"{key} is not set, the key of its model provider {name!r}")
