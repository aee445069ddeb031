"""A PostgreSQL for each process of a run, and a database of it for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workers.hosts import Lab
from tests.workers.postgres import Cluster, Unavailable, cluster, is_for_another


@pytest.fixture(autouse=True)
def _no_other_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in filter(is_for_another, list(os.environ)):
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """Fails, and does not skip, where PostgreSQL is not installed: a tier that runs nothing has shown nothing."""
    try:
        with cluster() as running:
            yield running
    except Unavailable as why:
        pytest.fail(str(why), pytrace=False)


SMALL = ("test_turns_on_hosts", "test_hosts_go_away", "test_signed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most tests over SQLite to `make long`: `make workers` has all of them over PostgreSQL."""
    for item in items:
        if item.path.parent == Path(__file__).parent and "sqlite" in item.name and item.path.stem not in SMALL:
            item.add_marker(pytest.mark.long)


@pytest.fixture
def database(postgres: Cluster) -> str:
    """The URL of a database that no other test has."""
    if not postgres.runs:  # an earlier test has let it crash
        postgres.start()
    return postgres.database()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.workers)])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """Home and hosts, over the engine's SQLite mode in `make test`, and over PostgreSQL in `make workers`."""
    url = f"sqlite:///{tmp_path}/hosts.sqlite" if request.param == "sqlite" else request.getfixturevalue("database")
    made = Lab(tmp_path / "lab", url)
    try:
        yield made
    finally:
        made.close()
