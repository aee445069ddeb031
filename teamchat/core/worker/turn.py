"""One turn of an order on this machine: the order is checked, the agent runs under its guardian and our clocks.

Its output becomes pieces, which the carrier takes in batches. The agent ends by itself here: home may be gone.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.checkpoint.packs import LacksBase
from teamchat.core.dispatch.dispatch import HostClock
from teamchat.core.dispatch.order import (
    FORMAT,
    Began,
    Ended,
    Order,
    OrderFiles,
    Output,
    SentPiece,
    Signed,
    Unreadable,
    minor,
    read_order,
    read_signed_order,
    written,
)
from teamchat.core.dispatch.signing import HostKeys
from teamchat.core.errors import TeamchatError
from teamchat.core.made import made_of
from teamchat.core.team.programs import Unusable, find_program
from teamchat.core.text.secret_words import masked, secrets_in
from teamchat.core.turn.machine import Cooldowns, scratch_of, take_moment
from teamchat.core.turn.plan import start_of, told_variables
from teamchat.core.turn.watching import Wrapped, watched
from teamchat.core.worker.host_file import HostAgent, HostFile
from teamchat.runners.agent_events import Failure, FailureKind
from teamchat.runners.base import Command, Job
from teamchat.runners.child.guardian import boot_time
from teamchat.runners.child.process import ChildProcess, make_private
from teamchat.runners.child.removal import remove
from teamchat.runners.child.running import Chunk, CutShort, Identity, Launch, Lease, Running, SpawnFailed
from teamchat.runners.child.supervisor import Clocks, Stopper, TurnEnd, run_turn
from teamchat.runners.homes.logins import login_variables
from teamchat.runners.homes.versions import installed_version
from teamchat.version import VERSION

if TYPE_CHECKING:
    from teamchat.core.worker.files import HostFiles

BATCH_S = 0.03  # how long output is gathered: a database row takes milliseconds
MOST_REFUSED = 5  # refusals that a host reports
SIGNS_S, SIGN_AGAIN_S = 20.0, 0.5  # how long and how often to try to sign an end
LONGEST_VALID_S = 2 * 86_400.0  # the longest validity of an order: home gives it a day, and clocks differ
AGAIN = Failure(FailureKind.INTERRUPTED, "was begun before, and does not begin a second time by itself")


class Host(Struct):
    """The machine as a host: its offer, and its present work. `folder` is where its turns keep their output.

    Without `keys` it takes unsigned orders. `until` is when the lease of its agents is over, by `boot_time`.
    """

    name: str
    executor: str
    file: HostFile
    keys: HostKeys | None
    used: UsedOrders
    folder: Path
    places: asyncio.Semaphore
    env: Mapping[str, str]
    cooldowns: Cooldowns
    clock: HostClock
    say: Callable[[str], None]
    refused: list[str]
    running: set[HostTurn]
    until: float = 0.0

    def renew(self, there: float) -> None:
        """Let agents run for the time of a lease after that moment, at which the database was told of this host."""
        self.until = there + self.clock.lease_s
        for turn in tuple(self.running):
            turn.renew(self.until)

    def end_lapsed(self) -> None:
        """End the agents whose lease is over, where their guardians have not."""
        if boot_time() > self.until:
            for turn in tuple(self.running):
                turn.stop(self.lapse)

    @property
    def lapse(self) -> str:
        """Why an agent was ended whose lease was over."""
        return f"{self.name} could not tell the database for {self.clock.lease_s:.0f} s that it is there"

    def begin(self, name: str, text: str, attempt: str, again: bool) -> HostTurn:
        """Begin the turn of an order in the event loop that runs, or only say that it was begun before."""
        return HostTurn(self, name, text, attempt, again=again)

    def cools(self, agent: HostAgent) -> float:
        """Return how long the agent still cools down, in seconds."""
        return self.cooldowns.left(agent.spec.name)

    def note_refused(self, order: str, why: str) -> None:
        """Say that an order was not taken, and keep the last ones for `teamchat hosts`."""
        self.say(f"refused {order}: {why}")
        self.refused = [*self.refused, f"{order}: {why}"][-MOST_REFUSED:]


class UsedOrders(Struct, frozen=True):
    """The orders taken here, as files in a folder, each until it has expired: none is taken twice."""

    folder: Path

    def use(self, turn: str, expires: float) -> bool:
        """Whether the order of that turn is taken for the first time. Raises `OSError`."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=self.folder) as new:  # it has its time before it gets its name
            os.utime(new.name, (expires, expires))
            try:
                os.link(new.name, self.folder / sha256(turn.encode()).hexdigest())
            except FileExistsError:
                return False
        return True

    def clean(self) -> None:
        """Forget expired orders."""
        now = time.time()
        for path in self.folder.glob("*"):
            with suppress(OSError):  # somebody else may have put something there
                if path.lstat().st_mtime < now:
                    path.unlink()


