"""Whoever has no PostgreSQL is told what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.program import ROOT, TIMEOUT_S
from tests.workers.postgres import PLACES, UNAVAILABLE, Unavailable, places, programs


def test_a_missing_installation_is_said_in_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.workers.postgres", "true"],
        cwd=ROOT,
        env={**os.environ, PLACES: ""},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    said = "PostgreSQL is not installed; apt-get install -y postgresql\n"
    assert (done.returncode, done.stdout, done.stderr) == (UNAVAILABLE, "", said)


def test_a_folder_with_a_part_of_the_programs_is_passed_over(tmp_path: Path) -> None:
    part, whole = tmp_path / "part", tmp_path / "whole"
    for folder, names in ((part, ["initdb"]), (whole, ["initdb", "postgres"])):
        folder.mkdir()
        for name in names:
            (folder / name).touch(mode=0o700)
    assert programs([part, whole]) == whole
    with pytest.raises(Unavailable):
        programs([part])


def test_the_folders_of_path_come_after_those_of_debian() -> None:
    assert places({"PATH": "/a:/b"})[-2:] == [Path("/a"), Path("/b")]
    assert places({"PATH": "/a", PLACES: "/c"}) == [Path("/c")]
