"""The backups that earlier checks left beside a store: the newest undamaged one, and the command that restores it."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from shlex import quote

from msgspec import Struct

from teamchat.core.errors import StoreError
from teamchat.core.files.temporary import temporary_folder
from teamchat.core.store.checking import problems
from teamchat.core.store.database import Database
from teamchat.core.store.rescue import row_counts


class Backup(Struct, frozen=True):
    """An undamaged store in a file, and how many rows of each kind it has."""

    file: Path
    numbers: dict[str, int]

    def put_back(self, store: Path, away: Path) -> str:
        """The command that restores it. It moves the folder of `store` to `away`.

        The old write-ahead log must not reach the new store.
        """
        folder, kept = quote(str(store.parent)), quote(str(away / self.file.name))
        return f"mv {folder} {quote(str(away))} && mkdir -m 700 {folder} && cp {kept} {quote(str(store))}"


def newest_whole(store: Path) -> Backup | None:
    """The newest undamaged backup of `store`. Each one is checked in a copy that is updated to this version."""
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
