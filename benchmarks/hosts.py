"""What a turn on a host costs over PostgreSQL beside its agent, how late its output is shown, and an idle worker.

Home and worker are on one machine, over a cluster on a socket, with the clocks and polls that users have.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from benchmarks.figure import Figure, Measures, Unavailable
from tests.workers.postgres import Unavailable as NoPostgres
from tests.workers.postgres import cluster

TURNS = 10  # of a run, one after the other
RUNS = 2
P95 = 0.95
OVERHEAD_MS, LATE_MS, IDLE_TRANSACTIONS, IDLE_PERCENT = 700, 80, 40, 5
WATCHED_S = 10.0
AGENT = "#!/bin/sh\ncat > /dev/null\nsleep 0.3\ndate +%s.%N\nsleep 0.2\n"
TICKS = os.sysconf("SC_CLK_TCK")


def members_on_gpu1(number: int) -> str:
    """The team file of a home whose members work on one host."""
    members = (f'[[members]]\nname = "m{each}"\nagent = "agent"\nhost = "gpu1"\n' for each in range(number))
    return "[team.limits]\nturns = 40\n" + "".join(members)


class World:
    """A home and its workers over one database. The `agent` is the text of a program."""

    def __init__(self, folder: Path, database: str, team: str, agent: str = AGENT) -> None:
        self.folder, self.database, self.home = folder, database, folder / "home"
        self.home.mkdir()
        self._git("init", "-q")
        self._git(
            "-c",
            "user.name=kai",
            "-c",
            "user.email=kai@example.invalid",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "first",
        )
        program = folder / "agent"
        program.write_text(agent)
        program.chmod(0o755)
        (self.home / "teamchat.toml").write_text(team)
        self._offers = (
            f'unsigned = true\n[agents.agent]\ncommand = ["{program}"]\n[[projects]]\nfolder = "{self.home}"\n'
        )
        self.run("hosts", "--init-database")
        self.run("trust")

    def _git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self.home, check=True)

    def env(self, home: str) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": f"{self.folder}/{home}",
            "TEAMCHAT_HOME": f"{self.folder}/{home}-state",
            "TEAMCHAT_DATABASE": self.database,
            "PYTHONPATH": str(Path.cwd()),
        }

    def run(self, *words: str) -> None:
        argv = (sys.executable, "-m", "teamchat", *words)
        subprocess.run(argv, cwd=self.home, env=self.env("home"), capture_output=True, check=True)

    @contextmanager
    def worker(self, name: str = "gpu1", jobs: int = 1) -> Iterator[subprocess.Popen[bytes]]:
        config = self.folder / name / ".config" / "teamchat"
        config.mkdir(parents=True)
        (config / "host.toml").write_text(self._offers)
        argv = (sys.executable, "-m", "teamchat", "worker", "--name", name, "--jobs", str(jobs))
        log = self.folder / f"{name}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(argv, cwd=self.folder, env=self.env(name), stderr=file)
        try:
            while b"is ready" not in log.read_bytes():
                assert process.poll() is None, log.read_text()
                time.sleep(0.05)
            self.run("hosts", "trust", name)
            yield process
        finally:
            process.terminate()
            process.wait(30)

    def turns(self) -> tuple[list[float], list[float]]:
        """Of a run with a turn of each member: the seconds beside its agent, and those until its line was shown."""
        names = ", ".join(f"m{number}" for number in range(TURNS))
        argv = (sys.executable, "-m", "teamchat", "send", "--json", "--stream", "--new", f"[NEXT: {names}] Go")
        beside, late, began = list[float](), list[float](), 0.0
        with subprocess.Popen(argv, cwd=self.home, env=self.env("home"), stdout=subprocess.PIPE) as process:
            assert process.stdout
            for line in process.stdout:
                now, event = time.time(), json.loads(line)
                match event["type"]:
                    case "turn_started":
                        began = now
                    case "text_delta" | "text" if event["text"].strip() and len(late) < len(beside) + 1:
                        late.append(now - float(event["text"]))
                    case "turn_finished":
                        assert event["ok"], event
                        beside.append(now - began - event["seconds"])
        assert len(beside) == TURNS
        return beside, late


def measures(_quick: bool) -> Measures:
    try:
        with cluster() as postgres, tempfile.TemporaryDirectory() as name:
            world = World(Path(name), postgres.database(), members_on_gpu1(TURNS))
            with world.worker() as worker:
                yield "a turn on a host*", lambda: turn_on_a_host(world)
                yield "an idle worker*", lambda: idle_worker(world, worker)
    except NoPostgres as why:
        raise Unavailable(str(why)) from None


def turn_on_a_host(world: World) -> Iterator[Figure]:
    runs = [world.turns() for _ in range(RUNS)]
    beside = sorted(seconds for run in runs for seconds in run[0])
    late = sorted(seconds for run in runs for seconds in run[1])
    yield Figure(
        name="a turn on a host, beside its agent", unit="ms", value=1000 * at(beside, P95), bound=OVERHEAD_MS,
        by="value", note=f"p95 of {len(beside)}; p50 {1000 * at(beside, 0.5):.0f} ms",
    )  # fmt: skip
    yield Figure(
        name="a turn on a host, its first line late", unit="ms", value=1000 * at(late, P95), bound=LATE_MS, by="value",
        note=f"p95 of {len(late)}; p50 {1000 * at(late, 0.5):.0f} ms",
    )  # fmt: skip


def idle_worker(world: World, worker: subprocess.Popen[bytes]) -> Iterator[Figure]:
    with psycopg.connect(world.database, autocommit=True) as connection:
        before, used = transactions(connection), cpu_s(worker.pid)
        time.sleep(WATCHED_S)
        after, used_then = transactions(connection), cpu_s(worker.pid)
    yield Figure(
        name="an idle worker, transactions a second", unit="/s", value=(after - before) / WATCHED_S,
        bound=IDLE_TRANSACTIONS, by="value",
    )  # fmt: skip
    yield Figure(
        name="an idle worker, of a core", unit="%", value=100 * (used_then - used) / WATCHED_S, bound=IDLE_PERCENT,
        by="value",
    )  # fmt: skip


def transactions(connection: psycopg.Connection[tuple[int]]) -> int:
    connection.execute("SELECT pg_stat_clear_snapshot()")
    counted = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    found = connection.execute(counted).fetchone()
    assert found
    return found[0]


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def at(values: list[float], part: float) -> float:
    return values[min(len(values) - 1, int(part * len(values)))]
