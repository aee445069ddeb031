"""What falls short at the newest CLIs and DBOS: told, and no failure, for a release of others stops none of ours.

Where the CLIs are the pinned versions, those were run already. Otherwise the proof and the core of the real tests
(the marker `core`) are run with them, and one line is printed for everything that does not hold. What a CLI decides by
itself, and no test requires, is printed in each case (the marker `recorded`). Tests of turns on hosts are run with the
newest DBOS in each case.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.program import ROOT
from tests.real import clis
from tests.real.ledger import proved

TIMEOUT_S = 900
ENGINE_TESTS = ("tests/workers/test_values.py", "tests/workers/test_turns_on_hosts.py")
FOUND = "import dbos; from importlib.metadata import version; print(version('dbos')); print(dbos.__file__)"


def told(pinned: clis.Versions) -> Iterator[str]:
    """The lines about the newest versions, the first of which names them."""
    try:
        newest = clis.newest()
        names = clis.in_words(newest)
        if newest == pinned:
            yield f"newest CLIs: {names}: they are the pinned ones, nothing is run twice"
            return
        yield f"newest CLIs: {names} (pinned: {clis.in_words(pinned)})"
        yield from shortfalls(newest)
        yield from tests(newest, "core")
    except (clis.Unavailable, OSError, ValueError, subprocess.TimeoutExpired) as error:
        yield f"newest CLIs: not tried, or not to the end: {error}"


def recorded() -> Iterator[str]:
    """What the newest versions decide by themselves, also where they are the pinned ones."""
    with suppress(clis.Unavailable, OSError, ValueError, subprocess.TimeoutExpired):  # which `told` has said
        yield from tests(clis.newest(), "recorded")


def shortfalls(versions: clis.Versions) -> Iterator[str]:
    """The rows of the proof that do not hold."""
    found = proved(versions)
    short = [
        f"  {name} {versions[name]}, {what}: {row['state']}: {row['text']}"
        for name, rows in found.items()
        for what, row in rows.items()
        if "text" in row
    ]
    yield f"  proof: {sum(map(len, found.values())) - len(short)} rows hold, {len(short)} to look at"
    yield from short


def tests(versions: clis.Versions, marker: str) -> Iterator[str]:
    """What does not hold of the tests with this marker, and what they record."""
    env = {**os.environ, "TEAMCHAT_REAL_CLIS": clis.in_words(versions)}
    yield from ran(["tests/real", "-m", f"real and {marker}"], env, marker)


def engine() -> Iterator[str]:
    """The lines about the newest DBOS, which gets a folder of its own with all that it needs."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            run("-m", "pip", "install", "--quiet", "--upgrade", "--target", folder, "dbos")
            env = {**os.environ, "PYTHONPATH": folder}
            newest, place = run("-c", FOUND, env=env).splitlines()
            yield f"newest DBOS: {newest} (here: {version('dbos')})"
            if Path(place).is_relative_to(folder):
                yield from ran(ENGINE_TESTS, env, "DBOS")
            else:
                yield f"  DBOS tests: not run: Python finds the one in {place}"
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            yield f"newest DBOS: not tried, or not to the end: {error}"


def run(*words: str, env: Mapping[str, str] | None = None) -> str:
    """What a Python with these arguments prints. Raises `ValueError` with its last words if it fails."""
    argv = [sys.executable, *words]
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise ValueError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    return done.stdout


def ran(what: Sequence[str], env: Mapping[str, str], name: str) -> Iterator[str]:
    """What does not hold of these tests, as pytest takes them, and what they record.

    pytest's own words are kept from the screen, where they read as a failure.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        argv = [sys.executable, "-m", "pytest", *what, "-n", "auto", f"--junitxml={report}"]
        done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if not report.is_file():
            yield f"  {name} tests: did not run: {done.stdout[-300:].strip()} {done.stderr[-300:].strip()}"
            return
        yield from read(ET.parse(report).getroot(), name)  # noqa: S314 (pytest wrote it)


def read(report: ET.Element, name: str) -> Iterator[str]:
    cases = list(report.iter("testcase"))
    short = [(case, trouble) for case in cases for trouble in case if trouble.tag in ("failure", "error", "skipped")]
    yield f"  {name} tests: {len(cases) - len({id(case) for case, _ in short})} of {len(cases)} hold"
    for case, trouble in short:
        reason = (trouble.get("message") or trouble.tag).strip().split("\n", 1)[0]
        yield f"  {case.get('name')}: {reason[:200]}"
    for case in cases:
        for kept in case.iter("property"):
            yield f"  {case.get('name')}: {kept.get('name')}: {kept.get('value')}"


def main() -> int:
    for line in told(clis.PINNED):
        print(line, flush=True)
    for line in recorded():
        print(line, flush=True)
    for line in engine():
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
