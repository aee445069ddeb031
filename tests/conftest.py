"""No test reads the user's home, keys or CLIs, or writes where it stands: each has a small world of its own."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import engine

from teamchat.core.agents import CLIS
from tests import forks
from tests.program import ROOT

for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:  # of a pytest under nohup or behind &: teamchat would ignore it, too
        signal.signal(number, signal.SIG_DFL)
# the same examples in every run, however slow the machine; others: pytest --hypothesis-profile=default
settings.register_profile("steady", derandomize=True, database=None, deadline=None, report_multiple_bugs=False)
settings.load_profile("steady")
engine.MAX_SHRINKING_SECONDS = 30  # a failure is told while somebody still waits for it; it would be five minutes
# where the tests run in the background of a script Ctrl-C is ignored, which every program here would inherit
signal.signal(signal.SIGINT, signal.default_int_handler)
# the tests start this program a thousand times, and it is compiled once for all of them
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
pytest_plugins = ["tests.leftovers"]
AGENTS = ("claude", "codex", "gemini", "opencode")
USERS_OWN = ("TEAMCHAT_SESSION", "TEAMCHAT_HOME", "CLAUDECODE", "GOOGLE_GEMINI_BASE_URL", "FORCE_COLOR")
IN_MEMORY, ROOM = Path("/dev/shm"), 4 << 30
XDG = ("CONFIG_HOME", "STATE_HOME", "DATA_HOME", "CACHE_HOME", "RUNTIME_DIR")


def pytest_configure(config: pytest.Config) -> None:
    """Keep the folders of the tests in memory where there is room: most of a run is waiting for disks to be flushed.

    Not those of the real CLIs: their sandboxes know `/tmp`.
    """
    if config.option.markexpr == "not real" and has_room(IN_MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


def has_room(folder: Path) -> bool:
    """Whether it is a folder of this system for files of that size, and for programs."""
    if not (sys.platform == "linux" and os.access(folder, os.W_OK | os.X_OK)):
        return False
    system = os.statvfs(folder)
    return system.f_bavail * system.f_frsize >= ROOM and not system.f_flag & os.ST_NOEXEC


@pytest.fixture(scope="session", autouse=True)
def _no_server_is_left() -> Iterator[None]:
    yield
    forks.close()


@pytest.fixture(scope="session")
def plain_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH with this Python's programs and the system's, but without the real agent CLIs."""
    folders = [str(Path(sys.executable).parent), "/usr/bin", "/bin"]
    return os.pathsep.join(_without_agents(Path(folder), tmp_path_factory) for folder in folders)


def _without_agents(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    if not any(shutil.which(agent, path=str(folder)) for agent in AGENTS):
        return str(folder)
    copy = tmp_path_factory.mktemp("bin")
    for program in folder.iterdir():
        if program.name not in AGENTS:
            (copy / program.name).symlink_to(program)
    return str(copy)


@pytest.fixture(scope="session")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that are not there yet, one after another."""
    root = tmp_path_factory.mktemp("worlds")
    return (root / str(number) for number in count(1))


@pytest.fixture(autouse=True)
def world(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, worlds: Iterator[Path], plain_path: str
) -> Path:
    """A home, a state folder and an empty working folder; `tmp_path` stays the test's own. Returns the folder of all.

    Tests of the real CLIs build their own world, and need the machine's npm for it.
    """
    for name in (*USERS_OWN, *(key for row in CLIS for key in row.keys)):
        monkeypatch.delenv(name, raising=False)
    world = next(worlds)
    world.mkdir()
    if request.node.get_closest_marker("real"):
        return world
    for folder in ("home", "state", "work", "tmp"):
        (world / folder).mkdir()
    for name in XDG:
        monkeypatch.setenv(f"XDG_{name}", str(world / "home" / name.lower()))
    monkeypatch.setenv("HOME", str(world / "home"))
    monkeypatch.setenv("TEAMCHAT_HOME", str(world / "state"))
    monkeypatch.setenv("TMPDIR", str(world / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(world / "tmp"))
    monkeypatch.setenv("PATH", plain_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.chdir(world / "work")
    return world
