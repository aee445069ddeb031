"""A temporary home for the real CLIs. Its settings point them at a scripted model, and its keys are fakes.

The environment begins empty, so that no key, login or setting of the user reaches them. All other traffic of the CLIs
(telemetry, updates, error reports) is switched off, as far as each CLI allows.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.real.model.selftest import SelfTest
from tests.real.model.table import SELF_TESTS


def home_environment(home: Path, url: str, path: str) -> dict[str, str]:
    """Write the settings of all CLIs into `home` and return their whole environment. The model is at `url`.

    `path` becomes its PATH.
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
    for test in SELF_TESTS.values():
        env |= test.variables(url)
        for name, text in test.files(url).items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text)
    return env


def plant(home: Path, test: SelfTest) -> None:
    """Put something that a prompt can mention into a home: an agent or a skill."""
    file = home / test.prover
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("---\nname: prover\ndescription: It proves.\n---\nProve it.\n")
