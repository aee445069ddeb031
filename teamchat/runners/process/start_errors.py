"""Why a process could not be started."""

from __future__ import annotations


class SpawnFailed(Exception):
    """The operating system refused to start the program; the message says why."""


class HasEnded(SpawnFailed):
    """The process that was to stay for this turn has already ended."""


class OwnFileFailed(SpawnFailed):
    """A file of teamchat's own for the process could not be created. This says nothing about the program."""


class FolderReplaced(SpawnFailed):
    """Another folder is now at the path of the one to start in."""


def start_error(error: OSError | ValueError | RuntimeError) -> str:
    """Why something could not start, for people."""
    if isinstance(error, ConnectionError):
        return "the guardian process ended before it could start the agent"
    words = getattr(error, "strerror", None) or str(error)
    return f"{words}: {error.filename}" if isinstance(error, OSError) and error.filename else words
