"""The place of a command's work: the team, the workspace's store and the session."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from teamchat.cli.output.lines import confirmed, note
from teamchat.cli.startup.typed import BEGINNERS, IN_SESSION, TYPED, has, line_of, typed_with
from teamchat.core.conversation import permission
from teamchat.core.errors import (
    AgentMissing,
    NoConversation,
    NotTrusted,
    StoreError,
    TeamchatError,
    TeamFileError,
    UnknownName,
    UsageError,
)
from teamchat.core.files import session_lock
from teamchat.core.files.folders import STORE_NAME, config_dir, workspace_dir
from teamchat.core.messages import Speaker
from teamchat.core.store.database import NO_VALUE, Database
from teamchat.core.store.sessions import (
    Session,
    begun,
    create_session,
    current_session,
    find_session,
    last_child,
    last_session,
    need_session,
    no_session,
    touch_session,
)
from teamchat.core.store.turns import turns_of
from teamchat.core.team.find import FILE_NAME, find_team_file, resolve_team
from teamchat.core.team.team import Team, folder_name
from teamchat.core.team.trust import Standing
from teamchat.core.team.trust_needs import needs
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import quote, saying
from teamchat.core.turn.caller import find_caller

T = TypeVar("T")


def find_team(option: str | None, timeout: str | None = None) -> Team:
    """Find the team of `--team`, or of this folder; `--timeout` overrides its members' own."""
    team = resolve_team(option, Path.cwd(), config_dir())
    if timeout is None:
        return team
    from teamchat.core.text.durations import parse_duration

    try:
        seconds = parse_duration(timeout)
    except ValueError as error:
        raise UsageError(f"--timeout {timeout!r}: {error}") from None
    return replace(team, members=tuple(replace(member, timeout_s=seconds) for member in team.members))


def team_with_session(option: str | None, session: str | None, timeout: str | None = None) -> Team:
    """Find the team of a command that continues a conversation.

    Raises `UnknownName` in a folder without team and conversation, where `find_team` would say which CLIs to install,
    and `TeamFileError` with the turn that broke or deleted the file, which undo brings back.
    """
    wrong: TeamFileError | AgentMissing | None = None
    try:
        team = find_team(option, timeout)
        if team.path is not None:
            return team
    except (TeamFileError, AgentMissing) as error:
        wrong = error
    with open_store(find_root(option)) as db:
        if chosen := current_session(db, session):
            _check_not_broken(db, chosen, {FILE_NAME, Path(option or FILE_NAME).name}, wrong)
        elif isinstance(wrong, AgentMissing):
            need_session(db, session)
    if wrong:
        raise wrong
    return team


def _check_not_broken(
    db: Database, session: Session, names: Collection[str], wrong: TeamFileError | AgentMissing | None
) -> None:
    """Raise `TeamFileError` where a turn of the session changed the team file, which cannot be used or is gone."""
    for turn in reversed(turns_of(db, session.id)):
        changes = turn.outcome.known_changes if turn.outcome and turn.undone is None else None
        whats = {change.what for change in changes.files if Path(change.path).name in names} if changes else set[str]()
        if whats and (isinstance(wrong, TeamFileError) or whats & {"deleted", "type"}):
            what = str(wrong) if isinstance(wrong, TeamFileError) else "the team file is gone"
            raise TeamFileError(
                f"{what}; turn {turn.number} ({turn.member}) changed it", f"teamchat undo {turn.number}"
            ) from None


def team_or_nobody(option: str | None, session: str | None) -> Team:
    """Find the team of a command that runs no member, or make one without members if its file is broken or gone.

    So the turn that broke it can be undone.
    """
    try:
        return team_with_session(option, session)
    except (TeamFileError, AgentMissing):
        root = find_root(option)
        return Team(folder_name(root), (), root)


def find_root(option: str | None) -> Path:
    """Find the workspace's folder, for commands that only look: a broken team file must not hide the conversation."""
    if option is not None:
        try:
            return resolve_team(option, Path.cwd(), config_dir()).root
        except TeamFileError:
            file = Path.cwd() / option
            return file.parent if "/" in option or option.endswith(".toml") or file.exists() else Path.cwd()
    team_file = find_team_file(Path.cwd())
    return team_file.parent if team_file else Path.cwd()


