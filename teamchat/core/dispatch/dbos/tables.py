"""The database of hosts: its address, who may be asked there, and the tables of teamchat's own.

`about` says which format of orders and which engine the database is for, and `hosts` has a row for each worker.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from importlib.metadata import version
from typing import Annotated, Any
from urllib.parse import quote, quote_plus

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, ProgrammingError

from teamchat.core.dispatch.dispatch import EXAMPLE, INSTALL, AgentOffer, Away, DatabaseSeen
from teamchat.core.dispatch.order import FORMAT, Project, minor
from teamchat.core.errors import HostUnavailable, UsageError
from teamchat.core.text.commands import quote as quote_word
from teamchat.version import VERSION

ENGINE = ".".join(version("dbos").split(".")[:2])
"""The minor version of DBOS that is installed. One does not use the tables of another."""
INIT = "teamchat hosts --init-database"
ROLE = "teamchat_worker"
SCHEMA = "teamchat"
ELSEWHERE = ("hostaddr", "service", "servicefile", "dbname")
"""Parameters that could name another machine."""
PASSWORDS = ("password", "sslpassword")
PASSWORD_REFUSED = ("password authentication failed", "no password supplied")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
KEEPALIVE = {"keepalives_idle": "5", "keepalives_interval": "5", "keepalives_count": "2", "tcp_user_timeout": "15000"}
"""Settings that end a connection to a silent machine after 15 s: before a lease is over."""
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""Errors that the engine raises for a row that it has not written."""
EARLY_S, LONG_AGO_S = 60.0, 3e9
"""How far in the future and in the past a worker may have been seen."""
CONNECT_S = 5
LONGEST_ABOUT = 1 << 20  # characters of what a worker says of itself


class About(msgspec.Struct, frozen=True):
    """A worker's report on itself; the fields are as in `HostSeen`. `machine` has a name that no other has."""

    machine: str = ""
    jobs: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    agents: dict[str, AgentOffer] = msgspec.field(default_factory=dict)
    projects: tuple[Project, ...] = ()
    heads: tuple[tuple[Project, str], ...] = ()
    teamchat: str = ""
    engine: str = ENGINE
    format: int = FORMAT
    refused: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    ending: bool = False
    key: str = ""
    clock: Annotated[float, msgspec.Meta(ge=0, le=1e11)] | None = None


class HostRow(msgspec.Struct, frozen=True):
    """A row of `hosts`, `seen_s` seconds old by the database's clock. `about` is None if it cannot be read.

    The host's own clock was `ahead_s` ahead of that of the database then.
    """

    name: str
    executor: str
    seen_s: float
    about: About | None
    ahead_s: float = 0.0


class NameTaken(Exception):
    """Another machine runs a worker of the name, seen `seen_s` seconds ago."""

    def __init__(self, seen_s: float) -> None:
        super().__init__(seen_s)
        self.seen_s = seen_s


def address(text: str) -> URL:
    """Parse the address of a database: on this machine, or with a certificate of its name. Raises `UsageError`."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # such as a port that is no number
        raise UsageError("TEAMCHAT_DATABASE is no address of a database", EXAMPLE) from None
    if url.get_backend_name() == "sqlite":
        return url
    if url.get_backend_name() != "postgresql":
        raise UsageError(f"TEAMCHAT_DATABASE: expected postgresql://..., got {url.get_backend_name()}://...", EXAMPLE)
    if strange := [name for name in ELSEWHERE if name in url.query]:
        raise UsageError(f"TEAMCHAT_DATABASE: {strange[0]} could name another machine; leave it out", EXAMPLE)
    if not is_local(url) and not (_places(url) and url.query.get("sslmode") == "verify-full"):
        raise UsageError(
            "TEAMCHAT_DATABASE must be on this machine (127.0.0.1, or ?host= with the folder of a Unix socket), or"
            " show whose it is: ?sslmode=verify-full&sslrootcert=FILE",
            EXAMPLE,
        )
    for variable in ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGSERVICEFILE"):  # they would lead it elsewhere
        os.environ.pop(variable, None)
    given = dict(url.query)
    return url.set(drivername="postgresql+psycopg", query={**({} if is_local(url) else KEEPALIVE), **given})


def is_local(url: URL) -> bool:
    """Whether the database is on this machine, judged by its address."""
    if url.get_backend_name() == "sqlite":
        return True
    places = _places(url)
    return bool(places) and all(place.startswith("/") or place in LOOPBACK for place in places)


def _places(url: URL) -> list[str]:
    """List the hosts of an address; PostgreSQL's library tries each."""
    asked = url.query.get("host", ())
    named = [*([asked] if isinstance(asked, str) else asked), *filter(None, [url.host])]
    return [place for hosts in named for place in hosts.split(",")]


