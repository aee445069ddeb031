"""A check of the store: what is wrong with it, a backup, and what can be read of a damaged one."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from shlex import quote

from teamchat.core.doctor.checks import Check, failed
from teamchat.core.errors import DamagedStore, StoreError
from teamchat.core.folders import STORE_NAME, workspace_path
from teamchat.core.store.checking import problems
from teamchat.core.store.database import GONE, Database, was_there
from teamchat.core.store.rescue import rescue
from teamchat.runners.removal import remove

MOST_PROBLEMS = 10
TOLD = ("session", "message", "turn")


def examine_store(root: Path) -> Iterator[Check]:
    """Check and back up the store of the workspace `root`; what can be read of a damaged one goes into a new folder."""
    file = workspace_path(root) / STORE_NAME
    if file.exists():
        yield from _examine(file)
    elif was_there(file):
        yield failed("store", StoreError(f"the store {file} is damaged: {GONE}", _away(file.parent)))
    else:
        yield Check(None, "store", "ok", f"{file}, made by the first message", str(file))


def _examine(file: Path) -> Iterator[Check]:
    try:
        with closing(Database(file, as_it_is=True)) as db:
            backup = _backup(db)  # before anything of it changes
            try:
                db.update()
            except DamagedStore:
                pass  # its problems tell more
            except StoreError as error:
                yield from (failed("store", error), backup)
                return
            wrong = list(islice(problems(db), MOST_PROBLEMS))
            for problem in wrong:
                yield failed("store", db.damaged(problem))
            if not wrong:
                yield Check(None, "store", "ok", f"{file}, every page, reference and row", str(file))
            yield backup
            if wrong:
                yield _rescued(db)
    except StoreError as error:
        yield failed("store", error)


def _backup(db: Database) -> Check:
    """A copy by SQLite itself, which takes in what others write meanwhile; of a file it cannot read, of its bytes."""
    to = _free(db.path.with_name(f"{db.path.stem}-{time.strftime('%Y%m%d-%H%M%S')}.backup"))
    try:
        db.back_up(to)
    except StoreError:
        to.unlink(missing_ok=True)
        try:
            shutil.copyfile(db.path, to)
        except OSError as error:
            return failed("backup", StoreError(f"{to} cannot be written: {error.strerror}"))
    to.chmod(0o600)
    return Check(None, "backup", "ok", str(to), str(to))


def _rescued(db: Database) -> Check:
    folder = _free(db.path.parent.with_name(f"{db.path.parent.name}.rescued"))
    try:
        found = rescue(db, folder / STORE_NAME)
    except StoreError as error:
        return failed("rescued", error)
    counts = ", ".join(f"{found[noun]} {noun}{'' if found[noun] == 1 else 's'}" for noun in TOLD)
    if not any(found.values()):
        remove(folder)
        return failed("rescued", StoreError("nothing can be read", _away(db.path.parent)))
    hint = f"{_away(db.path.parent)} && mv {quote(str(folder))} {quote(str(db.path.parent))}"
    return Check(None, "rescued", "ok", f"{counts}, in {folder}", str(folder), hint)


def _away(folder: Path) -> str:
    """What to type to begin anew: the whole folder goes, for a write-ahead log must not get into the next store."""
    return f"mv {quote(str(folder))} {quote(str(_free(folder.with_name(f'{folder.name}.damaged'))))}"


def _free(path: Path) -> Path:
    """`path`, or the same with a number behind it where that is taken."""
    tries = (path.with_name(f"{path.name}-{number}") for number in count(2))
    return path if not path.exists() else next(other for other in tries if not other.exists())
