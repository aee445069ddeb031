"""Whether Gemini CLI has a login, as far as that shows without running it (observed at 0.61.0)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from teamchat.runners.base import Login
from teamchat.runners.homes.folders import gemini_folder
from teamchat.runners.homes.logins import elsewhere, is_there, stored, variables_login

GEMINI_SWITCHES = ("GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI")  # each goes before any key, if it is "true"
GEMINI_OTHERS = ("GOOGLE_GEMINI_BASE_URL", "CLOUD_SHELL")
GEMINI_FILES = ("oauth_creds.json", "gemini-credentials.json")


def gemini_login(cwd: Path, env: Mapping[str, str]) -> Login:
    """Find Gemini's login.

    Gemini takes GOOGLE_API_KEY for Vertex AI only. With a key and a stored login its settings choose between them.
    """
    folder = gemini_folder(env)
    login_file = next((file for name in GEMINI_FILES if is_there(file := folder / name)), None)
    if login := _of_gemini_variables(env):
        return replace(login, variables=None) if login_file else login
    if login_file:
        return stored(login_file)
    for file in (folder / ".env", folder.parent / ".env", folder / "settings.json"):
        if is_there(file):
            return Login(None, f"no GEMINI_API_KEY is set, but {file} may name a login")
    of_project = (path for folder in (cwd, *cwd.parents) for path in (folder / ".gemini" / ".env", folder / ".env"))
    if unread := next(filter(is_there, of_project), None):
        return Login(None, f"no GEMINI_API_KEY is set, and {unread} is read only with project_settings = true")
    hidden = " (GOOGLE_API_KEY counts for Vertex AI only)" if env.get("GOOGLE_API_KEY") else ""
    return Login(False, f"no GEMINI_API_KEY is set{hidden}, and no login is in {folder}", "gemini")


def _of_gemini_variables(env: Mapping[str, str]) -> Login | None:
    switch = next((name for name in GEMINI_SWITCHES if env.get(name) == "true"), None)
    if switch == "GOOGLE_GENAI_USE_VERTEXAI" and env.get("GOOGLE_API_KEY"):
        return Login(True, "GOOGLE_API_KEY is set, for Vertex AI", variables=("GOOGLE_API_KEY",))
    if switch:
        return elsewhere(env, (switch,))
    return variables_login(env, "GEMINI_API_KEY") or elsewhere(env, GEMINI_OTHERS)
