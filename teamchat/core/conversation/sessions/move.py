"""Taking over the conversations of a folder that was renamed or moved.

Everything but the last step can be repeated after a kill: the rename of the state folder, by which the new folder has
the conversations.
"""

from __future__ import annotations

import json
import os
from contextlib import closing, nullcontext
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.checkpoint import restore
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.linked import relink
from teamchat.core.checkpoint.values import GitRepository
from teamchat.core.errors import SessionBusy, StoreError, UnknownName, UsageError
from teamchat.core.files.folders import STORE_NAME, WRITABLE, state_folder_of, workspace_path
from teamchat.core.files.session_lock import lock_in, look_at
from teamchat.core.store.database import Database
from teamchat.core.store.origin import is_there, keep_origin
from teamchat.core.store.sessions import Session, all_sessions
from teamchat.core.store.unsent import kept_of
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import command_of
from teamchat.core.worktrees.records import Worktree, all_of, keep
from teamchat.runners.child.removal import remove

_ASIDE = "before-move"


class Move(Struct, frozen=True):
    """The move from the workspace `old`, which is gone, to `new`."""

    old: Path
    new: Path
    state: Path
    """The state folder of the old workspace."""
    target: Path
    """The state folder of the new workspace."""
    sessions: tuple[Session, ...]
    """The sessions that are taken over."""

    def path(self, path: str) -> str:
        """Return where a path of the old workspace, of its work tree or of its state folder is now; others stay."""
        _, separator, below = path.partition(f"/{self.state.parent.name}/{self.state.name}/")
        if separator:  # wherever TEAMCHAT_HOME was
            return str(self.target / below)
        if is_there(Path(path)):
            return path
        old, new = self.old, self.new
        while True:
            if Path(path).is_relative_to(old) and os.path.lexists(moved := new / Path(path).relative_to(old)):
                return str(moved)
            if old.name != new.name or old == old.parent:
                return path
            old, new = old.parent, new.parent  # it may be below the same folders above both


def plan_move(old: Path, new: Path) -> Move:
    """Plan what `move` does. Raises `UnknownName` without such a store, and `UsageError` where two would become one."""
    target, real = workspace_path(new).resolve(), new.resolve()
    written = Path(os.path.abspath(old))  # noqa: PTH100 (links stay: one may stand where the folder was)
    for path in (written, written.resolve()):
        state = state_folder_of(path).resolve()
        if state != target and (state / STORE_NAME).exists():
            if is_there(path):
                raise UsageError(
                    f"{_told(path)} is still there, and conversations are never merged; continue them there"
                )
            if (target / STORE_NAME).exists():
                with closing(Database(target / STORE_NAME)) as db:
                    _check_none(db, real)
            with closing(Database(state / STORE_NAME)) as db:
                sessions = tuple(all_sessions(db))
            if sessions:
                return Move(path, real, state, target, sessions)
    raise UnknownName(f"no conversation of a folder {_told(written)} is stored", "teamchat sessions")


def move(plan: Move) -> None:
    """Take the conversations over. Raises `SessionBusy` while a process runs one, `UsageError` and `StoreError`."""
    try:
        _move(plan)
    except OSError as error:
        raise StoreError(
            f"the conversations of {_told(plan.old)} cannot be moved: {error.filename}: {error.strerror}; {WRITABLE}"
        ) from error
    keep_origin(plan.new)
    aside = plan.target / _ASIDE
    if not any(aside.glob("*.backup")):
        remove(aside)


def _move(plan: Move) -> None:
    with closing(Database(plan.state / STORE_NAME)) as db:
        with db.transaction():
            _check_idle(plan)
            tops = _follow(db, plan)
        _move_checkpoints(plan, tops)
        restore.follow(plan.state, plan.path)
        for tree in all_of(plan.state):
            _move_worktree(plan, tree)
        with db.taken_back():  # nobody can begin a turn in either store until both have moved
            _check_idle(plan)
            _put_aside(plan)
            plan.state.rename(plan.target)


def _told(path: Path) -> str:
    return printable(str(path))


def _check_none(db: Database, new: Path) -> None:
    if own := [session.name for session in all_sessions(db) if session.messages or kept_of(db, session.id)]:
        raise UsageError(
            f"{_told(new)} has conversations of its own, and those of two folders are never merged; delete these first",
            "\n".join(command_of("teamchat", "sessions", "delete", name) for name in own),
        )


def _check_idle(plan: Move) -> None:
    for session in plan.sessions:
        if held := look_at(lock_in(plan.state, session.id)):
            raise SessionBusy(
                f"conversation {session.name} of {_told(plan.old)} is being run by {held.said}; wait for it, or end it",
                f"kill {here}" if (here := held.here) else None,
            )


def _follow(db: Database, plan: Move) -> set[str]:
    """Have turns and undos name the work trees where they are now. Returns the ones that may have moved."""
    tops = {str(plan.new)}
    for turn in db.column(int, "SELECT id FROM turns WHERE outcome NOT NULL"):
        outcome = db.the(lambda row: dict(row.json("outcome")), "SELECT outcome FROM turns WHERE id = ?", turn)
        changes = outcome.get("changes") or {}
        if top := changes.get("top"):
            changes["top"] = plan.path(top)
            tops.add(changes["top"])
            if changes["top"] != top:
                db.execute("UPDATE turns SET outcome = ? WHERE id = ?", json.dumps(outcome), turn)
    for undo in db.column(int, "SELECT id FROM undos"):
        trees = db.the(lambda row: dict(row.json("trees")), "SELECT trees FROM undos WHERE id = ?", undo)
        now = {plan.path(top): ends for top, ends in trees.items()}
        tops |= {*now}
        if now != trees:
            db.execute("UPDATE undos SET trees = ? WHERE id = ?", json.dumps(now), undo)
    return tops


def _move_checkpoints(plan: Move, tops: set[str]) -> None:
    """Rename the checkpoint folders, whose names follow from the paths of their repositories."""
    for top in tops:
        repository = find_repository(Path(top), plan.state)
        if isinstance(repository, GitRepository) and not repository.store.exists():
            before = _before(plan, repository.common_dir)
            earlier = repository.store.with_name(sha256(os.fsencode(before)).hexdigest()[:16])
            if earlier.exists():
                earlier.rename(repository.store)


def _before(plan: Move, now: Path) -> Path:
    """Return where a moved folder was before."""
    old, new = plan.old, plan.new
    while not now.is_relative_to(new) and old.name == new.name and new != new.parent:
        old, new = old.parent, new.parent
    return old / now.relative_to(new) if now.is_relative_to(new) else now


def _move_worktree(plan: Move, tree: Worktree) -> None:
    """Join a member's worktree with its repository again, at the places where both end up."""
    top, folder = Path(plan.path(str(tree.top))), Path(plan.path(str(tree.folder)))
    home = find_repository(top, plan.state)
    if isinstance(home, GitRepository) and folder.is_relative_to(plan.target):
        relink(home, plan.state / folder.relative_to(plan.target), tree.folder, folder)
        keep(plan.state, replace(tree, top=top, folder=folder))


def _put_aside(plan: Move) -> None:
    """Remove the new folder's own store, which has no messages. Raises `UsageError` if it has conversations."""
    if not plan.target.exists():
        return
    aside, file = plan.state / _ASIDE, plan.target / STORE_NAME
    with closing(Database(file)) if file.exists() else nullcontext() as db, db.taken_back() if db else nullcontext():
        if db:
            _check_none(db, plan.new)
        remove(aside)
        plan.target.rename(aside)
