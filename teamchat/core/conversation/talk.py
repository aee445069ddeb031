"""Python in six lines: a conversation that a Python program has, in the same store as the command line's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, closing, nullcontext
from functools import partial
from pathlib import Path

from msgspec import Struct

from teamchat.core.context.conversation_view import manager_of
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.conversation.entry import check_message
from teamchat.core.conversation.inputs import Input, Message, Resume
from teamchat.core.conversation.permission import need_trust, trust_store
from teamchat.core.conversation.recovery import turns_dir
from teamchat.core.errors import ExitCode, NotTrusted, UsageError, ended_with
from teamchat.core.files.folders import STORE_NAME, config_dir, state_dir, workspace_dir
from teamchat.core.files.session_lock import lock_in, session_lock
from teamchat.core.messages import ConversationMessage
from teamchat.core.store.database import Database
from teamchat.core.store.origin import keep_origin
from teamchat.core.store.sessions import (
    Session,
    begun,
    check_there,
    create_session,
    find_session,
    need_session,
    touch_session,
)
from teamchat.core.store.undos import check_no_unfinished_undo
from teamchat.core.team.find import resolve_team
from teamchat.core.team.team import Team
from teamchat.core.team.trust import trust_command
from teamchat.core.text.commands import quote
from teamchat.core.turn.caller import find_caller
from teamchat.core.turn.machine import Cooldowns, TrustedMachine
from teamchat.core.turn.run import Run
from teamchat.core.turn.run_events import Conclusion, ConversationEvent, Replied
from teamchat.core.turn.run_file import RunFile, run_file
from teamchat.runners.agent_events import Usage
from teamchat.runners.child.supervisor import Stopper

HOLDER = "a Python program"
ANSWERED = (ExitCode.DONE, ExitCode.HUMAN_ASKED, ExitCode.NO_VERDICT)


class Reply(Struct, frozen=True):
    """The outcome of a message, once nobody is left to speak. `str(reply)` is its text."""

    text: str
    """The last reply, markers included; "" if nobody replied."""
    member: str | None
    """The member who said it; None if nobody replied."""
    session: str
    """The name that `--session` takes."""
    code: ExitCode
    asked: str | None
    """The person whose answer a member waits for."""
    turns: int
    """The number of turns for this message alone."""
    usage: Usage
    """The tokens and US dollars that the CLIs report for this message alone; None is unknown."""

    @property
    def outcome(self) -> str:
        """The name of the code: `done`, `human_asked`, or `no_verdict` of a process that decided nothing."""
        return self.code.name.lower()

    @property
    def tokens(self) -> int | None:
        """The tokens read, cached ones included, and written."""
        read, written = self.usage.input_tokens, self.usage.output_tokens
        return None if read is None or written is None else read + written

    @property
    def cost_usd(self) -> float | None:
        return self.usage.cost_usd

    def __str__(self) -> str:
        return self.text


class Talk:
    """A conversation of a team, open in this program: `conversation` makes it.

    Its messages are sent one after another, and only while one is answered does it hold the session's lock.
    """

    def __init__(self, team: Team, db: Database, session: Session | None) -> None:
        self.team = team
        self._db, self._session = db, session
        self._free = asyncio.Lock()
        self._running: dict[asyncio.Task[Conclusion], Stopper] = {}

    @property
    def session(self) -> str | None:
        """The name of the session; None until a new one has its first message."""
        return self._session.name if self._session else None

    @property
    def messages(self) -> tuple[ConversationMessage, ...]:
        """The messages so far, each with a `speaker` and a `content`. Raises `StoreError` once it is closed."""
        return tuple(manager_of(self.team, self._db, self._session.id).get_messages()) if self._session else ()

    async def send(self, message: str | Input, *, to: str | None = None, speaker: str | None = None) -> Reply:
        """Send a message, as `teamchat send` does, and return the reply once nobody is left to speak.

        For a text, `to` names members as `--to` does, and `speaker` a person as `--as` does. Raises the error of
        `teamchat.errors` with the sentence and the exit code of the command line: for what is refused before it is
        stored, a turn that failed, a limit. A cancelled send ends its agents and is stored as interrupted.
        """
        async with aclosing(self.stream(message, to=to, speaker=speaker)) as events:
            async for event in events:
                if isinstance(event, Reply):
                    return event
        raise AssertionError("a stream ends with a reply or an error")

    async def stream(
        self, message: str | Input, *, to: str | None = None, speaker: str | None = None
    ) -> AsyncGenerator[ConversationEvent | Reply, None]:
        """Send a message as `send` does, and yield each event of `teamchat.events` as it happens, then the `Reply`."""
        given = Message(text=message, to=to, speaker=speaker) if isinstance(message, str) else message
        named = given.to if isinstance(given, Message) else to
        if not (isinstance(given, Message | Resume) and isinstance(named, str | None)):
            raise UsageError("expected a text, a Message or a Resume, and for `to` names in one text: 'max,sarah'")
        events: asyncio.Queue[ConversationEvent | None] = asyncio.Queue()
        member = None
        task = asyncio.ensure_future(self._run(given, events.put_nowait))
        task.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                member = event.message.speaker.role_name if isinstance(event, Replied) else member
                yield event
            yield self._reply(task.result(), member)
        finally:
            await self._stop(task)

    async def close(self) -> None:
        """Stop what still runs, and what waits for it."""
        while self._running:
            await self._stop(next(iter(self._running)))

    async def _stop(self, task: asyncio.Task[Conclusion]) -> None:
        """End the task's agents and wait until their turns are stored; a cancellation meanwhile kills them."""
        cancelled = None
        while not task.done():
            if stopper := self._running.get(task):
                stopper.request()
            else:  # its turn has not come
                task.cancel()
            try:
                await asyncio.wait((task,))
            except asyncio.CancelledError as error:
                cancelled = error
        if not task.cancelled():
            task.exception()  # or asyncio tells that nobody looked at it
        if cancelled:
            raise cancelled

    async def _run(self, given: Input, emit: Callable[[ConversationEvent], None]) -> Conclusion:
        async with self._free:
            task = asyncio.current_task()
            assert task
            stopper = self._running[task] = Stopper()
            try:
                return await self._answered(given, emit, stopper)
            finally:
                del self._running[task]

    async def _answered(self, given: Input, emit: Callable[[ConversationEvent], None], stopper: Stopper) -> Conclusion:
        db, team, caller = self._db, self.team, find_caller()
        if isinstance(given, Message):
            check_message(team, db, self._session, given, caller=caller.turn.speaker if caller else None)
        begins = nullcontext() if self._session else None
        session = self._session = self._session or self._begin()
        try:
            file = RunFile(run_file(db.path.parent, session.id), session.name)
            with begins or begun(db, session), session_lock(lock_in(db.path.parent, session.id), HOLDER), closing(file):
                check_there(db, session)
                check_no_unfinished_undo(db, session.id)
                if caller:
                    caller.note(db, session)
                touch_session(db, session.id)
                run = Run(
                    team,
                    db,
                    session.id,
                    folder=turns_dir(db),
                    emit=partial(_tell, file, emit),
                    stopper=stopper,
                    machine=TrustedMachine(team, trust_store()),
                    cooldowns=Cooldowns(state_dir() / "cooldowns.json"),
                )
                coordinator = ConversationCoordinator(run)
                try:
                    await coordinator.rejoin()
                    coordinator.recover(rejoined=True)
                    ended = await coordinator.run_input(given)
                    file.finish(ended)
                    return ended
                finally:
                    await coordinator.close()
        finally:
            self._session = find_session(db, session.name)  # none if the first message was refused

    def _begin(self) -> Session:
        with self._db.transaction_before_another():
            self._db.when_stored(partial(keep_origin, self.team.root))
            return create_session(self._db, self.team.name, self.team.task)

    def _reply(self, ended: Conclusion, member: str | None) -> Reply:
        """Make the reply. Raises the error of a run that failed or was stopped."""
        name = self.session or ""
        if ended.code not in ANSWERED:
            resume = f"teamchat resume{self.team.typed} --session {quote(name)}"
            hint = ended.hint and ended.hint.replace("teamchat resume", resume)
            raise ended_with(ended.code, ended.reason or ended.code.name.lower(), hint)
        return Reply(ended.text, member, name, ended.code, ended.waiting_for, ended.turns, ended.usage)


