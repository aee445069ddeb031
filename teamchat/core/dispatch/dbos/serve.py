"""The worker's side of the engine: takes the orders of one host's queue, and streams what comes of them.

Each execution of a workflow makes a token that only its own memory knows, and a step records it. The agent starts only
for the token's holder: an execution that the engine begins a second time finds another token recorded, and starts none.
"""

from __future__ import annotations

import asyncio
import contextvars
import secrets
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from dbos import DBOS, SetWorkflowID
from dbos import _error as errors
from sqlalchemy.engine import Engine, ExceptionContext
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from teamchat.core.dispatch.dbos.client import OPEN, OUTPUT, REST, TURN, VERSION, config, queue_of, quiet, rest_of
from teamchat.core.dispatch.dbos.tables import UNREADABLE, HostTables
from teamchat.core.dispatch.order import SentPiece, written
from teamchat.core.errors import HostUnavailable

POLL_S = 0.5  # between two looks at the queue, each of which is a transaction
FOREVER_S = 10 * 365 * 86_400


class HostedWork(Protocol):
    """A turn that runs in the event loop where it began."""

    async def batch(self) -> list[SentPiece]:
        """Return the next pieces; none once the turn is over and all were given. It may be cancelled while it waits."""
        ...

    def put_back(self, pieces: list[SentPiece]) -> None:
        """Give pieces once more with `rest`."""
        ...

    def stop(self) -> None:
        """Ask the agent to end."""
        ...

    def close(self) -> None:
        """Say that nobody asks for more. An agent that still runs is stopped."""
        ...

    async def rest(self) -> list[SentPiece]:
        """Return all pieces up to the end of the turn that were not given yet."""
        ...


Begin = Callable[[str, str, str, bool], HostedWork]
"""Begins the turn of that name by its order, as text, in an attempt of that name; `again` only says that it did."""


class Service:
    """Takes the orders of the host `name`, `jobs` at a time, as the process `executor`. One in a process."""

    def __init__(self, tables: HostTables, name: str, executor: str, jobs: int, begin: Begin) -> None:
        self._tables, self._queue = tables, queue_of(name)
        DBOS(config=config(tables, executor))
        quiet()
        _register(begin)
        DBOS.listen_queues([self._queue])
        try:
            DBOS.launch()
        except SQLAlchemyError as error:
            raise tables.away(error) from None
        except errors.DBOSException as error:
            raise HostUnavailable(
                f"the database does not have the tables of this version of DBOS ({tables.told(error)})",
                "teamchat hosts --init-database",
            ) from None
        quiet()
        # Have the engine try again where the socket of the database is not there. It tries until a lost database is
        # back, but takes a missing socket for another error (3.4.0), and a running turn would lose its end.
        if not sa.event.contains(Engine, "handle_error", _is_lost):
            sa.event.listen(Engine, "handle_error", _is_lost)
        DBOS.register_queue(
            self._queue, worker_concurrency=jobs, polling_interval_sec=POLL_S, on_conflict="always_update"
        )

    def open(self) -> int:
        """Count the orders that wait or run. Raises `Away`."""
        return len(self._listed(queue_name=[self._queue], status=list(OPEN), app_version=VERSION))

    def _listed(self, **which: Any) -> list[str]:
        """List the names of such workflows. Raises `Away`."""
        try:
            found = DBOS.list_workflows(**which, load_input=False, load_output=False)
        except SQLAlchemyError as error:
            raise self._tables.away(error) from None
        except UNREADABLE as error:
            raise self._tables.unreadable(error) from None
        return [workflow.workflow_id for workflow in found]

    def known(self, turns: list[str]) -> set[str]:
        """Return the turns that the database has. Raises `Away`."""
        return set(self._listed(workflow_ids=turns))

    def forget(self, before: datetime) -> None:
        """Remove the engine's data on all turns that ended before that time. Raises `Away`."""
        try:
            if old := self._listed(name=[TURN, REST], completed_before=before.isoformat()):
                DBOS.delete_workflows(old)
        except SQLAlchemyError as error:
            raise self._tables.away(error) from None

    def close(self) -> None:
        """Take no further order, and return when the running ones are over. Blocks."""
        DBOS.destroy(workflow_completion_timeout_sec=FOREVER_S)


def _is_lost(context: ExceptionContext) -> None:
    if context.connection is None and isinstance(context.sqlalchemy_exception, OperationalError):
        context.is_disconnect = True


def _register(begin: Begin) -> None:
    """Make the workflows, which the engine finds by their names."""

    @DBOS.step(name="teamchat.hold")
    async def hold(token: str) -> str:
        return token

    @DBOS.workflow(name=REST)
    async def rest(pieces: str) -> str:
        return pieces

    async def keep_rest(name: str, pieces: list[SentPiece]) -> None:
        if await DBOS.get_workflow_status_async(name) is None:
            return  # home waits for nothing more
        with SetWorkflowID(rest_of(name)):
            handle = await DBOS.start_workflow_async(rest, written(pieces))
        await handle.get_result()

    @DBOS.step(name="teamchat.carry_out", preemptible=True)
    async def carry_out(order: str, holder: str, token: str) -> str:
        await _carried_out(begin(DBOS.workflow_id or "", order, token, holder != token), keep_rest)
        return "done"

    @DBOS.workflow(name=TURN)
    async def turn(order: str) -> str:
        token = secrets.token_hex(16)
        holder = await hold(token)
        return await carry_out(order, holder, token)


async def _carried_out(
    work: HostedWork, keep_rest: Callable[[str, list[SentPiece]], Coroutine[None, None, None]]
) -> None:
    """Stream what comes of the work, to its end."""
    name, batch = DBOS.workflow_id or "", list[SentPiece]()
    try:
        while batch := await work.batch():
            while batch:
                await DBOS.write_stream_async(OUTPUT, written(batch[0]))
                del batch[0]
    except (asyncio.CancelledError, errors.DBOSWorkflowCancelledError, errors.DBOSWorkflowConflictIDError):
        # cancelled: nothing more can be written to the stream, so the end of it becomes a value of its own
        work.put_back(batch)
        work.stop()
        left = await work.rest()
        # outside of the step: no workflow may begin inside it
        await asyncio.get_running_loop().create_task(keep_rest(name, left), context=contextvars.Context())
        raise
    finally:
        work.close()
