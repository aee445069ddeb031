"""The turns around this process: an agent may run teamchat in its turn, and its agents again.

The agent of every turn has a token in its environment, and the store has the agent's admission with the turn. A
teamchat finds the turn by the token or, whatever the agent did to its environment, by the guardians above it in the
tree of processes: the standard output of a guardian is the file in the turn's folder. The limit that marks a turn's
processes says how many turns there must be. If one is not found, no turn runs.

A namespace of processes hides the guardians, and one of users lets the agent change the limit. So the store also has
the namespaces of the turn's guardian.

The costs of an inner conversation count at once in each conversation around it, in the transaction that checks the rest
of the limits. Nothing that an agent can change makes more of it: a guardian or record of its own is only one turn more
around it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import asdict, replace

from teamchat.core.engine.guards import guard
from teamchat.core.engine.state import Rules
from teamchat.core.errors import (
    CODES,
    BudgetUsedUp,
    ExitCode,
    GuardReached,
    NotTrusted,
    StoreError,
    TeamchatError,
    UsageError,
)
from teamchat.core.files.folders import STORE_NAME, state_path, workspace_folders
from teamchat.core.files.session_lock import is_held, lock_in
from teamchat.core.messages import Speaker
from teamchat.core.routing.names import name_in_turn, valid_name
from teamchat.core.store.database import Database
from teamchat.core.store.routes import a_state
from teamchat.core.store.sessions import CalledBy, Session, set_caller
from teamchat.core.store.turns import Admitted, running_admissions, runs
from teamchat.core.store.usage import ChildrenUsage, add_used, count_turn, used_meanwhile
from teamchat.core.team.team import BUILTIN_AGENTS, AgentSpec, Member, Team
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import saying
from teamchat.patterns import regex
from teamchat.runners.agent_events import Usage
from teamchat.runners.base import Access
from teamchat.runners.child import guardian
from teamchat.runners.child.running import LIVE

VARIABLE = "TEAMCHAT_TURN_TOKEN"
ORDER: tuple[Access, ...] = ("read", "edit", "full")
FOLDERS = regex(rf"[0-9a-f]{{16}}({re.escape(LIVE)})?")
"""The names of folders with a turn's output."""
LOOK_MS = 100  # Milliseconds that a look into another workspace's store waits for its lock.


class Admission(Struct, frozen=True, kw_only=True):
    """The limits for a teamchat that the agent of a turn runs. The store has them as long as the turn runs."""

    digest: str
    """The digest of the turn's token."""
    process: str
    """The name of its process's folder."""
    left: int
    """The depth left for conversations inside it."""
    outer: tuple[str, ...]
    """The folders of the turns around it, outermost first."""
    namespaces: tuple[int, ...]
    """The namespaces of its guardian."""
    access: Access
    allow: tuple[str, ...]
    web: bool
    mcp: tuple[str, ...] | None
    project_settings: bool
    free: bool
    """Whether the team file defines its program or adds arguments, so that its access bounds it less."""
    rules: Rules


class Record(Admission, frozen=True, kw_only=True):
    """An admission with its turn, and with the store of that turn."""

    store: Path
    session: int
    session_name: str
    turn: int
    number: int
    member: str

    @property
    def called(self) -> str:
        return f"turn {self.number} of {self.session_name} ({self.member})"

    @property
    def speaker(self) -> Speaker:
        """Its agent as the speaker of a message."""
        name = name_in_turn(self.member, self.number, self.session_name)
        return Speaker(name, name, type="ai")