@contextlib.contextmanager
def open_store(root: Path) -> Iterator[Database]:
    """Open the store of the workspace `root`, and close it at the end.

    An unexpected error becomes a `DamagedStore` if the store is damaged. Otherwise it is a bug of teamchat.
    """
    db = Database(store_file(root), typed=was_typed_by_a_person())
    try:
        yield db
    except NoConversation as error:
        from teamchat.core.store.origin import told_of_moved

        if moved := told_of_moved(root):
            raise NoConversation(f"{error}; {moved[0]}", moved[1]) from None
        raise
    except TeamchatError:  # a missing message is also a KeyError
        raise
    except (*NO_VALUE, AssertionError, AttributeError, RuntimeError) as error:
        from teamchat.core.store.checking import problems

        if problem := next(problems(db), None):
            raise db.damaged(problem) from error
        raise
    finally:
        db.close()


def was_typed_by_a_person() -> bool:
    """Whether this process has a terminal and an interactive shell started it.

    Such a shell gives each command line a process group of its own. A process started by a script, a hook or another
    program stays in its parent's group, even at a terminal.
    """
    parent = os.getppid()
    try:
        of_a_program = parent and os.getpgid(parent) == os.getpgrp()  # the parent of a container's first process is 0
    except OSError:  # it has ended
        of_a_program = False
    return not of_a_program and any(os.isatty(stream) for stream in range(3))


def store_file(root: Path) -> Path:
    return workspace_dir(root) / STORE_NAME


def lock_file(root: Path, session: int) -> Path:
    return session_lock.lock_in(store_file(root).parent, session)


def abandoned(root: Path, session: int, running: Callable[[], Sequence[T]]) -> list[T]:
    """List the turns that a killed teamchat left `running` in the session. Empty if the lock cannot be opened.

    `running` is read before and after the lock: a turn that begins or ends in between is not abandoned.
    """
    if not (before := running()):
        return []
    return [] if is_held(root, session) else [turn for turn in running() if turn in before]


def is_held(root: Path, session: int) -> bool:
    """Whether a process runs the session, or its lock cannot be opened."""
    return session_lock.is_held(lock_file(root, session))


def continued_session(db: Database, name: str | None) -> Session | None:
    """Find the session of that name, or the last one; in an agent's turn the last one that it began there."""
    caller = None if name else find_caller()
    return last_child(db, caller.begins) if caller else current_session(db, name)


def calling() -> Speaker | None:
    """Return the agent in whose turn this runs, which speaks for a person. Raises `GuardReached` if it is lost."""
    caller = find_caller()
    return caller.turn.speaker if caller else None


def session_to_continue(db: Database, name: str | None) -> Session:
    """Find the session of that name, or the last one, as the one that a command continues.

    Raises `UnknownName`, and in an agent's turn what `check_session` does.
    """
    session = continued_session(db, name) or need_session(db, name)
    check_session(db, session)
    return session


def check_session(db: Database, session: Session) -> None:
    """Raise `NotTrusted` in an agent's turn that did not begin the session, `UsageError` if it waits for that turn."""
    if caller := find_caller():
        caller.check_session(db, session)


def choose_session(
    db: Database, team: Team, name: str | None, *, new: bool, title: str | None = None
) -> tuple[Session, bool]:
    """Find the session to continue, and say whether it is new. `new` begins another, with any name and title given.

    Without a name the workspace may have no session yet. Raises `UnknownName` for a missing one, and `UsageError`.
    """
    from teamchat.core.store.origin import is_noted, keep_origin

    with db.transaction_before_another():  # otherwise two commands at once would both find it missing
        session = None if new and not name else continued_session(db, name)
        if session and new:
            raise UsageError(f"session {name!r} already exists", saying("--session", session.name))
        if name and not (session or new):
            raise UnknownName(no_session(db, name), _beginning(db, name))
        if not (session and is_noted(db)):
            db.when_stored(lambda: keep_origin(team.root))
        if session:
            check_title(session, title)
            check_session(db, session)
            touch_session(db, session.id)
            return session, False
        return create_session(db, team.name, team.task, name, title=title), True


