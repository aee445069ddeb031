"""The ledger: the results of `doctor --offline` for each version of each CLI, released with teamchat.

`make ledger` writes `ledger.json` by running the real CLIs. docs/clis.md shows it to people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from teamchat.runners.base import Runner, Vendor

Rows = Mapping[str, Mapping[str, str]]
"""For each row its `state`, as `doctor --offline` reports it, and its `text` unless that is "ok"."""
HOLDS = ("ok", "warning")


@cache
def ledger() -> Mapping[Vendor, Mapping[str, Rows]]:
    """The rows by CLI and version."""
    found: Mapping[Vendor, Mapping[str, Rows]] = json.loads(Path(__file__).with_name("ledger.json").read_bytes())
    return found


def shortfalls(vendor: Vendor, version: str) -> tuple[str, ...] | None:
    """The rows that fail for this version; None if the ledger does not have the version."""
    rows = ledger()[vendor].get(version)
    return None if rows is None else tuple(name for name, row in rows.items() if row["state"] not in HOLDS)


def newest_proven(vendor: Vendor) -> str:
    """The newest version that passes every row."""
    return max((version for version in ledger()[vendor] if not shortfalls(vendor, version)), key=version_numbers)


def version_numbers(version: str) -> tuple[int, ...]:
    """The numbers by which versions are compared. A pre-release (1.2.0-rc1) counts as the version that follows it."""
    found = re.match(r"[\d.]*\d", version)
    return tuple(int(number) for number in found[0].split(".") if number) if found else ()


def reports_denials(runner: Runner, version: str | None) -> bool:
    """True if a turn without a reported refusal had none. Only versions proven to report refusals are trusted."""
    if not runner.reports_denials or runner.vendor is None or version is None:
        return False
    missing = shortfalls(runner.vendor, version)
    return missing is not None and "denials" not in missing
