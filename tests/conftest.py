"""Each test has its own home, state and working folder, and does not see the user's home, keys or CLIs."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import engine

from teamchat.core.agents import CLIS
from teamchat.runners.child.removal import remove
from tests import forks
from tests.core.fake_conversation import STORES
from tests.program import ROOT, fake
from tests.trials import trials

for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:  # nohup and & set this, and teamchat would inherit it
        signal.signal(number, signal.SIG_DFL)
# every run tries the same examples, however slow the machine is; pytest --hypothesis-profile=default tries others
STEADY = settings(derandomize=True, database=None, deadline=None, report_multiple_bugs=False)
settings.register_profile("steady", STEADY, max_examples=trials(40))
settings.load_profile("steady")
engine.MAX_SHRINKING_SECONDS = 30  # the default of five minutes is too long to wait for a failure
# tests in the background of a script would ignore Ctrl-C, and so would every program that they start
signal.signal(signal.SIGINT, signal.default_int_handler)
# the tests start the program a thousand times, so its bytecode is kept
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
pytest_plugins = ["tests.leftovers", "tests.folders"]
AGENTS = ("claude", "codex", "gemini", "opencode")
USERS_OWN = (
    "TEAMCHAT_SESSION",
    "TEAMCHAT_DATABASE",
    "TEAMCHAT_HOST_CLOCK",
    "TEAMCHAT_HOME",
    "CLAUDECODE",
    "GOOGLE_GEMINI_BASE_URL",
    "FORCE_COLOR",
)
FAILED = pytest.StashKey[bool]()
XDG = ("CONFIG_HOME", "STATE_HOME", "DATA_HOME", "CACHE_HOME", "RUNTIME_DIR")


def pytest_configure(config: pytest.Config) -> None:
    """Compile the fakes.

    A shell starts a background job with some signals ignored, and programs inherit that; here they have their defaults.
    """
    for number in forks.SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if not hasattr(config, "workerinput"):  # once for all workers: a team's trust is lost with a change of its programs
        for program in (ROOT / "tests" / "fakes").glob("*.py"):
            fake(program)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the torture. Its tests are the longest and mostly wait; as the last ones they leave cores idle."""
    items.sort(key=lambda item: "torture" not in item.path.parts)


@pytest.fixture(scope="session", autouse=True)
def _no_server_is_left() -> Iterator[None]:
    yield
    forks.close()


@pytest.fixture(autouse=True)
def _no_store_is_left_open() -> Iterator[None]:
    yield
    STORES.close()


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
    """An endless series of folders that do not exist yet."""
    root = tmp_path_factory.mktemp("worlds")
    return (root / str(number) for number in count(1))


@pytest.fixture(autouse=True)
def world(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, worlds: Iterator[Path], plain_path: str
) -> Iterator[Path]:
    """A home, a state folder and an empty working folder, apart from `tmp_path`: the folder that has all three.

    It goes with a test that passes, since a run has thousands of them. Tests of the real CLIs build their own world,
    because they need the machine's npm.
    """
    for name in (*USERS_OWN, *(key for row in CLIS for key in row.keys)):
        monkeypatch.delenv(name, raising=False)
    world = next(worlds)
    world.mkdir()
    if request.node.get_closest_marker("real"):
        yield world
        return
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
    yield world
    if not request.node.stash.get(FAILED, False):
        remove(world)
