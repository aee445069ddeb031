"""Home's side of the engine: orders in, pieces out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from dbos import DBOSClient
from dbos import _error as errors
from msgspec.structs import replace
from sqlalchemy.exc import SQLAlchemyError

from teamchat.core.dispatch.dbos.tables import ROLE, UNREADABLE, About, HostTables, address, differs
from teamchat.core.dispatch.dbos.values import JsonSerializer
from teamchat.core.dispatch.dispatch import Away, DatabaseSeen, HostClock, HostSeen, TurnState
from teamchat.core.dispatch.order import (
    FORMAT,
    Order,
    Piece,
    SentPiece,
    Signed,
    Unreadable,
    is_host_name,
    read_end,
    read_piece,
    read_pieces,
    written,
)
from teamchat.core.dispatch.signing import HomeKeys
from teamchat.core.errors import HostUnavailable
from teamchat.core.files.folders import config_dir
from teamchat.core.made import made_of

APPLICATION = "teamchat"
VERSION = f"orders-{FORMAT}"
"""The version of every workflow. The engine would make one of its source, and strand what an earlier source began."""
TURN, REST = "teamchat.turn", "teamchat.rest"
OUTPUT = "output"
OPEN = ("ENQUEUED", "PENDING", "DELAYED")
LOOK_S = 0.5  # a follower waits so long for a piece before it looks at something else
POLL_S = 0.03  # between two looks at SQLite, which notifies nobody
WAKE_S = 1.0  # between two looks at PostgreSQL, which notifies us
EXPIRES_S = 86_400.0  # no host takes an order that is older
P = ParamSpec("P")
T = TypeVar("T")


def quiet() -> None:
    """Keep the engine's log off the terminal: we report everything that a person has to know."""
    logger = logging.getLogger("dbos")
    logger.handlers = [logging.NullHandler()]
    logger.propagate = False
    logger.setLevel(logging.CRITICAL)


def queue_of(host: str) -> str:
    """Return the queue of a host's turns."""
    return f"teamchat.{host}"


def rest_of(turn: str) -> str:
    """Name the workflow with a host's report on a turn after it was cancelled."""
    return f"{turn}.rest"


