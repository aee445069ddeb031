"""Namespaces of its own for what may end, stop or fill whatever it sees: nothing gets out of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache

import pytest

CANNOT = 77
"""The exit code where a system lets no test have namespaces."""


def unshared(setup: str = 'exec "$@"') -> list[str]:
    """The beginning of a command line: what follows runs by `setup` in mount and process namespaces of its own.

    `setup` is the text of a shell that is the first process there; `$0` is the first word that follows.
    """
    user = () if os.getuid() == 0 else ("--map-root-user",)
    return ["unshare", *user, "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", setup]


@cache
def refusal() -> str:
    """Why this system lets no test have namespaces; empty where it does."""
    if not (shutil.which("unshare") and shutil.which("setpriv")):
        return "needs unshare and setpriv, of util-linux"
    tried = subprocess.run([*unshared(), "sh", "true"], capture_output=True, check=False)
    return f"no namespaces: {tried.stderr.decode(errors='replace').strip()}" if tried.returncode else ""


def apart(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the text of a shell with these words in such namespaces; skips the test where there can be none."""
    if why := refusal():
        pytest.skip(why)
    return subprocess.run([*unshared(script), "sh", *words], capture_output=True, text=True, check=False, timeout=60)