class HostTables:
    """The tables. Methods raise `Away`, and `HostUnavailable` where the database is not for this teamchat."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self.is_local = is_local(url)
        self.is_sqlite = url.get_backend_name() == "sqlite"
        arguments = {"timeout": CONNECT_S} if self.is_sqlite else {"connect_timeout": CONNECT_S}
        self._engine = sa.create_engine(url, pool_size=1, max_overflow=2, pool_pre_ping=True, connect_args=arguments)
        meta = sa.MetaData(schema=None if self.is_sqlite else SCHEMA)
        prefix = "teamchat_" if self.is_sqlite else ""
        self._about = sa.Table(
            f"{prefix}about",
            meta,
            sa.Column("key", sa.Text, primary_key=True),
            sa.Column("value", sa.Text, nullable=False),
        )
        self._hosts = sa.Table(
            f"{prefix}hosts",
            meta,
            sa.Column("name", sa.Text, primary_key=True),
            sa.Column("executor", sa.Text, nullable=False),
            sa.Column("seen", sa.Double, nullable=False),
            sa.Column("about", sa.Text, nullable=False),
        )
        self._meta = meta

    @contextlib.contextmanager
    def _begun(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            raise self.failed(error) from None

    def failed(self, error: Exception) -> Away | HostUnavailable:
        """Say why the database cannot be used."""
        lacks_table = self.is_sqlite and isinstance(error, OperationalError) and "no such table" in str(error)
        unprepared = lacks_table or isinstance(error, ProgrammingError)
        return self.unprepared(error) if unprepared else self.away(error)

    def away(self, error: Exception) -> Away:
        """Say why the database does not answer, without its password."""
        query = {name: "***" if name in PASSWORDS else value for name, value in self.url.query.items()}
        named = self.url.set(drivername=self.url.get_backend_name(), query=query)
        shown, told = named.render_as_string(hide_password=True), self.told(error)
        if any(words in told for words in PASSWORD_REFUSED):
            asked = URL.create(
                named.drivername, named.username, None, named.host, named.port, named.database, named.query
            )
            asked = asked.difference_update_query(PASSWORDS)
            why = f"the database {shown} refuses the password of TEAMCHAT_DATABASE: put the right one there"
            return Away(f"{why} ({told})", f"psql {quote_word(asked.render_as_string())}")
        return Away(f"the database {shown} does not answer: {told}")

    def unreadable(self, error: Exception) -> Away:
        """Say that the engine found a row that it cannot read: somebody else has written there."""
        return Away(f"the database has a row of DBOS that cannot be read ({type(error).__name__}: {self.told(error)})")

    def told(self, error: Exception) -> str:
        """Return the first line of an error, without any password."""
        line = (str(getattr(error, "orig", error)).strip().splitlines() or [type(error).__name__])[0]
        given = [self.url.password, *(self.url.query.get(name) for name in PASSWORDS)]
        for password in filter(None, given):
            for written in {str(password), quote(str(password)), quote_plus(str(password))}:
                line = line.replace(written, "***")
        return line

    def unprepared(self, error: Exception) -> HostUnavailable:
        """Say what to do for a database without the tables, or with tables that this role may not use."""
        return HostUnavailable(
            f"the database has no tables of teamchat that this role may use ({self.told(error)})", INIT
        )

    def _said(self, connection: sa.Connection) -> dict[str, str]:
        """Read the database's own description."""
        return {
            str(row[0]): str(row[1]) for row in connection.execute(sa.select(self._about.c.key, self._about.c.value))
        }

    @property
    def _now(self) -> Any:
        if self.is_sqlite:
            return (sa.func.julianday("now") - 2440587.5) * 86400.0
        return sa.cast(sa.func.extract("epoch", sa.func.clock_timestamp()), sa.Double)

    def check(self) -> None:
        """Raise `HostUnavailable` for a database of another format or engine."""
        with self._begun() as connection:
            facts = self._said(connection)
        form, engine = facts.get("format", "?"), facts.get("engine", "?")
        if trouble := differs(form, engine, "the database"):
            raise HostUnavailable(trouble, INSTALL if _is_newer(form, engine) else INIT)

    def prepare(self) -> None:
        """Make the tables, by their owner. Existing ones stay."""
        with self._begun() as connection:
            if not self.is_sqlite:
                connection.execute(sa.schema.CreateSchema(SCHEMA, if_not_exists=True))
            self._meta.create_all(connection)
            facts = self._said(connection)
            form, engine = facts.get("format", "?"), facts.get("engine", "?")
            if _is_newer(form, engine):
                raise HostUnavailable(differs(form, engine, "the database") or "", INSTALL)
            connection.execute(sa.delete(self._about))
            values = [{"key": "format", "value": str(FORMAT)}, {"key": "engine", "value": ENGINE}]
            connection.execute(sa.insert(self._about), values)

    def grant(self) -> str | None:
        """Make the role of workers and clients, which may change no table. Returns why not, if it may not."""
        if self.is_sqlite:
            return None
        try:
            with self._engine.begin() as connection:
                known = connection.execute(sa.text("SELECT 1 FROM pg_roles WHERE rolname = :role"), {"role": ROLE})
                if known.scalar() is None:
                    connection.execute(sa.text(f"CREATE ROLE {ROLE} LOGIN"))
                for schema in ("dbos", SCHEMA):
                    for what in (
                        f"USAGE ON SCHEMA {schema}",
                        f"SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema}",
                        f"USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema}",
                    ):
                        connection.execute(sa.text(f"GRANT {what} TO {ROLE}"))
                connection.execute(sa.text(f"REVOKE INSERT, UPDATE, DELETE ON {SCHEMA}.about FROM {ROLE}"))
        except DBAPIError as error:
            return str(error.orig).strip().splitlines()[0]
        return None

    def claim(self, name: str, executor: str, about: About, dead_s: float) -> None:
        """Note that the worker begins, in place of an earlier one of its machine, or of a dead one.

        Raises `NameTaken` if a worker of another machine has the name and is there.
        """
        with self._begun() as connection:
            if row := self._row(connection, name):
                there = row.about.machine if row.about else ""
                if there != about.machine and row.seen_s <= dead_s:
                    raise NameTaken(row.seen_s)
                connection.execute(sa.delete(self._hosts).where(self._hosts.c.name == name))
            connection.execute(sa.insert(self._hosts).values(name=name, **self._values(executor, about)))

    def beat(self, name: str, executor: str, about: About) -> None:
        """Note that the worker is there. Raises `NameTaken` if another one has its name now."""
        with self._begun() as connection:
            mine = (self._hosts.c.name == name) & (self._hosts.c.executor == executor)
            values = self._values(executor, about)
            if connection.execute(sa.update(self._hosts).where(mine).values(values)).rowcount:
                return
            if row := self._row(connection, name):
                raise NameTaken(row.seen_s)
            connection.execute(sa.insert(self._hosts).values(name=name, **values))

    def _values(self, executor: str, about: About) -> dict[str, Any]:
        return {"executor": executor, "seen": self._now, "about": msgspec.json.encode(about).decode()}

    def _row(self, connection: sa.Connection, name: str) -> HostRow | None:
        return next((row for row in self._rows(connection) if row.name == name), None)

    def leave(self, name: str, executor: str) -> None:
        """Note that the worker has ended. Its row goes, if no other process has taken its name since."""
        with self._begun() as connection:
            mine = (self._hosts.c.name == name) & (self._hosts.c.executor == executor)
            connection.execute(sa.delete(self._hosts).where(mine))

    def rows(self) -> list[HostRow]:
        """List the workers, by name."""
        with self._begun() as connection:
            return self._rows(connection)

    def _rows(self, connection: sa.Connection) -> list[HostRow]:
        table = self._hosts.c
        age = (self._now - table.seen).label("age")
        asked = sa.select(table.name, table.executor, age, table.seen, table.about)
        return [_row(*row) for row in connection.execute(asked.order_by(table.name))]

    def seen(self) -> DatabaseSeen:
        """Return how the database stands."""
        if self.is_sqlite:
            query = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        else:
            query = (
                "SELECT sum(pg_total_relation_size(pg_class.oid)) FROM pg_class"
                " JOIN pg_namespace ON pg_namespace.oid = relnamespace"
                " WHERE relkind = 'r' AND nspname IN ('dbos', 'teamchat')"
            )
        with self._begun() as connection:
            role = None if self.is_sqlite else str(connection.execute(sa.text("SELECT current_user")).scalar())
            size = int(connection.execute(sa.text(query)).scalar() or 0)
            ahead_s = time.time() - float(connection.execute(sa.select(self._now)).scalar() or 0.0)
        return DatabaseSeen(role, f"orders of format {FORMAT}, DBOS {ENGINE}", size, ahead_s)

    def close(self) -> None:
        self._engine.dispose()


