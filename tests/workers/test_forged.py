"""Somebody can write to the database, or to the files of keys: nothing is taken for a host's, nothing hangs."""

from __future__ import annotations

import json
import math
import os
import signal
from pathlib import Path

import pytest

from tests.program import Started, ended
from tests.workers.hosts import BARE_PATH, Host, Lab, go, until, waits
from tests.workers.test_versions import ask

MAX = 'name = "max"\nagent = "writer"\nhost = "any"'


@pytest.fixture
def host(lab: Lab) -> Host:
    """A host that signs, and whose agent goes on until `go`."""
    host = lab.host("alpha").signing()
    lab.team(MAX)
    return host.offers({"writer": [host.agent(f"echo one; {waits(host)}; echo two")]})


def begun(lab: Lab) -> Started:
    """A run whose agent has said something."""
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: "one" in lab.written)
    return sent


def left(lab: Lab) -> None:
    """Let a turn begin, and kill its home."""
    sent = begun(lab)
    sent.kill()
    ended(sent)


def row(lab: Lab, name: str, **other: object) -> None:
    """Put a host into the database that is like alpha."""
    about = json.loads(str(ask(lab, "SELECT about FROM {T}hosts WHERE name = 'alpha'")[0][0]))
    written = json.dumps({**about, **other})
    ask(lab, "DELETE FROM {T}hosts WHERE name = :name", name=name)
    ask(
        lab,
        "INSERT INTO {T}hosts SELECT :name, executor, seen + 5, :about FROM {T}hosts WHERE name = 'alpha'",
        name=name,
        about=written,
    )


def test_a_host_that_nobody_trusts_gets_no_order(lab: Lab, host: Host) -> None:
    host.worker().ready()
    host.trusted()
    go(host)
    row(lab, "gamma", key="", jobs=50)
    sent = lab.cli("send", "[NEXT:max] Hi")
    assert (sent.code, sent.out, host.starts) == (0, "max:\none\ntwo\n\n", 1), sent.err
    assert "gamma: it is not trusted here: teamchat hosts trust gamma" in lab.cli("hosts").out


def test_a_host_is_called_as_a_worker_can_be(lab: Lab, host: Host) -> None:
    host.worker().ready()
    for name in ("al*", "alpha,beta", "*", "-x", "a b", "ü", "x\nalpha", "any"):
        row(lab, name)
        done = lab.cli("hosts", "trust", "--", name)
        assert (done.code, "Traceback" in done.err) == (4, False), name
    assert not lab.trusted.exists()
    assert lab.cli("hosts").out.count("it says what cannot be read") == 8


@pytest.mark.parametrize("seen", [math.inf, -math.inf, math.nan, 1e300, -1e300, 1e12, "soon"])
def test_a_moment_that_is_none_is_a_host_that_is_not_used(lab: Lab, host: Host, seen: object) -> None:
    sqlite = lab.database.startswith("sqlite")
    if (not sqlite and isinstance(seen, str)) or (sqlite and str(seen) == "nan"):  # which these do not store
        return
    host.worker().ready()
    host.trusted()
    row(lab, "gamma")
    ask(lab, "UPDATE {T}hosts SET seen = :seen WHERE name = 'gamma'", seen=seen)
    lab.trusted.write_text(lab.trusted.read_text() + lab.trusted.read_text().replace("alpha", "gamma"))
    for command in (("hosts",), ("doctor",)):
        done = lab.cli(*command)
        assert (done.code, "Traceback" in done.err) == (0, False), done.err
    assert "gamma: it says what cannot be read" in lab.cli("hosts").out
    go(host)
    assert lab.cli("send", "[NEXT:max] Hi").code == 0


def test_a_host_that_is_trusted_no_more_brings_no_reply(lab: Lab, host: Host) -> None:
    host.worker().ready()
    host.trusted()
    sent = begun(lab)
    lab.trusted.write_text("")
    go(host)
    done = ended(sent)
    assert (done.code, "two" in done.out) == (1, False), done.err
    assert "an end of its turn that is not taken: it is not trusted here any more" in done.err


