"""Finds the installed version of an agent CLI, and its rows in the ledger of proven versions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from teamchat.core.doctor.checks import DoctorCheck
from teamchat.core.errors import ExitCode
from teamchat.core.team.team import INSTALL
from teamchat.core.team.trust_needs import whose
from teamchat.patterns import regex
from teamchat.runners.agent_row import OWN, AgentRow
from teamchat.runners.base import NOT_PROVEN, Runner, Vendor
from teamchat.runners.child.running import SpawnFailed
from teamchat.runners.failures import ending

Rows = Mapping[str, Mapping[str, str]]
"""For each row its `state`, as `make ledger` found it, and its `text` unless that is "ok"."""
HOLDS = ("ok", "warning")


@cache
def ledger() -> Mapping[Vendor, Mapping[str, Rows]]:
    """Read the rows by CLI and version."""
    rows: Mapping[Vendor, Mapping[str, Rows]] = json.loads(Path(__file__).with_name("ledger.json").read_bytes())
    return rows


def shortfalls(vendor: Vendor, version: str) -> tuple[str, ...] | None:
    """List the rows that fail for this version; None if the ledger does not have the version."""
    rows = ledger()[vendor].get(version)
    return None if rows is None else tuple(name for name, row in rows.items() if row["state"] not in HOLDS)


def newest_proven(vendor: Vendor) -> str:
    """Find the newest version that passes every row."""
    return max((version for version in ledger()[vendor] if not shortfalls(vendor, version)), key=version_numbers)


def version_numbers(version: str) -> tuple[int, ...]:
    """Read the numbers for a comparison of versions.

    A pre-release (1.2.0-rc1) counts as the version that follows it.
    """
    match = re.match(r"[\d.]*\d", version)
    return tuple(int(number) for number in match[0].split(".") if number) if match else ()


def reports_denials(runner: Runner, version: str | None) -> bool:
    """Whether a turn without a reported refusal had none. Only versions proven to report refusals are trusted."""
    if not runner.reports_denials or runner.vendor is None or version is None:
        return False
    missing = shortfalls(runner.vendor, version)
    return missing is not None and "denials" not in missing


Ask = Callable[[Sequence[str], Mapping[str, str], Path, float], tuple[int | None, bytes]]
"""Asks a program for its version, as `capture` of `runners/child/command.py` does."""

NEUTRAL = Path("/")
"""The start folder of a CLI that is only asked for its version or its help: neither it nor a folder above is a
project."""
ANSWER_S = 10.0  # seconds; Gemini takes one and a half
_VERSION = regex(rb"\d{1,9}(?:\.\d{1,9})+[0-9A-Za-z.+-]*")
_NOT_STARTED = (126, 127)  # the exit code of shells and `env` for a script without an interpreter


def check_version(
    name: str, program: str, runner: Runner, env: Mapping[str, str], ask: Ask, answer_s: float = ANSWER_S
) -> DoctorCheck:
    """Check the version that the program of the built-in agent `name` reports. Blocks."""
    assert runner.vendor
    version = _asked(program, ("--version",), env, ask, answer_s)
    return version if isinstance(version, DoctorCheck) else known_version(version, runner.vendor, INSTALL[name])


def check_row(row: AgentRow, program: str, env: Mapping[str, str], ask: Ask) -> DoctorCheck:
    """Check the version of a program that a row describes. Blocks."""
    version = _asked(program, row.version, env, ask, ANSWER_S)
    if isinstance(version, DoctorCheck):
        return version
    if row.origin != OWN:
        return DoctorCheck(None, "version", "note", f"{version}, {whose(row)}", version)
    if not row.proven:
        return DoctorCheck(None, "version", "note", f"{version}, observed {row.observed}, {NOT_PROVEN}", version)
    if version in row.proven:
        return DoctorCheck(None, "version", "ok", f"{version}, proven", version)
    untested = f"{version}, not tested; the newest proven is {row.proven[-1]}"
    hint = f"npm install -g {row.package}@{row.proven[-1]}" if row.package else None
    return DoctorCheck(None, "version", "warning", untested, version, hint)


def _asked(program: str, words: Sequence[str], env: Mapping[str, str], ask: Ask, answer_s: float) -> str | DoctorCheck:
    """Ask a program for its version; return a finding if it reports none."""
    said_to = " ".join(words)
    try:
        code, said = ask((str(Path(program).absolute()), *words), env, NEUTRAL, answer_s)
    except SpawnFailed as error:
        return _broken(f"cannot be started: {error}")
    if code in _NOT_STARTED:
        return _broken(f"{said_to} {ending(code)}: what it needs to run is missing")
    if code is None:
        return DoctorCheck(None, "version", "warning", f"{said_to} gave no answer in {answer_s:g} s")
    version = _VERSION.search(said)
    if code or version is None:
        return DoctorCheck(None, "version", "warning", f"{said_to} {ending(code)}, and printed no version")
    return version[0].decode()


def _broken(text: str) -> DoctorCheck:
    return DoctorCheck(None, "version", "failed", text, code=ExitCode.AGENT_UNAVAILABLE)


def known_version(version: str, vendor: Vendor, upgrade: str) -> DoctorCheck:
    """Report the ledger's rows on this version."""
    newest, missing = newest_proven(vendor), shortfalls(vendor, version)
    beside = "" if version == newest else f"; the newest proven is {newest}"
    if missing:
        text = f"{version}, proven but for {', '.join(missing)}{beside}"
        return DoctorCheck(None, "version", "warning", text, version, upgrade)
    if missing is not None:
        return DoctorCheck(None, "version", "ok", f"{version}, proven{beside}", version)
    untested = f"{version}, not tested; the newest proven is {newest}"
    return DoctorCheck(None, "version", "warning", untested, version, f"{upgrade}@{newest}")
