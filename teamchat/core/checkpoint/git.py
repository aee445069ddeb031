"""The git program: how it is found and run, without environment variables of the user that change its behaviour."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from msgspec import Struct, field

from teamchat.core.errors import CheckpointFailed
from teamchat.core.text.clean import printable
from teamchat.runners.child.command import CommandEnd, Printing, printing, run, tied
from teamchat.runners.git_server import find_git

PASSED = ("HOME", "XDG_CONFIG_HOME", "TMPDIR")  # where the user's list of ignored files is
USERS_OWN = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
_MUTE = {
    "LC_ALL": "C",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PAGER": "cat",
}
_LONGEST_ERROR = 300  # characters


class GitFailed(Exception):
    """git ended with an error; `told` is its text on stderr, `code` its exit code."""

    def __init__(self, command: str, told: bytes, code: int = 128) -> None:
        self.told, self.code = told, code
        text = printable(told.decode(errors="replace").strip().replace("\n", "; "))[:_LONGEST_ERROR]
        super().__init__(f"git {command}: {text or 'it failed and says nothing'}")


def git_environment(*, users_own: bool = False) -> dict[str, str]:
    """Build git's whole environment; it reads the user's and the system's configuration only with `users_own`."""
    passed = {name: os.environ[name] for name in PASSED + USERS_OWN * users_own if name in os.environ}
    hidden = {} if users_own else {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    return {"PATH": os.defpath, **_MUTE, **hidden, **passed}


class GitProgram(Struct, frozen=True):
    """A git that runs in `cwd` for at most `seconds`, and at most `idle_s` without doing anything.

    It ends with this process, and as soon as `stopped` says so.
    """

    cwd: Path
    env: Mapping[str, str] = field(default_factory=git_environment)
    seconds: float = 240.0
    idle_s: float = 10.0
    stopped: Callable[[], bool] | None = None

    def __call__(self, *arguments: str, given: bytes = b"") -> bytes:
        """Run git and return what it prints.

        Raises `GitFailed`, and `CheckpointFailed` where git cannot run or takes too long.
        """
        return self.run(*arguments, given=given).out

    def run(self, *arguments: str, given: bytes = b"") -> CommandEnd:
        """Run git and return what it prints, with its stderr. Raises as `__call__` does."""
        try:
            argv = self._argv(*arguments)
            ended = run(argv, self.cwd, self.env, self.seconds, given, idle_s=self.idle_s, stopped=self.stopped)
        except OSError as error:
            raise CheckpointFailed(f"git cannot be run: {error.strerror}") from error
        if ended.code is None:
            why = {"late": f"took longer than {self.seconds:g} s", "stopped": "was stopped"}
            raise CheckpointFailed(f"git {arguments[0]} {why.get(ended.why, f'did nothing for {self.idle_s:g} s')}")
        if ended.code:
            raise GitFailed(arguments[0], ended.err, ended.code)
        return ended

    def printing(self, *arguments: str, given: bytes = b"") -> AbstractContextManager[Printing]:
        """Start a git that is read while it prints, for as long as its reader takes. Raises `CheckpointFailed`."""
        return printing(self._argv(*arguments), self.cwd, self.env, given)

    def _argv(self, *arguments: str) -> list[str]:
        """Build the command line. Raises `CheckpointFailed` if git is missing."""
        if (path := find_git(os.environ)) is None:
            raise CheckpointFailed("git is not installed")
        return [*tied(), path, *arguments]
