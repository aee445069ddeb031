"""Changes of protected files that a person accepted: the paths of a session, each with its accepted content."""

from __future__ import annotations

import json
from collections.abc import Mapping

from msgspec import Struct

from teamchat.core.store.database import Database
from teamchat.core.store.rows import Row


class Accepted(Struct, frozen=True):
    """A path relative to the top of the work tree, and the state of `states_of` that is accepted there."""

    path: str
    state: str


def an_accepted(row: Row) -> Accepted:
    row.integer("session")
    return Accepted(str(row.json("path")), row.text("state"))


def accept(db: Database, session: int, states: Mapping[str, str]) -> None:
    """Note that a person accepts these states of these paths."""
    rows = ((session, json.dumps(path), state) for path, state in states.items())
    with db.transaction():
        db.executemany("INSERT OR IGNORE INTO accepted VALUES (?, ?, ?)", rows)


def accepted_in(db: Database, session: int) -> set[Accepted]:
    """Return the states of files that a person accepted in the session."""
    return set(db.values(an_accepted, "SELECT * FROM accepted WHERE session = ?", session))
