"""Claude's sessions, from its own records (observed at 2.1.332)."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import DecodeError, Struct, field
from msgspec.json import Decoder

from teamchat.patterns import regex
from teamchat.runners.base import KeptSession
from teamchat.runners.homes.folders import claude_folder
from teamchat.runners.homes.records import first_lines, is_folder, longer_than_read, newest, text_of, used_at
from teamchat.runners.untrusted.regular_files import open_regular

_NO_NAME = regex(r"[^A-Za-z0-9]")
_LONGEST_NAME = 200  # characters of a folder's name; Claude cuts a longer one there, and puts "-" and a hash behind it
_OWN_WORDS = regex(
    r"(?:<(command-(?:name|message|args)|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)"
    r"|system-reminder)>.*?</\1>\s*)*",
    re.DOTALL,
)
"""The blocks at the beginning of a prompt that Claude writes for the person."""


def kept_in(env: Mapping[str, str], cwd: Path) -> Iterator[KeptSession]:
    """List the sessions that Claude finds in that folder, newest first. Rows of its subagents are left out."""
    here = os.path.realpath(cwd)
    projects, name = claude_folder(env) / "projects", _NO_NAME.sub(_dashes, here)
    folders = projects.glob(f"{name[:_LONGEST_NAME]}-*") if len(name) > _LONGEST_NAME else [projects / name]
    for file in newest(file for folder in folders for file in folder.glob("*.jsonl")):
        if kept := _kept(file, here):
            yield kept


class _Row(Struct):
    """The place of a row in a record. After a compaction it names its parent by another field."""

    uuid: str | None = None
    parent: str | None = field(default=None, name="parentUuid")
    before: str | None = field(default=None, name="logicalParentUuid")
    aside: bool = field(default=False, name="isSidechain")


def continued_rows(env: Mapping[str, str], cwd: Path, session: str) -> Collection[str] | None:
    """Return the ids of the rows that the next turn of a session continues; None if its record cannot be read.

    These are the last row of the record and all above it. Two turns at the same time begin at the same row, and the
    first to end is not above the other (2.1.330).
    """
    decode, parents, last = Decoder(_Row).decode, dict[str, str | None](), None
    try:
        found = newest((claude_folder(env) / "projects").glob(f"*/{glob.escape(session)}.jsonl"))
        here = _NO_NAME.sub(_dashes, os.path.realpath(cwd))[:_LONGEST_NAME]
        file = next((record for record in found if record.parent.name[:_LONGEST_NAME] == here), None) or found[0]
        with open_regular(file) as record:
            for line in record:
                with suppress(DecodeError, UnicodeError):  # half a row, of a Claude that was killed
                    row = decode(line)
                    if row.uuid and not row.aside:
                        parents[row.uuid], last = row.parent or row.before, row.uuid
    except (OSError, ValueError, IndexError):
        return None
    rows = set[str]()
    while last is not None and last not in rows:
        rows.add(last)
        last = parents.get(last)
    return rows


def _dashes(character: re.Match[str]) -> str:
    """Return what stands for a character in a folder's name: JavaScript sees two units in one beyond U+FFFF."""
    return "--" if character[0] > "\uffff" else "-"


def _kept(file: Path, here: str) -> KeptSession | None:
    """Read the session of a record, with its first prompt if there is one.

    Return None if the record has no message of its own, or was begun in another folder than `here`: folders whose
    paths differ only in such as "/" and "-" share one folder of records. A record that names no folder is taken.
    """
    placed, talks, aside = False, False, False
    for line in first_lines(file):
        if line.get("isSidechain") is True:
            aside = True
            continue
        if not placed and isinstance(cwd := line.get("cwd"), str):
            placed = True  # by its first row: Claude may go to another folder later
            if not is_folder(cwd, here):
                return None
        match line:
            case {"type": "user" | "assistant", "message": {"content": content}}:
                talks = True
                said = text_of(content).strip() if line["type"] == "user" and not line.get("isMeta") else ""
                if (own := _OWN_WORDS.match(said)) and (asked := said[own.end() :]):
                    return KeptSession(file.stem, used_at(file), asked)
            case _:
                pass
    unread = not aside and longer_than_read(file)  # such as one that begins with a large picture
    return KeptSession(file.stem, used_at(file), "") if talks or unread else None
