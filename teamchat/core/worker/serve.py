"""A worker from its start to its end: it announces itself, takes turns, and ends when it is told to.

After the first signal it takes no new turn, and ends with the turns that run. A second one has these stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from teamchat.core.conversation.recovery import clean_folder
from teamchat.core.dispatch.connect import clock_of
from teamchat.core.dispatch.dispatch import AgentOffer, Away, HostClock
from teamchat.core.dispatch.order import Project
from teamchat.core.dispatch.project import head_of
from teamchat.core.dispatch.signing import fingerprint, host_keys
from teamchat.core.errors import HostUnavailable, UsageError
from teamchat.core.files.folders import state_dir
from teamchat.core.files.whole_files import put_in_place
from teamchat.core.team.programs import OTHERWISE, Unusable, find_program
from teamchat.core.text.durations import roughly
from teamchat.core.turn.machine import Cooldowns
from teamchat.core.worker.host_file import HostFile
from teamchat.core.worker.turn import Host, UsedOrders
from teamchat.runners.child.guardian import boot_time
from teamchat.runners.homes.versions import installed_version
from teamchat.runners.untrusted.regular_files import read_regular_text
from teamchat.version import VERSION

if TYPE_CHECKING:
    from teamchat.core.dispatch.dbos.serve import Service
    from teamchat.core.dispatch.dbos.tables import About, HostTables

LOOK_S = 0.1  # while it ends
IDLE_S = 10.0  # a worker that runs until idle ends after so long without a turn
TURNS, ORDERS = "turns", "orders"
TIDY_S = 3600.0  # between two looks for what is kept no longer
HEADS_S = 60.0  # between two looks at the commits of the clones


class Ends(Struct):
    """The number of requests to end a worker; any thread may add one."""

    asked: int = 0
    told: threading.Event = field(default_factory=threading.Event)

    def request(self) -> None:
        self.asked += 1
        self.told.set()


@contextlib.contextmanager
def only_one(folder: Path, name: str) -> Iterator[None]:
    """Hold the lock of the worker's name on this machine: its holder knows that every earlier worker is dead.

    Raises `UsageError` while another process has it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"a worker named {name} runs here already; give this one another --name") from None
        yield
    finally:
        os.close(file)


def serve(
    url: str,
    file: HostFile,
    name: str,
    jobs: int,
    env: Mapping[str, str],
    *,
    ends: Ends,
    say: Callable[[str], None],
    until_idle: bool = False,
) -> None:
    """Run the turns of the host `name` until it is told to end. Raises `HostUnavailable` and `UsageError`."""
    from teamchat.core.dispatch.dbos.tables import HostTables, address

    folder = state_dir() / "worker" / name
    tables, clock = HostTables(address(url)), clock_of(env)
    if file.unsigned and not tables.is_local:
        raise HostUnavailable(
            f"{file.path} has `unsigned = true`, which goes only with a database of this machine: take it out there",
            "teamchat help workers",
        )
    keys = None if file.unsigned else host_keys(name)
    used = UsedOrders(state_dir() / ORDERS / name)
    with only_one(folder, name), contextlib.closing(tables):
        clean_folder(folder / TURNS)
        cooldowns = Cooldowns(state_dir() / "cooldowns.json")
        places = asyncio.Semaphore(jobs)
        executor = os.urandom(8).hex()
        host = Host(name, executor, file, keys, used, folder / TURNS, places, env, cooldowns, clock, say, [], set())
        worker = _Worker(host, machine_of(folder), tables, jobs, ends, say)
        worker.begin(clock.dead_s)
        there = []
        for key, program in sorted(_programs(host).items()):
            spec = file.agents[key].spec
            if isinstance(program, Unusable):
                why = program.why.removesuffix(f"; {OTHERWISE}")
                say(f"does not offer {spec.name}: its program {spec.command[0]!r} {why}")
            else:
                there.append(spec.name)
        if keys:
            say(f"signs with its key; at home: teamchat hosts trust {name} {fingerprint(keys.public)}")
        say(f"{name} is ready: {', '.join(there) or 'no agent'}; {jobs} at a time")
        idle_s = IDLE_S * clock.beat_s / HostClock().beat_s
        while not worker.over():
            since = boot_time()
            ends.told.wait(LOOK_S if ends.asked else clock.beat_s)
            ends.told.clear()
            if (slept := boot_time() - since) > clock.lease_s:
                worker.wake(slept)
            if until_idle:
                worker.end_if_idle(idle_s)
            worker.heed()
            worker.beat()
            worker.tidy()
        worker.leave()
        if worker.taken:
            raise HostUnavailable(f"another machine runs a worker named {name} now; give this one another --name")


def machine_of(folder: Path) -> str:
    """Return the name of this machine among machines with a worker of the same name: random, and kept in its folder."""
    path = folder / "machine"
    if not path.exists():
        new = path.with_suffix(".new")
        new.write_text(os.urandom(8).hex())
        put_in_place(new, path)
    return read_regular_text(path)


