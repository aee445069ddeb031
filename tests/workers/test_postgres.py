"""The PostgreSQL of the tests: apart from everything else, and gone afterwards."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.program import ROOT, TIMEOUT_S
from tests.runners.processes import eventually
from tests.workers.postgres import Cluster, cluster

pytestmark = pytest.mark.workers
WAITS = 'echo "$TEAMCHAT_DATABASE"; read -r _'
"""A command that ends with its input."""


def ask(url: str, *queries: str) -> list[tuple[object, ...]]:
    """The rows of the last one."""
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        cursor = connection.cursor()
        for query in queries:
            cursor.execute(query)
        return cursor.fetchall()


def target(link: Path) -> str:
    """Where a link of /proc points; nowhere if its process or file is gone."""
    try:
        return str(link.readlink())
    except OSError:
        return ""


def below(folder: Path) -> list[str]:
    """The processes that work there; every process of PostgreSQL works where its data is."""
    return [link.parent.name for link in Path("/proc").glob("[0-9]*/cwd") if target(link).startswith(f"{folder}/")]


def listening() -> set[str]:
    """The inodes of all TCP sockets of this machine."""
    tables = [Path(f"/proc/net/{name}") for name in ("tcp", "tcp6")]
    return {line.split()[9] for table in tables if table.exists() for line in table.read_text().splitlines()[1:]}


def sockets(pid: str) -> set[str]:
    """Those of a process; none if it has ended."""
    links = Path("/proc").glob(f"{pid}/fd/*")
    return {number for link in links for number in re.findall(r"socket:\[(\d+)\]", target(link))}


def start(*command: str) -> subprocess.Popen[str]:
    """As a user starts it whose own PostgreSQL has another port."""
    argv = [sys.executable, "-m", "tests.workers.postgres", *command]
    env = {**os.environ, "PGPORT": "9"}
    return subprocess.Popen(argv, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_what_was_written_survives_a_crash(postgres: Cluster, database: str) -> None:
    ask(database, "CREATE TABLE said (text text)", "INSERT INTO said VALUES ('hello') RETURNING text")
    postgres.crash()
    with pytest.raises(psycopg.OperationalError):
        ask(database, "SELECT 1")
    postgres.start()
    assert ask(database, "SELECT text FROM said") == [("hello",)]


def test_two_databases_are_apart(postgres: Cluster, database: str) -> None:
    other = postgres.database()
    ask(database, "CREATE TABLE said (text text)", "SELECT 1")
    assert ask(other, "SELECT to_regclass('said')") == [(None,)]
    assert ask(database, "SELECT to_regclass('said')::text") == [("said",)]


def test_no_tcp_port_is_open(postgres: Cluster, database: str) -> None:
    assert ask(database, "SHOW listen_addresses") == [("",)]
    processes = below(postgres.folder)
    assert str(postgres.pid) in processes
    opened = set().union(*map(sockets, processes))
    assert opened, "its own socket"
    assert not opened & listening()


def test_nothing_is_left_behind() -> None:
    with cluster() as running:
        assert len(below(running.folder)) > 1
        ask(running.database(), "SELECT 1")
    assert not running.folder.exists()
    assert below(running.folder) == []


def test_nothing_is_left_behind_by_one_that_has_crashed() -> None:
    with cluster() as running:
        running.crash()
    assert not running.folder.exists()
    assert below(running.folder) == []


def test_a_command_has_a_database_and_its_exit_code_is_kept() -> None:
    query = 'import os, psycopg; psycopg.connect(os.environ["TEAMCHAT_DATABASE"]).close(); raise SystemExit(3)'
    with start(sys.executable, "-c", query) as process:
        process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 3


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 128 + signal.SIGTERM)],
    ids=["kill", "term"],
)
def test_nothing_is_left_behind_when_its_process_is_ended(number: signal.Signals, code: int) -> None:
    with start("sh", "-c", WAITS) as process:
        assert process.stdout
        folder = Path(process.stdout.readline().strip().partition("?host=")[2]).parent
        assert below(folder)
        os.kill(process.pid, number)
        assert process.wait(TIMEOUT_S) == code
    assert eventually(lambda: not folder.exists() and below(folder) == [])
