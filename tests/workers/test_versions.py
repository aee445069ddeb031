"""What does not fit is said in one line within seconds, and no turn waits for it."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from teamchat.core.dispatch.dbos.tables import ENGINE, About, address
from teamchat.core.dispatch.order import FORMAT
from teamchat.version import VERSION
from tests.program import TIMEOUT_S, Result
from tests.workers.hosts import Host, Lab

MAX = 'name = "max"\nagent = "writer"\nhost = "any"'


def ask(lab: Lab, query: str, **values: object) -> list[tuple[object, ...]]:
    """The rows of a query to the database. `{T}` begins the names of teamchat's tables, `{D}` those of the engine's."""
    url = address(lab.database)
    sqlite = url.get_backend_name() == "sqlite"
    words = query.format(T="teamchat_" if sqlite else "teamchat.", D="" if sqlite else "dbos.")
    engine = sa.create_engine(url)
    try:
        with engine.begin() as connection:
            done = connection.execute(sa.text(words), values)
            return [tuple(row) for row in done.all()] if done.returns_rows else []
    finally:
        engine.dispose()


def one_line(result: Result, code: int) -> str:
    """The error of a command: one line, and a hint that pastes."""
    assert result.code == code, result.err
    assert "Traceback" not in result.err
    errors = [line for line in result.err.splitlines() if line.startswith(("error:", "teamchat:"))]
    assert len(errors) <= 1, result.err
    return result.err


def refuses(lab: Lab, host: Host, words: str) -> None:
    """Home, `hosts` and a worker say it, and start nothing."""
    lab.team(MAX)
    for command in (("hosts",), ("send", "[NEXT:max] Hi")):
        assert words in one_line(lab.cli(*command), 11)
    worker = host.worker()
    assert worker.process.wait(TIMEOUT_S) == 11
    assert words in worker.log.read_text()
    assert "Traceback" not in worker.log.read_text()
    assert host.starts == 0


@pytest.fixture
def host(lab: Lab) -> Host:
    host = lab.host("alpha")
    return host.offers({"writer": [host.agent("echo one")]})


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("format", str(FORMAT - 1), f"format {FORMAT - 1}"),
        ("format", str(FORMAT + 1), f"format {FORMAT + 1}"),
        ("engine", "2.9", "is for DBOS 2.9"),
        ("engine", "99.0", "is for DBOS 99.0"),
    ],
)
def test_a_database_of_another_version_is_refused(lab: Lab, host: Host, key: str, value: str, words: str) -> None:
    ask(lab, "UPDATE {T}about SET value = :value WHERE key = :key", key=key, value=value)
    refuses(lab, host, words)
    newer = value not in (str(FORMAT - 1), "2.9")
    assert lab.cli("hosts", "--init-database").code == (11 if newer else 0), "only an older one is made anew"
    assert (ask(lab, "SELECT value FROM {T}about WHERE key = :key", key=key) == [(value,)]) is newer


def test_a_database_without_the_tables_of_the_engine_is_refused(lab: Lab, host: Host) -> None:
    if lab.database.startswith("sqlite"):
        Path(address(lab.database).database or "").unlink()
        made: tuple[str, ...] = ("CREATE TABLE {T}about (key TEXT, value TEXT)",)
    else:
        made = ("DROP SCHEMA dbos CASCADE", "DELETE FROM {T}about")
    for query in made:
        ask(lab, query)
    ask(lab, "INSERT INTO {T}about VALUES ('format', :form), ('engine', :engine)", form=str(FORMAT), engine=ENGINE)
    refuses(lab, host, "the database")
    assert "teamchat hosts --init-database" in lab.cli("hosts").err


def test_a_database_without_tables_is_refused(lab: Lab, host: Host) -> None:
    for name in ("about", "hosts"):
        ask(lab, f"DROP TABLE {{T}}{name}")
    refuses(lab, host, "no tables of teamchat")


@pytest.mark.parametrize(
    ("about", "words"),
    [
        (About(teamchat="99.0.0"), "runs teamchat 99.0.0"),
        (About(), "runs teamchat ?"),
        (About(teamchat=VERSION, format=FORMAT + 1), f"format {FORMAT + 1}"),
        (About(teamchat=VERSION, engine="2.9"), "is for DBOS 2.9"),
    ],
)
def test_a_worker_of_another_version_gets_no_turn(lab: Lab, about: About, words: str) -> None:
    text = json.dumps({"agents": {"writer": {"protocol": "plain"}}, **json.loads(_written(about))})
    now = "(julianday('now') - 2440587.5) * 86400.0"
    if not lab.database.startswith("sqlite"):
        now = "extract(epoch from clock_timestamp())"
    ask(lab, f"INSERT INTO {{T}}hosts VALUES ('alpha', 'x', {now}, :about)", about=text)  # noqa: S608 (one of two)
    lab.team(MAX)
    assert words in one_line(lab.cli("send", "[NEXT:max] Hi"), 11)
    listed = lab.cli("hosts")
    assert listed.code == 0
    assert words in listed.out


def _written(about: About) -> str:
    import msgspec

    return msgspec.json.encode(about).decode()


def test_a_database_that_cannot_be_asked_is_said_in_one_line(lab: Lab, tmp_path: Path) -> None:
    lab.team(MAX)
    for url, code, words in (
        (f"postgresql://user:s3cret@/x?host={tmp_path}", 11, "does not answer"),
        ("postgresql://user@127.0.0.1:1/x?password=s3cret", 11, "does not answer"),
        (f"sqlite:///{tmp_path}/no/such/folder.sqlite", 11, "does not answer"),
        (f"sqlite:///{tmp_path}/new.sqlite", 11, "no tables of teamchat"),
        ("postgresql://user:s3cret@db.example/x", 2, "must be on this machine"),
        ("postgresql://user:s3cret@localhost:port/x", 2, "is no address"),
        ("", 11, "TEAMCHAT_DATABASE is not set"),
    ):
        for command in (("hosts",), ("send", "[NEXT:max] Hi"), ("hosts", "--init-database")):
            if command[-1] == "--init-database" and words.startswith("no tables"):
                continue
            said = one_line(lab.cli(*command, env={"TEAMCHAT_DATABASE": url}), code)
            assert words in said, (url, command)
            assert "s3cret" not in said


def test_the_extra_is_named_where_it_is_missing(lab: Lab) -> None:
    hidden = "import sys; sys.modules['dbos'] = None; from teamchat.__main__ import main; sys.exit(main())"
    if lab.database.startswith("postgresql"):
        return
    env = {**lab.env, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
    done = subprocess.run(
        [sys.executable, "-c", hidden, "hosts"], env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 11, done.stderr
    assert "extra `workers`" in done.stderr
    assert "pipx install --force '.[workers]'" in done.stderr


@pytest.mark.workers
def test_workers_and_home_need_only_the_role_of_workers(database: str, tmp_path: Path) -> None:
    import psycopg

    lab = Lab(tmp_path / "lab", database)
    try:
        lab.database = database.replace("postgres@", "teamchat_worker@")
        host = lab.host("alpha")
        host.offers({"writer": [host.agent("echo one")]}).worker().ready()
        lab.team(MAX)
        sent = lab.cli("send", "[NEXT:max] Hi")
        assert (sent.code, sent.out) == (0, "max:\none\n\n"), sent.err
        for query in (
            "CREATE TABLE teamchat.other (x int)",
            "CREATE TABLE dbos.other (x int)",
            "UPDATE teamchat.about SET value = 'x'",
            "INSERT INTO teamchat.about VALUES ('x', 'y')",
            "DELETE FROM teamchat.about",
            "DROP TABLE teamchat.hosts",
            "ALTER TABLE dbos.workflow_status ADD COLUMN x int",
        ):
            with closing(psycopg.connect(lab.database)) as role, pytest.raises(psycopg.errors.InsufficientPrivilege):
                role.execute(query)
    finally:
        lab.close()


@pytest.mark.workers
def test_a_role_without_rights_is_told_so(database: str, tmp_path: Path) -> None:
    import psycopg

    lab = Lab(tmp_path / "lab", database)
    with closing(psycopg.connect(database, autocommit=True)) as owner:
        owner.execute("DROP ROLE IF EXISTS stranger")
        owner.execute("CREATE ROLE stranger LOGIN")
    lab.database = database.replace("postgres@", "stranger@")
    host = lab.host("alpha")
    refuses(lab, host.offers({"writer": [host.agent("echo one")]}), "no tables of teamchat that this role may use")


@pytest.mark.parametrize("by", [-1, 1], ids=["behind", "ahead"])
def test_tables_of_the_engine_of_another_version_run_nothing_half(lab: Lab, host: Host, by: int) -> None:
    """The engine counts its own changes of its tables; a later one only adds to them, and is used."""
    ask(lab, "UPDATE {D}dbos_migrations SET version = version + :by", by=by)
    lab.team(MAX)
    worker = host.worker()
    if by > 0:
        worker.ready()
        sent = lab.cli("send", "[NEXT:max] Hi")
        assert (sent.code, sent.out, host.starts) == (0, "max:\none\n\n", 1), sent.err
        return
    assert worker.process.wait(TIMEOUT_S) == 11
    assert "teamchat hosts --init-database" in worker.log.read_text()
    assert "Traceback" not in worker.log.read_text()
    assert host.starts == 0
    assert lab.cli("hosts", "--init-database").code == 0
    host.worker().ready()
    assert lab.cli("send", "[NEXT:max] Hi").code == 0
