"""Fixtures of the tier that runs the real CLIs: the scripted model, and a fresh user per test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forks import read_at_start
from tests.leftovers import marked
from tests.real import clis
from tests.real.model.server import ModelServer
from tests.real.world import World

LONGEST = ("test_doctor_proves", "test_real_undo", "test_parity_measured", "test_opencode", "test_real_memory")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests. As the last ones they leave cores idle."""
    items.sort(key=lambda item: item.path.stem not in LONGEST)


@pytest.fixture(scope="session", autouse=True)
def _forks_have_the_environment_of_a_user() -> None:
    """`tests/forks.py` forks a program whose interpreter would read the same variables as its own: LANG alone."""
    language = os.environ.get("LANG", "C.UTF-8")  # what `home_environment` gives
    for name in read_at_start(os.environ):
        del os.environ[name]
    os.environ["LANG"] = language


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture(scope="session")
def programs() -> str:
    """A PATH of the real CLIs' programs, at the versions of this run; skips where they cannot be had."""
    try:
        return clis.installed(clis.chosen())
    except clis.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def real_env(tmp_path: Path, server: ModelServer, programs: str) -> dict[str, str]:
    """A whole environment for the real CLIs, with a home of its own; their model is `server`."""
    home = tmp_path / "home"
    home.mkdir()
    return marked(clis.environment(home, server.url, programs))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty folder to work in."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def user(tmp_path: Path, server: ModelServer, real_env: dict[str, str], workspace: Path) -> World:
    """The same with a store, for running teamchat itself."""
    return World(server, {**real_env, "TEAMCHAT_HOME": str(tmp_path / "state")}, workspace)
