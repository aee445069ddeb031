"""Being stopped, for each kind of agent: by its own soft signal first, with its whole tree; what it said stays."""

from __future__ import annotations

import signal
import time

import pytest

from tests.cli.contract.vendor_output import ANSWER, HALF, LIVE, VOICES, Voice, raw
from tests.cli.helpers import actors, queue, said
from tests.program import ROOT, ended, run_here, start
from tests.runners.processes import Pids, eventually

PATIENT = ROOT / "tests" / "fakes" / "patient.py"
every = pytest.mark.parametrize("voice", [*VOICES, LIVE], ids=lambda voice: voice.name)


@every
@pytest.mark.parametrize("patient", [True, False])
def test_one_ctrl_c_is_the_agents_own_soft_signal_and_two_are_the_end(pids: Pids, voice: Voice, patient: bool) -> None:
    obeys = ("obey", "0") if patient else ("deaf",)
    steps = ["tool", "+", "daemon", "+", *raw(voice.half, b"\n"), "+", *obeys, "+", "hang"]
    members = {"max": {"memory": "live"}} if voice.stays else {}
    actors({"max": steps}, like=voice.protocol, members=members)
    process = start("send", "--json", "--stream", "Hi", program=None if patient else PATIENT)
    assert process.stdout
    for line in process.stdout:
        if b"ready" in line or b"deaf" in line:
            break
    pids.await_count(5)
    process.send_signal(signal.SIGINT)
    if patient:
        assert eventually(lambda: pids.alive() == [])
    else:
        time.sleep(0.3)
        assert len(pids.alive()) == 5
        process.send_signal(signal.SIGINT)
        pids.await_end(lambda: process.send_signal(signal.SIGINT))
    assert ended(process).code == 130
    shown = run_here("show").out
    assert f"  | {HALF}" in shown
    assert (f"caught {voice.soft}" in shown) == patient
    assert "\n  failed    was interrupted [exit code 130]\n" in shown
    assert queue() == [("max", "held")]
    actors({"max": raw(voice.whole())}, like=voice.protocol)
    assert run_here("resume", "--quiet").code == 0
    assert said()[1:] == [("max", ANSWER)]
    assert ", attempt 2\n" in run_here("show", "2").out
