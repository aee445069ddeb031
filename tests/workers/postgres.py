"""A PostgreSQL cluster of its own for tests: in a temporary folder, on a socket, without a TCP port.

`python -m tests.workers.postgres COMMAND...` runs a command with the URL of a new database in `TEAMCHAT_DATABASE`, and
ends with its exit code. A cluster that the machine runs is neither read nor changed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from types import FrameType

import psycopg

from teamchat.runners.child.removal import remove

VARIABLE = "TEAMCHAT_DATABASE"
PLACES = "POSTGRES_PATH"
"""The variable with the folders to search for PostgreSQL's programs, in place of Debian's and of PATH."""
SHORT = Path("/tmp")
"""A socket's path has 103 bytes at most, and an unprivileged user gets into no folder below one of root's."""
USER, GROUP = "nobody", "nogroup"
PATIENCE_S, PAUSE_S = 60.0, 0.02
USAGE, UNAVAILABLE, NOT_FOUND, SIGNALLED = 2, 69, 127, 128
PORT = 5432
"""Names the socket; what a URL leaves out."""
OPTIONS = ("listen_addresses=", "unix_socket_permissions=0700", "fsync=off", "max_connections=200")
KEEPER = """
pid=
while read -r word; do
    [ "$word" != done ] || exit 0
    pid=$word
done
for signal in INT QUIT KILL; do
    [ -n "$pid" ] && kill -s $signal "$pid" || break
    tenths=0
    while kill -0 "$pid" && [ $tenths -lt 50 ]; do
        tenths=$((tenths + 1))
        sleep 0.1
    done
done
rm -rf -- "$0"
"""
"""Reads the process of each server that starts, an empty line for its end, and `done`.

