"""Members on hosts, end to end: real workers with another HOME, PATH and clone of the project than home."""

from __future__ import annotations

import base64
import json

from tests.program import ended
from tests.workers.hosts import Lab, events, go, until, waits
from tests.workers.test_versions import ask

SAID = (base64.b64encode(b"THE-REPLY\n").decode(), "prompt")
MAX = 'name = "max"\nagent = "writer"\nhost = "any"'


def test_a_home_without_any_agent_runs_a_turn_on_a_host(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"writer": [host.agent("echo one; sleep 0.1; pwd; echo $HOME")]}).worker().ready()
    lab.team(MAX)
    sent = lab.cli("send", "[NEXT:max] Hi")
    assert (sent.code, sent.out) == (0, f"max:\none\n{host.project}\n{host.env['HOME']}\n\n"), sent.err
    assert "You are answering msg-1" in host.prompt
    shown = lab.cli("show", "1", "--prompt")
    assert host.prompt in shown.out
    assert host.starts == 1


def test_turns_go_to_the_host_with_most_free_jobs(lab: Lab) -> None:
    hosts = [lab.host("alpha"), lab.host("beta")]
    for host in hosts:
        host.offers({"writer": [host.agent(f"sleep 0.5; echo {host.name}")]}).worker().ready()
    lab.team(*(f'name = "m{number}"\nagent = "writer"\nhost = "any"' for number in range(2)))
    sent = lab.cli("send", "--json", "[NEXT:m0+m1] Hi")
    assert sent.code == 0, sent.err
    assert sorted(str(one["text"]) for one in events(sent, "message")[1:]) == ["alpha", "beta"]
    assert [host.starts for host in hosts] == [1, 1]


def test_a_database_has_nothing_of_a_turn_whose_end_is_stored(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"writer": [host.agent(f"echo THE-REPLY; {waits(host)}")]}).worker().ready()
    lab.team(MAX)
    sent = lab.start("send", "[NEXT:max] Hi")
    until(lambda: "THE-REPLY" in lab.written)
    assert [word in lab.stored for word in SAID] == [True, True]
    go(host)
    assert ended(sent).code == 0
    assert [word in lab.stored for word in SAID] == [False, False]
    assert lab.hosts()["alpha"]["busy"] == 0
    receipt = json.loads(lab.cli("show", "1", "--json").out)
    assert receipt["setup"]["host"] == "alpha"


def test_a_worker_removes_what_has_ended_long_ago_and_nothing_else(lab: Lab) -> None:
    host = lab.host("alpha")
    worker = host.offers({"writer": [host.agent(f"echo THE-REPLY; {waits(host)}")]}).worker().ready()
    lab.team(MAX)
    for starts in (1, 2):
        home = lab.start("send", "--new", "[NEXT:max] Hi")
        until(lambda starts=starts: host.starts == starts)
        home.kill()
        ended(home)
        go(host)
        until(lambda: lab.hosts()["alpha"]["busy"] == 0)
    assert worker.end() == 0
    ended_at = "SELECT workflow_uuid, completed_at FROM {D}workflow_status WHERE completed_at IS NOT NULL ORDER BY 2"
    (first, _), (second, _) = ask(lab, ended_at)
    eight_days_ms = 8 * 86_400_000
    moved = "UPDATE {D}workflow_status SET completed_at = completed_at - :by WHERE workflow_uuid = :name"
    ask(lab, moved, by=eight_days_ms, name=first)
    host.worker().ready()
    until(lambda: len(ask(lab, ended_at)) == 1)
    assert ask(lab, ended_at)[0][0] == second
    assert ask(lab, "SELECT DISTINCT workflow_uuid FROM {D}streams") == [(second,)]
