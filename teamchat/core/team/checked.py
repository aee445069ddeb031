"""A team file that was checked before: its tables are kept in the state folder, by the file's path.

A check needs pydantic and the TOML parser, whose imports take longer than the rest of a command. The kept tables begin
with a seal over them, the text that they were made from and the teamchat that checked it. Without that seal they are
not used: the file is checked again if it, its record or teamchat has changed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from teamchat.core.errors import StoreError
from teamchat.core.files.folders import state_path
from teamchat.core.files.whole_files import locked_beside, put_in_place, write_private
from teamchat.runners.untrusted.regular_files import read_regular
from teamchat.version import VERSION

if TYPE_CHECKING:
    from teamchat.core.team.schema import TeamFile

LARGEST = 1 << 24  # bytes; the tables of a large team file have fewer
PROGRAM = Path(__file__).parents[2]


def kept(path: Path, text: str) -> TeamFile | None:
    """Return the kept tables of the team file at `path` with this text; None if they were not kept."""
    try:
        content = read_regular(_place(path), LARGEST).decode()
        seal, _, tables = content.partition("\n")
        return cast("TeamFile", _made(json.loads(tables))) if seal == _seal(text, tables) else None
    except (OSError, ValueError, StoreError):
        return None


def keep(path: Path, text: str, file: TeamFile) -> None:
    """Keep the tables for the next command, if there is a state folder that can be written.

    A file with values of `env` is checked by each command: they may be secrets, and the file is their one place.
    """
    with contextlib.suppress(OSError, StoreError):
        place = _place(path)
        if any((*(member.env for member in file.members), *(check.env for check in file.checks.values()))):
            place.unlink(missing_ok=True)
            return
        if not place.parent.parent.is_dir():  # a command that only looks makes none
            return
        place.parent.mkdir(mode=0o700, exist_ok=True)
        tables = json.dumps(_form(file), ensure_ascii=False)
        with locked_beside(place) as new:
            write_private(new, f"{_seal(text, tables)}\n{tables}".encode())
            put_in_place(new, place)


def _place(path: Path) -> Path:
    return state_path() / "checked" / f"{sha256(os.fsencode(path)).hexdigest()[:24]}.json"


def _seal(text: str, tables: str) -> str:
    """Compute the digest of the tables and of everything they were made from."""
    parts = [VERSION, _newest_source(), text, tables]
    return sha256("".join(f"{len(part)} {part}" for part in parts).encode()).hexdigest()


def _newest_source() -> str:
    """Return the time of the last change of teamchat's sources; empty outside a checkout, where the version tells."""
    if not (PROGRAM.parent / ".git").exists():
        return ""
    return str(max(_changes(PROGRAM)))


def _changes(folder: str | Path) -> Iterator[int]:
    """List the time of each source's last change, in nanoseconds; `rglob` takes three times as long."""
    for entry in os.scandir(folder):
        if entry.is_dir():
            yield from _changes(entry.path)
        elif entry.name.endswith(".py"):
            yield entry.stat().st_mtime_ns


def _form(value: Any) -> object:
    """Convert a value of the schema for JSON. Only a table also has the keys that were written (`set`)."""
    if isinstance(value, list):
        return [_form(each) for each in value]
    if isinstance(value, Mapping):
        return {"all": {key: _form(each) for key, each in value.items()}}
    if hasattr(value, "model_fields_set"):
        return {"set": sorted(value.model_fields_set), "all": {key: _form(each) for key, each in value}}
    return value


def _made(form: Any) -> Any:
    """Rebuild the value of a `_form`, with plain objects instead of the schema's own."""
    if isinstance(form, list):
        return [_made(each) for each in form]
    if not isinstance(form, dict):
        return form
    values = {key: _made(each) for key, each in form["all"].items()}
    return SimpleNamespace(**values, model_fields_set=set(form["set"])) if "set" in form else values
