"""What was typed in chat, kept for each workspace in a file that only its user can read."""

from __future__ import annotations

import os
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

NAME = "chat-history"


def history_in(folder: Path) -> History:
    """The history in that folder. It lasts only as long as the program if the file cannot be written."""
    file = folder / NAME
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        file.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(file)