def differs(form: object, engine: object, whose: str, program: str = VERSION) -> str | None:
    """Say why orders cannot be exchanged with a database, or a worker of the teamchat `program`; None if they can."""
    if str(form) != str(FORMAT):
        return f"{whose} has orders of format {form}, and this teamchat format {FORMAT}: use one version of teamchat"
    if engine != ENGINE:
        return f"{whose} is for DBOS {engine}, and this teamchat has {ENGINE}: use one version of DBOS"
    if minor(program) != minor(VERSION):
        return f"{whose} runs teamchat {program or '?'}, and this is {VERSION}: use one version of teamchat"
    return None


def _is_newer(form: str, engine: str) -> bool:
    """Whether a later teamchat or engine has made the tables, which one that is older leaves alone."""
    try:
        return int(form) > FORMAT or _numbers(engine) > _numbers(ENGINE)
    except ValueError:
        return False


def _numbers(engine: str) -> tuple[int, ...]:
    return tuple(map(int, engine.split(".")))


def _row(name: str, executor: str, age: object, seen: object, text: str) -> HostRow:
    if not (isinstance(age, float) and isinstance(seen, float) and -EARLY_S < age < LONG_AGO_S):
        return HostRow(name, executor, 0.0, None)
    about = _about(text)
    ahead_s = about.clock - seen if about and about.clock is not None else 0.0
    return HostRow(name, executor, max(0.0, age), about, ahead_s)


def _about(text: str) -> About | None:
    if len(text) > LONGEST_ABOUT:
        return None
    try:
        return msgspec.json.decode(text, type=About)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeError, RecursionError):
        return None
