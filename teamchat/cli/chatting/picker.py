"""Choosing a conversation from a list with the arrow keys."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from shutil import get_terminal_size

from msgspec.structs import replace
from prompt_toolkit.application.current import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import choice

from teamchat.cli.output.listing import age, fitted
from teamchat.core.store.database import Database
from teamchat.core.store.listing import title_of
from teamchat.core.store.sessions import Session, all_sessions
from teamchat.core.text.clean import printable

MOST = 50  # conversations in the list; `/sessions NAME` opens any
HOW = "Open which conversation? Arrow keys and Enter; Esc opens none."


def pick(db: Database, current: Session | None) -> Session | None:
    """Let the person at the terminal choose a conversation; None for none."""
    there = all_sessions(db)[:MOST]
    lines = [line_of(db, session, current) for session in there]
    if not there:
        print("there is no conversation here yet")
        return None
    number = by_keys(
        lines, next((at for at, session in enumerate(there) if not current or session.id != current.id), 0)
    )
    return None if number is None else there[number]


def line_of(db: Database, session: Session, current: Session | None) -> str:
    """Write `s2  2 min ago  Add a parser`; a title that was given comes with the first words."""
    title, first = title_of(db, session), title_of(db, replace(session, title=None))
    words = f"{title}: {first}" if session.title is not None and first else title
    here = ", open here" if current and session.id == current.id else ""
    return printable("  ".join((session.name, f"{age(session.used_at, time.time())}{here}", words)).rstrip())


def by_keys(lines: Sequence[str], first: int) -> int | None:
    """Return the place of the line that is chosen with the arrow keys; the cursor begins at the `first`."""
    keys = KeyBindings()

    @keys.add("escape", eager=True)
    @keys.add("c-d")
    def _(event: KeyPressEvent) -> None:
        event.app.exit(result=None)

    columns, rows = get_terminal_size()
    size = Size(rows, columns)
    options: list[tuple[int | None, str]] = [(at, fitted(line, columns - 12)) for at, line in enumerate(lines)]
    with open(0, closefd=False) as reads, open(1, "w", encoding="utf-8", closefd=False) as writes:
        output = Vt100_Output(writes, lambda: size, os.environ.get("TERM"), enable_cpr=False)
        with create_app_session(input=Vt100Input(reads), output=output):
            return choice(HOW, options=options, default=first, key_bindings=keys)
