"""Whether a CLI has a login, as far as that shows without running it (observed at 2.1.197, 0.169.0 and 0.61.0).

Variables are looked at, and whether files are there. A file that may hold a login is never opened, so where a keychain
or a settings file may have one, the answer is that only the CLI itself knows.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from teamchat.runners.base import Login, Runner
from teamchat.runners.codex.configuration import home as codex_home
from teamchat.runners.codex.configuration import misunderstood, users_settings
from teamchat.runners.events import Failure, FailureKind
from teamchat.runners.homes import claude_folder, claude_record, gemini_folder

CLAUDE_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")  # it sends both (observed at 2.1.197 and 2.1.330)
CLAUDE_TOKEN = "CLAUDE_CODE_OAUTH_TOKEN"  # noqa: S105 (its name); sent without a key only, and before a stored login
CLAUDE_CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
GEMINI_SWITCHES = ("GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI")  # each before any key, if it is "true"
GEMINI_OTHERS = ("GOOGLE_GEMINI_BASE_URL", "CLOUD_SHELL")
GEMINI_FILES = ("oauth_creds.json", "gemini-credentials.json")


def claude_login(env: Mapping[str, str], platform: str = sys.platform) -> Login:
    if login := _elsewhere(env, CLAUDE_CLOUDS) or _given(env, *CLAUDE_KEYS) or _given(env, CLAUDE_TOKEN):
        return login
    folder = claude_folder(env)
    if _there(credentials := folder / ".credentials.json"):
        return _stored(credentials)
    if platform == "darwin":
        return Login(None, "the macOS keychain may hold one")
    for file in (claude_record(env), folder / "settings.json"):
        if _there(file):
            return Login(None, f"no key is set and there is no {credentials}, but {file} may name one")
    keys = f"{', '.join(CLAUDE_KEYS)} or {CLAUDE_TOKEN}"
    return Login(False, f"no {keys} is set, and there is no {credentials}", "claude auth login")


def codex_login(env: Mapping[str, str]) -> Login:
    """It takes OPENAI_API_KEY only by `codex login`, or where a model provider of its configuration names it."""
    if wrong := misunderstood(env):
        return Login(None, wrong)
    settings = users_settings(env)
    if login := _of_provider(settings, env) or _given(env, "CODEX_API_KEY"):
        return login
    if _there(file := codex_home(env) / "auth.json"):
        return _stored(file)
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
        return Login(True, f"{key} is set, the key of its model provider {name!r}", variables=(key,))
    return Login(False, f"{key} is not set, the key of its model provider {name!r}")


def gemini_login(cwd: Path, env: Mapping[str, str]) -> Login:
    """It takes GOOGLE_API_KEY for Vertex AI only. With a key and a stored login its settings choose between them."""
    folder = gemini_folder(env)
    stored = next((file for name in GEMINI_FILES if _there(file := folder / name)), None)
    if login := _of_gemini_variables(env):
        return replace(login, variables=None) if stored else login
    if stored:
        return _stored(stored)
    for file in (folder / ".env", folder.parent / ".env", folder / "settings.json"):
        if _there(file):
            return Login(None, f"no GEMINI_API_KEY is set, but {file} may name a login")
    of_project = (path for folder in (cwd, *cwd.parents) for path in (folder / ".gemini" / ".env", folder / ".env"))
    if unread := next(filter(_there, of_project), None):
        return Login(None, f"no GEMINI_API_KEY is set, and {unread} is read only with project_settings = true")
    hidden = " (GOOGLE_API_KEY is taken for Vertex AI only)" if env.get("GOOGLE_API_KEY") else ""
    return Login(False, f"no GEMINI_API_KEY is set{hidden}, and no login is in {folder}", "gemini")


def _of_gemini_variables(env: Mapping[str, str]) -> Login | None:
    switch = next((name for name in GEMINI_SWITCHES if env.get(name) == "true"), None)
    if switch == "GOOGLE_GENAI_USE_VERTEXAI" and env.get("GOOGLE_API_KEY"):
        return Login(True, "GOOGLE_API_KEY is set, for Vertex AI", variables=("GOOGLE_API_KEY",))
    if switch:
        return _elsewhere(env, (switch,))
    return _given(env, "GEMINI_API_KEY") or _elsewhere(env, GEMINI_OTHERS)


def _given(env: Mapping[str, str], *keys: str) -> Login | None:
    """A login by variables; the CLI sends all of these that are set."""
    names = tuple(name for name in keys if env.get(name))
    return Login(True, _set(names), variables=names) if names else None


def _elsewhere(env: Mapping[str, str], switches: tuple[str, ...]) -> Login | None:
    """A switch to another service, whose login only that service knows."""
    switch = next((name for name in switches if env.get(name)), None)
    return Login(None, f"{switch} is set: another service, with a login of its own") if switch else None


def _stored(file: Path) -> Login:
    return Login(True, f"{file} is there", variables=())


def _set(names: tuple[str, ...]) -> str:
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} set"


def _there(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # a folder that may not be looked into
        return False


def login_variables(runner: Runner, cwd: Path, env: Mapping[str, str], args: Collection[str]) -> tuple[str, ...] | None:
    """`Login.variables` of a turn with this environment; not known where its member's own `args` may bring a login."""
    login = None if args else runner.login(cwd, env)
    return login.variables if login else None


def with_source(failure: Failure | None, variables: tuple[str, ...] | None) -> Failure | None:
    """The failure of a turn, where a login that was refused says which one it is; `variables` as `Login` has them.

    A refused variable has no command for a hint: a new login does not help while the CLI still sends the variable.
    """
    if failure is None or failure.kind is not FailureKind.LOGIN or variables is None:
        return failure
    if not variables:
        return replace(failure, reason=f"{failure.reason}; its stored login was refused")
    one = len(variables) == 1
    refused = "and was refused: correct or unset it" if one else "and were refused: correct or unset them"
    return Failure(failure.kind, f"{failure.reason}; {_set(variables)} {refused}")
