"""A throw-away home for the real CLIs: its settings point them at a scripted model, and its keys open nothing.

The environment is built from nothing, so that no key, login or setting of the user's reaches them. What the CLIs would
send anywhere else (telemetry, updates, error reports) is switched off, as far as each lets that be done.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from teamchat.runners.base import Vendor

MODELS: Mapping[Vendor, str] = MappingProxyType(
    {"claude": "claude-opus-4-8", "codex": "gpt-5.5", "gemini": "gemini-2.5-flash"}
)
"""Models each CLI knows, so that it makes no extra calls and prints no warnings about an unknown one."""


def environment(home: Path, url: str, path: str) -> dict[str, str]:
    """A whole environment for all three CLIs, whose settings it also writes into `home`; the model is at `url`.

    `path` is its PATH.
    """
    _configure(home, url)
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    return {
        "HOME": str(home),
        "PATH": path,
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "TERM": os.environ.get("TERM", "dumb"),
        "TMPDIR": str(temporary),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "dummy-anthropic-key",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "OPENAI_API_KEY": "dummy-openai-key",
        "GEMINI_API_KEY": "dummy-gemini-key",
        "GOOGLE_GEMINI_BASE_URL": url,
        "NO_COLOR": "1",
    }


def _configure(home: Path, url: str) -> None:
    codex = f"""
model_provider = "mock"
model = "{MODELS["codex"]}"
analytics.enabled = false
check_for_update_on_startup = false
features.plugins = false
features.apps = false

[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
"""
    gemini = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "model": {"name": MODELS["gemini"]},
    }
    for path, text in {".codex/config.toml": codex, ".gemini/settings.json": json.dumps(gemini)}.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
