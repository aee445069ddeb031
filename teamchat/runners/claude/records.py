"""Claude's sessions, from its own records (observed at 2.1.332)."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import DecodeError, Struct, field
from msgspec.json import Decoder

from teamchat.patterns import regex
from teamchat.runners.base import KeptSession
from teamchat.runners.homes.folders import claude_folder
from teamchat.runners.homes.records import first_lines, newest, text_of, used_at
from teamchat.runners.untrusted.regular_files import open_regular

_NO_NAME = regex(r"[^A-Za-z0-9]")
_LONGEST_NAME = 200  # characters of a folder's name; Claude cuts a longer one there, and puts "-" and a hash behind it
_OWN_WORDS = ("<command-", "<local-command-", "<bash-", "<system-reminder")  # Claude writes these for the person


def kept_in(env: Mapping[str, str], cwd: Path) -> Iterator[KeptSession]:
    """List the sessions that Claude finds in that folder, newest first. Rows of its subagents are left out."""
    here = os.path.realpath(cwd)
    projects, name = claude_folder(env) / "projects", _NO_NAME.sub("-", here)
    cut = len(name) > _LONGEST_NAME
    folders = projects.glob(f"{name[:_LONGEST_NAME]}-*") if cut else [projects / name]
    for file in newest(file for folder in folders for file in folder.glob("*.jsonl")):
        if kept := _kept(file, here if cut else None):
            yield kept


class _Row(Struct):
    """The place of a row in a record. After a compaction it names its parent by another field."""

    uuid: str | None = None
    parent: str | None = field(default=None, name="parentUuid")
    before: str | None = field(default=None, name="logicalParentUuid")
    aside: bool = field(default=False, name="isSidechain")


def continued_rows(env: Mapping[str, str], session: str) -> Collection[str] | None:
    """Return the ids of the rows that the next turn of a session continues; None if its record cannot be read.

    These are the last row of the record and all above it. Two turns at the same time begin at the same row, and the
    first to end is not above the other (2.1.330).
    """
    decode, parents, last = Decoder(_Row).decode, dict[str, str | None](), None
    try:
        (file, *_) = newest((claude_folder(env) / "projects").glob(f"*/{glob.escape(session)}.jsonl"))
        with open_regular(file) as record:
            for line in record:
                with suppress(DecodeError, UnicodeError):  # half a row, of a Claude that was killed
                    row = decode(line)
                    if row.uuid and not row.aside:
                        parents[row.uuid], last = row.parent or row.before, row.uuid
    except (OSError, ValueError):
        return None
    rows = set[str]()
    while last is not None and last not in rows:
        rows.add(last)
        last = parents.get(last)
    return rows


def _kept(file: Path, here: str | None) -> KeptSession | None:
    """Read the session of a record, with its first prompt if there is one.

    Return None if the record has no message of its own, or was begun in another folder than `here`.
    """
    talks = False
    for line in first_lines(file):
        match line:
            case {"isSidechain": True}:
                continue
            case {"cwd": str(cwd)} if here and not talks and os.path.realpath(cwd) != here:
                return None
            case {"type": "user" | "assistant", "message": {"content": content}}:
                talks = True
                said = text_of(content).strip() if line["type"] == "user" and not line.get("isMeta") else ""
                if said and not said.startswith(_OWN_WORDS):
                    return KeptSession(file.stem, used_at(file), said)
            case _:
                pass
    return KeptSession(file.stem, used_at(file), "") if talks else None
