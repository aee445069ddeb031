"""The real CLIs from npm, at any set of versions, and a world of their own to run in.

Each version of each CLI is installed once, into a folder of its own of a cache outside the repository, so that sets of
versions share what they have in common. Each run gets a fresh home whose settings point at the scripted model server,
and an environment built from nothing: no key, login or setting of the machine reaches them.

`python -m tests.real.clis pinned|newest` prints a set, as the variable `TEAMCHAT_REAL_CLIS` takes it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from teamchat.core.agents import AGENT_TYPES, CLIS
from teamchat.runners.base import Vendor
from tests.real.model.home import home_environment as home_for

Versions = Mapping[Vendor, str]
VENDORS: tuple[Vendor, ...] = tuple(row.name for row in CLIS)
PINNED: Versions = {"claude": "2.1.332", "codex": "0.171.0", "gemini": "0.61.0", "opencode": "1.18.33"}
CACHE = Path(os.environ.get("TEAMCHAT_REAL_CACHE") or Path.home() / ".cache" / "teamchat-real")
INSTALL_TIMEOUT_S = 600
LOOK_UP_TIMEOUT_S = 60


class Unavailable(Exception):
    """Why the real CLIs cannot be run here."""


def chosen() -> Versions:
    """The set of versions that the tests run: `TEAMCHAT_REAL_CLIS`, as "claude=1.2.3 codex=1.2.3", else the pinned."""
    return {**PINNED, **parsed(os.environ.get("TEAMCHAT_REAL_CLIS", "").split())}


def parsed(words: Sequence[str]) -> Versions:
    """The versions in words of the form NAME=VERSION. Raises ValueError for a name that no CLI has."""
    pairs = [word.partition("=")[::2] for word in words]
    if unknown := [name for name, _ in pairs if name not in VENDORS]:
        raise ValueError(f"no CLI is called {unknown[0]!r}")
    return dict(pairs)


def in_words(versions: Versions) -> str:
    return " ".join(f"{name}={version}" for name, version in versions.items())


def newest() -> Versions:
    """The newest version of each CLI that npm knows of. Raises `Unavailable`."""
    with ThreadPoolExecutor() as pool:
        return dict(zip(VENDORS, pool.map(_newest, VENDORS), strict=True))


def _newest(name: Vendor) -> str:
    return _npm("view", _package(name), "version", timeout_s=LOOK_UP_TIMEOUT_S).strip()


def installed(versions: Versions) -> str:
    """A PATH of the folders with the programs of that set; installs what is missing first. Raises `Unavailable`."""
    return os.pathsep.join(str(_installed(name, version)) for name, version in versions.items())


def _installed(name: Vendor, version: str) -> Path:
    """Whoever comes second waits for the first, and finds it installed; one that breaks off leaves nothing in place."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder, partial = CACHE / f"{name}-{version}", CACHE / f"{name}-{version}.partial"
    with (CACHE / f"{name}-{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "node_modules" / ".bin" / name).exists():
            shutil.rmtree(partial, ignore_errors=True)
            what = ("--no-audit", "--no-fund", f"{_package(name)}@{version}")
            _npm("install", "--prefix", str(partial), *what, timeout_s=INSTALL_TIMEOUT_S)
            shutil.rmtree(folder, ignore_errors=True)
            partial.rename(folder)
    return folder / "node_modules" / ".bin"


def _package(name: Vendor) -> str:
    package = AGENT_TYPES[name].package
    assert package
    return package


def _npm(*arguments: str, timeout_s: float) -> str:
    """What npm prints."""
    try:
        done = subprocess.run(["npm", *arguments], capture_output=True, text=True, timeout=timeout_s, check=False)
    except FileNotFoundError as error:
        raise Unavailable("npm is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"npm {arguments[0]} gave no answer in {timeout_s:g} s") from error
    if done.returncode:
        raise Unavailable(f"npm {arguments[0]} failed: {done.stderr.strip()[-300:]}")
    return done.stdout


def environment(home: Path, url: str, programs: str) -> dict[str, str]:
    """A whole environment for all three CLIs, whose homes it also writes settings into; the model is at `url`."""
    return home_for(home, url, f"{programs}:{os.environ['PATH']}")


@dataclass(frozen=True, slots=True)
class Finished:
    """A CLI's finished run."""

    exit_code: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def events(self) -> list[dict[str, object]]:
        """The JSON objects on stdout, in order; other lines are left out."""
        return [json.loads(line) for line in self.stdout.split("\n") if line.startswith("{")]


def run(argv: Sequence[str], stdin: bytes, cwd: Path, env: Mapping[str, str], timeout_s: float = 60) -> Finished:
    """Run a CLI with regular files as stdin, stdout and stderr; its whole group is killed after `timeout_s`."""
    folder = Path(env["TMPDIR"])
    given, out, err = (folder / f"run.{name}" for name in ("stdin", "stdout", "stderr"))
    given.write_bytes(stdin)
    begin = time.monotonic()
    with given.open("rb") as i, out.open("wb") as o, err.open("wb") as e:
        child = subprocess.Popen(argv, stdin=i, stdout=o, stderr=e, cwd=cwd, env=dict(env), start_new_session=True)
        try:
            child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    seconds = time.monotonic() - begin
    return Finished(child.returncode, out.read_text("utf-8", "replace"), err.read_text("utf-8", "replace"), seconds)


def main(which: str) -> int:
    try:
        print(in_words(newest() if which == "newest" else PINNED))
    except Unavailable as reason:
        print(f"the newest CLIs cannot be told: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
