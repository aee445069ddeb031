"""Whether what the store calls running was left by a teamchat that was killed: looking shows it, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from teamchat.cli.shared.conversation import lock_file
from teamchat.core.errors import StoreError
from teamchat.core.files.session_lock import holder_of

T = TypeVar("T")


def abandoned(root: Path, session: int, running: Callable[[], Sequence[T]]) -> list[T]:
    """What of the session is `running` while nobody holds its lock; nothing where the lock cannot be opened.

    It is read before and after the lock is looked at: what began or ended meanwhile is not abandoned.
    """
    if not (before := running()):
        return []
    try:
        held = holder_of(lock_file(root, session))
    except StoreError:
        return []
    return [] if held else [found for found in running() if found in before]
