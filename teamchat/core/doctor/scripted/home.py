"""A throw-away home for the real CLIs: its settings point them at a scripted model, and its keys open nothing.

The environment is built from nothing, so that no key, login or setting of the user's reaches them. What the CLIs would
send anywhere else (telemetry, updates, error reports) is switched off, as far as each lets that be done.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from teamchat.core.agents import CLIS
from teamchat.runners.base import Vendor

MODELS: Mapping[Vendor, str] = MappingProxyType({row.name: row.self_test.model for row in CLIS})


def home_environment(home: Path, url: str, path: str) -> dict[str, str]:
    """A whole environment for all CLIs, whose settings it also writes into `home`; the model is at `url`.

    `path` is its PATH.
    """
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    env = {
        "HOME": str(home),
        "PATH": path,
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "TERM": os.environ.get("TERM", "dumb"),
        "TMPDIR": str(temporary),
        "NO_COLOR": "1",
    }
    for test in (row.self_test for row in CLIS):
        env |= test.variables(url)
        for name, text in test.files(url).items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text)
    return env
