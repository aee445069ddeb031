"""What `make newest` says of the newest DBOS where it cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.newest import engine


def test_an_engine_that_cannot_be_had_is_a_line_and_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    [line] = engine()
    assert line.startswith("newest DBOS: not tried, or not to the end: ERROR: No matching distribution found for dbos")
