"""What a turn was given that differs from what its member was given the time before."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from teamchat.core.clean import visible
from teamchat.core.store.database import Database
from teamchat.core.store.turns import Turn, previous_turn, prompt_of, system_of


def prompt_diff(db: Database, turn: Turn) -> Iterator[str]:
    """A unified diff of system text and prompt, against the member's previous turn; all is new in a first one."""
    before = previous_turn(db, turn)
    name = f"turn {before.number}" if before else "nothing before"
    old = _given(db, before) if before else []
    changed = False
    for line in difflib.unified_diff(old, _given(db, turn), name, f"turn {turn.number}", lineterm="", n=2):
        changed = True
        yield visible(line)
    if not changed:
        yield f"turn {turn.number} was given the same as {name}"


def _given(db: Database, turn: Turn) -> list[str]:
    return f"{system_of(db, turn) or ''}\n{prompt_of(db, turn).decode(errors='replace')}".split("\n")
