"""Only a database of this machine is used, and no password of it is shown."""

from __future__ import annotations

import os

import pytest

from teamchat.core.dispatch.dbos.tables import HostTables, address, is_local
from teamchat.core.errors import UsageError

HERE = [
    "postgresql:///teamchat?host=/run/postgresql",
    "postgresql://127.0.0.1/teamchat",
    "postgresql://user:word@localhost:5433/teamchat",
    "postgresql://[::1]/teamchat",
    "postgresql:///teamchat?host=/run/postgresql,/tmp",
    "postgresql+psycopg://127.0.0.1/teamchat",
    "sqlite:////tmp/hosts.sqlite",
]
NOT_HERE = [
    "postgresql:///teamchat",
    "postgresql:///teamchat?host=",
    "postgresql://db.example/teamchat",
    "postgresql://localhost.example/teamchat",
    "postgresql://127.0.0.1.example/teamchat",
    "postgresql://192.0.2.1/teamchat",
    "postgresql://0.0.0.0/teamchat",
    "postgresql://[2001:db8::1]/teamchat",
    "postgresql://[::ffff:192.0.2.1]/teamchat",
    "postgresql://2130706433/teamchat",
    "postgresql://127.0.0.1,db.example/teamchat",
    "postgresql://127.0.0.1/teamchat?host=db.example",
    "postgresql://db.example/teamchat?host=/run/postgresql",
    "postgresql:///teamchat?host=/run/postgresql&host=db.example",
    "postgresql:///teamchat?host=/run/postgresql,db.example",
    "postgresql:///teamchat?host=/run/postgresql,",
    "postgresql:///teamchat?host=@abstract",
]
PROVED = "sslmode=verify-full"
UNPROVED = [
    f"postgresql:///teamchat?{PROVED}",
    "postgresql://db.example/teamchat?sslmode=verify-ca",
    "postgresql://db.example/teamchat?sslmode=require",
    f"postgresql://db.example/teamchat?sslmode=disable&{PROVED}",
]
NAMES_ANOTHER = [
    "postgresql://127.0.0.1/teamchat?hostaddr=192.0.2.1",
    "postgresql://127.0.0.1/teamchat?service=other",
    "postgresql://127.0.0.1/teamchat?servicefile=/tmp/other",
    "postgresql:///teamchat?host=/run/postgresql&dbname=host%3Ddb.example",
    f"postgresql://db.example/teamchat?{PROVED}&hostaddr=192.0.2.1",
]
NO_ADDRESS = [
    "",
    "teamchat",
    "postgresql://localhost:port/teamchat",
    "postgresql://127.0.0.1:1,db:2/x",
    "mysql://localhost/x",
]


@pytest.mark.parametrize("text", HERE)
def test_an_address_of_this_machine_is_taken(text: str) -> None:
    url = address(text)
    assert url.get_backend_name() in ("postgresql", "sqlite")
    assert is_local(url)


@pytest.mark.parametrize("text", [*NOT_HERE, *UNPROVED])
def test_an_address_that_may_lead_elsewhere_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="must be on this machine"):
        address(text)


@pytest.mark.parametrize("text", NAMES_ANOTHER)
def test_what_could_name_another_machine_is_named(text: str) -> None:
    with pytest.raises(UsageError, match="could name another machine"):
        address(text)


def test_a_database_elsewhere_must_prove_its_name_and_a_silent_connection_ends() -> None:
    url = address(f"postgresql://db.example,db2.example/teamchat?{PROVED}&keepalives_idle=60")
    assert not is_local(url)
    assert url.query["sslmode"] == "verify-full"
    assert (url.query["keepalives_idle"], url.query["tcp_user_timeout"]) == ("60", "15000")


@pytest.mark.parametrize("text", NO_ADDRESS)
def test_what_is_no_address_is_said_without_repeating_it(text: str) -> None:
    with pytest.raises(UsageError, match="TEAMCHAT_DATABASE"):
        address(text)


@pytest.mark.parametrize("name", ["PGHOST", "PGHOSTADDR", "PGSERVICE", "PGSERVICEFILE"])
def test_variables_cannot_lead_the_address_elsewhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "192.0.2.1")
    address("postgresql://127.0.0.1/teamchat")
    assert name not in os.environ
    monkeypatch.setenv(name, "127.0.0.1")
    with pytest.raises(UsageError, match="must be on this machine"):
        address("postgresql:///teamchat")


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://user:s%40cret-word@127.0.0.1:1/x",
        "postgresql://user@127.0.0.1:1/x?password=s%40cret-word",
        "postgresql://user@127.0.0.1:1/x?sslpassword=s%40cret-word",
    ],
)
def test_no_error_has_a_password(text: str) -> None:
    tables = HostTables(address(text))
    error = ValueError("refused s@cret-word for s%40cret-word")
    said = f"{tables.away(error)} {tables.unprepared(error)} {tables.told(error)}"
    assert "cret-word" not in said
    assert "127.0.0.1" in said
