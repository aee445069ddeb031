"""A worker from its start to its end: its name, its signals, its jobs, and what its turns leave."""

from __future__ import annotations

import re
import shlex
import signal
import time
from pathlib import Path

import pytest

from tests.cli.contract.vendor_output import lines
from tests.program import TIMEOUT_S, ended
from tests.workers.hosts import DEAD_S, Host, Lab, go, until, waits
from tests.workers.postgres import Cluster

MAX = 'name = "max"\nagent = "writer"\nhost = "any"'
LIMIT = "You've hit your limit"
RATE_LIMITED = (
    {"type": "system", "subtype": "init", "model": "scripted", "session_id": "v-1"},
    {
        "type": "assistant",
        "message": {"model": "<synthetic>", "content": [{"type": "text", "text": LIMIT}]},
        "error": "rate_limit",
    },
    {"type": "result", "subtype": "success", "is_error": True, "api_error_status": 429, "result": LIMIT},
)


@pytest.fixture
def host(lab: Lab) -> Host:
    return lab.host("alpha")


def runs(host: Host) -> bool:
    """Whether the last agent of the host is there."""
    pid = (host.folder / "starts").read_text().split()[-1]
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kept(host: Host) -> list[str]:
    """The folders of turns that the host has, those for temporary files among them."""
    places = (host.folder / "state" / "worker" / host.name / "turns", host.folder / "tmp")
    return [
        str(path) for place in places if place.exists() for path in place.rglob("*") if path.is_dir() and is_turn(path)
    ]


def is_turn(path: Path) -> bool:
    name = path.name.removeprefix("teamchat-")
    return len(name) == 16 and not set(name) - set("0123456789abcdef")


def in_tmp(host: Host) -> dict[str, str]:
    (host.folder / "tmp").mkdir(exist_ok=True)
    return {"TMPDIR": str(host.folder / "tmp")}


def test_a_name_has_one_worker_on_a_machine_and_one_until_idle_ends_by_itself(lab: Lab, host: Host) -> None:
    host.offers({"writer": [host.agent("echo one")]})
    first = host.worker().ready()
    second = host.worker()
    assert second.process.wait(TIMEOUT_S) == 2
    assert "a worker named alpha runs here already; give this one another --name" in second.log.read_text()
    assert list(lab.hosts()) == ["alpha"]
    assert first.end() == 0
    assert lab.hosts() == {}
    idle = host.worker("--until-idle", env={"TEAMCHAT_HOST_CLOCK": "0.5"}).ready()
    lab.team(MAX)
    sent = lab.cli("send", "[NEXT:max] Hi")
    assert (sent.code, sent.out) == (0, "max:\none\n\n"), sent.err
    assert idle.process.wait(TIMEOUT_S) == 0
    assert lab.hosts() == {}


def test_a_worker_says_at_its_start_what_it_does_not_offer(lab: Lab, host: Host) -> None:
    host.offers({"writer": [host.agent("echo one")], "gone": ["/no/such"]})
    worker = host.worker().ready()
    assert worker.log.read_text().splitlines() == [
        "· does not offer gone: its program '/no/such' is not installed",
        "· alpha is ready: writer; 1 at a time",
    ]
    assert list(lab.hosts()["alpha"]["agents"]) == ["writer"]  # type: ignore[call-overload]
    named = host.worker("--name", "Any")
    assert (named.process.wait(TIMEOUT_S), "'Any' is every host in a team file" in named.log.read_text()) == (2, True)


def test_a_name_has_one_worker_on_all_machines(lab: Lab, host: Host) -> None:
    other = lab.host("alpha", "elsewhere")
    for one in (host, other):
        one.offers({"writer": [one.agent("echo one")]})
    first = host.worker().ready()
    for _ in range(2):
        second = other.worker()
        assert second.process.wait(TIMEOUT_S) == 2
        assert "a worker named alpha runs on another machine, seen " in second.log.read_text()
        first.kill()  # and nobody but its own machine knows that
    assert list(lab.hosts()) == ["alpha"]
    host.worker().ready().kill()
    time.sleep(DEAD_S + 0.5)
    other.worker().ready()
    assert host.worker().process.wait(TIMEOUT_S) == 2


