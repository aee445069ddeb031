"""A stored value that says it is an object of Python is not made again, by home or by a worker.

The objects here are lists: they would do nothing. The file is also run with the newest DBOS (`make newest`).
"""

from __future__ import annotations

import asyncio
import base64
import pickle

import pytest

from teamchat.core.dispatch.dbos.client import DbosDispatch, rest_of
from teamchat.core.dispatch.dispatch import HostClock
from teamchat.core.dispatch.order import Order, Project, Unreadable
from teamchat.version import VERSION
from tests.workers.hosts import Host, Lab, until
from tests.workers.test_versions import ask

MAX = 'name = "max"\nagent = "writer"\nhost = "alpha"'
OBJECT = base64.b64encode(pickle.dumps(["harmless"])).decode()
FORMS = ["py_pickle", "unknown_form"]


@pytest.fixture
def host(lab: Lab) -> Host:
    host = lab.host("alpha")
    return host.offers({"writer": [host.agent("echo one; while [ -e ../../wait ]; do sleep 0.05; done")]})


def order(turn: str) -> Order:
    return Order(turn, "alpha", "max", "writer", "plain", Project(), b"", None, "read", 5.0, 5.0, teamchat=VERSION)


async def enqueued(lab: Lab, turn: str) -> None:
    dispatch = DbosDispatch(lab.database, HostClock())
    try:
        await dispatch.enqueue(order(turn))
    finally:
        dispatch.close()


def goes_on(lab: Lab) -> None:
    """The worker takes the next turn, and is listed."""
    sent = lab.cli("send", "[NEXT:max] Again")
    assert (sent.code, sent.out) == (0, "max:\none\n\n"), sent.err
    assert lab.hosts()["alpha"]["trouble"] is None


@pytest.mark.parametrize("form", FORMS)
def test_an_input_is_not_read_by_a_worker(lab: Lab, host: Host, form: str) -> None:
    asyncio.run(enqueued(lab, "bad"))
    columns = {str(row[0]) for row in _columns(lab, "workflow_status")}
    table = "workflow_status" if "inputs" in columns else "workflow_inputs"
    ask(lab, f"UPDATE {{D}}{table} SET inputs = :value WHERE workflow_uuid = 'bad'", value=OBJECT)  # noqa: S608
    ask(lab, "UPDATE {D}workflow_status SET serialization = :form WHERE workflow_uuid = 'bad'", form=form)
    host.worker().ready()
    lab.team(MAX)
    goes_on(lab)
    assert host.starts == 1


def _columns(lab: Lab, table: str) -> list[tuple[object, ...]]:
    if lab.database.startswith("sqlite"):
        return ask(lab, f"SELECT name FROM pragma_table_info('{table}')")  # noqa: S608
    return ask(lab, "SELECT column_name FROM information_schema.columns WHERE table_name = :table", table=table)


@pytest.mark.parametrize("form", FORMS)
def test_a_streams_value_ends_the_turn_at_home(lab: Lab, host: Host, form: str) -> None:
    host.worker().ready()
    lab.team(MAX)
    (host.folder / "wait").touch()
    process = lab.start("send", "[NEXT:max] Hi")
    try:
        until(lambda: len(ask(lab, "SELECT 1 FROM {D}streams WHERE key = 'output'")) >= 2)
        ask(
            lab,
            'INSERT INTO {D}streams (workflow_uuid, key, value, "offset", serialization, function_id)'
            " SELECT workflow_uuid, key, :value, 2, :form, function_id FROM {D}streams"
            " WHERE key = 'output' AND \"offset\" = 1",
            value=OBJECT,
            form=form,
        )
        out, err = process.communicate(timeout=30)
        assert process.returncode == 1
        said = f"{out!r} {err!r}"
        assert "a value of the database that is" in said
        assert "Traceback" not in said
    finally:
        (host.folder / "wait").unlink()
    shown = lab.cli("log")
    assert "harmless" not in shown.out
    until(lambda: lab.hosts()["alpha"]["busy"] == 0)
    goes_on(lab)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("column", ["output", "error"])
def test_the_rest_of_a_turn_is_not_read_at_home(lab: Lab, column: str, form: str) -> None:
    async def asked() -> None:
        dispatch = DbosDispatch(lab.database, HostClock())
        try:
            turn = order("bad")
            await dispatch.enqueue(turn)
            ask(
                lab,
                f"UPDATE {{D}}workflow_status SET workflow_uuid = :rest, {column} = :value,"  # noqa: S608
                " serialization = :form, status = 'SUCCESS'",
                rest=rest_of("bad"),
                value=OBJECT,
                form=form,
            )
            with pytest.raises(Unreadable):
                await dispatch.rest("bad")
            assert (await dispatch.state(rest_of("bad"))) is not None
            await dispatch.hosts()
        finally:
            dispatch.close()

    asyncio.run(asked())
