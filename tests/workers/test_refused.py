"""An order for what a host does not offer is refused there, starts nothing, and is told at both ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from teamchat.core.dispatch.order import FORMAT, Ended, Order, Project
from teamchat.core.dispatch.project import project_of
from teamchat.version import VERSION
from tests.program import cli
from tests.workers.hosts import Host, Lab, until

MAX = 'name = "max"\nagent = "writer"\nhost = "any"'


@pytest.fixture
def host(lab: Lab) -> Host:
    host = lab.host("alpha")
    (host.project / "out").symlink_to(host.folder)
    return host.offers({"writer": [host.agent("echo one")]})


async def refusals(lab: Lab, orders: Mapping[str, Order]) -> dict[str, str]:
    """Why the host refuses each order, by its name."""
    dispatch, why = lab.dispatch(), dict[str, str]()
    try:
        for order in orders.values():
            await dispatch.enqueue(order)
        for name, order in orders.items():
            async for piece in dispatch.follow(order.turn, 0):
                assert piece is None or isinstance(piece, Ended), piece
                if piece and piece.refused:
                    why[name] = piece.refused.reason
    finally:
        dispatch.close()
    return why


def test_an_order_for_what_is_not_offered_starts_nothing(lab: Lab, host: Host) -> None:
    host.worker("--jobs", "8").ready()
    project = project_of(lab.project)
    whole = Order("", "alpha", "max", "writer", "plain", project, b"", None, "read", 5.0, 5.0, teamchat=VERSION)
    wrong = {
        "offer the agent 'other'": replace(whole, agent="other"),
        "as one like 'plain', not 'claude'": replace(whole, protocol="claude"),
        "with access 'read', not 'edit'": replace(whole, access="edit"),
        "offer the project github.com/acme/other": replace(whole, project=Project(("github.com/acme/other",))),
        "'..' outside of the project": replace(whole, project=replace(project, folder="..")),
        "'out' outside of the project": replace(whole, project=replace(project, folder="out")),
        "no folder 'none'": replace(whole, project=replace(project, folder="none")),
        "of teamchat 99.0.0": replace(whole, teamchat="99.0.0"),
        f"of format {FORMAT + 1}": replace(whole, format=FORMAT + 1),
    }
    orders = {words: replace(order, turn=f"t{number}") for number, (words, order) in enumerate(wrong.items())}
    why = asyncio.run(refusals(lab, orders))
    assert list(why) == list(wrong)
    for words, said in why.items():
        assert said.startswith("was refused by alpha: ")
        assert words in said
    until(lambda: len(lab.cli("hosts").out.split("refused max (")) == 6)
    assert host.starts == 0


def test_home_is_told_of_a_folder_that_leads_out_of_the_project_there(lab: Lab, host: Host) -> None:
    host.worker().ready()
    (lab.project / "out").mkdir()
    lab.team(f'{MAX}\ncwd = "out"')
    sent = lab.cli("send", "[NEXT:max] Hi")
    assert sent.code == 11, sent.err
    assert "max was refused by alpha: it has the folder 'out' outside of the project" in sent.err
    until(lambda: "refused max (writer): has the folder 'out' outside of the project" in lab.cli("hosts").out)
    assert host.starts == 0


def test_home_gives_no_host_what_it_does_not_offer(lab: Lab, host: Host) -> None:
    host.offers({"writer": [host.agent("echo one")], "other": [host.agent("echo two", "two")]})
    host.worker("--agent", "writer").ready()
    assert list(lab.hosts()["alpha"]["agents"]) == ["writer"]  # type: ignore[call-overload]
    members = [MAX.replace("max", "m-other").replace("writer", "other"), MAX.replace("max", "m-edit")]
    lab.team(*members[:1], f'{members[1]}\naccess = "edit"')
    for name, words in {"m-other": "does not offer other", "m-edit": "with access read, not edit"}.items():
        sent = lab.cli("send", "--new", f"[NEXT:{name}] Hi")
        assert (sent.code, words in sent.err) == (11, True), sent.err
    assert host.starts == 0


def test_a_folder_whose_name_is_no_text_is_refused_at_home(lab: Lab, host: Host) -> None:
    odd = lab.project / os.fsdecode(b"odd\xff")
    odd.mkdir()
    (odd / "teamchat.toml").write_text(f"[[members]]\n{MAX}\n")
    sent = cli("send", "--trust", "[NEXT:max] Hi", env=lab.env, cwd=odd)
    assert sent.code == 11, sent.err
    assert "Traceback" not in sent.err
    assert "is no folder that a host could know: its name is no UTF-8" in sent.err
    assert host.starts == 0
