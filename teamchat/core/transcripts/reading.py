"""Reads a file that somebody else may have written, a transcript of ours or a snapshot, and stores it.

Nothing in it is trusted: every value is checked, and `remarks` names everything that could not be kept.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import count, islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from teamchat.assemblers.truncation import byte_length, truncate_end
from teamchat.core.cassette.account import well_formed_json
from teamchat.core.context.snapshot import from_json as snapshot_from_json
from teamchat.core.context.snapshot import own_ids
from teamchat.core.messages import MAX_TEAM_TASK_BYTES
from teamchat.core.routing.names import fold, valid_name, valid_speaker
from teamchat.core.store.database import Database
from teamchat.core.store.imported import ImportedEntry, put_imported
from teamchat.core.store.lineage import hide_messages
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import Session, create_session, need_session, set_beginning
from teamchat.core.store.summaries import add_clear
from teamchat.core.text.clean import printable
from teamchat.core.transcripts.json_form import (
    LATEST_MS,
    LONGEST_NAME,
    entry_fields,
    from_json,
    from_lines,
    turn_fields,
)
from teamchat.core.transcripts.transcript import MemberTurn, RanCheck, SaidEntry, Transcript, mapped
from teamchat.runners.untrusted.json import not_too_deep, one_line

LARGEST = 256 << 20  # bytes of a file; reading takes about ten times as much memory
MOST_ENTRIES = 200_000
# the fields that name something: lines and headings repeat them
NAMES = frozenset({"role_id", "role_title", "images", "team", "title", "agent", "model", "name", "host"})
# the fields that name who spoke or is spoken to: prompts show them outside of the fence
SPEAKERS = frozenset({"role_name", "stands_for", "resolved_addressees", "member"})
POSING = frozenset({"system", "teamchat"})  # folded names of voices that a member obeys
MOST_RENAMED = 5  # ids named in a remark


class Imported(Struct, frozen=True):
    """A conversation from a file, and the differences from the file that a person has to know, a line each.

    `session` and `team` of the transcript are empty where the file does not name them.
    """

    transcript: Transcript
    remarks: tuple[str, ...] = ()


def read(data: bytes) -> Imported:
    """Read the file with these bytes. Raises `ValueError`, which names the mistake in one line."""
    try:
        value = well_formed_json(not_too_deep(_parsed(data)))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    # Raises `ValueError` for a file with more messages and turns than an import takes.
    entries = value
    if isinstance(value, dict):
        entries = value.get("entries", value.get("messages"))
    if isinstance(entries, list) and len(entries) > MOST_ENTRIES:
        raise ValueError(f"it has {len(entries):,} entries, and an import takes at most {MOST_ENTRIES:,}")
    match value:
        case [{"type": "transcript"}, *_]:
            return _imported(from_lines(value))
        case {"type": "transcript"} if "entries" not in value:
            return _imported(from_lines([value]))
        case {"transcript": _}:
            return _imported(from_json(value))
        case {"messages": _, "version": _}:
            return _of_snapshot(value)
    raise ValueError("it is no transcript and no snapshot")


def _parsed(data: bytes) -> object:
    """Parse the JSON value in the bytes; of a file with a value on each line, the list of them."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text: byte {error.start + 1:,} is 0x{data[error.start]:02x}") from None
    try:
        return _loads(text)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise ValueError(_where(error, error.lineno)) from None
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            lines += [_loads(line)] if line.strip() else []
        except json.JSONDecodeError as error:
            raise ValueError(_where(error, number)) from None
    return lines


def _loads(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse)


def _where(error: json.JSONDecodeError, line: int) -> str:
    return f"it is not JSON: {error.msg} in line {line:,}, column {error.colno:,}"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _imported(transcript: Transcript) -> Imported:
    """Give the transcript names on one line, an id for each message, and a task that a session can hold.

    A speaker without a possible name is `imported-1`, `imported-2`, ... in all of it.
    """
    changed: set[str] = set()
    strangers = _strangers(transcript)

    def named(field: str, text: str) -> str:
        if field in SPEAKERS:
            return strangers.get(text, text)
        short = printable(text)[:LONGEST_NAME] if field in NAMES else text
        if short == text:
            return text
        changed.add(short)
        return short

    transcript = mapped(transcript, named)
    said = list(transcript.said)
    # Turn notes show ids outside of the fence: an id that is not a word gets a new one.
    messages = [entry.message for entry in said]
    ids = own_ids([one if valid_name(one.id) else replace(one, id="") for one in messages])
    renamed = [(entry.message.id, own) for entry, own in zip(said, ids, strict=True) if entry.message.id != own]
    own = iter(ids)
    entries = (
        replace(entry, message=replace(entry.message, id=next(own))) if isinstance(entry, SaidEntry) else entry
        for entry in transcript.entries
    )
    task = transcript.task and truncate_end(transcript.task, MAX_TEAM_TASK_BYTES)
    remarks = (*_replaced(strangers), *_changed(changed), *_renamed(renamed))
    if transcript.task and task != transcript.task:
        remarks += (f"the task has {byte_length(transcript.task):,} bytes, and was cut to {MAX_TEAM_TASK_BYTES:,}",)
    return Imported(replace(transcript, task=task, entries=tuple(entries)), remarks)


