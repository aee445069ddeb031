"""Checks the store: its problems, a backup, and the readable part of a damaged one."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from shlex import quote

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.doctor.checks import DoctorCheck, failed
from teamchat.core.errors import DamagedStore, StoreError
from teamchat.core.files.folders import STORE_NAME, workspace_path
from teamchat.core.files.whole_files import temporary_folder, write_private
from teamchat.core.store.checking import problems
from teamchat.core.store.database import GONE, Database, was_there
from teamchat.core.store.rescue import lost, rescue, row_counts
from teamchat.core.text.commands import unused
from teamchat.runners.child.removal import remove


class Backup(Struct, frozen=True):
    """An undamaged store in a file, and how many rows of each kind it has."""

    file: Path
    numbers: dict[str, int]

    def put_back(self, store: Path, away: Path) -> str:
        """Write the command that restores it. It moves the folder of `store` to `away`.

        The old write-ahead log must not reach the new store.
        """
        folder, backup = quote(str(store.parent)), quote(str(away / self.file.name))
        return f"mv {folder} {quote(str(away))} && mkdir -m 700 {folder} && cp {backup} {quote(str(store))}"


def newest_whole(store: Path) -> Backup | None:
    """Find the newest undamaged backup of `store`. Each one is checked in a copy that is updated to this version."""
    for file in sorted(store.parent.glob(f"{store.stem}-*.backup*"), reverse=True):
        with temporary_folder("backup") as folder:
            copy = folder / store.name
            try:
                shutil.copyfile(file, copy)
                with closing(Database(copy)) as db:
                    if not any(problems(db)):
                        return Backup(file, row_counts(db))
            except (OSError, StoreError):
                continue
    return None


MOST_PROBLEMS = 10
NOTHING = "nothing can be read"
NO_BACKUP = f"{NOTHING}, and there is no backup: this command makes one of each healthy store"
TOLD = ("session", "message", "turn")


def examine_store(root: Path) -> Iterator[DoctorCheck]:
    """Check and back up the store of the workspace `root`. The readable part of a damaged one gets a new folder."""
    file = workspace_path(root) / STORE_NAME
    if file.exists():
        yield from _examine(file)
    elif was_there(file):
        whole = newest_whole(file)
        yield failed("store", StoreError(f"the store {file} is damaged: {GONE}", None if whole else _away(file.parent)))
        if whole:
            yield _earlier(whole, file, better=True)
    else:
        yield DoctorCheck(None, "store", "ok", f"{file}, made by the first message", str(file))


def _examine(file: Path) -> Iterator[DoctorCheck]:
    try:
        with closing(Database(file, as_it_is=True)) as db:
            backup = _backup(db)  # before anything in it changes
            try:
                db.check_version()
            except DamagedStore:
                pass  # its problems say more
            except StoreError as error:
                yield from (failed("store", error), backup)
                return
            wrong = [*islice(problems(db), MOST_PROBLEMS)]
            for problem in wrong:
                yield replace(failed("store", db.damaged(problem)), hint=None)  # its hint is this same command
            if wrong:
                yield _of_damaged(backup)
                yield from _rescued(file)
            else:
                yield DoctorCheck(None, "store", "ok", f"{file}, every page, reference and row", str(file))
                yield backup
    except StoreError as error:
        yield replace(failed("store", error), hint=None)


def _backup(db: Database) -> DoctorCheck:
    """Back the store up with SQLite, which includes concurrent writes. A file that SQLite cannot read is copied."""
    to = unused(db.path.with_name(f"{db.path.stem}-{time.strftime('%Y%m%d-%H%M%S')}.backup"))
    try:
        write_private(to, b"")
        try:
            db.back_up(to)
        except StoreError:
            shutil.copyfile(db.path, to)
    except OSError as error:
        with suppress(OSError):
            to.unlink(missing_ok=True)  # a part of a store is no backup
        return failed("backup", StoreError(f"{to} cannot be written: {error.strerror}"))
    return DoctorCheck(None, "backup", "ok", str(to), str(to))


def _of_damaged(backup: DoctorCheck) -> DoctorCheck:
    """Rename the copy of a damaged file, so that it has no backup's name."""
    if backup.value is None:  # the copy could not be written
        return backup
    file = Path(backup.value)
    to = file.rename(unused(file.with_suffix(".damaged")))
    return DoctorCheck(None, "copy", "note", f"{to}, a copy of the damaged file", str(to))


def _rescued(file: Path) -> Iterator[DoctorCheck]:
    """Report the rescued rows, and the newest undamaged backup. The command restores whichever has more."""
    whole = newest_whole(file)
    folder = unused(file.parent.with_name(f"{file.parent.name}.rescued"))
    rescued: dict[str, int] = {}
    try:
        with closing(Database(file, as_it_is=True)) as db:
            rescued = rescue(db, folder / STORE_NAME)
            gone = lost(db, rescued)
    except StoreError as error:
        yield replace(failed("rescued", error), hint=None)
    else:
        yield _of_rescue(file, folder, rescued, gone, whole)
    if whole:
        yield _earlier(whole, file, better=_has_all(whole.numbers, rescued) or not _has_all(rescued, whole.numbers))


def _of_rescue(
    file: Path, folder: Path, found: dict[str, int], missing: dict[str, int | None], whole: Backup | None
) -> DoctorCheck:
    away, better = _away(file.parent), not (whole and _has_all(whole.numbers, found))
    if not any(found.values()):
        remove(folder)
        return failed("rescued", StoreError(NOTHING if whole else NO_BACKUP, away if better else None))
    gone = ", ".join(_number(number, noun) for noun, number in missing.items())
    text = f"{_told(found)}, in {folder}{f'; lost: {gone}' if gone else ''}"
    hint = f"{away} && mv {quote(str(folder))} {quote(str(file.parent))}"
    return DoctorCheck(None, "rescued", "warning" if gone else "ok", text, str(folder), hint if better else None)


def _earlier(whole: Backup, store: Path, *, better: bool) -> DoctorCheck:
    hint = whole.put_back(store, _aside(store.parent)) if better else None
    text = f"{whole.file}, the newest whole one: {_told(whole.numbers)}"
    return DoctorCheck(None, "backup", "note", text, str(whole.file), hint)


def _has_all(numbers: dict[str, int], others: dict[str, int]) -> bool:
    """Whether each kind has at least as many rows as in the other store."""
    return all(numbers.get(noun, 0) >= number for noun, number in others.items())


def _told(numbers: dict[str, int]) -> str:
    return ", ".join(_number(numbers[noun], noun) for noun in TOLD)


def _number(number: int | None, noun: str) -> str:
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"an unknown number of {many}" if number is None else f"{number} {noun if number == 1 else many}"


def _aside(folder: Path) -> Path:
    return unused(folder.with_name(f"{folder.name}.damaged"))


def _away(folder: Path) -> str:
    """Write the command that begins anew.

    It moves the whole folder: the old write-ahead log must not reach the new store.
    """
    return f"mv {quote(str(folder))} {quote(str(_aside(folder)))}"
