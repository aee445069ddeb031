"""What a host is given: the same bytes as an agent of this machine, redacted as for its vendor, once for each name."""

from __future__ import annotations

import asyncio

from teamchat.core.dispatch.order import Ended, Order, Output, Project
from teamchat.core.dispatch.project import project_of
from teamchat.version import VERSION
from tests.program import ended
from tests.workers.hosts import Lab, go, until, waits

KEY = "sk-ant-api03-" + "A1b2" * 20
INSTRUCTIONS = 'system_instruction = "Be brief."\n'


def prompts(lab: Lab) -> list[str]:
    """The exact prompts of the first two turns."""
    return [lab.cli("show", str(turn), "--prompt").out.partition("\n\n")[2] for turn in (1, 2)]


def test_the_prompt_is_that_of_an_agent_of_this_machine(lab: Lab) -> None:
    host = lab.host("alpha")
    says = host.agent(f"echo 'The key is {KEY}'", "says"), host.agent("echo Heard.", "hears")
    host.offers({"says": [says[0]], "hears": [says[1]]}).worker().ready()
    sent = "[NEXT:max,sue] Tell her. @read-me.txt stays."

    def team(more: str) -> None:
        agents = "\n".join(f'[agents.{path.name}]\ncommand = ["{path}"]' for path in says)
        members = (f'name = "{name}"\nagent = "{agent}"\n{INSTRUCTIONS}{more}' for name, agent in TWO)
        lab.team(*members, more=agents)

    team("")
    at_home = lab.cli("send", "--new", sent)
    assert at_home.code == 0, at_home.err
    here = prompts(lab)
    team('host = "alpha"')
    on_host = lab.cli("send", "--new", sent)
    assert on_host.code == 0, on_host.err
    assert prompts(lab) == here
    assert "Be brief." in host.prompt
    assert host.prompt.strip().endswith(here[1].strip())


TWO = (("max", "says"), ("sue", "hears"))


def test_what_one_vendor_said_is_redacted_for_another_one_on_a_host(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"says": [host.agent(f"echo 'The key is {KEY}'", "says")]})
    offers = host.config / "host.toml"
    hears = host.agent("echo nothing", "hears")
    offers.write_text(f'{offers.read_text()}\n[agents.hears]\ncommand = ["{hears}"]\nlike = "claude"\n')
    host.worker().ready()
    lab.team(*(f'name = "{name}"\nagent = "{agent}"\nhost = "alpha"' for name, agent in TWO))
    lab.cli("send", "[NEXT:max,sue] Tell her")
    assert "The key is" in host.prompt
    assert KEY not in host.prompt


def test_an_order_has_nothing_of_the_machine_that_sends_it(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"writer": [host.agent(f"echo one; {waits(host)}")]}).worker().ready()
    lab.team(
        'name = "max"\nagent = "writer"\nhost = "any"',
        more='[agents.writer]\ncommand = ["/opt/home/writer", "--as-at-home"]',
    )
    sent = lab.start("send", "[NEXT:max] Hi", env={"OF_HOME": "value-of-home"})
    until(lambda: "one" in lab.written)
    stored = lab.stored
    assert "writer" in stored
    here = (lab.env["HOME"], lab.env["TEAMCHAT_HOME"], str(lab.project), "/opt/home", "--as-at-home", "value-of-home")
    assert [word for word in here if word in stored] == []
    go(host)
    assert ended(sent).code == 0


def test_a_login_stays_on_its_machine(lab: Lab) -> None:
    """Also while the turn runs, and whoever reads the database or the receipt."""
    host = lab.host("alpha")
    agent = host.agent(f"echo $ANTHROPIC_API_KEY > {host.folder}/key; echo one; {waits(host)}")
    host.offers({"writer": [agent]}, like="plain").worker(env={"ANTHROPIC_API_KEY": "KEY-OF-THE-HOST"}).ready()
    lab.team('name = "max"\nagent = "writer"\nhost = "any"')
    sent = lab.start("send", "[NEXT:max] Hi", env={"ANTHROPIC_API_KEY": "KEY-OF-HOME"})
    until(lambda: "one" in lab.written)
    assert "KEY-OF-" not in lab.stored
    go(host)
    assert ended(sent).code == 0
    assert (host.folder / "key").read_text() == "KEY-OF-THE-HOST\n"
    there = [file for file in (lab.folder / "state").rglob("*") if file.is_file()]
    assert there
    assert not any(b"KEY-OF-" in file.read_bytes() for file in there)
    assert "KEY-OF-" not in lab.stored


def test_an_order_with_a_name_that_was_used_starts_nothing(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"writer": [host.agent("echo one; sleep 0.2; echo two")]}).worker().ready()
    project = project_of(lab.project)
    order = Order(
        "0123456789abcdef", "alpha", "max", "writer", "plain", Project(project.remotes, project.root),
        b"Hi", None, "read", timeout_s=60, first_byte_s=60, teamchat=VERSION,
    )  # fmt: skip

    async def twice() -> list[object]:
        dispatch = lab.dispatch()
        try:
            await dispatch.enqueue(order)
            await dispatch.enqueue(order)
            pieces = [piece async for piece in dispatch.follow(order.turn, 0) if piece]
            await dispatch.enqueue(order)
            later = [piece async for piece in dispatch.follow(order.turn, 1) if piece]
            assert later == pieces[1:]
            return list(pieces)
        finally:
            dispatch.close()

    pieces = asyncio.run(twice())
    assert host.starts == 1
    output = [piece for piece in pieces if isinstance(piece, Output)]
    assert b"".join(piece.data for piece in output) == b"one\ntwo\n"
    assert [piece.begins for piece in output] == [sum(len(p.data) for p in output[:at]) for at in range(len(output))]
    assert isinstance(pieces[-1], Ended)