def _beginning(db: Database, name: str) -> str | None:
    """Say what to type if the command's session does not exist: the command with `--new` if it takes that."""
    command = (TYPED.get() or ("send",))[0]
    if command in IN_SESSION and command not in BEGINNERS:
        return "teamchat sessions" if last_session(db) else saying("--new", "--session", name)
    return typed_with(*(["--new"] if has("--session", TYPED.get()) else ["--new", "--session", name]))


@contextlib.contextmanager
def session_to_note_in(db: Database, team: str | None, name: str | None, *, begins: bool = True) -> Iterator[Session]:
    """Open the session of a command that runs nobody. In a workspace without one it `begins`.

    `team` and `name` are as typed. Raises `UnknownName` for a missing one, and what `find_team` does.
    """
    if name or not begins or last_session(db):
        yield need_session(db, name)
        return
    session, _ = choose_session(db, find_team(team), None, new=True)
    with begun(db, session):
        yield session


def note_moved(root: Path) -> None:
    """Tell of the conversations that a folder without any may have had under another name."""
    from teamchat.core.store.origin import told_of_moved

    if moved := told_of_moved(root):
        note(moved[0])
        for command in (moved[1] or "").splitlines():
            note(f"try: {command}")


def check_title(continued: Session, title: str | None) -> None:
    """Raise `UsageError` for a title, which is for a new session."""
    if title is not None:
        raise UsageError(
            f"--title is for a new session, and {continued.name} continues",
            line_of("sessions", "rename", continued.name, title),
        )


def session_typed(db: Database, session: Session) -> str:
    """Return the `--session` option that selects this session; empty if the command selects it anyway.

    A person at a terminal or another script may run the command that a script prints.
    """
    name = os.environ.get("TEAMCHAT_SESSION")
    readers = (True,) if db.typed else (True, False)
    try:
        anyway = [find_session(db, name)] if name else [last_session(db, typed=reader) for reader in readers]
    except StoreError:  # report how the run ended even so
        anyway = [None]
    selected = all(chosen and chosen.id == session.id for chosen in anyway)
    return "" if selected else f" --session {quote(session.name)}"


def need_person(what: str) -> None:
    """Raise `NotTrusted` in an agent's turn or a hook for actions of persons: `what` begins the sentence."""
    permission.check_no_hook(what)
    if caller := find_caller():
        raise NotTrusted(f"{what} by a person, and this runs in an agent's turn", caller.way_out)


def need_trust(team: Team, *, give: bool) -> None:
    """Raise `NotTrusted` unless the team is trusted already, by `--trust`, or by an answer at the terminal.

    Raises `GuardReached` in an agent's turn that may begin no other turn.
    """
    can_ask = sys.stdin.isatty() and sys.stderr.isatty()
    permission.need_trust(team, give=give, ask=partial(_trusts, team) if can_ask else None)


def begin_run(team: Team, *, record: Path | None, trust: bool, runs: bool = True) -> None:
    """Check the needs of a run before anything is read or stored, and have the guardians begin meanwhile.

    A command that `runs` no turn needs none. Raises `UsageError` if the recording cannot be written, and `NotTrusted`.
    """
    if record:
        need_person("a recording, whose replay runs in no turn, is made")
        from teamchat.core.cassette.writer import check_recording

        check_recording(record)
    if not runs:
        return
    need_trust(team, give=trust)
    from teamchat.runners.child.guardians import GUARDIANS

    with contextlib.suppress(OSError):  # the turn fails with a reason
        GUARDIANS.prepare()


def _trusts(team: Team, standing: Standing) -> bool:
    """Return whether a person trusts the team after reading what changed, or everything that it asks for."""
    reasons = [standing.text] if standing.before else []
    reasons += [] if standing.changes else ["asks for more than read access"]
    print(f"{printable(str(team.path))} {' and '.join(reasons)}:", file=sys.stderr)
    for line in standing.changes or [need.line for need in needs(team)]:
        print(f"  {line}", file=sys.stderr)
    return confirmed("Trust it?")
