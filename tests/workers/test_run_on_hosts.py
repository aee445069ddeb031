"""`teamchat run --host`: the members of one run on hosts that a person types."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.forks import RUN
from tests.workers.hosts import Lab, events

VOTE = ("run", "vote", "--options", "yes,no", "Go?")
OWN = '[agents.writer]\ncommand = ["/nowhere/writer"]'


def member(name: str, *more: str) -> str:
    return "\n".join((f'name = "{name}"', 'agent = "writer"', *more))


def test_a_vote_over_two_workers(lab: Lab) -> None:
    hosts = [lab.host("alpha"), lab.host("beta")]
    for host in hosts:
        answer = json.dumps({"option": "yes", "reason": host.name})
        host.offers({"writer": [host.agent(f"echo '{answer}'")]}).worker().ready()
    lab.team(member("max"), member("sarah"), more=OWN)
    ran = lab.cli(*VOTE, "--json", "--host", "alpha", "--host", "beta")
    assert ran.code == 0, ran.err + ran.out
    assert sorted(str(one["host"]) for one in events(ran, "turn_started")) == ["alpha", "beta"]
    assert [host.starts for host in hosts] == [1, 1]
    assert lab.cli(*VOTE).code != 0  # the next run is at home again, where the agent is not
    assert lab.cli(*VOTE, "--new", "--host", "any").code == 0


def test_a_best_of_members_that_read(lab: Lab) -> None:
    host = lab.host("alpha")
    answer = json.dumps({"winner": "A", "reasons": "short"})
    script = f"if grep -q winner {shlex.quote(str(host.folder))}/prompt; then echo '{answer}'; else echo Done.; fi"
    host.offers({"writer": [host.agent(script)]}, access="edit").worker("--jobs", "2").ready()
    lab.team(member("max"), member("sarah"), member("lea"), more=OWN)
    ran = lab.cli("run", "best", "--host", "any", "Do it")
    assert ran.code == 0, ran.err
    assert "picks " in ran.err
    assert host.starts == 4


@pytest.mark.parametrize("who", ["doer", "reviewer"])
def test_until_it_is_right_takes_members_of_home(lab: Lab, who: str) -> None:
    hosts = {"doer": ("any", ""), "reviewer": ("", "any")}[who]
    more = [[f'host = "{host}"'] if host else [] for host in hosts]
    lab.team(member("max", 'access = "edit"', *more[0]), member("sarah", *more[1]), more=OWN)
    ran = lab.cli("run", "until", "--do", "max", "--review", "sarah", "--check", "true", "Do it")
    assert (ran.code, ran.out) == (2, ""), ran.err
    name = "max" if who == "doer" else "sarah"
    assert f"{name} works on another machine: it needs a member without a host" in ran.err


def test_who_does_not_trust_the_team_is_asked_as_ever(lab: Lab) -> None:
    lab.team(member("max"), member("sarah"), more=OWN)
    file = lab.project / "teamchat.toml"
    file.write_text(file.read_text().replace("/nowhere/", "/elsewhere/"))
    assert lab.cli(*VOTE, "--host", "any").code == 5


@pytest.mark.parametrize("key", ['args = ["-v"]', 'env = { A = "1" }'])
def test_what_does_not_reach_a_host_is_refused(lab: Lab, key: str) -> None:
    lab.team(member("max", key), member("sarah"), more=OWN)
    ran = lab.cli(*VOTE, "--host", "any")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"teamchat: --host: members 'max': {key.partition(' ')[0]}: a host has its own")
    assert len(ran.err.splitlines()) == 1
    assert lab.cli(*VOTE, "--host", "a b").err == "teamchat: --host: expected the name of a host, or any, got 'a b'\n"


def test_an_agent_can_not_type_a_host(lab: Lab) -> None:
    agent, told = lab.folder / "caller", lab.folder / "told"
    agent.write_text(f"#!/bin/sh\n{shlex.join((*RUN, *VOTE, '--host', 'any'))} 2> {told}\necho $?\n")
    agent.chmod(0o755)
    lab.team(
        'name = "max"\nagent = "own"', 'name = "sarah"\nagent = "own"', more=f'[agents.own]\ncommand = ["{agent}"]'
    )
    sent = lab.cli("send", "[NEXT:max] Hi")
    assert sent.out == "max:\n5\n\n", sent.err
    assert told.read_text().startswith("teamchat: hosts are named by a person, and this runs in an agent's turn\n")
