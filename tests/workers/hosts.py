"""Two machines for a test: a home with no agent, and hosts with another HOME, PATH and clone of the project each."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import sqlalchemy as sa
from msgspec.structs import replace

from teamchat.core.dispatch.dbos.client import DbosDispatch
from teamchat.core.dispatch.dbos.tables import address
from teamchat.core.dispatch.dispatch import HostClock
from teamchat.core.dispatch.signing import NO_KEY
from tests.program import Result, Started, cli, start

FAST = "0.15"  # of every time of hosts: a beat each 0.45 s, waited for 9 s, or 1.5 s without a person
DEAD_S, LEASE_S = 4.5, 3.0
"""By that clock: without a beat, until a host counts as dead, and until its agents are ended."""
PATIENCE_S = 30.0
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
BARE_PATH = "/usr/bin:/bin"


class Worker:
    """A worker that runs. `log` has its notes, `folder` is that of its host."""

    def __init__(self, host: Host, process: Started, log: Path) -> None:
        self.host, self.process, self.log = host, process, log

    def ready(self) -> Worker:
        until(lambda: "is ready" in self.log.read_text() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()
        return self

    def kill(self) -> None:
        """Kill it, as a machine that loses power does."""
        self.process.kill()
        self.process.wait()

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end, and wait until it has."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


class Host:
    """A machine of its own: HOME, state folder, PATH and clone of the project."""

    def __init__(self, lab: Lab, name: str, machine: str | None = None) -> None:
        self.lab, self.name, self.folder = lab, name, lab.folder / (machine or name)
        self.project = self.folder / "src" / "clone"
        self.signs = False
        self.config = self.folder / "home" / ".config" / "teamchat"
        self.config.mkdir(parents=True)
        self.project.parent.mkdir()
        subprocess.run(("git", "clone", "-q", lab.project, self.project), check=True)

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder / "home"),
            "TEAMCHAT_HOME": str(self.folder / "state"),
            "PATH": BARE_PATH,
            "XDG_CONFIG_HOME": "",
            "TEAMCHAT_DATABASE": self.lab.database,
            "TEAMCHAT_HOST_CLOCK": FAST,
        }

    def agent(self, script: str, name: str = "agent") -> Path:
        """A program of this host, whose runs `starts` counts."""
        path = self.folder / name
        begins = f"cat > {shlex.quote(str(self.folder))}/prompt; echo $$ >> {shlex.quote(str(self.folder))}/starts"
        path.write_text(f"#!/bin/sh\n{begins}\n{script}\n")
        path.chmod(0o755)
        return path

    @property
    def starts(self) -> int:
        """How often its agents have started."""
        log = self.folder / "starts"
        return len(log.read_text().split()) if log.exists() else 0

    @property
    def prompt(self) -> str:
        """What its agent was given last."""
        return (self.folder / "prompt").read_text()

    def offers(self, agents: Mapping[str, Sequence[str | Path]], access: str = "read", like: str | None = None) -> Host:
        """Write what it offers."""
        lines = [] if self.signs else ["unsigned = true"]
        for name, command in agents.items():
            lines += [f"[agents.{name}]", f"command = {json.dumps([str(word) for word in command])}"]
            lines += [f'access = "{access}"', *([f'like = "{like}"'] if like else [])]
        lines += ["[[projects]]", f"folder = {json.dumps(str(self.project))}"]
        (self.config / "host.toml").write_text("\n".join(lines))
        if not self.signs:
            with self.lab.trusted.open("a") as file:
                file.write(f"{NO_KEY}{self.name}\n")
        return self

    def signing(self) -> Host:
        """Have it take only what this home has signed, and sign what it sends."""
        self.signs = True
        (self.config / "allowed_signers").write_text(self.lab.cli("hosts", "--key").out)
        return self

    def trusted(self) -> None:
        """Have home trust the key that it signs with. Its worker runs."""
        done = self.lab.cli("hosts", "trust", self.name)
        assert done.code == 0, done.err

    def worker(self, *options: str, env: Mapping[str, str] | None = None) -> Worker:
        """Start a worker. The lab ends it."""
        log = self.folder / f"worker.{len(self.lab.workers)}.log"
        with log.open("wb") as file:
            given = {**self.env, **(env or {})}
            process = start("worker", "--name", self.name, *options, env=given, stdout=subprocess.DEVNULL, stderr=file)
        worker = Worker(self, process, log)
        self.lab.workers.append(worker)
        return worker


class Lab:
    """A home with a project, and its hosts, over one database."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder, self.database, self.project = folder, database, folder / "project"
        self.workers: list[Worker] = []
        self.project.mkdir(parents=True)
        subprocess.run((*GIT, "init", "-q", "."), cwd=self.project, check=True)
        (self.project / "read-me.txt").write_text("hello\n")
        subprocess.run((*GIT, "add", "."), cwd=self.project, check=True)
        subprocess.run((*GIT, "commit", "-qm", "one"), cwd=self.project, check=True)
        self.config = folder / "home" / ".config" / "teamchat"
        self.config.mkdir(parents=True)
        self.trusted = self.config / "trusted_hosts"
        assert self.cli("hosts", "--init-database").code == 0

    @property
    def env(self) -> dict[str, str]:
        return {
            "TEAMCHAT_DATABASE": self.database,
            "TEAMCHAT_HOST_CLOCK": FAST,
            "TEAMCHAT_HOME": str(self.folder / "state"),
            "HOME": str(self.folder / "home"),
            "XDG_CONFIG_HOME": "",
            "PATH": BARE_PATH,  # with git, and without any agent
        }

    def team(self, *members: str, more: str = "") -> None:
        """Write the team file, with members as lines of TOML, and trust it."""
        tables = "\n".join(f"[[members]]\n{member}" for member in members)
        (self.project / "teamchat.toml").write_text(f"{tables}\n{more}")
        trusted = self.cli("trust")
        assert trusted.code == 0, trusted.err

    def host(self, name: str, machine: str | None = None) -> Host:
        return Host(self, name, machine)

    def cli(self, *args: str, env: Mapping[str, str] | None = None, stdin: str | None = None) -> Result:
        """A command at home, to its end."""
        return cli(*args, env={**self.env, **(env or {})}, cwd=self.project, stdin=stdin)

    def start(self, *args: str, env: Mapping[str, str] | None = None) -> Started:
        """A command at home, which goes on."""
        with contextlib.chdir(self.project):
            return start(*args, env={**self.env, **(env or {})})

    def dispatch(self) -> DbosDispatch:
        """Home's side of the engine, with its keys."""
        dispatch = DbosDispatch(self.database, HostClock())
        dispatch.keys = replace(dispatch.keys, folder=self.config)
        return dispatch

    def hosts(self) -> dict[str, dict[str, object]]:
        """The hosts as `teamchat hosts --json` has them."""
        listed = self.cli("hosts", "--json")
        assert listed.code == 0, listed.err
        return {str(host["name"]): host for host in events(listed, "host")}

    @property
    def written(self) -> str:
        """What has come of the turns that run."""
        return "".join(file.read_text() for file in (self.folder / "state").rglob("turns/*/stdout"))

    @property
    def stored(self) -> str:
        """All values that the database has."""
        engine = sa.create_engine(address(self.database))
        with contextlib.closing(engine.connect()) as connection:
            asked = sa.inspect(engine)
            schemas = [None] if engine.dialect.name == "sqlite" else ["dbos", "teamchat"]
            tables = [sa.table(name, schema=schema) for schema in schemas for name in asked.get_table_names(schema)]
            rows = [row for table in tables for row in connection.execute(sa.select(sa.text("*")).select_from(table))]
        engine.dispose()
        return "\n".join(str(value) for row in rows for value in row)

    def close(self) -> None:
        """End every worker."""
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.process.kill()
            worker.process.wait()


def until(true: object, seconds: float = PATIENCE_S) -> None:
    """Wait until the function returns something true."""
    assert callable(true)
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def waits(host: Host) -> str:
    """A script that goes on once `go` is called."""
    return f"while [ ! -e {shlex.quote(str(host.folder))}/go ]; do sleep 0.02; done"


def go(host: Host) -> None:
    (host.folder / "go").touch()


def events(result: Result, kind: str) -> list[dict[str, object]]:
    """The lines of that type of a run with `--json`."""
    return [line for line in map(json.loads, result.out.splitlines()) if line["type"] == kind]
