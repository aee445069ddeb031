"""What happens to a turn when its worker, its home or the database goes away."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.program import ended
from tests.workers.hosts import Lab, events, until
from tests.workers.postgres import Cluster

MAX = 'name = "max"\nagent = "writer"\nhost = "any"'
SLOW = "echo begun; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 0.1; echo line $i; done"


def test_ctrl_c_stops_the_agent_and_keeps_its_last_words(lab: Lab) -> None:
    host = lab.host("alpha")
    script = f"trap 'date +%s.%N > {host.folder}/stopped; echo last words; exit 3' TERM; echo begun; sleep 30 & wait"
    host.offers({"writer": [host.agent(script)]}).worker().ready()
    lab.team(MAX)
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: "begun" in lab.written)
    pressed = time.time()
    sent.send_signal(signal.SIGINT)
    done = ended(sent)
    assert done.code == 130, done.err
    assert float((host.folder / "stopped").read_text()) - pressed < 2.5  # 1.5 s on a quiet machine
    assert "| begun\n  | last words" in lab.cli("show", "1").out
    assert host.starts == 1


def test_a_turn_whose_worker_is_killed_is_interrupted_and_runs_again_only_when_told(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"writer": [host.agent(SLOW)]})
    worker = host.worker().ready()
    lab.team(MAX)
    sent = lab.start("send", "--json", "[NEXT:max] Hi")
    until(lambda: host.starts == 1)
    worker.kill()
    done = ended(sent)
    assert done.code == 130, done.out + done.err
    assert "was interrupted: alpha" in done.out
    host.worker().ready()
    time.sleep(1.5)
    assert host.starts == 1
    assert lab.cli("resume").code == 0
    assert host.starts == 2


def test_with_rerun_a_turn_runs_again_whose_host_has_gone(lab: Lab) -> None:
    alpha, beta = lab.host("alpha"), lab.host("beta")
    alpha.offers({"writer": [alpha.agent(SLOW)]})
    worker = alpha.worker().ready()
    lab.team(f"{MAX}\nrerun = true")
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: alpha.starts == 1)
    beta.offers({"writer": [beta.agent("echo from beta")]}).worker().ready()
    worker.kill()
    done = ended(sent)
    assert (done.code, "from beta" in done.out) == (0, True), done.err
    assert (alpha.starts, beta.starts) == (1, 1)


def test_a_side_turn_runs_on_the_host_too(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"writer": [host.agent("echo what was said in short")]}).worker().ready()
    lab.team(MAX)
    assert lab.cli("send", "[NEXT:max] Hi").code == 0
    compacted = lab.cli("compact", "--member", "max")
    assert (compacted.code, host.starts) == (0, 2), compacted.err


def test_a_worker_that_starts_anew_does_not_run_its_turns_a_second_time(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"writer": [host.agent(SLOW)]})
    worker = host.worker().ready()
    lab.team(MAX)
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: host.starts == 1)
    worker.kill()
    host.worker().ready()
    done = ended(sent)
    assert done.code == 130, done.err
    assert "alpha: was started anew; turn 1 interrupted; teamchat resume runs it again" in done.err
    assert host.starts == 1


def test_a_turn_that_waits_for_a_host_that_dies_is_on_hold_and_another_host_takes_it(lab: Lab) -> None:
    alpha, beta = lab.host("alpha"), lab.host("beta")
    alpha.offers({"writer": [alpha.agent(SLOW)]})
    worker = alpha.worker().ready()
    lab.team(MAX, 'name = "sue"\nagent = "writer"\nhost = "any"')
    sent = lab.start("send", "[NEXT:max+sue] Hi")
    until(lambda: alpha.starts == 1)
    until(lambda: lab.hosts()["alpha"]["busy"] == 2)
    worker.kill()
    done = ended(sent)
    assert alpha.starts == 1
    assert "waited for alpha" in done.err
    beta.offers({"writer": [beta.agent("echo from beta")]}).worker().ready()
    resumed = lab.cli("resume")
    assert resumed.code == 0, resumed.err
    assert (alpha.starts, beta.starts) == (1, 2)


def test_without_a_host_the_turn_is_on_hold(lab: Lab) -> None:
    lab.team('name = "max"\nagent = "writer"\nhost = "gpu1"')
    sent = lab.cli("send", "[NEXT:max] Hi")
    assert sent.code == 11
    assert "waiting for a host: gpu1 was never seen" in sent.err
    assert "teamchat hosts" in sent.err
    assert lab.cli("resume", "--skip").code == 0


def test_a_fallback_answers_where_no_host_is(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"writer": [host.agent("echo instead")]}).worker().ready()
    lab.team('name = "max"\nagent = "writer"\nhost = "gpu1"\nfallback = ["sue"]', MAX.replace("max", "sue"))
    sent = lab.cli("send", "[NEXT:max] Hi")
    assert (sent.code, "instead" in sent.out) == (0, True), sent.err


def test_a_turn_goes_on_when_home_is_killed_and_resume_follows_it_to_its_end(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"writer": [host.agent(SLOW)]}).worker().ready()
    lab.team(MAX)
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: "line 2" in lab.written)
    sent.kill()
    sent.communicate()
    assert "goes on at alpha (teamchat was killed)" in lab.cli("status").err
    assert lab.cli("undo").code == 13
    resumed = lab.cli("resume", "--json")
    assert resumed.code == 0, resumed.err
    [said] = events(resumed, "message")
    assert said["text"] == "\n".join(["begun", *(f"line {number}" for number in range(1, 16))])
    assert host.starts == 1


def test_a_turn_that_ended_while_home_was_dead_is_stored(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"writer": [host.agent(SLOW)]})
    worker = host.worker().ready()
    lab.team(MAX)
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: host.starts == 1)
    sent.kill()
    sent.communicate()
    assert worker.end() == 0
    then = lab.cli("resume")
    assert (then.code, "line 15" in then.out) == (0, True), then.err
    assert host.starts == 1


def test_resume_says_that_a_turn_was_interrupted_whose_worker_and_home_were_killed(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"writer": [host.agent("echo begun; [ -e $HOME/again ] || sleep 300")]})
    worker = host.worker().ready()
    lab.team(MAX)
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: "begun" in lab.written)
    sent.kill()
    worker.kill()
    ended(sent)
    (host.folder / "home" / "again").touch()
    host.worker().ready()
    followed = lab.cli("resume")
    assert (followed.code, followed.out, host.starts) == (130, "", 1), followed.err
    assert "paused: alpha: was started anew; turn 1 interrupted; teamchat resume runs it again" in followed.err
    resumed = lab.cli("resume")
    assert (resumed.code, resumed.out, host.starts) == (0, "max:\nbegun\n\n", 2), resumed.err


def test_a_group_without_a_database_is_told_once(lab: Lab) -> None:
    lab.team(MAX, MAX.replace("max", "sue"))
    voted = lab.cli("run", "vote", "--options", "yes,no", "Ready?", env={"TEAMCHAT_DATABASE": ""})
    assert voted.code == 1
    assert voted.err.count("TEAMCHAT_DATABASE is not set") == 1


def test_a_turn_that_was_never_ordered_is_interrupted(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"writer": [host.agent(SLOW)]}).worker().ready()
    lab.team(MAX)
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: host.starts == 1)
    sent.kill()
    sent.communicate()
    gone = lab.cli("resume", env={"TEAMCHAT_DATABASE": ""})
    assert gone.code == 11
    assert "TEAMCHAT_DATABASE is not set" in gone.err
    let_go = lab.cli("resume", "--skip", env={"TEAMCHAT_DATABASE": ""})
    assert "may still run on alpha" in let_go.err
    assert "was running when teamchat was killed" in lab.cli("log").out + lab.cli("show", "1").out


def test_stop_ends_a_turn_whose_home_was_killed(lab: Lab) -> None:
    host = lab.host("alpha")
    script = f"trap 'touch {host.folder}/stopped; echo last words; exit 3' TERM; echo begun; sleep 30 & wait"
    host.offers({"writer": [host.agent(script)]}).worker().ready()
    lab.team(MAX)
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: "begun" in lab.written)
    sent.kill()
    sent.communicate()
    assert "turn 1 (max) was stopped at alpha (teamchat was killed); teamchat resume" in lab.cli("stop").err
    assert "was stopped at alpha (teamchat was killed): max" in lab.cli("status").err
    until((host.folder / "stopped").exists)
    resumed = lab.cli("resume", "--skip")
    assert resumed.code in (0, 130), resumed.err
    assert "last words" in lab.cli("show", "1").out


@pytest.mark.workers
def test_a_database_that_crashes_and_comes_back_loses_nothing(postgres: Cluster, database: str, tmp_path: Path) -> None:
    lab = Lab(tmp_path / "lab", database)
    try:
        host = lab.host("alpha")
        slower = {"TEAMCHAT_HOST_CLOCK": "0.5"}  # a lease of 10 s: a server starts slowly on a busy machine
        host.offers({"writer": [host.agent(SLOW)]}).worker(env=slower).ready()
        lab.team(MAX)
        sent = lab.start("send", "[NEXT:max] Hi", env=slower)
        until(lambda: "line 2" in lab.written)
        postgres.crash()
        time.sleep(0.5)
        postgres.start()
        done = ended(sent)
        assert done.code == 0, done.err
        assert done.out == "max:\n" + "\n".join(["begun", *(f"line {number}" for number in range(1, 16))]) + "\n\n"
        assert lab.cli("send", "[NEXT:max] Again").code == 0
        assert host.starts == 2
    finally:
        lab.close()