def test_an_agent_ends_whose_turn_somebody_has_removed_and_runs_again_when_told(lab: Lab, host: Host) -> None:
    host.worker().ready()
    host.trusted()
    sent = begun(lab)
    ask(lab, "DELETE FROM {D}workflow_status WHERE name = 'teamchat.turn'")
    done = ended(sent)
    assert (done.code, "Traceback" in done.err) == (130, False), done.err
    assert "is not known to the database (TEAMCHAT_DATABASE); alpha may have run it" in done.err
    agent = int((host.folder / "starts").read_text())
    until(lambda: not Path(f"/proc/{agent}").exists())
    assert host.starts == 1
    go(host)
    assert lab.cli("resume").code == 0
    assert host.starts == 2


def test_a_turn_that_is_gone_from_the_database_runs_again_when_told(lab: Lab, host: Host) -> None:
    host.worker().ready()
    host.trusted()
    left(lab)
    ask(lab, "DELETE FROM {D}workflow_status WHERE name = 'teamchat.turn'")
    followed = lab.cli("resume")
    assert (followed.code, host.starts, "Traceback" in followed.err) == (130, 1, False), followed.err
    go(host)
    assert lab.cli("resume").code == 0


def test_an_end_that_home_cannot_check_is_checked_again(lab: Lab, host: Host, tmp_path: Path) -> None:
    host.worker().ready()
    host.trusted()
    broken, program = tmp_path / "broken", tmp_path / "ssh-keygen"
    program.write_text(f'#!/bin/sh\n[ ! -e {broken} ] || exit 1\nexec /usr/bin/ssh-keygen "$@"\n')
    program.chmod(0o755)
    sent = lab.start("send", "[NEXT:max] Hi", env={"PATH": f"{tmp_path}:{BARE_PATH}"})
    until(lambda: "one" in lab.written)
    broken.touch()
    go(host)
    until(lambda: lab.hosts()["alpha"]["busy"] == 0)
    assert sent.poll() is None
    broken.unlink()
    done = ended(sent)
    assert (done.code, done.out, host.starts) == (0, "max:\none\ntwo\n\n", 1), done.err
    assert "the end of the turn cannot be checked: ssh-keygen: exit code 1; waiting for it" in done.err


def test_a_host_whose_key_is_gone_begins_nothing(lab: Lab, host: Host) -> None:
    worker = host.worker().ready()
    host.trusted()
    (host.config / "keys" / "host-alpha").unlink()
    sent = lab.cli("send", "[NEXT:max] Hi")
    assert (sent.code, host.starts) == (1, 0), sent.err
    assert "keys/host-alpha is gone" in worker.log.read_text()


def test_a_key_of_home_that_is_gone_is_said(lab: Lab, host: Host) -> None:
    host.worker().ready()
    host.trusted()
    (lab.config / "keys" / "home").unlink()
    sent = lab.cli("send", "[NEXT:max] Hi")
    assert (sent.code, host.starts) == (11, 0), sent.err
    assert "max could not be ordered: the key" in sent.err
    assert not (lab.config / "keys" / "home").exists()


def test_what_is_put_among_the_orders_ends_no_worker(lab: Lab, host: Host) -> None:
    odd = host.folder / "state" / "orders" / "alpha"
    (odd / "folder").mkdir(parents=True)
    (odd / "link").symlink_to("nowhere")
    worker = host.worker().ready()
    host.trusted()
    go(host)
    assert lab.cli("send", "[NEXT:max] Hi").code == 0
    assert worker.process.poll() is None


