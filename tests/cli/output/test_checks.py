"""What is told of a check that left something behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.cli.output.checks import check_notes
from teamchat.core.check import CheckResult
from teamchat.core.store.checks import CheckRecord


def record(left: int) -> CheckRecord:
    result = CheckResult("green", left=tuple(f"sleep {number}" for number in range(1, left + 1)))
    place = Path("/tmp")
    return CheckRecord(1, 1, 1, None, "tests", "true", "green", 0.0, 0, place, place, result)


@pytest.mark.parametrize(("left", "end"), [(5, "sleep 5"), (6, "sleep 5, 1 more"), (1300, "sleep 5, 1,295 more")])
def test_of_many_ended_processes_it_says_how_many_more(left: int, end: str) -> None:
    (note,) = check_notes(record(left))
    assert note == f"check-1 left running, and teamchat ended: sleep 1, sleep 2, sleep 3, sleep 4, {end}"