class _Refused(Exception):
    """The host does not begin the turn; nothing has run."""

    def __init__(self, failure: Failure, *, lacks: bool = False) -> None:
        super().__init__(failure.reason)
        self.failure, self.lacks = failure, lacks


class HostTurn:
    """A turn that runs, as `Work` of the engine has it."""

    def __init__(self, host: Host, name: str, text: str, attempt: str, *, again: bool) -> None:
        self._host, self.name, self._attempt, self._again = host, name, attempt, again
        self._began: Began | None = None
        self._pieces: list[SentPiece] = []
        self._since = 0.0  # when the first piece came
        self._more = asyncio.Event()
        self._given = False  # whether its beginning was given to be written
        self._written = asyncio.Event()  # set when the beginning is in the database, or an end is requested
        self._stopper = Stopper()
        self._why: str | None = None  # why it was asked to end, if not by home
        self._process: ChildProcess | None = None
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run(text))
        host.running.add(self)

    async def batch(self) -> list[SentPiece]:
        if self._given:
            self._written.set()
        while not self._pieces:
            if self._task.done():
                return []
            await self._more.wait()
            self._more.clear()
        if isinstance(self._pieces[0], Output) and not self._task.done():
            await asyncio.sleep(max(0.0, self._since + BATCH_S - time.monotonic()))
        taken, self._pieces = _joined(self._pieces), []
        self._given = self._given or any(isinstance(piece, Began) for piece in taken)
        return taken

    def put_back(self, pieces: list[SentPiece]) -> None:
        self._pieces = [*pieces, *self._pieces]

    def renew(self, until: float) -> None:
        """Let the lease of its agent end at that time. Any thread may."""
        if self._process:
            self._process.renew(until)

    def stop(self, why: str | None = None) -> None:
        """Ask the agent to end; a second time kills it. Home is told why. Any thread may."""
        self._why = self._why or why
        self._stopper.request()
        self._loop.call_soon_threadsafe(self._written.set)

    def forgotten(self) -> None:
        """Stop the turn: the database does not know it any more, so nobody takes its output.

        Any thread may call this.
        """
        if not self._stopper.asked:
            self._host.say("ends an agent whose turn the database does not know any more")
            self.stop()

    def close(self) -> None:
        self._host.running.discard(self)
        if not self._task.done():
            self.stop()

    async def rest(self) -> list[SentPiece]:
        await asyncio.wait((self._task,))
        return _joined(self._pieces)

    def _add(self, piece: SentPiece) -> None:
        if not self._pieces:
            self._since = time.monotonic()
        self._pieces.append(piece)
        self._more.set()

    async def _run(self, text: str) -> None:
        try:
            try:
                order = await asyncio.to_thread(self._read, text)
                # a cancelled turn leaves its place in the queue before its agent has ended
                async with self._host.places:
                    ended = await self._ran(order)
            except _Refused as refused:
                ended = Ended(self._attempt, refused=refused.failure, lacks=refused.lacks)
            except Exception as error:  # noqa: BLE001 (home is told, whatever it is)
                reason = f"could not be run by its host: {type(error).__name__}: {error}"
                ended = Ended(self._attempt, refused=Failure(FailureKind.AGENT, reason))
            self._add(await asyncio.to_thread(self._signed, ended))
        finally:
            self._more.set()

    def _signed(self, ended: Ended) -> Signed:
        """Sign the end for home; leave it unsigned if that fails for `SIGNS_S` seconds, which home says. Blocks."""
        keys, text = self._host.keys, written(replace(ended, turn=self.name, host=self._host.name, began=self._began))
        until = time.monotonic() + SIGNS_S
        while keys:
            try:
                return keys.end(text)
            except TeamchatError as error:
                if time.monotonic() > until:
                    self._host.note_refused("to sign the end of a turn", str(error))
                    break
                time.sleep(SIGN_AGAIN_S)
        return Signed(text)

    async def _ran(self, order: Order) -> Ended:
        try:
            agent = self._host.file.agent(order)
            # With files, its own folder must be in the worktree, and is looked for there.
            of_top = replace(order, project=replace(order.project, folder=""))
            cwd = self._host.file.folder(order if order.files is None else of_top)
        except TeamchatError as error:
            self._host.note_refused(f"{order.member} ({order.agent})", str(error))
            raise _Refused(Failure(FailureKind.MISSING, f"was refused by {self._host.name}: it {error}")) from None
        if (left := self._host.cools(agent)) > 0:
            raise _Refused(Failure(FailureKind.RATE_LIMIT, f"cools down on {self._host.name} for {left:.0f} s"))
        files = await self._files(order.files, cwd, order.project.folder) if order.files else None
        folder = self._host.folder / os.urandom(8).hex()
        scratch = scratch_of(folder)
        try:
            ended = await self._executed(order, agent, files.cwd if files else cwd, folder, scratch)
        finally:
            remove(scratch, folder)
        return await _with_files(ended, files) if files else ended

    async def _files(self, files: OrderFiles, clone: Path, inner: str) -> HostFiles:
        """Prepare the worktree of an order. Raises `_Refused`."""
        from teamchat.core.worker.files import prepared

        try:
            return await asyncio.to_thread(prepared, self._host.folder.parent, files, clone, inner)
        except LacksBase as lacks:
            failure = Failure(FailureKind.MISSING, f"was refused by {self._host.name}: {lacks}", "teamchat resume")
            raise _Refused(failure, lacks=True) from None
        except TeamchatError as error:
            reason = f"was refused by {self._host.name}: its files cannot be written there: {error}"
            raise _Refused(Failure(FailureKind.MISSING, reason)) from None

    def _read(self, text: str) -> Order:
        """Read the order, and thereby take it. Blocks. Raises `_Refused`."""
        if self._again:
            raise _Refused(AGAIN)
        host, left, whose = self._host, 0.0, "an order"
        try:
            signed = read_signed_order(text)
            if host.keys:
                host.keys.check_order(signed)
            order = read_order(signed.text)
            left, whose, why = order.expires - time.time(), f"{order.member} ({order.agent})", None
            if order.format != FORMAT or order.host != host.name:
                why = f"the order is of format {order.format} for {order.host}"
            elif order.turn != self.name:
                why = f"the order is that of the turn {order.turn}, and came as {self.name}"
            elif minor(order.teamchat) != minor(VERSION):
                why = f"the order is of teamchat {order.teamchat or '?'}, and the host has {VERSION}"
            elif not 0 < left <= LONGEST_VALID_S:
                why = "the order has expired" if left <= 0 else "the order does not expire"
            elif not host.used.use(order.turn, order.expires):
                why = "the order was taken before"
        except (Unreadable, TeamchatError, OSError) as error:
            why = str(error)
        if why:
            host.note_refused(whose, why)
            raise _Refused(Failure(FailureKind.AGENT, f"was refused by {host.name}: {why}"))
        return order

    async def _executed(self, order: Order, agent: HostAgent, cwd: Path, folder: Path, scratch: Path) -> Ended:
        runner, spec = agent.spec.type.runner, agent.spec
        job = _job(order, agent, cwd, scratch, self._host.env)
        command, env = start_of(runner, job, self._host.env)
        program = find_program(command.argv[0], env)
        if isinstance(program, Unusable):
            reason = f"program {command.argv[0]!r} on {self._host.name} {program.why}"
            raise _Refused(Failure(FailureKind.MISSING, reason))
        if refusal := runner.refusal(order.access, env):
            raise _Refused(Failure(FailureKind.REFUSED, f"cannot have access {order.access!r}: {refusal}"))
        version = installed_version(program, spec.type.package)
        login = login_variables(runner, cwd, env, ())
        what = Launch(
            argv=(program, *command.argv[1:]),
            cwd=cwd,
            env=env,
            stdin=order.prompt,
            folder=folder,
            scratch=scratch,
            prepare=lambda: _make_scratch(scratch, command),
            stop=runner.stop,
            max_output=order.max_output,
            identity=Identity(order.member, spec.protocol, order.system_text),
            through=command.through,
            starts_in=command.starts_in,
            version=version,
            login=login,
            may_write=order.access != "read",
        )
        if runner.vendor:
            await self._stopper.sleep(take_moment(runner.vendor) - time.time())
        self._began = Began(
            self._attempt,
            self._host.executor,
            argv=masked(command.argv, secrets_in(spec.command)),
            env=told_variables(self._host.env, env),
            cwd=str(cwd),
            access_note=spec.access_note(order.access),
            version=version,
            login=login,
            teamchat=VERSION,
        )
        self._add(self._began)
        await self._written.wait()  # else home could take a turn that has begun for one that has not
        if self._stopper.asked or boot_time() > self._host.until:
            raise _Refused(Failure(FailureKind.INTERRUPTED, "was interrupted before its turn began"))
        make_private(folder)
        try:
            watch = await asyncio.to_thread(watched, what)
            self._process = ChildProcess(replace(what, lease=Lease(self._host.until, self._host.clock.grace_s)))
        except (SpawnFailed, OSError) as error:
            raise _Refused(Failure(FailureKind.MISSING, f"could not be started: {error}")) from None
        parser = runner.parser()
        parser.longest = order.longest
        clocks = Clocks(job.first_byte_s, order.stall_s or runner.stall_s, order.timeout_s)
        telling = _Told(watch(self._process), self._attempt, self._add)
        end = await run_turn(telling, parser, clocks, self._stopper, lambda _: None, order.patience, order.resumes)
        return self._ended(end, telling, agent)

    def _ended(self, end: TurnEnd, told: _Told, agent: HostAgent) -> Ended:
        if end.failure and end.failure.kind is FailureKind.RATE_LIMIT:
            self._host.cooldowns.start(agent.spec.name)
        ended = end.exit
        cut = told.cut.why if told.cut else None
        if cut and cut.kind is FailureKind.INTERRUPTED and self._why:
            cut = replace(cut, reason=f"{cut.reason}: {self._why}")
        cut_at = told.cut.at if told.cut else ended.seconds
        if ended.lapsed and cut is None:
            cut = Failure(FailureKind.INTERRUPTED, f"was interrupted: {self._host.lapse}")
        out, err = (told.digests[stream].hexdigest() for stream in ("out", "err"))
        return made_of(Ended, ended, attempt=self._attempt, cut=cut, cut_at=cut_at, files=None, out=out, err=err)


