"""The machine that figures were taken on, in words that anybody may read."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("typer", "rich", "pydantic", "msgspec")


def describe() -> Mapping[str, str]:
    packages = {name: version(name) for name in PACKAGES}
    return {
        "cpu": cpu(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1024**3:.0f} GiB",
        "os": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **packages,
    }


def cpu() -> str:
    """The model of the processor, as the system names it."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.*)$", info.read_text(), re.MULTILINE) if info.exists() else None
    return found[1] if found else platform.processor() or platform.machine()
