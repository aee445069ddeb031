"""A run's folders are in memory only where there is room, and go with the run, on small runs of pytest of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import folders
from tests.program import ROOT, TIMEOUT_S
from tests.runners.processes import eventually

SMALL = """
import os, time
from pathlib import Path
def test_passes(tmp_path):
    (tmp_path / "file").write_text("x")
def test_fails(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").write_text("kept")
    assert {holds}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the folder of a run is made."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


def start(tmp_path: Path, place: Path, text: str, *options: str) -> subprocess.Popen[str]:
    """A run of pytest with the plugin alone, whose checkout is `tmp_path`."""
    (tmp_path / "test_small.py").write_text(text)
    begin = "import sys, pathlib, pytest, tests.folders as f; f.KEPT = pathlib.Path('kept'); sys.exit(pytest.main())"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(place)}
    del env[folders.CHOSEN]
    return subprocess.Popen(
        [sys.executable, "-c", begin, "-q", "-p", "tests.folders", "--rootdir", ".", *options],
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize(
    "options", [pytest.param((), id="alone", marks=pytest.mark.long), pytest.param(("-n", "2"), id="xdist")]
)
def test_a_run_that_passes_leaves_nothing_and_one_that_fails_leaves_its_folders_in_the_checkout(
    tmp_path: Path, place: Path, options: tuple[str, ...]
) -> None:
    kept = tmp_path / "kept"
    for holds, code in ((True, 0), (False, 1), (False, 1)):
        with start(tmp_path, place, SMALL.format(holds=holds), *options) as run:
            said, _ = run.communicate(timeout=TIMEOUT_S)
        assert run.returncode == code, said
        assert list(place.iterdir()) == []
        assert kept.exists() == bool(code)
        assert ("the folders of the failed tests: kept" in said) == bool(code)
    files = [path for path in kept.rglob("file") if not any(part.endswith("current") for part in path.parts)]
    assert "kept" in [path.read_text() for path in files]


@pytest.mark.parametrize(
    "options", [pytest.param((), id="alone", marks=pytest.mark.long), pytest.param(("-n", "2"), id="xdist")]
)
def test_a_run_that_is_killed_leaves_nothing(tmp_path: Path, place: Path, options: tuple[str, ...]) -> None:
    text = "import time\ndef test_waits(tmp_path):\n    (tmp_path / 'began').touch()\n    time.sleep(600)\n"
    with start(tmp_path, place, text, *options) as run:
        assert eventually(lambda: any(place.rglob("began")))
        run.send_signal(signal.SIGKILL)
    assert eventually(lambda: list(place.iterdir()) == [])


@pytest.mark.parametrize(
    ("meminfo", "free"),
    [("MemTotal: 9 kB\nMemAvailable:   12345678 kB\n", 12345678 << 10), ("MemTotal: 9 kB\n", 0), ("", 0)],
)
def test_available_memory_is_what_linux_estimates(meminfo: str, free: int) -> None:
    assert folders.available(meminfo) == free


@pytest.mark.skipif(not folders.MEMORY.is_dir(), reason="this system has no /dev/shm")
@pytest.mark.parametrize("memory", [0, folders.FREE - 1, folders.FREE])
def test_little_memory_keeps_the_folders_on_the_disk(memory: int) -> None:
    assert not folders.has_room(folders.MEMORY, memory)


def test_a_folder_that_lets_no_program_run_or_is_not_there_has_no_room(tmp_path: Path) -> None:
    assert not folders.has_room(Path("/proc"), folders.FREE + 1)
    assert not folders.has_room(tmp_path / "missing", folders.FREE + 1)


def test_a_folder_with_room_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "ROOM", 1)
    assert folders.has_room(tmp_path, folders.FREE + 1) == (sys.platform == "linux")
