"""The end of a turn that cannot be stored is kept beside the store, until the next command stores it.

A store may be locked, full, read-only or damaged when an agent has just answered. The answer was paid for, and is
not asked for twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from pathlib import Path
from typing import get_args

from msgspec import convert

from teamchat.core.files.whole_files import put_in_place, write_private
from teamchat.core.store.rows import dump, load_outcome
from teamchat.core.store.turn_events import TimedEvent
from teamchat.core.turn.execution import FinishedTurn
from teamchat.runners.agent_events import AgentEvent
from teamchat.runners.child.running import MAX_OUTPUT_BYTES
from teamchat.runners.untrusted.regular_files import read_regular

NAME = "ended.json.z"
STREAMS = ("stdout", "stderr")
LARGEST = 2 * MAX_OUTPUT_BYTES
LARGEST_WRITTEN = 4 * MAX_OUTPUT_BYTES
EVENTS = {kind.__name__: kind for kind in get_args(AgentEvent)}


def keep_end(folder: Path, turn: FinishedTurn) -> bool:
    """Write the end of a turn into its folder. Return whether that was possible.

    On a full disk the agent's own output is freed: `turn` has everything that counts of it.
    """
    content = zlib.compress(_written(turn), 1)  # compressed, to fit into the space of the output
    for make_room in (False, True):
        if make_room:
            free_output(folder)
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = folder / f"{NAME}.new"
            new.unlink(missing_ok=True)
            write_private(new, content)
            put_in_place(new, folder / NAME)
            return True
    return False


def free_output(folder: Path) -> None:
    """Free the space of the turn's output."""
    for stream in STREAMS:
        with contextlib.suppress(OSError):
            os.close(os.open(folder / stream, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK))


def has_end(folder: Path) -> bool:
    """Whether the end of a turn is kept in its folder, as far as can be told without reading it."""
    return (folder / NAME).is_file()


def read_end(folder: Path) -> FinishedTurn | None:
    """Read the end of a turn that is kept in its folder; None if there is none, or it is damaged."""
    try:
        written = json.loads(_inflated(read_regular(folder / NAME, LARGEST)))
        events = tuple(TimedEvent(float(at), convert(fields, EVENTS[kind])) for at, kind, fields in written["events"])
        outcome = load_outcome(written["outcome"])
        session = written["vendor_session"]
        return FinishedTurn(
            outcome,
            str(written["text"]),
            interrupted=bool(written["interrupted"]),
            vendor_session=None if session is None else str(session),
            events=events,
        )
    except (OSError, ValueError, TypeError, LookupError, RecursionError, zlib.error):
        return None


def _inflated(data: bytes) -> bytes:
    """Decompress the content. Raises `ValueError` if it is larger than any turn: an agent can write there."""
    inflate = zlib.decompressobj()
    content = inflate.decompress(data, LARGEST_WRITTEN)
    if not inflate.eof:
        raise ValueError("it is incomplete, or larger than any turn")
    return content


def _written(turn: FinishedTurn) -> bytes:
    events = ", ".join(
        f"[{timed.at:.3f}, {json.dumps(type(timed.event).__name__)}, {dump(timed.event)}]" for timed in turn.events
    )
    rest = json.dumps({"text": turn.text, "interrupted": turn.interrupted, "vendor_session": turn.vendor_session})
    return f'{rest[:-1]}, "outcome": {dump(turn.outcome)}, "events": [{events}]}}'.encode()
