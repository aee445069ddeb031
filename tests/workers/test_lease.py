"""An agent on a host ends before its host counts as dead: two agents of one turn never run at the same time."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

from tests.program import ended
from tests.workers.hosts import DEAD_S, LEASE_S, Host, Lab, go, until
from tests.workers.postgres import SHORT, Cluster
from tests.workers.proxy import proxied

RERUN = 'name = "max"\nagent = "writer"\nhost = "any"\nrerun = true'
ON_POSTGRES = pytest.mark.parametrize("lab", [pytest.param("postgres", marks=pytest.mark.workers)], indirect=True)
"""A process that is stopped in a transaction locks SQLite's whole database."""
WAKES_S = 1.0  # from the end of a sleep to the end of the agent, on a busy machine


def beats(host: Host) -> str:
    """A script that says each 20 ms that it runs, until it is killed or `go` is called."""
    says = f"date +%s.%N >> {host.folder}/alive; sleep 0.02"
    return f"echo begun; trap '' TERM; while [ ! -e {host.folder}/go ]; do {says}; done"


def alive(host: Host) -> list[float]:
    """When its agents said that they run."""
    log = host.folder / "alive"
    return [float(line) for line in log.read_text().split("\n")[:-1]] if log.exists() else []


def agent_of(host: Host) -> int:
    """The last agent that the host has started."""
    return int((host.folder / "starts").read_text().split()[-1])


def guardian_of(agent: int) -> int:
    return int(Path(f"/proc/{agent}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture
def hosts(lab: Lab) -> tuple[Host, Host]:
    """Two hosts whose agents go on until they are ended."""
    alpha, beta = lab.host("alpha"), lab.host("beta")
    alpha.offers({"writer": [alpha.agent(beats(alpha))]})
    beta.offers({"writer": [beta.agent(beats(beta))]})
    lab.team(RERUN)
    return alpha, beta


@ON_POSTGRES
def test_a_stopped_worker_has_its_agent_ended_before_another_host_begins(lab: Lab, hosts: tuple[Host, Host]) -> None:
    alpha, beta = hosts
    worker = alpha.worker().ready()
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: alpha.starts == 1 and alive(alpha))
    stopped = time.time()
    worker.process.send_signal(signal.SIGSTOP)
    beta.worker().ready()
    until(lambda: beta.starts == 1 and alive(beta))
    assert max(alive(alpha)) < stopped + DEAD_S
    assert max(alive(alpha)) < min(alive(beta))
    go(beta)
    worker.process.send_signal(signal.SIGCONT)
    done = ended(sent)
    assert done.code == 0, done.err
    assert lab.cli("log").out.count("begun") == 1
    assert (alpha.starts, beta.starts) == (1, 1)


def test_a_stopped_guardian_is_woken_by_its_worker(lab: Lab, hosts: tuple[Host, Host]) -> None:
    alpha, _ = hosts
    alpha.worker().ready()
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: alpha.starts == 1 and alive(alpha))
    guardian = guardian_of(agent_of(alpha))
    os.kill(guardian, signal.SIGSTOP)
    until(lambda: Path(f"/proc/{guardian}/stat").read_text().rpartition(")")[2].split()[0] != "T")
    time.sleep(LEASE_S)
    assert max(alive(alpha)) > time.time() - 1, "its lease goes on"
    sent.send_signal(signal.SIGINT)
    assert ended(sent).code == 130


@ON_POSTGRES
def test_what_slept_as_a_whole_ends_when_it_wakes_and_its_reply_is_refused(lab: Lab, hosts: tuple[Host, Host]) -> None:
    alpha, beta = hosts
    worker = alpha.worker().ready()
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: alpha.starts == 1 and alive(alpha))
    agent = agent_of(alpha)
    sleepers = (worker.process.pid, guardian_of(agent), agent)
    for pid in sleepers:
        os.kill(pid, signal.SIGSTOP)
    beta.worker().ready()
    until(lambda: beta.starts == 1 and alive(beta))
    woken = time.time()
    for pid in sleepers:
        os.kill(pid, signal.SIGCONT)
    until(lambda: not Path(f"/proc/{agent}").exists())
    assert max(alive(alpha)) < woken + WAKES_S
    go(beta)
    done = ended(sent)
    assert done.code == 0, done.err
    assert lab.cli("log").out.count("begun") == 1
    assert "was interrupted: alpha not seen for" in lab.cli("show", "1").out


@ON_POSTGRES
def test_who_has_slept_declares_nobody_dead(lab: Lab, hosts: tuple[Host, Host]) -> None:
    alpha, beta = hosts
    worker = alpha.worker().ready()
    beta.worker().ready()
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: alpha.starts + beta.starts == 1)
    first = alpha if alpha.starts else beta
    for process in (worker.process, lab.workers[1].process, sent):  # as a machine sleeps that has all of them
        process.send_signal(signal.SIGSTOP)
    time.sleep(LEASE_S / 2)
    for process in (sent, worker.process, lab.workers[1].process):
        process.send_signal(signal.SIGCONT)
    time.sleep(DEAD_S)
    assert (alpha.starts + beta.starts, sent.poll()) == (1, None)
    assert max(alive(first)) > time.time() - 1
    sent.send_signal(signal.SIGINT)
    assert ended(sent).code == 130


@ON_POSTGRES
def test_two_agents_of_a_turn_never_overlap_where_the_network_is_cut(lab: Lab, hosts: tuple[Host, Host]) -> None:
    alpha, beta = hosts
    with tempfile.TemporaryDirectory(dir=SHORT) as folder, proxied(Path(folder, "far"), lab.database) as network:
        alpha.worker(env={"TEAMCHAT_DATABASE": network.url}).ready()
        sent = lab.start("send", "[NEXT:max] Hi")
        until(lambda: alpha.starts == 1 and alive(alpha))
        network.cut()
        beta.worker().ready()
        until(lambda: beta.starts == 1 and alive(beta))
        go(beta)
        done = ended(sent)
        assert done.code == 0, done.err
        assert max(alive(alpha)) < min(alive(beta))
        network.mend()
        assert lab.cli("log").out.count("begun") == 1
        assert (alpha.starts, beta.starts) == (1, 1)


@pytest.mark.workers
def test_agents_end_while_the_database_is_away_and_run_again_when_told(
    postgres: Cluster, database: str, tmp_path: Path
) -> None:
    lab = Lab(tmp_path / "lab", database)
    try:
        alpha = lab.host("alpha")
        alpha.offers({"writer": [alpha.agent(beats(alpha))]}).worker().ready()
        lab.team(RERUN.replace("rerun = true", ""))
        sent = lab.start("send", "[NEXT:max] Hi")
        until(lambda: alpha.starts == 1 and alive(alpha))
        postgres.stop()
        gone = time.time()
        until(lambda: time.time() > max(alive(alpha)) + LEASE_S)
        assert max(alive(alpha)) < gone + DEAD_S
        postgres.start()
        go(alpha)
        done = ended(sent)
        assert (done.code, alpha.starts) == (130, 1), done.err
        assert "max was interrupted: alpha could not tell the database for 3 s that it is there" in done.err
        resumed = lab.cli("resume")
        assert (resumed.code, resumed.out, alpha.starts) == (0, "max:\nbegun\n\n", 2), resumed.err
    finally:
        lab.close()
