"""Makes the ledger: the proof over the pinned CLIs, the newest ones, and every version that the ledger has.

`python -m tests.real.ledger [NAME=VERSION ...]` adds those versions. It writes the data that teamchat ships, and the
tables of docs/clis.md from it. One CLI runs at a time, and up to three times until every row is "ok": on a busy machine
one may not end in time when it is stopped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from teamchat.core.doctor.versions import Rows, ledger, newest_proven, version_numbers
from teamchat.runners.base import Vendor
from tests.program import ROOT
from tests.real import clis
from tests.real.proof.findings import ORDER

DATA, PAGE = ROOT / "teamchat" / "core" / "doctor" / "ledger.json", ROOT / "docs" / "clis.md"
BEGIN, END = "<!-- made by `make ledger` -->\n", "<!-- end of what is made -->\n"
PROVED = tuple(what for what in ORDER if what != "time")
MARKS = {"ok": "✓", "warning": "!", "unknown": "?", "failed": "✗"}
STATES = (*MARKS,)  # from the best to the worst
TIMEOUT_S = 600
TRIES = 3
Ledger = Mapping[Vendor, Mapping[str, Rows]]


def proved(versions: clis.Versions) -> dict[Vendor, Rows]:
    """What the proof finds out about these versions. Raises `clis.Unavailable`."""
    node = Path(shutil.which("node") or "node").parent
    with tempfile.TemporaryDirectory(prefix="ledger-") as folder:
        env = {
            "HOME": folder,
            "TEAMCHAT_HOME": f"{folder}/state",
            "TMPDIR": folder,
            "LANG": "C.UTF-8",
            "PATH": os.pathsep.join((clis.installed(versions), str(node), "/usr/bin", "/bin")),
        }
        argv = [sys.executable, "-m", "tests.real.proof"]
        done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, timeout=TIMEOUT_S, check=False)
    checks: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    return {name: dict(_rows(check for check in checks if check.get("member") == name)) for name in versions}


def _rows(checks: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, str]]]:
    for check in checks:
        if check["what"] in PROVED:
            text = {} if check["state"] == "ok" else {"text": check["text"]}
            yield check["what"], {"state": check["state"], **text}


def _best(name: Vendor, version: str) -> Rows:
    """The rows of a version, each as it was at its best."""
    best: dict[str, Mapping[str, str]] = {}
    for _ in range(TRIES):
        for what, row in proved({name: version})[name].items():
            best[what] = min(best.get(what, row), row, key=lambda one: STATES.index(one["state"]))
        if all(row["state"] == "ok" for row in best.values()):
            break
    return best


def dumped(data: Ledger) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def rendered(data: Ledger) -> str:
    """The tables, one CLI after another, newest version first."""
    return "\n".join(_table(name, versions) for name, versions in data.items())


def _table(name: Vendor, versions: Mapping[str, Rows]) -> str:
    rows = [what for what in PROVED if any(what in found for found in versions.values())]
    lines = [f"## {name}", "", f"The newest proven version is {newest_proven(name)}.", ""]
    lines += [f"| version | {' | '.join(rows)} |", "|---" * (len(rows) + 1) + "|"]
    lines += [
        f"| {version} | {' | '.join(_mark(found, what) for what in rows)} |" for version, found in versions.items()
    ]
    told = [
        f"- {version}, {what}: {row['text']}"
        for version, found in versions.items()
        for what, row in found.items()
        if "text" in row
    ]
    return "\n".join([*lines, *([""] if told else []), *told]) + "\n"


def _mark(found: Rows, what: str) -> str:
    return MARKS[found[what]["state"]] if what in found else ""


def page(text: str, tables: str) -> str:
    """The page with these tables in place of its own."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{tables}\n{END}{rest.partition(END)[2]}"


def main(words: list[str]) -> int:
    wanted = [(name, version) for name, versions in ledger().items() for version in versions]
    wanted += [*clis.PINNED.items(), *clis.newest().items(), *clis.parsed(words).items()]
    data: dict[Vendor, dict[str, Rows]] = {name: {} for name in clis.VENDORS}
    for name, version in sorted(set(wanted), key=lambda one: version_numbers(one[1]), reverse=True):
        data[name][version] = _best(name, version)
        short = [f"{what}: {row['text']}" for what, row in data[name][version].items() if "text" in row]
        print(f"{name} {version}: {'; '.join(short) or 'every row holds'}", flush=True)
    DATA.write_text(dumped(data), encoding="utf-8")
    ledger.cache_clear()
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), rendered(ledger())), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