class Caller(Struct, frozen=True):
    """The turns around this process, with their folders."""

    records: tuple[Record, ...]
    """The outermost first."""
    folders: tuple[Path, ...]
    whole: bool
    """Whether no turn is missing."""
    stale: bool = False
    """Whether only the environment says that there is a turn, and it names none that runs."""

    @property
    def left(self) -> int:
        """The depth left for conversations inside the turns of this process; negative if it may run none itself."""
        return min((record.left - at for at, record in enumerate(reversed(self.records), 1)), default=-1)

    @property
    def trusted(self) -> Path:
        """The state folder with the person's trust. An agent can name another one as its TEAMCHAT_HOME."""
        return self.records[0].store.parents[2] if self.records else state_path()

    @property
    def turn(self) -> Record:
        """The innermost turn. Raises `GuardReached` if it is not known."""
        if not self.records:
            raise self._lost()
        return self.records[-1]

    @property
    def begins(self) -> CalledBy:
        """The innermost turn as a session names it that its agent begins. Raises `GuardReached`."""
        turn = self.turn
        return CalledBy(_storable(turn.store), turn.session_name, turn.number, turn.member)

    def check(self, now: float) -> None:
        """Raise `GuardReached` if no turn may begin inside the innermost turn, before anything is stored."""
        self._check_depth()
        for record in self.records:
            with _store_of(record) as db:
                _check_left(db, record, now)

    def _check_depth(self) -> None:
        if not self.whole:
            raise self._lost()
        if self.left < 0:
            at = next(at for at, record in enumerate(self.records) if record.left < len(self.records) - at)
            limit = f"limits.depth = {self.records[at].left} is left there"
            raise GuardReached(f"no turn may begin here, inside of {self.records[at].called}: {limit}")

    @property
    def way_out(self) -> str | None:
        """The command that helps a person whose shell was left behind by a turn."""
        return f"unset {VARIABLE}" if self.stale else None

    def _lost(self) -> GuardReached:
        why = "this runs in an agent's turn that is over or cannot be found, where no turn may begin"
        return GuardReached(why, self.way_out)

    def check_session(self, db: Database, session: Session) -> None:
        """Raise `NotTrusted` for a session with messages that the innermost turn did not begin.

        Raises `UsageError` for a session that waits for this process: it would wait forever.
        """
        for record in self.records:
            if record.session == session.id and record.store == db.path.resolve():
                raise UsageError(
                    f"session {session.name} waits for the turn of {record.member} in which this runs", saying("--new")
                )
        if session.messages and session.caller != self.begins:
            raise NotTrusted(
                f"session {session.name} was not begun in {self.turn.called}, in which this runs", saying("--new")
            )

    def check_access(self, member: Member, agent: AgentSpec) -> None:
        """Raise `NotTrusted` if the member may do more than one of the agents in whose turns it would run."""
        for record in self.records:
            if more := _more(member, agent, record):
                raise NotTrusted(
                    f"{member.name} {more}, which {record.member} may not, in whose turn (turn {record.number} of"
                    f" {record.session_name}) this runs; a person can run it from a terminal"
                )

    def check_runs_commands(self) -> None:
        """Raise `NotTrusted` if an agent in whose turn this runs may not run any command.

        Raises `GuardReached` if one of the turns is not known.
        """
        if not self.whole:
            raise self._lost()
        for record in self.records:
            if record.access != "full":
                raise NotTrusted(
                    f"a check runs commands as access 'full' may, which {record.member} does not have, in whose turn"
                    f" (turn {record.number} of {record.session_name}) this runs; a person can run it from a terminal"
                )

    def begin_turn(self, session: str, store: Path, now: float) -> None:
        """Count a turn of an inner session in each conversation around it. Raises what `check` does, and `StoreError`.

        The same transaction checks the rest of the limits, so two inner conversations never both take the last turn.
        """
        self._check_depth()
        for record in self.records:
            with _store_of(record) as db, db.transaction():
                _check_left(db, record, now)
                count_turn(db, record.session, record.turn, _storable(store), session)

    def spend(self, session: str, store: Path, usage: Usage) -> None:
        """Add the usage of an inner session's counted turn to each conversation around it."""
        for record in self.records:
            with contextlib.suppress(TeamchatError), _store_of(record) as db:  # the inner conversation has it stored
                add_used(db, record.session, record.turn, _storable(store), session, usage)

    def budget(self) -> float | None:
        """Return the money left in all conversations around this one, in US dollars; None means no limit."""
        left: list[float] = []
        for record in self.records:
            if (most := record.rules.max_cost_usd) is not None:
                with _store_of(record) as db:
                    left.append(most - _spent(db, record).cost_usd)
        return max(min(left), 0.0001) if left else None

    def note(self, db: Database, session: Session) -> None:
        """Note in a session without messages that the agent of the innermost turn begins it."""
        if self.records and not session.messages and not session.caller:
            set_caller(db, session.id, self.begins)


def find_caller() -> Caller | None:
    """Find the turns around this process; None if it runs in no turn. Never raises."""
    folders, depth = _above()
    above = bool(folders) or depth is not None
    if by_token := _by_token(os.environ):
        folders = [*folders, *(folder for folder in by_token if folder not in folders)]
    turn_folders: list[Path] = []
    for folder in folders:
        outer = map(Path, record.outer) if (record := _read(folder)) else ()
        turn_folders += [turn_folder for turn_folder in (*outer, folder) if turn_folder not in turn_folders]
    records = [_read(folder) for folder in turn_folders]
    if not turn_folders and depth is None and VARIABLE not in os.environ:
        return None
    whole = None not in records and bool(records) and len(records) > (-1 if depth is None else depth)
    return Caller(tuple(filter(None, records)), tuple(turn_folders), whole, stale=not (whole or above))


