"""Whoever can write to the database can have no host run an agent, and no home take what a host has not said."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.dispatch.dbos.client import DbosDispatch
from teamchat.core.dispatch.dispatch import HostClock
from teamchat.core.dispatch.order import Ended, Order, Signed, read_signed_order, written
from teamchat.core.dispatch.project import project_of
from teamchat.core.dispatch.signing import HomeKeys
from teamchat.version import VERSION
from tests.program import TIMEOUT_S, ended
from tests.workers.hosts import Host, Lab, go, until, waits
from tests.workers.test_versions import ask

MAX = 'name = "max"\nagent = "writer"\nhost = "any"'
NOT_TRUSTED = "it is not trusted here: teamchat hosts trust alpha"


@pytest.fixture
def host(lab: Lab) -> Host:
    """A host that signs, and that home does not trust yet."""
    host = lab.host("alpha").signing()
    lab.team(MAX)
    return host.offers({"writer": [host.agent("echo one")]})


class Forger(HomeKeys, frozen=True):
    """Sends what `forge` makes of an order that home has signed, and takes every end."""

    forge: Callable[[Signed], Signed]

    def order(self, text: str, host: str) -> Signed:
        return self.forge(super().order(text, host))

    def check_end(self, end: Signed, host: str) -> None:
        pass


def order(lab: Lab, turn: str) -> Order:
    project = project_of(lab.project)
    return Order(turn, "alpha", "max", "writer", "plain", project, b"Hi", None, "read", 5.0, 5.0, teamchat=VERSION)


def sent(lab: Lab, turn: str, forge: Callable[[Signed], Signed], folder: Path | None = None) -> str:
    """Why the host refuses the forged order of a turn, with the keys of home or of another `folder`; "" if not."""

    async def told() -> str:
        dispatch = DbosDispatch(lab.database, HostClock())
        dispatch.keys = Forger(folder or lab.config, local=False, forge=forge)
        why = "it says no end"
        try:
            await dispatch.enqueue(order(lab, turn))
            async for piece in dispatch.follow(turn, 0):
                if isinstance(piece, Ended):
                    why = piece.refused.reason.removeprefix("was refused by alpha: ") if piece.refused else ""
            await dispatch.forget(turn)
        finally:
            dispatch.close()
        return why

    return asyncio.run(told())


def changed(**fields: object) -> Callable[[Signed], Signed]:
    """An order with other fields under the same signature."""
    return lambda signed: Signed(json.dumps({**json.loads(signed.text), **fields}), signed.signature)


def resigned(lab: Lab, **fields: object) -> Callable[[Signed], Signed]:
    """An order with other fields, and home's signature of them."""
    keys = HomeKeys(lab.config, local=False)
    return lambda signed: keys.order(changed(**fields)(signed).text, "alpha")


def listed(lab: Lab, words: str) -> bool:
    return words in lab.cli("hosts").out


def test_a_host_is_used_once_its_key_is_trusted(lab: Lab, host: Host) -> None:
    worker = host.worker().ready()
    untrusted = lab.cli("send", "[NEXT:max] Hi")
    assert (untrusted.code, NOT_TRUSTED in untrusted.err, host.starts) == (11, True, 0), untrusted.err
    assert NOT_TRUSTED in lab.cli("hosts").out
    key = str(lab.hosts()["alpha"]["key"])
    assert f"signs with its key; at home: teamchat hosts trust alpha {key}\n" in worker.log.read_text()
    other = lab.cli("hosts", "trust", "alpha", "SHA256:other")
    assert (other.code, f"alpha has the key {key}, not 'SHA256:other'" in other.err) == (2, True), other.err
    assert lab.cli("hosts", "trust", "alpha", key).code == 0
    resumed = lab.cli("resume")
    assert (resumed.code, resumed.out) == (0, "max:\none\n\n"), resumed.err
    assert lab.cli("hosts", "trust", "nobody").code == 4


def test_a_host_with_another_key_than_before_is_not_used(lab: Lab, host: Host) -> None:
    worker = host.worker().ready()
    host.trusted()
    assert lab.cli("send", "[NEXT:max] Hi").code == 0
    assert worker.end() == 0
    (host.config / "keys" / "host-alpha").unlink()
    worker = host.worker().ready()
    again = lab.cli("send", "[NEXT:max] Hi")
    assert (again.code, host.starts) == (11, 1), again.err
    assert "its key is not the one that" in again.err
    host.trusted()
    assert lab.cli("resume").code == 0
    assert worker.end() == 0
    host.signs = False
    host.offers({"writer": [host.agent("echo two")]}).worker().ready()
    unsigned = lab.cli("send", "[NEXT:max] Hi")
    assert (unsigned.code, host.starts) == (11, 2), unsigned.err


