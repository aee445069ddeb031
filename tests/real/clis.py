"""The real CLIs at pinned versions, and a world of their own to run in.

They are installed once by npm into a cache outside the repository. Each run gets a fresh home whose settings point at
the scripted model server, and an environment built from nothing: no key, login or setting of the machine reaches them.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from teamchat.core.scripted.home import environment as home_for

PINNED = {
    "@anthropic-ai/claude-code": "2.1.197",
    "@openai/codex": "0.169.0",
    "@google/gemini-cli": "0.61.0",
}
CACHE = Path(os.environ.get("TEAMCHAT_REAL_CACHE") or Path.home() / ".cache" / "teamchat-real")
INSTALL_TIMEOUT_S = 600


class Unavailable(Exception):
    """Why the real CLIs can not be run here."""


def installed() -> Path:
    """The folder with the CLIs' programs; installs them first where they are missing. Raises `Unavailable`."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if any(_installed_version(name) != version for name, version in PINNED.items()):
            _install()
    return CACHE / "node_modules" / ".bin"


def _installed_version(name: str) -> str | None:
    description = CACHE / "node_modules" / name / "package.json"
    return str(json.loads(description.read_text())["version"]) if description.is_file() else None


def _install() -> None:
    if shutil.which("npm") is None:
        raise Unavailable("npm is not installed")
    packages = [f"{name}@{version}" for name, version in PINNED.items()]
    argv = ["npm", "install", "--prefix", str(CACHE), "--no-audit", "--no-fund", "--save-exact", *packages]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
    if done.returncode:
        raise Unavailable(f"npm could not install the CLIs: {done.stderr.strip()[-300:]}")


def environment(home: Path, url: str, programs: Path) -> dict[str, str]:
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