class _Worker:
    """A worker that runs: its service of the engine, and its row in the database."""

    def __init__(
        self, host: Host, machine: str, tables: HostTables, jobs: int, ends: Ends, say: Callable[[str], None]
    ) -> None:
        self.taken = False  # whether another machine has its name now
        self._host, self._machine, self._tables = host, machine, tables
        self._jobs, self._ends, self._say = jobs, ends, say
        self._service: Service | None = None
        self._closing: threading.Thread | None = None
        self._stopped = 1  # the number of the last request to end that was heeded
        self._away = False
        self._busy = time.monotonic()
        self._winds_down = False
        self._key = host.keys.public if host.keys else ""
        self._known_heads: tuple[tuple[Project, str], ...] = ()
        self._looked = -math.inf  # when it last looked for them
        self._tidied = -math.inf

    def begin(self, dead_s: float) -> None:
        """Take turns from now on. Raises `HostUnavailable`, and `UsageError` where the name has a worker."""
        from teamchat.core.dispatch.dbos.serve import Service
        from teamchat.core.dispatch.dbos.tables import NameTaken

        name, executor = self._host.name, self._host.executor
        try:
            self._tables.check()
            now = boot_time()
            self._tables.claim(name, executor, self._about(), dead_s)
            self._host.renew(now)
            try:
                self._service = Service(self._tables, name, executor, self._jobs, self._host.begin)
            except BaseException:
                self.leave()
                raise
        except NameTaken as taken:
            there = f"a worker named {name} runs on another machine, seen {taken.seen_s:.0f} s ago"
            raise UsageError(f"{there}; give this one another --name") from None
        except Away as away:
            raise HostUnavailable(str(away), away.hint) from None

    def _about(self) -> About:
        from teamchat.core.dispatch.dbos.tables import About

        return About(
            machine=self._machine,
            jobs=self._jobs,
            agents=_offers(self._host),
            projects=tuple(project for project, _ in self._host.file.projects),
            heads=self._heads(),
            teamchat=VERSION,
            refused=tuple(self._host.refused),
            running=tuple(turn.name for turn in tuple(self._host.running)),
            ending=bool(self._ends.asked) or self._winds_down,
            key=self._key,
            clock=time.time(),
        )

    def _heads(self) -> tuple[tuple[Project, str], ...]:
        """Return the commits of the clones, looked up every `HEADS_S` seconds: a clone keeps its commits for long."""
        if time.monotonic() - self._looked > HEADS_S:
            self._looked = time.monotonic()
            found = ((project, head_of(folder)) for project, folder in self._host.file.projects)
            self._known_heads = tuple((project, head) for project, head in found if head)
        return self._known_heads

    def beat(self) -> None:
        """Say that it is there. A database that does not answer is told once. It ends if another has its name."""
        from teamchat.core.dispatch.dbos.tables import NameTaken

        if self._host.running:
            self._busy = time.monotonic()
        now = boot_time()  # the database counts from a later moment
        try:
            self._tables.beat(self._host.name, self._host.executor, self._about())
            self._host.renew(now)
            if self._service and not self._closing and self._service.open():
                self._busy = time.monotonic()
            self._end_forgotten()
        except NameTaken:
            if not self.taken:
                self._ends.asked = 2  # home has given up what runs here
                self._ends.told.set()
            self.taken = True
        except (Away, HostUnavailable) as error:
            if not self._away:
                self._say(f"{error}; tries again")
            self._away = True
            self._host.end_lapsed()
        else:
            if self._away:
                self._say("the database answers again")
            self._away = False

    def _end_forgotten(self) -> None:
        """End the agents whose turns somebody has removed from the database. Raises `Away`."""
        running = {turn.name: turn for turn in tuple(self._host.running)}
        if running and self._service:
            for name in running.keys() - self._service.known(list(running)):
                running[name].forgotten()

    def tidy(self) -> None:
        """Remove turns that ended long ago and orders that have expired, every `TIDY_S` seconds."""
        if self._away or time.monotonic() - self._tidied < TIDY_S or self._service is None or self._closing:
            return
        self._tidied = time.monotonic()
        self._host.used.clean()
        try:
            self._service.forget(datetime.now(UTC) - timedelta(days=self._host.file.keep))
        except Away as away:
            self._say(f"{away}; removes what is old later")

    def end_if_idle(self, seconds: float) -> None:
        """Ask it to end when no turn was there for so long. One beat before that no home chooses it any more."""
        idle = time.monotonic() - self._busy > seconds
        if idle and self._winds_down:
            self._ends.request()
        self._winds_down = idle

    def wake(self, seconds: float) -> None:
        """Stop the running turns, which home has given up, after the machine or this process did nothing for long."""
        running = tuple(self._host.running)
        for turn in running:
            turn.stop(f"{self._host.name} was asleep for {roughly(seconds)}")
        if running:
            self._say(
                f"was asleep for {roughly(seconds)}; stops what ran meanwhile, which teamchat resume runs again at home"
            )

    def heed(self) -> None:
        """Obey the requests to end: take nothing new, and then stop the turns that run."""
        asked, running = self._ends.asked, tuple(self._host.running)
        if asked and self._closing is None and self._service:
            self._closing = threading.Thread(target=self._service.close)
            self._closing.start()
            if running:
                still = "1 turn still runs" if len(running) == 1 else f"{len(running)} turns still run"
                self._say(f"takes nothing new; {still}, and a second signal stops that")
        if asked > self._stopped:
            self._stopped = asked
            for turn in running:
                turn.stop(f"{self._host.name} was told to end")

    def over(self) -> bool:
        """Whether it was told to end, and everything has ended."""
        return self._closing is not None and not self._closing.is_alive()

    def leave(self) -> None:
        with contextlib.suppress(Away, HostUnavailable):
            self._tables.leave(self._host.name, self._host.executor)


def _programs(host: Host) -> dict[str, str | Unusable]:
    """Find the program of each agent, or why it cannot run here now."""
    return {name: find_program(agent.spec.command[0], host.env) for name, agent in host.file.agents.items()}


def _offers(host: Host) -> dict[str, AgentOffer]:
    """List the agents that can run here now."""
    offers = {}
    for name, program in _programs(host).items():
        agent = host.file.agents[name]
        if not isinstance(program, Unusable):
            version = installed_version(program, agent.spec.type.package)
            offers[name] = AgentOffer(agent.spec.protocol, agent.access, version, host.cools(agent))
    return offers