def test_what_home_has_not_signed_is_refused_and_listed(lab: Lab, host: Host, tmp_path: Path) -> None:
    host.worker("--jobs", "8").ready()
    host.trusted()
    stranger = HomeKeys(tmp_path / "stranger", local=False)
    stranger.line()
    stranger.trust("alpha", str(HomeKeys(lab.config, local=False).of("alpha")))
    not_home = "it is not signed with a key that"
    wrong: dict[str, tuple[Callable[[Signed], Signed], str]] = {
        "none": (lambda signed: Signed(signed.text), "it is not signed"),
        "access": (changed(access="edit"), not_home),
        "prompt": (changed(prompt="SG8="), not_home),
        "project": (changed(project={"remotes": ["github.com/acme/other"]}), not_home),
        "expiry": (changed(expires=time.time() + 1e5), not_home),
        "long": (lambda signed: Signed(signed.text, signed.signature * 100), "it is not signed"),
        "junk": (lambda signed: Signed(signed.text, "-----BEGIN SSH SIGNATURE-----\nx"), not_home),
        "expired": (resigned(lab, expires=time.time() - 1), "the order has expired"),
        "for ever": (resigned(lab, expires=time.time() + 1e9), "the order does not expire"),
        "turn": (resigned(lab, turn="other"), "the order is that of the turn other, and came as"),
        "host": (resigned(lab, host="beta"), "for beta"),
        "foreign": (resigned(lab, project={"remotes": ["github.com/acme/other"]}), "does not offer the project"),
        "unreadable": (lambda _: HomeKeys(lab.config, local=False).order("{}", "alpha"), "that cannot be read"),
        "more": (resigned(lab, access="edit"), "with access 'read', not 'edit'"),
    }
    for name, (forge, words) in wrong.items():
        why = sent(lab, f"t-{name}", forge)
        assert words in why, name
        until(partial(listed, lab, words))
    assert not_home in sent(lab, "t-stranger", lambda signed: signed, stranger.folder)
    assert host.starts == 0


def test_an_order_is_taken_once(lab: Lab, host: Host) -> None:
    worker = host.worker().ready()
    host.trusted()
    kept: list[Signed] = []

    def keep(signed: Signed) -> Signed:
        kept.append(signed)
        return signed

    assert sent(lab, "one", keep) == ""
    assert sent(lab, "one", lambda _: kept[0]) == "the order was taken before"
    worker.kill()
    host.worker().ready()
    assert sent(lab, "one", lambda _: kept[0]) == "the order was taken before"
    assert host.starts == 1


@pytest.mark.parametrize("what", ["text", "end", "none"])
def test_what_a_host_has_not_signed_is_no_reply(lab: Lab, host: Host, what: str) -> None:
    worker = host.offers({"writer": [host.agent(f"echo one; {waits(host)}; echo two")]}).worker().ready()
    host.trusted()
    home = lab.start("send", "[NEXT:max] Hi")
    until(lambda: "one" in lab.written)
    home.kill()
    ended(home)
    go(host)
    assert worker.end() == 0
    rows = [(row[0], str(row[1])) for row in ask(lab, 'SELECT "offset", value FROM {D}streams ORDER BY "offset"')]
    number, value = next(row for row in reversed(rows) if ("output" if what == "text" else "signed") in row[1])
    told = json.loads(json.loads(value)["value"])
    if what == "text":
        told |= {"data": "dGhyZWUK" if told["data"] == "dHdvCg==" else told["data"][::-1]}
    elif what == "end":
        told["text"] = told["text"].replace('"code":0', '"code":1')
    else:
        told |= {"signature": ""}
    value = json.dumps({"value": json.dumps(told)})
    ask(lab, 'UPDATE {D}streams SET value = :value WHERE "offset" = :number', value=value, number=number)
    resumed = lab.cli("resume")
    assert resumed.code != 0
    assert "two" not in lab.cli("log").out
    words = "other output than its end says" if what == "text" else "an end of its turn that is not taken"
    assert f"sent from alpha {words}" in resumed.err
    assert "Traceback" not in resumed.err


def test_a_worker_without_a_home_says_what_to_do(host: Host) -> None:
    (host.config / "allowed_signers").unlink()
    worker = host.worker()
    assert worker.process.wait(TIMEOUT_S) == 11
    said = worker.log.read_text()
    assert f"put what `teamchat hosts --key` says at home into {host.config}/allowed_signers" in said


def test_without_signatures_only_a_database_of_this_machine_is_taken(host: Host) -> None:
    host.signs = False
    host.offers({"writer": [host.agent("echo one")]})
    worker = host.worker(env={"TEAMCHAT_DATABASE": "postgresql://db.example/x?sslmode=verify-full"})
    assert worker.process.wait(TIMEOUT_S) == 11
    assert "`unsigned = true`, which goes only with a database of this machine" in worker.log.read_text()


def test_the_line_of_home_stays_the_same(lab: Lab) -> None:
    line = lab.cli("hosts", "--key").out
    assert line.startswith('home namespaces="teamchat-order" ssh-ed25519 ')
    assert lab.cli("hosts", "--key").out == line
    key = lab.config / "keys" / "home"
    assert key.stat().st_mode & 0o777 == 0o600


def test_an_order_of_the_database_is_as_home_has_signed_it() -> None:
    signed = Signed("text", "signature")
    assert read_signed_order(written(signed)) == signed
    assert replace(signed, text="other") != signed
