"""The git program: how it is found and run, with nothing of the user's environment that changes what it does."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from teamchat.core.errors import CheckpointFailed
from teamchat.core.text.clean import printable

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
    """git ended with an error; `told` is what it wrote to stderr, `code` its exit code."""

    def __init__(self, command: str, told: bytes, code: int = 128) -> None:
        self.told, self.code = told, code
        text = printable(told.decode(errors="replace").strip().replace("\n", "; "))[:_LONGEST_ERROR]
        super().__init__(f"git {command}: {text or 'it failed and says nothing'}")


def find_git() -> str | None:
    """Where git is: in no folder that is only known relative to where somebody works."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which("git", path=os.pathsep.join(folder for folder in folders if Path(folder).is_absolute()))


def git_environment(*, users_own: bool = False) -> dict[str, str]:
    """The whole environment of git; it reads the user's and the system's configuration only with `users_own`."""
    passed = {name: os.environ[name] for name in PASSED + USERS_OWN * users_own if name in os.environ}
    hidden = {} if users_own else {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    return {"PATH": os.defpath, **_MUTE, **hidden, **passed}


@dataclass(frozen=True, slots=True)
class GitProgram:
    """A git that runs in `cwd` and takes at most `seconds`.

    `held` is a lock that outlives this process while a git that it started is still at work.
    """

    cwd: Path
    env: Mapping[str, str] = field(default_factory=git_environment)
    seconds: float = 900.0
    held: tuple[int, ...] = ()

    def __call__(self, *arguments: str, given: bytes = b"") -> bytes:
        """What git prints. Raises `GitFailed`, and `CheckpointFailed` where git cannot run or takes too long."""
        return self.run(*arguments, given=given).stdout

    def run(self, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """The same with what git says on stderr."""
        try:
            done = subprocess.run(
                self.argv(*arguments),
                input=given,
                capture_output=True,
                check=False,
                cwd=self.cwd,
                env=self.env,
                timeout=self.seconds,
                pass_fds=self.held,
                process_group=0,  # Ctrl-C is for this program, which lets git end its step
            )
        except subprocess.TimeoutExpired:
            raise CheckpointFailed(f"git {arguments[0]} took longer than {self.seconds:g} s") from None
        except OSError as error:
            raise CheckpointFailed(f"git cannot be run: {error.strerror}") from error
        if done.returncode:
            raise GitFailed(arguments[0], done.stderr, done.returncode)
        return done

    def argv(self, *arguments: str) -> list[str]:
        """The command line. Raises `CheckpointFailed` if git is missing."""
        if (path := find_git()) is None:
            raise CheckpointFailed("git is not installed")
        return [path, *arguments]