def test_a_worker_that_slept_while_its_name_was_taken_ends(lab: Lab, host: Host) -> None:
    other = lab.host("alpha", "elsewhere")
    host.offers({"writer": [host.agent("echo begun; sleep 300")]})
    other.offers({"writer": [other.agent("echo one")]})
    first = host.worker(env=in_tmp(host)).ready()
    lab.team(MAX)
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: "begun" in lab.written)
    first.process.send_signal(signal.SIGSTOP)
    done = ended(sent)
    assert (done.code, "not seen for" in done.err) == (130, True), done.err
    second = other.worker().ready()
    first.process.send_signal(signal.SIGCONT)
    assert first.process.wait(TIMEOUT_S) == 11
    assert "another machine runs a worker named alpha now" in first.log.read_text()
    assert (runs(host), kept(host)) == (False, [])
    again = lab.cli("resume")
    assert (again.code, again.out) == (0, "max:\none\n\n"), again.err
    assert second.end() == 0


def test_a_worker_that_wakes_up_ends_its_agents_at_once(lab: Lab, host: Host) -> None:
    host.offers({"writer": [host.agent("echo begun; sleep 300")]})
    worker = host.worker(env=in_tmp(host)).ready()
    lab.team(MAX)
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: "begun" in lab.written)
    worker.process.send_signal(signal.SIGSTOP)
    sent.kill()
    ended(sent)
    time.sleep(DEAD_S + 1.0)
    worker.process.send_signal(signal.SIGCONT)
    until(lambda: not runs(host), 3.0)
    until(lambda: re.search(r"was asleep for \d s; stops what ran meanwhile", worker.log.read_text()))
    assert lab.cli("resume").code == 130
    assert worker.end() == 0


def test_the_first_signal_lets_the_turn_end_and_takes_no_other(lab: Lab, host: Host) -> None:
    host.offers({"writer": [host.agent(f"echo one; {waits(host)}; echo two")]})
    worker = host.worker("--jobs", "2", env=in_tmp(host)).ready()
    lab.team(MAX)
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: "one" in lab.written)
    worker.process.send_signal(signal.SIGTERM)
    until(lambda: "takes nothing new; 1 turn still runs, and a second signal stops that" in worker.log.read_text())
    until(lambda: lab.hosts()["alpha"]["ending"])
    assert "alpha: takes nothing new" in lab.cli("hosts").out
    other = lab.cli("send", "--new", "--session", "other", "[NEXT:max] Hi")
    assert (other.code, "alpha takes nothing new" in other.err) == (11, True), other.err
    go(host)
    done = ended(sent)
    assert (done.code, done.out) == (0, "max:\none\ntwo\n\n"), done.err
    assert worker.process.wait(TIMEOUT_S) == 0
    assert lab.hosts() == {}
    assert (host.starts, runs(host), kept(host)) == (1, False, [])


def test_the_second_signal_stops_the_turn(lab: Lab, host: Host) -> None:
    script = "trap 'echo last words; exit 3' TERM; echo begun; sleep 300 & wait"
    host.offers({"writer": [host.agent(script)]})
    worker = host.worker(env=in_tmp(host)).ready()
    lab.team(MAX)
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: "begun" in lab.written)
    worker.process.send_signal(signal.SIGTERM)
    until(lambda: "takes nothing new" in worker.log.read_text())
    worker.process.send_signal(signal.SIGTERM)
    done = ended(sent)
    assert worker.process.wait(TIMEOUT_S) == 0
    assert done.code == 130, done.out + done.err
    assert "max was interrupted: alpha was told to end" in done.err
    assert "| begun\n  | last words" in lab.cli("show", "1").out
    assert (lab.hosts(), runs(host), kept(host)) == ({}, False, [])


def test_so_many_turns_run_at_once_as_the_worker_has_jobs(lab: Lab, host: Host) -> None:
    log = shlex.quote(str(host.folder / "log"))
    host.offers({"writer": [host.agent(f"echo + >> {log}; {waits(host)}; echo - >> {log}; echo one")]})
    host.worker("--jobs", "2").ready()
    lab.team(*(MAX.replace("max", f"m{number}") for number in range(3)))
    sent = lab.start("send", "[NEXT:m0+m1+m2] Hi")
    until(lambda: host.starts == 2)
    until(lambda: lab.hosts()["alpha"]["busy"] == 3)
    assert host.starts == 2
    go(host)
    done = ended(sent)
    assert done.code == 0, done.err
    there = [0]
    for word in (host.folder / "log").read_text().split():
        there.append(there[-1] + (1 if word == "+" else -1))
    assert (len(there), max(there)) == (7, 2)


