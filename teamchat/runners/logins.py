"""Whether a CLI has a login, as far as that shows without running it (observed at 2.1.197, 0.169.0 and 0.61.0).

Variables are looked at, and whether files are there. A file that may hold a login is never opened, so where a keychain
or a settings file may have one, the answer is that only the CLI itself knows.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from teamchat.runners.base import Login
from teamchat.runners.codex_config import home as codex_home
from teamchat.runners.codex_config import users_settings

CLAUDE_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
CLAUDE_CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
GEMINI_OTHERS = ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GOOGLE_GEMINI_BASE_URL", "CLOUD_SHELL")


def claude_login(env: Mapping[str, str], platform: str = sys.platform) -> Login:
    if login := _given(env, CLAUDE_KEYS, CLAUDE_CLOUDS):
        return login
    home = Path(env.get("HOME", "/nonexistent"))
    folder = Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    if _there(credentials := folder / ".credentials.json"):
        return Login(True, f"{credentials} is there")
    if platform == "darwin":
        return Login(None, "the macOS keychain may hold one")
    moved = "CLAUDE_CONFIG_DIR" in env
    for file in (folder / ".claude.json" if moved else home / ".claude.json", folder / "settings.json"):
        if _there(file):
            return Login(None, f"no key is set and there is no {credentials}, but {file} may name one")
    return Login(False, f"no {_either(CLAUDE_KEYS)} is set, and there is no {credentials}", "claude auth login")


def codex_login(env: Mapping[str, str]) -> Login:
    """It takes OPENAI_API_KEY only by `codex login`, or where a model provider of its configuration names it."""
    settings = users_settings(env)
    if login := _of_provider(settings, env) or _given(env, ("CODEX_API_KEY",)):
        return login
    if _there(file := codex_home(env) / "auth.json"):
        return Login(True, f"{file} is there")
    if settings.get("cli_auth_credentials_store", "file") != "file":
        return Login(None, "the system's keyring may hold one")
    if env.get("OPENAI_API_KEY"):
        told = "printenv OPENAI_API_KEY | codex login --with-api-key"
        return Login(False, f"there is no {file}, and codex does not look at OPENAI_API_KEY by itself", told)
    return Login(False, f"no CODEX_API_KEY is set, and there is no {file}", "codex login")


def _of_provider(settings: Mapping[str, object], env: Mapping[str, str]) -> Login | None:
    """The login of a model provider of the user's own; None where Codex's own login counts."""
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
        return Login(None, f"its model provider {name!r} has a way of its own")
    if env.get(key):
        return Login(True, f"{key} is set, the key of its model provider {name!r}")
    return Login(False, f"{key} is not set, the key of its model provider {name!r}")


def gemini_login(cwd: Path, env: Mapping[str, str]) -> Login:
    """It takes GOOGLE_API_KEY for Vertex AI only."""
    if env.get("GOOGLE_GENAI_USE_VERTEXAI") == "true" and env.get("GOOGLE_API_KEY"):
        return Login(True, "GOOGLE_API_KEY is set, for Vertex AI")
    if login := _given(env, ("GEMINI_API_KEY",), GEMINI_OTHERS):
        return login
    home = Path(env.get("GEMINI_CLI_HOME") or env.get("HOME", "/nonexistent"))
    for name in ("oauth_creds.json", "gemini-credentials.json"):
        if _there(file := home / ".gemini" / name):
            return Login(True, f"{file} is there")
    folders = (cwd, *cwd.parents, home)
    keys = [path for folder in folders for path in (folder / ".gemini" / ".env", folder / ".env")]
    for file in (*keys, home / ".gemini" / "settings.json"):
        if _there(file):
            return Login(None, f"no GEMINI_API_KEY is set, but {file} may name a login")
    hidden = " (GOOGLE_API_KEY is taken for Vertex AI only)" if env.get("GOOGLE_API_KEY") else ""
    return Login(False, f"no GEMINI_API_KEY is set{hidden}, and no login is in {home / '.gemini'}", "gemini")


def _given(env: Mapping[str, str], keys: tuple[str, ...], others: tuple[str, ...] = ()) -> Login | None:
    """A login by a variable: a key, or a switch to another service, whose login only that service knows."""
    if key := next((name for name in keys if env.get(name)), None):
        return Login(True, f"{key} is set")
    if other := next((name for name in others if env.get(name)), None):
        return Login(None, f"{other} is set: another service, with a login of its own")
    return None


def _either(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _there(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # a folder that may not be looked into
        return False