async def _with_files(ended: Ended, files: HostFiles) -> Ended:
    """Add to the end of a turn its files, or why they stay here."""
    try:
        packed, stays = await asyncio.to_thread(files.made)
        return replace(ended, files=packed, stays=stays)
    except TeamchatError as error:
        return replace(ended, unsent=f"{error}; it stays in {files.tree.folder}")


class _Told(Wrapped):
    """A process that reports its output, and why it was ended. `digests` are the SHA-256 of its streams."""

    def __init__(self, process: Running, attempt: str, add: Callable[[SentPiece], None]) -> None:
        super().__init__(process)
        self._attempt, self._add = attempt, add
        self._written = {"out": 0, "err": 0}
        self.digests = {"out": sha256(), "err": sha256()}

    async def chunks(self) -> AsyncGenerator[Chunk | CutShort, None]:
        async with aclosing(self.process.chunks()) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, CutShort):
                    self.cut = self.cut or chunk
                else:
                    begins = self._written[chunk.stream]
                    self._written[chunk.stream] += len(chunk.data)
                    self.digests[chunk.stream].update(chunk.data)
                    self._add(Output(self._attempt, chunk.stream, begins, chunk.data, chunk.at))
                yield chunk


def _joined(pieces: list[SentPiece]) -> list[SentPiece]:
    """Join output pieces of one stream that follow each other."""
    joined: list[SentPiece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if isinstance(piece, Output) and isinstance(last, Output) and piece.stream == last.stream:
            joined[-1] = replace(last, data=last.data + piece.data)
        else:
            joined.append(piece)
    return joined


def _job(order: Order, agent: HostAgent, cwd: Path, scratch: Path, env: Mapping[str, str]) -> Job:
    """Build the order's job on this machine. Only these fields count, and no MCP server of this user starts."""
    return Job(
        program=agent.spec.command,
        cwd=cwd,
        scratch=scratch,
        system_text=order.system_text,
        access=order.access,
        allow=order.allow,
        mcp=(),
        model=order.model,
        web=order.web,
        env=env,
        budget_usd=order.budget_usd,
        memory=order.memory,
        resumes=order.resumes,
        first_byte_s=agent.spec.type.runner.first_byte_s if order.first_byte_s is None else order.first_byte_s,
    )


def _make_scratch(scratch: Path, command: Command) -> None:
    scratch.mkdir(0o700)
    command.write_files()