def _tell(file: RunFile, emit: Callable[[ConversationEvent], None], event: ConversationEvent) -> None:
    file(event)
    emit(event)


@asynccontextmanager
async def conversation(
    team: str | os.PathLike[str], *, session: str | None = None, trust: bool = False
) -> AsyncIterator[Talk]:
    """Open a new conversation of the team in that file, or the stored one that is named `session`.

    It is in the store of the team file's folder, where the command line finds it. With `trust` the team file is trusted
    from now on, as by `teamchat trust`. Raises `TeamFileError`, `NotTrusted`, `UnknownName` and `StoreError`.
    """
    resolved = resolve_team(os.fspath(team), Path.cwd(), config_dir())
    try:
        need_trust(resolved, give=trust)
    except NotTrusted as error:
        if trust or error.hint != trust_command(resolved):
            raise
        way = f"trust=True allows it from now on, as {error.hint} does"
        raise NotTrusted(f"{error}\n{way}", error.hint) from None
    with closing(Database(workspace_dir(resolved.root) / STORE_NAME)) as db:
        there = need_session(db, session) if session else None
        if there and (caller := find_caller()):
            caller.check_session(db, there)
        talk = Talk(resolved, db, there)
        try:
            yield talk
        finally:
            await talk.close()


def ask(
    team: str | os.PathLike[str],
    message: str | Input,
    *,
    to: str | None = None,
    speaker: str | None = None,
    session: str | None = None,
    trust: bool = False,
) -> Reply:
    """Send one message from code that is not asynchronous, in any thread: `conversation` and `Talk.send` in one.

    Raises `UsageError` where an event loop runs, which it would block.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise UsageError(
            "ask() would block the event loop that runs here; use: async with teamchat.conversation(...) as talk:"
            " await talk.send(...)"
        )

    async def asked() -> Reply:
        async with conversation(team, session=session, trust=trust) as talk:
            return await talk.send(message, to=to, speaker=speaker)

    return asyncio.run(asked())
