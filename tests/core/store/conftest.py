from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from teamchat.core.store.database import Database
from teamchat.core.store.sessions import create_session


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a store would be."""
    return tmp_path / "state" / "teamchat.db"


@pytest.fixture
def db(path: Path) -> Iterator[Database]:
    db = Database(path)
    yield db
    db.close()


@pytest.fixture
def session(db: Database) -> int:
    return create_session(db, "team", None).id
