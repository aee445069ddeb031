"""Worker, client and both are killed at random moments: no turn is lost, and no agent starts twice for one try."""

from __future__ import annotations

import json
import os
import random
import time

import pytest

from tests.program import Started
from tests.workers.hosts import Host, Lab, Worker

pytestmark = pytest.mark.workers
KILLS = int(os.environ.get("KILLS", "5"))  # of each of the six runs
MAX = 'name = "max"\nagent = "writer"\nhost = "any"'
LINES = [f"line {number}" for number in range(8)]
SCRIPT = f"for i in {' '.join(str(number) for number in range(8))}; do echo line $i; sleep 0.1; done"
LONGEST_S = 2.2  # from the start of the command to the end of its turn, about
TRIES = 8


@pytest.mark.parametrize("lab", ["postgres"], indirect=True)
@pytest.mark.parametrize("victims", ["worker", "client", "both"])
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_lost_and_no_agent_starts_twice(lab: Lab, victims: str, seed: int) -> None:
    chance, host = random.Random(f"{victims} {seed}"), lab.host("alpha")  # noqa: S311
    host.offers({"writer": [host.agent(SCRIPT)]})
    worker = host.worker().ready()
    lab.team(MAX)
    for number in range(KILLS):
        sent = lab.start("send", "--new", f"[NEXT:max] Number {number}")
        time.sleep(chance.uniform(0, LONGEST_S))
        worker = _killed(victims, host, worker, sent)
        _resumed(lab)
        turns = [json.loads(lab.cli("show", str(turn), "--json").out) for turn in range(1, _turns(lab) + 1)]
        began = [turn for turn in turns if (turn["outcome"]["ran"] or {}).get("executor")]
        assert [turn["status"] for turn in turns].count("done") == 1, turns
        cut = [turn["outcome"]["failure"]["kind"] for turn in began if turn["status"] != "done"]
        assert set(cut) <= {"interrupted"}, turns
        host_starts = host.starts
        (host.folder / "starts").unlink(missing_ok=True)
        assert host_starts <= len(began) <= len(turns), (number, host_starts, [turn["outcome"] for turn in turns])


def _killed(victims: str, host: Host, worker: Worker, sent: Started) -> Worker:
    """Kill them, and start the worker again. Returns it."""
    if victims != "worker":
        sent.kill()
    if victims != "client":
        worker.kill()
        worker = host.worker().ready()
    sent.communicate(timeout=60)
    return worker


def _turns(lab: Lab) -> int:
    """How many turns the session has had."""
    return int(json.loads(lab.cli("show", "--json").out)["turn"])


def _resumed(lab: Lab) -> None:
    """Continue until the reply is there, whole and once."""
    for _ in range(TRIES):
        if "line 7" in (said := lab.cli("log").out):
            assert said.count("line 7") == 1
            assert "\n".join(LINES) in said
            return
        resumed = lab.cli("resume")
        if resumed.code == 2:  # the message itself was not stored: it was killed before that
            assert lab.cli("send", "--new", "[NEXT:max] Again").code == 0
    raise AssertionError(f"the reply is not there: {resumed}")