def _strangers(transcript: Transcript) -> dict[str, str]:
    """Find new names for speakers whose own names are impossible, by their own ones, in the order of the file."""
    names: dict[str, bool] = {}

    def noted(field: str, text: str) -> str:
        if field in SPEAKERS and text and text not in names:
            names[text] = valid_speaker(text) and fold(text) not in POSING
        return text

    mapped(transcript, noted)
    taken = {fold(name) for name, is_kept in names.items() if is_kept}
    free = (name for name in map("imported-{}".format, count(1)) if fold(name) not in taken)
    return {name: next(free) for name, is_kept in names.items() if not is_kept}


def _replaced(strangers: Mapping[str, str]) -> Iterator[str]:
    if strangers:
        pairs = islice(strangers.items(), MOST_RENAMED)
        shown = ", ".join(f"{own} for {one_line(name, 40)!r}" for name, own in pairs)
        more = f" and {len(strangers) - MOST_RENAMED:,} more" if len(strangers) > MOST_RENAMED else ""
        yield f"names that no member can have were replaced: {shown}{more}"


def _changed(names: Collection[str]) -> Iterator[str]:
    if names:
        shown = ", ".join(repr(one_line(name, 40)) for name in sorted(names)[:MOST_RENAMED])
        more = f" and {len(names) - MOST_RENAMED:,} more" if len(names) > MOST_RENAMED else ""
        yield f"names that no line can show, or that are too long, were changed: {shown}{more}"


def _renamed(renamed: list[tuple[str, str]]) -> Iterator[str]:
    for old, new in renamed[:MOST_RENAMED]:
        yield f"the message id {one_line(old, 80)!r} is empty, repeated or no word: that message is {new} now"
    if len(renamed) > MOST_RENAMED:
        yield f"and {len(renamed) - MOST_RENAMED:,} more messages have new ids"


def _of_snapshot(snapshot: dict[str, Any]) -> Imported:
    """Read a snapshot's conversation. It began with its first message."""
    try:
        conversation = snapshot_from_json(snapshot)
    except ValueError:
        raise ValueError("it is no snapshot of version 1: a message, a speaker or a time is missing or wrong") from None
    began = conversation.messages[0].timestamp if conversation.messages else 0
    entries = tuple(map(SaidEntry, conversation.messages))
    imported = _imported(Transcript("", "", conversation.team_task, min(max(began, 0), LATEST_MS), entries))
    renamed = _renamed([(renaming.old, renaming.new) for renaming in conversation.renamed])
    return replace(imported, remarks=(*imported.remarks, *renamed))


def store(db: Database, transcript: Transcript, name: str | None) -> Session:
    """Store the transcript in a new session of that name; its messages have ids of their own. All of it or nothing.

    The next command continues this session.
    """
    entries = list(_entries(transcript))  # before the transaction, which keeps others from writing
    with db.transaction():
        session = create_session(db, transcript.team, None, name, title=transcript.title)
        set_beginning(db, session.id, transcript.began_ms / 1000)
        SqliteLog(db, session.id).restore((said.message for said in transcript.said), transcript.task)
        for said in transcript.said:
            if said.cleared and not said.undone:
                add_clear(db, session.id, said.message.id)
        SqliteLog(db, session.id).team_task = transcript.task  # a clear removed it
        hide_messages(db, session.id, (said.message.id for said in transcript.said if said.undone))
        put_imported(db, session.id, entries)
        return need_session(db, session.name)


def _entries(transcript: Transcript) -> Iterator[ImportedEntry]:
    after: str | None = None
    for entry in transcript.entries:
        if isinstance(entry, MemberTurn):
            yield ImportedEntry(None, after, _json(entry))
            continue
        if isinstance(entry, RanCheck):
            yield ImportedEntry(None, after, json.dumps(entry_fields(entry), ensure_ascii=False))
            continue
        after = entry.message.id
        if entry.turn or entry.images:
            yield ImportedEntry(after, None, _json(entry.turn) if entry.turn else None, entry.images)


def _json(turn: MemberTurn) -> str:
    return json.dumps(turn_fields(turn), ensure_ascii=False)
