"""The ledger: what `doctor --offline` found out about which version of each CLI, as released with teamchat.

`ledger.json` is made by `make ledger`, which runs the real CLIs; docs/clis.md shows it to people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from teamchat.runners.base import Runner, Vendor

Rows = Mapping[str, Mapping[str, str]]
"""By the row's name its `state`, as `doctor --offline` has it, and its `text` where that is not "ok"."""
HOLDS = ("ok", "warning")


@cache
def ledger() -> Mapping[Vendor, Mapping[str, Rows]]:
    """The rows by CLI and version."""
    found: Mapping[Vendor, Mapping[str, Rows]] = json.loads((files(__package__) / "ledger.json").read_bytes())
    return found


def shortfalls(vendor: Vendor, version: str) -> tuple[str, ...] | None:
    """The rows that do not hold for this version; None where it is not in the ledger."""
    rows = ledger()[vendor].get(version)
    return None if rows is None else tuple(name for name, row in rows.items() if row["state"] not in HOLDS)


def newest_proven(vendor: Vendor) -> str:
    """The newest version for which every row holds."""
    return max((version for version in ledger()[vendor] if not shortfalls(vendor, version)), key=version_numbers)


def version_numbers(version: str) -> tuple[int, ...]:
    """What versions are compared by; an early form (1.2.0-rc1) counts as the version that it comes before."""
    found = re.match(r"[\d.]*\d", version)
    return tuple(int(number) for number in found[0].split(".") if number) if found else ()


def reports_denials(runner: Runner, version: str | None) -> bool:
    """Whether no refusal told means that there was none: only a version that was seen to tell them is believed."""
    if not runner.reports_denials or runner.vendor is None or version is None:
        return False
    missing = shortfalls(runner.vendor, version)
    return missing is not None and "denials" not in missing