def test_what_came_wrong_is_not_run_again_by_the_resume_that_finds_it(lab: Lab, host: Host) -> None:
    worker = host.worker().ready()
    host.trusted()
    left(lab)
    go(host)
    assert worker.end() == 0
    junk = json.dumps({"value": "junk"})
    last = "SELECT max(\"offset\") FROM {D}streams WHERE value LIKE '%signed%'"
    ask(lab, f'UPDATE {{D}}streams SET value = :junk WHERE "offset" = ({last})', junk=junk)  # noqa: S608
    host.worker().ready()
    followed = lab.cli("resume")
    assert (followed.code, host.starts) == (130, 1), followed.err
    assert "sent from alpha a piece of a turn that cannot be read" in followed.err
    assert lab.cli("resume").code == 0
    assert host.starts == 2


@pytest.mark.parametrize("make", ["empty", "folder", "fifo"])
def test_a_list_of_homes_that_names_none_is_said_at_the_start(host: Host, make: str) -> None:
    listed = host.config / "allowed_signers"
    listed.unlink()
    if make == "empty":
        listed.touch()
    elif make == "folder":
        listed.mkdir()
    else:
        os.mkfifo(listed)
    worker = host.worker()
    assert worker.process.wait(30) == 11
    assert "allowed_signers" in worker.log.read_text()


def test_a_row_that_the_engine_cannot_read_is_said_and_ends_no_worker(lab: Lab, host: Host) -> None:
    worker = host.worker().ready()
    host.trusted()
    go(host)
    ask(
        lab,
        "INSERT INTO {D}workflow_status (workflow_uuid, status, name, queue_name, authenticated_roles, created_at,"
        " updated_at, priority, application_version)"
        " VALUES ('x', 'PENDING', 'teamchat.turn', 'teamchat.alpha', '{{', 1, 1, 1, 'orders-3')",
    )
    for command in (("hosts",), ("send", "[NEXT:max] Hi")):
        done = lab.cli(*command)
        assert (done.code, "Traceback" in done.err) == (11, False), done.err
        assert "has a row of DBOS that cannot be read" in done.err
    until(lambda: "has a row of DBOS that cannot be read" in worker.log.read_text())
    ask(lab, "DELETE FROM {D}workflow_status WHERE workflow_uuid = 'x'")
    until(lambda: "answers again" in worker.log.read_text())
    assert lab.cli("resume").code == 0


def test_with_rerun_a_turn_that_is_not_known_runs_again_only_when_told(lab: Lab, host: Host) -> None:
    lab.team(f"{MAX}\nrerun = true")
    host.worker().ready()
    host.trusted()
    left(lab)
    ask(lab, "DELETE FROM {D}workflow_status WHERE name = 'teamchat.turn'")
    assert "turn 1 is not known to the database (TEAMCHAT_DATABASE), and was not stopped" in lab.cli("stop").err
    followed = lab.cli("resume")
    assert (followed.code, host.starts) == (130, 1), followed.err


def test_an_order_of_another_format_that_waits_is_none(lab: Lab, host: Host) -> None:
    worker = host.worker().ready()
    host.trusted()
    worker.process.send_signal(signal.SIGSTOP)
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: ask(lab, "SELECT 1 FROM {D}workflow_status WHERE status = 'ENQUEUED'"))
    sent.kill()
    ended(sent)
    worker.kill()
    ask(lab, "UPDATE {D}workflow_status SET application_version = 'orders-2'")
    [marker] = lab.folder.glob("state/workspaces/*/turns/*/ordered")
    marker.unlink()  # which that format has not had
    host.worker("--until-idle").ready()
    assert "alpha: 0 of 1 jobs" in lab.cli("hosts").out
    go(host)
    resumed = lab.cli("resume")
    assert (resumed.code, host.starts) == (0, 1), resumed.err
    assert lab.workers[-1].process.wait(30) == 0


def test_a_key_that_takes_the_place_of_another_is_said(lab: Lab, host: Host) -> None:
    worker = host.worker().ready()
    host.trusted()
    before = lab.hosts()["alpha"]["key"]
    worker.end()
    (host.config / "keys" / "host-alpha").unlink()
    host.worker().ready()
    assert "if you know why: teamchat hosts trust alpha" in lab.cli("hosts").out
    assert f"alpha was trusted with the key {before} so far" in lab.cli("hosts", "trust", "alpha").err