def check_not_hidden(db: Database) -> None:
    """Raise `NotTrusted` if this may run in a turn of the store that cannot be found from here."""
    caller = find_caller()
    if any(record.store == db.path.resolve() for record in (caller.records if caller else ())):
        return
    if record := _out_of_sight(db):
        raise _hidden(record.called)


def check_hidden_nowhere(own: Path) -> None:
    """Raise `NotTrusted` if this may run in a hidden turn of any workspace but the one of the state folder `own`.

    Commands that give trust call it: trust outlasts the turn, wherever it was given. A store that cannot be read is
    left out: it would keep a person from giving trust anywhere.
    """
    if find_caller():
        return  # and gives none
    for folder in workspace_folders():
        if folder == own:
            continue
        with (
            contextlib.suppress(StoreError, GuardReached, OSError),
            contextlib.closing(_opened(folder / STORE_NAME)) as db,
        ):
            db.execute(f"PRAGMA busy_timeout = {LOOK_MS}")
            if record := _out_of_sight(db):
                from teamchat.core.store.origin import noted_folder

                raise _hidden(f"{record.called} in {noted_folder(folder)}")


def _out_of_sight(db: Database) -> Record | None:
    """Find a turn of the store that really runs, with its guardian in other namespaces than this process.

    The turn's agent may have hidden this process in those. Nobody holds the session of a turn whose teamchat was
    killed.
    """
    here = _namespaces()
    for admitted in running_admissions(db):
        record = _record(db.path, admitted)
        if record and here != record.namespaces and is_held(lock_in(db.path.parent, record.session)):
            return record
    return None


def _hidden(called: str) -> NotTrusted:
    return NotTrusted(
        f"{called} runs outside of the namespaces (containers) of this command, which may be its own;"
        " run the command where that turn was started, or when it has ended"
    )


def _above() -> tuple[list[Path], int | None]:
    """Find the folders of the turns above this process, outermost first, and the greatest depth in their marks."""
    folders: list[Path] = []
    depths: list[int] = []
    for pid in _ancestors():
        if (depth := guardian.depth_of(pid)) is not None:
            depths.append(depth)
        try:
            output = Path(f"/proc/{pid}/fd/1").readlink()
        except OSError:
            continue
        folder = output.parent
        if output.name == "stdout" and folder.parent.name == "turns" and FOLDERS.fullmatch(folder.name):
            folders += [own for own in (folder.with_suffix(""),) if own not in folders]
    return folders[::-1], max(depths, default=None)


def _ancestors() -> Iterator[int]:
    """List the numbers of the processes from this one upwards. A turn's guardian is the parent of its orphans."""
    try:
        pid = int(Path("/proc/self").readlink().name)  # in a namespace of its own it may have two numbers
    except OSError:
        return
    while pid:
        yield pid
        status = guardian.read_stat(str(pid))
        pid = status[1][0] if status else 0