Where the input ends before that, the tests were killed: it stops the server and removes the folder.
"""


class Unavailable(Exception):
    """Why PostgreSQL cannot be run here, in one line."""


def places(env: Mapping[str, str]) -> list[Path]:
    """The folders that may have the programs. Debian does not put its own on PATH; the newest comes first."""
    if PLACES in env:
        return [Path(name) for name in env[PLACES].split(os.pathsep) if name]
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    return [*debian, *(Path(name) for name in env.get("PATH", os.defpath).split(os.pathsep) if name)]


def _version(folder: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", folder.parent.name)]


def programs(folders: Sequence[Path]) -> Path:
    """The folder that has them. Raises `Unavailable`."""
    for folder in folders:
        if all(shutil.which(name, path=str(folder)) for name in ("initdb", "postgres")):
            return folder
    raise Unavailable("PostgreSQL is not installed; apt-get install -y postgresql")


class Cluster:
    """A cluster, whose server can crash and start again. `cluster` makes it and removes it."""

    def __init__(self, folder: Path, installed: Path, keeper: subprocess.Popen[bytes]) -> None:
        self.options: tuple[str, ...] = ()  # of its next start, beside `OPTIONS`
        self.port = PORT  # the same
        self.disk_mb: int | None = None  # the same: the size of a disk of its own, on which its data then are
        self.folder, self._data, self._socket = folder, folder / "data", folder / "socket"
        self._installed, self._keeper = installed, keeper
        self._server: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)

    @property
    def runs(self) -> bool:
        return self._server is not None and self._server.poll() is None

    @property
    def pid(self) -> int | None:
        """The server's first process, the parent of all the others."""
        return self._server.pid if self._server else None

    def make(self) -> None:
        """Make its files. Raises `Unavailable`."""
        for made in (self.folder, self._data, self._socket):
            made.mkdir(mode=0o700, exist_ok=True)
            if _privileged():
                shutil.chown(made, USER, GROUP)
        words = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
        argv = self._argv("initdb", "--pgdata", str(self._data), *words)
        done = subprocess.run(argv, cwd=self.folder, env=_environment(), capture_output=True, check=False)
        if done.returncode:
            raise Unavailable(f"initdb failed: {_last_line(done.stderr)}")

    def start(self) -> None:
        """Start the server, and wait until it accepts connections. Raises `Unavailable`."""
        options = [word for option in (f"port={self.port}", *OPTIONS, *self.options) for word in ("-c", option)]
        argv = self._argv("postgres", "-D", str(self._data), "-k", str(self._socket), *options)
        if self.disk_mb:
            moved = f"{self._data}.here"
            script = f"cp -a {self._data} {moved} && mount -t tmpfs -o size={self.disk_mb}m tmpfs {self._data} &&"
            script += (
                f" chown --reference={moved} {self._data} && chmod 700 {self._data} && cp -a {moved}/. {self._data}"
            )
            argv = ["unshare", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh", *argv]
        written = self.folder / "log"
        with written.open("ab") as log:
            # a session of its own: a Ctrl-C at the terminal is the tests' to answer
            self._server = subprocess.Popen(
                argv,
                cwd=self.folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._tell(str(self._server.pid))
        until = time.monotonic() + PATIENCE_S
        while not self._accepts():
            if not self.runs or time.monotonic() > until:
                raise Unavailable(f"PostgreSQL does not start: {_last_line(written.read_bytes())}")
            time.sleep(PAUSE_S)

    def crash(self) -> None:
        """End all its processes at once, without writing anything more to its files."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        """End the server, with its connections."""
        self._end(signal.SIGINT)

    @property
    def log(self) -> str:
        """What the server has said."""
        return (self.folder / "log").read_text()

    @property
    def disk(self) -> Path:
        """Its data, on the disk of its own."""
        return Path(f"/proc/{self.pid}/root{self._data}")

    def owned(self, path: Path) -> Path:
        """A file that the server may read although nobody else does."""
        path.chmod(0o600)
        if _privileged():
            shutil.chown(path, USER, GROUP)
        return path

    def database(self) -> str:
        """The URL of a new database."""
        name = f"teamchat_{next(self._numbers)}"
        with closing(self._connection()) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self._url(name)

    def _url(self, name: str) -> str:
        return f"postgresql://postgres@/{name}?host={self._socket}"

    def _connection(self) -> psycopg.Connection:
        return psycopg.connect(self._url("postgres"), port=self.port, autocommit=True)

    def _accepts(self) -> bool:
        try:
            self._connection().close()
        except psycopg.OperationalError:
            return False
        return True

    def _end(self, number: signal.Signals) -> None:
        if self._server is None:
            return
        self._server.send_signal(number)
        try:
            self._server.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        self._server = None
        self._tell("")

    def _tell(self, word: str) -> None:
        assert self._keeper.stdin
        self._keeper.stdin.write(f"{word}\n".encode())
        self._keeper.stdin.flush()

    def _argv(self, program: str, *words: str) -> list[str]:
        """PostgreSQL refuses to run as root."""
        user = ("setpriv", f"--reuid={USER}", f"--regid={GROUP}", "--clear-groups", "--") if _privileged() else ()
        return [*user, str(self._installed / program), *words]


def _privileged() -> bool:
    return os.geteuid() == 0


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not is_for_another(name)}


def is_for_another(variable: str) -> bool:
    """Whether it is a user's setting for another PostgreSQL, as `PGPORT` is, which would complete a URL."""
    return variable.startswith("PG")


def _last_line(said: bytes) -> str:
    return (said.decode(errors="replace").strip().splitlines() or ["it says nothing"])[-1]


@contextmanager
def cluster(folders: Sequence[Path] | None = None) -> Iterator[Cluster]:
    """A cluster that runs, and is gone afterwards, also where this process is killed. Raises `Unavailable`."""
    installed = programs(places(os.environ) if folders is None else folders)
    folder = Path(tempfile.mkdtemp(prefix="teamchat-postgres-", dir=SHORT))
    keeper = subprocess.Popen(
        ["/bin/sh", "-c", KEEPER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.defpath},  # without the mark that `tests/leftovers.py` looks for
        start_new_session=True,
    )
    running = Cluster(folder, installed, keeper)
    try:
        running.make()
        running.start()
        yield running
    finally:
        running.stop()
        remove(folder)
        keeper.communicate(b"done\n")


def ran(words: Sequence[str], database: str) -> int:
    """The exit code of a command that has the database. A Ctrl-C is the command's to answer, as is a SIGTERM."""
    process: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def passes_on(number: int, _frame: FrameType | None) -> None:
        if process:
            process.send_signal(number)
        else:
            early.append(number)

    signal.signal(signal.SIGINT, lambda _number, _frame: None)  # the terminal sends it to the command, too
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, passes_on)
    try:
        process = subprocess.Popen(words, env={**_environment(), VARIABLE: database})
    except OSError as error:
        print(f"{words[0]}: {error.strerror}", file=sys.stderr)
        return NOT_FOUND
    for missed in early:
        process.send_signal(missed)
    code = process.wait()
    return code if code >= 0 else SIGNALLED - code


def main(words: Sequence[str]) -> int:
    if not words:
        print("usage: python -m tests.workers.postgres COMMAND...", file=sys.stderr)
        return USAGE
    try:
        with cluster() as running:
            return ran(words, running.database())
    except Unavailable as why:
        print(why, file=sys.stderr)
        return UNAVAILABLE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
