"""Whether a file can be recorded to, known before anything runs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from teamchat.core.cassette.format import read_cassette
from teamchat.core.errors import UsageError


def check_recording(file: Path) -> None:
    """Raises `UsageError` if the recording cannot be written, or the file to continue is no cassette."""
    new = Path(os.path.realpath(file))  # the target of a link
    try:
        with contextlib.suppress(FileExistsError):
            new.open("x").close()
            new.unlink()
            return
        file.open("a").close()
    except OSError as error:
        raise UsageError(f"the cassette {file} cannot be written: {error.strerror}") from error
    if file.stat().st_size:
        read_cassette(file)
