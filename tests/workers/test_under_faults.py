"""Hosts for minutes under faults: with many kills, with a full disk of the database, and with the real clocks."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from teamchat.core.store.database import Database
from teamchat.core.store.sessions import need_session
from teamchat.core.store.turns import LARGEST, prompt_of, turns_between
from teamchat.runners.agent_events import FailureKind
from tests.cli.test_full_disk import unshares
from tests.program import ended
from tests.workers.hosts import Host, Lab, go, until, waits
from tests.workers.postgres import cluster
from tests.workers.test_lease import alive, beats

pytestmark = pytest.mark.workers_crash
MAX = 'name = "max"\nagent = "writer"\nhost = "any"'
SLOWER = {"TEAMCHAT_HOST_CLOCK": "0.5"}
SUBTASKS, WORKERS, JOBS, AT_ONCE = 500, 8, 3, 20
KILL_S, LONGEST_S = 2.0, 600.0
PLANNER = """#!/bin/sh
case "$(cat)" in
*'a JSON list of'*) echo '{plan}' ;;
*) echo merged ;;
esac
"""
SUBTASK = """#!/bin/sh
name=$(grep -o 'subtask-[0-9]*-' | head -n 1)
echo "$name" >> {folder}/starts
sleep 1
echo "$name is done"
"""


def fill(disk: Path) -> Path:
    """Leave no room on a disk. Returns the file that takes it."""
    path = disk / "filler"
    with path.open("wb", buffering=0) as file:
        for piece in (1 << 20, 4096, 1):
            try:
                while file.write(bytes(piece)) == piece:
                    pass
            except OSError:
                continue
    return path


@pytest.mark.skipif(os.geteuid() != 0 or not unshares(), reason="only root gives a server a disk of its own")
def test_a_full_disk_of_the_database_loses_nothing(tmp_path: Path) -> None:
    with cluster() as postgres:
        url = postgres.database()
        postgres.stop()
        postgres.disk_mb = 200
        postgres.start()
        lab = Lab(tmp_path / "lab", url)
        try:
            host = lab.host("alpha")
            line = "i=$((i + 1)); echo line $i; head -c 6000 /dev/urandom | base64 -w 0; echo; sleep"
            script = f"echo begun; i=0; {waits(host).replace('sleep', line)}; echo end"
            host.offers({"writer": [host.agent(script)]}).worker(env=SLOWER).ready()
            lab.team(MAX)
            sent = lab.start("send", "[NEXT:max] Hi", env=SLOWER)
            until(lambda: "line 9\n" in lab.written)
            filler = fill(postgres.disk)
            time.sleep(4)
            filler.unlink()
            go(host)
            done = ended(sent)
            print(done.err, host.lab.workers[0].log.read_text(), postgres.log[-2000:])
            assert "No space left on device" in postgres.log
            assert done.code == 0, done.err
            lines = [line for line in done.out.splitlines() if line.startswith("line ")]
            assert lines == [f"line {number}" for number in range(1, len(lines) + 1)]
            assert host.starts == 1
        finally:
            lab.close()


def test_by_the_real_clocks_a_database_may_be_away_for_15_s_and_not_for_60(tmp_path: Path) -> None:
    with cluster() as postgres:
        lab = Lab(tmp_path / "lab", postgres.database())
        real = {"TEAMCHAT_HOST_CLOCK": ""}
        try:
            host = lab.host("alpha")
            host.offers({"writer": [host.agent(beats(host))]}).worker(env=real).ready()
            lab.team(MAX)
            sent = lab.start("send", "[NEXT:max] Hi", env=real)
            until(lambda: "begun" in lab.written)
            postgres.crash()
            time.sleep(15)
            postgres.start()
            back = time.time()
            until(lambda: lab.cli("hosts").out.startswith("alpha: 1 of 1 jobs"))
            time.sleep(5)
            assert max(alive(host)) > back + 4
            postgres.crash()
            gone = time.time()
            time.sleep(60)
            assert 15 < max(alive(host)) - gone < 21, "the lease is 20 s from the last beat, up to 3 s before"
            postgres.start()
            done = ended(sent)
            assert (done.code, host.starts) == (130, 1), done.err
            assert "max was interrupted: alpha could not tell the database for 20 s that it is there" in done.err
            go(host)
            resumed = lab.cli("resume", env=real)
            assert (resumed.code, resumed.out, host.starts) == (0, "max:\nbegun\n\n", 2), resumed.err
        finally:
            lab.close()


def test_five_hundred_subtasks_under_kills(tmp_path: Path) -> None:
    """A random worker is killed each two seconds, and started again."""
    chance = random.Random(64)  # noqa: S311
    with cluster() as postgres:
        lab = Lab(tmp_path / "lab", postgres.database())
        try:
            hosts = [lab.host(f"host-{number}") for number in range(WORKERS)]
            for host in hosts:
                agent = host.folder / "agent"
                agent.write_text(SUBTASK.format(folder=host.folder))
                agent.chmod(0o755)
                host.offers({"writer": [agent]})
            workers = [host.worker("--jobs", str(JOBS)) for host in hosts]
            for worker in workers:
                worker.ready()
            planner = lab.folder / "planner"
            planner.write_text(PLANNER.format(plan=json.dumps([f"subtask-{each}-" for each in range(SUBTASKS)])))
            planner.chmod(0o755)
            lab.team(
                'name = "lead"\nagent = "planner"',
                'name = "sarah"\nagent = "writer"\nhost = "any"\nrerun = true',
                more=f'[agents.planner]\ncommand = ["{planner}"]\n[team.limits]\nturns = 5000\n',
            )
            words: tuple[str, ...] = ("run", "mapreduce", "--quiet", "--workers", "sarah", "--jobs", str(AT_ONCE), "Go")
            began, kills = time.monotonic(), 0
            while True:
                running = lab.start(*words)
                while (code := running.poll()) is None:
                    time.sleep(KILL_S)
                    number = chance.randrange(WORKERS)
                    workers[number].kill()
                    workers[number] = hosts[number].worker("--jobs", str(JOBS))
                    kills += 1
                done = ended(running)
                assert "Traceback" not in done.err, done.err
                if code == 0:
                    break
                assert "held: sarah" in done.err, done.err
                assert time.monotonic() - began < LONGEST_S, done.err
                words = ("resume", "--quiet")
            took = time.monotonic() - began
            assert "merged" in done.out
            check_counted(lab, hosts)
            print(f"{SUBTASKS} subtasks, {kills} kills, {took:.0f} s")
        finally:
            lab.close()


def check_counted(lab: Lab, hosts: list[Host]) -> None:
    """Each subtask is done once, and its agent has started at most once for each try that the store has."""
    starts = Counter(line for host in hosts for line in (host.folder / "starts").read_text().split())
    [path] = (lab.folder / "state").rglob("teamchat.db")
    with closing(Database(path)) as db:
        turns = turns_between(db, need_session(db, None).id, 1, LARGEST)
        names = {turn.number: re.search(rb"subtask-\d+-", prompt_of(db, turn)) for turn in turns}
    tries, answers = Counter[str](), Counter[str]()
    for turn in turns:
        outcome, found = turn.outcome, names[turn.number]
        if turn.member != "sarah" or outcome is None:
            continue
        assert found, turn
        name = found[0].decode()
        if outcome.ran and outcome.ran.executor:
            tries[name] += 1
        if turn.status == "done":
            answers[name] += 1
        elif outcome.ran and outcome.ran.executor:
            assert outcome.failure, turn
            assert outcome.failure.kind is FailureKind.INTERRUPTED, outcome.failure
    assert sorted(answers.values()) == [1] * SUBTASKS
    more = {name: (number, tries[name]) for name, number in starts.items() if number > tries[name]}
    assert not more, more