def _by_token(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folder that a token names, if its turn has the token's digest."""
    secret, _, place = env.get(VARIABLE, "").partition("@")
    record = _read(Path(place)) if place else None
    return (Path(place),) if record and record.digest == sha256(secret.encode()).hexdigest() else ()


def _namespaces() -> tuple[int, ...]:
    """Return the numbers of the process and user namespaces of this process; nothing on a system without them."""
    try:
        return tuple(os.stat(f"/proc/self/ns/{kind}").st_ino for kind in ("pid", "user"))  # noqa: PTH116 (no path)
    except OSError:
        return ()


def _read(folder: Path) -> Record | None:
    """Read the turn that runs in the process with this folder, from the folder's store."""
    store = folder.parent.parent / STORE_NAME
    try:
        with contextlib.closing(_opened(store)) as db:
            records = [_record(store, admitted) for admitted in running_admissions(db)]
    except (TeamchatError, OSError, ValueError):
        return None
    return next((record for record in records if record and record.process == folder.name), None)


def _opened(store: Path) -> Database:
    """Open an existing store; none is made, since an agent can name any file. Raises `GuardReached` without a file."""
    if not store.is_file():
        raise GuardReached(f"there is no store {store}")
    return Database(store, as_it_is=True)


def _record(store: Path, admitted: Admitted) -> Record | None:
    """Join a turn with its agent's limits; None for a turn that no teamchat has stored."""
    try:
        admission = decode(admitted.admission, type=Admission)
    except ValueError:
        return None
    if not valid_name(admitted.member):
        return None
    return Record(
        **asdict(admission),
        store=store,
        session=admitted.session,
        session_name=printable(admitted.session_name),
        turn=admitted.turn,
        number=admitted.number,
        member=admitted.member,
    )


@contextlib.contextmanager
def _store_of(record: Record) -> Iterator[Database]:
    """Open the store of a conversation around this one, if the record's turn still runs. Raises `GuardReached`."""
    if not record.store.exists():
        raise _over(record)
    with contextlib.closing(Database(record.store)) as db:
        if not runs(db, record.session, record.turn):
            raise _over(record)
        yield db


def _storable(path: Path) -> str:
    """Turn the path into text that a store can hold."""
    return str(path).encode(errors="backslashreplace").decode()


def _over(record: Record) -> GuardReached:
    return GuardReached(f"{record.called} is over, and no turn may begin inside of it any more")


def _spent(db: Database, record: Record) -> ChildrenUsage:
    """Sum up what counts against the limits: the session's counters, its running turns, and what those run."""
    state = db.the(a_state, "SELECT * FROM sessions WHERE id = ?", record.session)
    running = db.number(
        "SELECT COUNT(*) FROM turns WHERE session = ? AND status = 'running' AND route NOT NULL", record.session
    )
    inner = used_meanwhile(db, record.session)
    return ChildrenUsage(
        state.turns + running + inner.turns, state.tokens + inner.tokens, state.cost_usd + inner.cost_usd
    )


def _check_left(db: Database, record: Record, now: float) -> None:
    """Raise `GuardReached` if a limit of the conversation lets no further turn begin."""
    state = db.the(a_state, "SELECT * FROM sessions WHERE id = ?", record.session)
    spent = _spent(db, record)
    counted = replace(
        state, rules=record.rules, turns=spent.turns, tokens=spent.tokens, cost_usd=spent.cost_usd, stale=0
    )
    if paused := guard(counted, now):
        error = BudgetUsedUp if CODES[paused.kind] is ExitCode.BUDGET else GuardReached
        raise error(f"{paused.reason} in {record.session_name}, in whose turn {record.number} this runs")


def _more(member: Member, agent: AgentSpec, record: Record) -> str | None:
    """Say what the member may do beyond the agent of that turn. An agent with `full` may do anything."""
    if ORDER.index(member.access) > ORDER.index(record.access):
        return f"has access {member.access!r}"
    servers, allow = _servers(member), sorted({*member.allow} - {*record.allow})
    called = sorted({*(servers or ())} - {*(record.mcp or ())})
    beyond = (
        (bool(allow), f"may run {', '.join(allow)}"),
        (member.web and not record.web, "may read the web"),
        (record.mcp is not None and servers is None, "may call all of your MCP servers"),
        (record.mcp is not None and bool(called), f"may call the MCP servers {', '.join(called)}"),
        (member.project_settings and not record.project_settings, "runs the project's own settings"),
        (_free(member, agent) and not record.free, "runs what the team file names"),
    )
    return None if record.access == "full" else next((printable(what) for more, what in beyond if more), None)


def _servers(member: Member) -> tuple[str, ...] | None:
    """List the user's MCP servers that the member may call; None means all of them."""
    return () if member.mcp is None and member.access == "read" else member.mcp


def _free(member: Member, agent: AgentSpec) -> bool:
    return bool(member.args) or agent not in BUILTIN_AGENTS.values()


def admit(folder: Path, team: Team, member: Member, rules: Rules, caller: Caller | None) -> tuple[str, str]:
    """Make the token for the agent of a turn about to begin, and the text that the store keeps with the turn.

    `folder` is that of the turn, or of the process that serves it. Raises `UnicodeEncodeError` for a path that is not
    text.
    """
    secret = f"tct_{os.urandom(16).hex()}"
    process = Path(os.path.realpath(folder.parent), folder.with_suffix("").name)  # the path that /proc shows
    admission = Admission(
        digest=sha256(secret.encode()).hexdigest(),
        process=process.name,
        left=team.limits.depth if caller is None else min(team.limits.depth, caller.left),
        outer=tuple(map(str, caller.folders)) if caller else (),
        namespaces=_namespaces(),
        access=member.access,
        allow=member.allow,
        web=member.web,
        mcp=_servers(member),
        project_settings=member.project_settings,
        free=_free(member, team.agent_of(member)),
        rules=replace(rules, max_stale=None),
    )
    return f"{secret}@{process}", encode(admission).decode()
