from __future__ import annotations

import sqlite3


def m016_batches(_db: sqlite3.Connection) -> None:
    """From here on a row of `turn_events` may have many events or a part of one, which earlier versions cannot read."""