def test_an_agent_with_a_rate_limit_cools_down_on_its_host(lab: Lab, host: Host) -> None:
    other = lab.host("beta")
    (host.folder / "limit").write_bytes(lines(RATE_LIMITED))
    host.offers({"writer": [host.agent(f"cat {shlex.quote(str(host.folder / 'limit'))}; exit 1")]}, like="claude")
    host.worker().ready()
    lab.team(MAX)
    sent = lab.cli("send", "[NEXT:max] Hi")
    assert sent.code == 1, sent.out + sent.err
    assert LIMIT in sent.err
    assert host.starts == 1
    until(lambda: "writer like claude: read, cools down for" in lab.cli("hosts").out)
    again = lab.cli("resume")
    assert again.code == 11, again.err
    assert "alpha has a rate limit of writer for" in again.err
    (other.folder / "said").write_bytes(
        lines([RATE_LIMITED[0], {"type": "result", "subtype": "success", "is_error": False, "result": "Hi"}])
    )
    other.offers({"writer": [other.agent(f"cat {shlex.quote(str(other.folder / 'said'))}")]}, like="claude")
    other.worker().ready()
    resumed = lab.cli("resume")
    assert (resumed.code, resumed.out) == (0, "max:\nHi\n\n"), resumed.err
    assert (host.starts, other.starts) == (1, 1)


def test_all_output_arrives_whole_and_in_order(lab: Lab, host: Host) -> None:
    scripts = {
        "many": "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done",
        "wide": "head -c 2000000 /dev/zero | tr '\\0' x; echo y",
        "aside": "echo said aside >&2; exit 3",
    }
    host.offers({name: [host.agent(script, name)] for name, script in scripts.items()})
    host.worker("--jobs", "2").ready()
    lab.team(*(f'name = "m-{name}"\nagent = "{name}"\nhost = "alpha"' for name in scripts))
    many = lab.cli("send", "[NEXT:m-many] Hi")
    assert many.code == 0, many.err
    assert many.out == "m-many:\n" + "".join(f"line {number}\n" for number in range(20_000)) + "\n"
    wide = lab.cli("send", "[NEXT:m-wide] Hi")
    assert (wide.code, wide.out == "m-wide:\n" + "x" * 2_000_000 + "y\n\n") == (0, True), wide.err
    aside = lab.cli("send", "[NEXT:m-aside] Hi")
    assert (aside.code, "said aside" in aside.err) == (1, True), aside.err


def test_the_host_ends_a_turn_at_the_timeout_of_its_member(lab: Lab, host: Host) -> None:
    host.offers({"writer": [host.agent("echo begun; sleep 300")]})
    worker = host.worker(env=in_tmp(host)).ready()
    lab.team(f"{MAX}\ntimeout = 1")
    sent = lab.cli("send", "[NEXT:max] Hi")
    assert sent.code == 3, sent.err
    assert "was still running after 1 s (its timeout)" in sent.err
    assert worker.end() == 0
    assert (host.starts, runs(host), kept(host)) == (1, False, [])


def test_a_worker_removes_what_was_left_when_it_was_killed(lab: Lab, host: Host) -> None:
    host.offers({"writer": [host.agent("echo begun; echo x > $TMPDIR/mine; sleep 300")]})
    worker = host.worker(env=in_tmp(host)).ready()
    lab.team(MAX)
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: "begun" in lab.written)
    worker.kill()
    assert len(kept(host)) == 2
    host.worker(env=in_tmp(host)).ready()
    assert (runs(host), kept(host)) == (False, [])
    assert ended(sent).code == 130


@pytest.mark.workers
@pytest.mark.parametrize("asked", [0, 1])
def test_a_turn_that_ends_while_the_database_is_away_arrives_later(
    postgres: Cluster, database: str, tmp_path: Path, asked: int
) -> None:
    lab = Lab(tmp_path / "lab", database)
    try:
        host = lab.host("alpha")
        host.offers({"writer": [host.agent(f"echo one; {waits(host)}; echo two")]})
        slow = {} if asked else {"TEAMCHAT_HOST_CLOCK": "0.5"}  # else it could end before its first turn comes
        worker = host.worker(*([] if asked else ["--until-idle"]), env=slow).ready()
        lab.team(MAX)
        sent = lab.start("send", "[NEXT:max] Hi")
        until(lambda: "one" in lab.written)
        postgres.crash()
        until(lambda: "does not answer" in worker.log.read_text())
        for _ in range(asked):
            worker.process.send_signal(signal.SIGTERM)
            until(lambda: "takes nothing new" in worker.log.read_text())
        if not asked:
            time.sleep(6.0)  # in which a worker without a turn would end
            assert "takes nothing new" not in worker.log.read_text()
        go(host)
        until(lambda: not runs(host))
        time.sleep(2.0)  # longer than the first pause of the engine: a second try finds no socket
        postgres.start()
        done = ended(sent)
        assert (done.code, done.out) == (0, "max:\none\ntwo\n\n"), done.err
        assert worker.end() == 0
        assert lab.hosts() == {}
    finally:
        lab.close()
