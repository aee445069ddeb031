"""What a person reads of hosts, to the letter: one line each, with what to type."""

from __future__ import annotations

import json
import re
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from teamchat.core.dispatch.dispatch import HostSeen
from tests.program import TIMEOUT_S, ended
from tests.workers.hosts import Lab, until
from tests.workers.postgres import cluster
from tests.workers.test_versions import ask

MAX = 'name = "max"\nagent = "writer"\nhost = "any"'
NIGHT_S = 8 * 3600


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(5.2, "for 5 s"), (59, "for 59 s"), (61, r"since \d\d:\d\d \(1 min\)"), (NIGHT_S, r"since \d\d:\d\d \(8 h\)")],
)
def test_since_when_a_host_was_not_seen(seconds: float, words: str) -> None:
    assert re.fullmatch(f"not seen {words}", HostSeen("a", "b", seconds).absence)
    assert re.fullmatch(r"not seen since \d\d \w+ \d\d:\d\d \(2 d\)", HostSeen("a", "b", 2 * 86_400).absence)


def test_a_laptop_that_was_closed_over_night(lab: Lab) -> None:
    host = lab.host("mac-mini")
    worker = host.offers({"writer": [host.agent("echo begun; sleep 300")]}).worker().ready()
    lab.team(MAX)
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: "begun" in lab.written)
    sent.kill()
    ended(sent)
    worker.kill()
    ask(lab, "UPDATE {T}hosts SET seen = seen - :night", night=NIGHT_S)
    at = time.strftime("%H:%M", time.localtime(time.time() - NIGHT_S))
    resumed = lab.cli("resume")
    assert resumed.code == 130, resumed.err
    what_to_do = "turn 1 interrupted; teamchat resume runs it again, --skip goes on without it"
    line = rf"mac-mini: not seen since \d\d:\d\d \(8 h\); {what_to_do}"
    assert re.search(rf"paused: {line}; held: max\n", resumed.err), resumed.err
    assert at[:2] in resumed.err
    assert re.search(r"^mac-mini: not seen since \d\d:\d\d \(8 h\)\n", lab.cli("hosts").out)
    assert lab.cli("resume", "--skip").code == 0


def test_a_machine_that_offers_nothing(lab: Lab) -> None:
    host = lab.host("alpha")
    worker = host.worker()
    assert worker.process.wait(TIMEOUT_S) == 11
    said = worker.log.read_text().splitlines()
    assert said == [
        f"teamchat: this machine offers nothing: there is no {host.config / 'host.toml'}",
        "  try: teamchat worker --init",
    ]


@pytest.mark.workers
def test_a_wrong_password_is_said_with_what_to_do(tmp_path: Path) -> None:
    with cluster() as postgres:
        url = postgres.database()
        with closing(psycopg.connect(url, autocommit=True)) as owner:
            owner.execute("CREATE ROLE kim LOGIN PASSWORD 'right'")
        rules = postgres.folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all kim scram-sha-256\n{rules.read_text()}")
        postgres.stop()
        postgres.start()
        lab = Lab(tmp_path / "lab", url)
        for given in (":wrong", ""):
            lab.database = url.replace("postgres@", f"kim{given}@")
            said = lab.cli("hosts")
            assert said.code == 11
            assert "refuses the password of TEAMCHAT_DATABASE: put the right one there" in said.err
            assert re.search(r"\n  try: psql '?postgresql://kim@/", said.err), said.err
            assert "wrong" not in said.err
        lab.database = url.replace("postgres@", "kim:right@")
        assert "put the right one" not in lab.cli("hosts").err


def test_doctor_tells_of_the_database_and_of_each_host(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"writer": [host.agent("echo one")]}).worker().ready()
    lab.team(MAX)
    found = lab.cli("doctor")
    role = "is a file" if lab.database.startswith("sqlite") else "answers as postgres"
    assert f"✓     database {role}: orders of format 3, DBOS " in found.out
    assert "✓     host    alpha, 1 of 1 jobs free\n" in found.out
    about = json.loads(str(ask(lab, "SELECT about FROM {T}hosts")[0][0]))
    offers = {"claude": {"protocol": "claude", "version": "2.0.1"}}
    false = json.dumps({**about, "clock": about["clock"] - 7200, "agents": {**about["agents"], **offers}})
    lab.workers[0].kill()
    ask(lab, "UPDATE {T}hosts SET about = :about", about=false)
    found = lab.cli("doctor")
    assert re.search(r"!     host    alpha, .*; its clock is 7,\d\d\d s behind the one here", found.out), found.out
    assert re.search(r"version claude 2.0.1, not tested; .*, on alpha", found.out), found.out


def test_watching_hosts_tells_what_changes(lab: Lab) -> None:
    host = lab.host("alpha")
    watching = lab.start("hosts", "--watch", "--json")
    worker = host.offers({"writer": [host.agent("echo one")]}).worker().ready()
    lab.team(MAX)
    assert lab.cli("send", "[NEXT:max] Hi").code == 0
    worker.end()
    time.sleep(1.5)
    watching.terminate()
    lines = [json.loads(line) for line in ended(watching).out.splitlines()]
    assert lines[0]["type"] == "host"
    assert lines[-1] == {"type": "host_left", "v": 1, "name": "alpha"}
    assert len(lines) < 10, "only what changes"