class DbosDispatch:
    """`Dispatch` over DBOS.

    Raises `HostUnavailable` where the database is not for this teamchat, `Away` and `UsageError`.
    """

    def __init__(self, url: str, clock: HostClock) -> None:
        self.clock = clock
        self.tables = HostTables(address(url))
        self.tables.check()
        self.keys = HomeKeys(config_dir(), self.tables.is_local)
        quiet()
        self._sqlite = self.tables.is_sqlite
        try:
            self._client = DBOSClient(
                system_database_url=engine_url(self.tables),
                serializer=JsonSerializer(),
                use_listen_notify=not self._sqlite,
                application_name=APPLICATION,
                retry_connection_errors=False,
            )
            self._client.list_workflows(limit=1, load_input=False, load_output=False)
        except SQLAlchemyError as error:
            raise self.tables.failed(error) from None
        except UNREADABLE as error:
            raise self.tables.unreadable(error) from None
        quiet()

    async def _asked(self, what: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await what(*args, **kwargs)
        except (SQLAlchemyError, TimeoutError, OSError) as error:
            raise self.tables.away(error) from None
        except UNREADABLE as error:
            raise self.tables.unreadable(error) from None

    async def enqueue(self, order: Order) -> None:
        options: Any = {
            "queue_name": queue_of(order.host),
            "workflow_name": TURN,
            "workflow_id": order.turn,
            "app_version": VERSION,
        }
        text = written(replace(order, expires=time.time() + EXPIRES_S))
        signed = await asyncio.to_thread(self.keys.order, text, order.host)
        await self._asked(self._client.enqueue_async, options, written(signed))

    async def follow(self, turn: str, offset: int) -> AsyncIterator[Piece | None]:
        pause = POLL_S if self._sqlite else WAKE_S
        while True:
            values = self._client.read_stream_async(
                turn, OUTPUT, offset=offset, polling_interval_sec=pause, timeout_seconds=LOOK_S
            )
            try:
                async for value in values:
                    piece = await self._opened(read_piece(value))
                    offset += 1
                    yield piece
            except errors.DBOSStreamTimeoutError:
                yield None
            except errors.DBOSNonExistentWorkflowError:
                return
            except errors.DBOSException as error:
                raise Unreadable(f"what the engine cannot read: {error}") from None
            except (SQLAlchemyError, OSError) as error:
                raise self.tables.away(error) from None
            except Unreadable:
                raise
            except (TypeError, ValueError, RecursionError) as error:  # says that it is of a form that we have not
                raise Unreadable(f"a value of the database that is not read: {error}") from None
            else:
                return

    async def rest(self, turn: str) -> list[Piece] | None:
        workflows = await self._asked(self._client.list_workflows_async, workflow_ids=[rest_of(turn)], load_input=False)
        if not workflows or workflows[0].status != "SUCCESS":
            return None
        return [await self._opened(piece) for piece in read_pieces(workflows[0].output)]

    async def _opened(self, piece: SentPiece) -> Piece:
        """Check the signature of a piece, if it has one. Raises `Unreadable`, and `Away` where nobody can tell."""
        if not isinstance(piece, Signed):
            return piece
        end = read_end(piece.text)
        try:
            await asyncio.to_thread(self.keys.check_end, piece, end.host)
        except Unreadable as error:
            raise Unreadable(f"an end of its turn that is not taken: {error}") from None
        except HostUnavailable as error:
            raise Away(f"the end of the turn cannot be checked: {error}", error.hint) from None
        return end

    async def state(self, turn: str) -> TurnState | None:
        workflows = await self._asked(
            self._client.list_workflows_async, workflow_ids=[turn], load_input=False, load_output=False
        )
        if not workflows or workflows[0].app_version != VERSION:
            return None
        status = workflows[0].status
        return TurnState(
            waits=status in ("ENQUEUED", "DELAYED"),
            over=status not in OPEN,
            cancelled=status == "CANCELLED",
            executor=workflows[0].executor_id,
        )

    async def cancel(self, turn: str) -> None:
        await self._asked(self._client.cancel_workflow_async, turn)

    async def forget(self, turn: str) -> None:
        await self._asked(self._client.delete_workflows_async, [turn, rest_of(turn)])

    async def hosts(self) -> tuple[HostSeen, ...]:
        rows = await asyncio.to_thread(self.tables.rows)
        queues = [queue_of(row.name) for row in rows]
        workflows = (
            await self._asked(
                self._client.list_workflows_async,
                queue_name=queues,
                status=list(OPEN),
                app_version=VERSION,
                load_input=False,
                load_output=False,
            )
            if queues
            else []
        )
        busy = Counter(workflow.queue_name for workflow in workflows)
        seen = []
        for row in rows:
            about = row.about or About()
            if row.about is None or not is_host_name(row.name):
                trouble: str | None = "it says what cannot be read"
            else:
                trouble = differs(about.format, about.engine, row.name, about.teamchat)
                trouble = trouble or self.keys.trouble(row.name, about.key)
            seen.append(
                made_of(
                    HostSeen,
                    about,
                    name=row.name,
                    executor=row.executor,
                    seen_s=row.seen_s,
                    ahead_s=row.ahead_s,
                    busy=busy[queue_of(row.name)],
                    trouble=trouble,
                )
            )
        return tuple(seen)

    async def database(self) -> DatabaseSeen:
        return await asyncio.to_thread(self.tables.seen)

    def close(self) -> None:
        self._client.destroy()
        self.tables.close()


def engine_url(tables: HostTables) -> str:
    """Write the address as the engine takes it."""
    url = tables.url if tables.is_sqlite else tables.url.set(drivername="postgresql")
    return url.render_as_string(hide_password=False)


def init_database(text: str) -> tuple[str | None, str | None]:
    """Make the tables of the engine and our own, by their owner. Returns the workers' role, and why it was not made.

    Raises `UsageError`, `Away` and `HostUnavailable`.
    """
    from dbos import DBOS

    tables = HostTables(address(text))
    try:
        tables.prepare()
        try:
            DBOS(config=config(tables, "init", migrate=True))
            DBOS.launch()
        except SQLAlchemyError as error:
            raise tables.away(error) from None
        finally:
            DBOS.destroy()
        return (None if tables.is_sqlite else ROLE), tables.grant()
    finally:
        tables.close()


def config(tables: HostTables, executor: str, *, migrate: bool = False) -> Any:
    """Return the engine's configuration for one process. Only with `migrate` it makes or changes tables."""
    return {
        "name": APPLICATION,
        "system_database_url": engine_url(tables),
        "executor_id": executor,
        "application_version": VERSION,
        "serializer": JsonSerializer(),
        "run_migrations": migrate,
        "log_level": "CRITICAL",
    }
