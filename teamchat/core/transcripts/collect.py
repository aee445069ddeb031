"""Makes the transcript of a stored session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from teamchat.core.cassette import redaction
from teamchat.core.cassette.redaction import CutRedactor
from teamchat.core.cassette.writer import secrets_of
from teamchat.core.conversation.process_totals import whole_report
from teamchat.core.engine.processes.words import in_words, result_of, workers_of
from teamchat.core.engine.workflow import Process
from teamchat.core.errors import CheckpointFailed
from teamchat.core.made import made_of
from teamchat.core.messages import ConversationMessage, well_formed
from teamchat.core.receipt import QUANTITIES
from teamchat.core.store.checks import CheckRecord, every_check, output_of, ran_before
from teamchat.core.store.database import Database
from teamchat.core.store.images import image_names
from teamchat.core.store.imported import ImportedEntry, imported_entries
from teamchat.core.store.lineage import LineagePart, parts_from, place_of
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.routes import part_of, process_of
from teamchat.core.store.sessions import Session
from teamchat.core.store.summaries import clears_in
from teamchat.core.store.turn_events import StoredEvent, first_events, tool_calls
from teamchat.core.store.turns import (
    Turn,
    find_any_turn,
    partial_of,
    turn_of_session,
    turns_in_places,
    turns_with_files,
    turns_without_reply,
)
from teamchat.core.store.usage import spent
from teamchat.core.team.team import Team
from teamchat.core.text.redact import Redactor
from teamchat.core.transcripts.json_form import turn_from_json
from teamchat.core.transcripts.patches import patch_of
from teamchat.core.transcripts.spool import Spool
from teamchat.core.transcripts.transcript import (
    ChangedFile,
    Entry,
    LazyEntries,
    MemberTurn,
    RanCheck,
    SaidEntry,
    StepKind,
    Transcript,
    TranscriptStep,
    mapped,
)
from teamchat.core.worktrees.records import all_of
from teamchat.runners.agent_events import Usage
from teamchat.runners.base import NOT_ENFORCED, NOT_PROVEN
from teamchat.runners.untrusted.file_changes import FileChanges

FIXED = frozenset({"id", "type", "kind", "status", "what", "access", "session", "team"})
"""The fields whose words are the format's own, or name something."""


def redactor(env: Mapping[str, str], team: Team | None) -> CutRedactor:
    """Make the redactor of keys by their shapes, and of values with a secret's name in `env` or for a member."""
    return CutRedactor(Redactor(secrets_of(team, env) if team else env))


def without_secrets(transcript: Transcript, redact: CutRedactor) -> tuple[Transcript, int]:
    """Replace every character of a secret in the transcript by `*`, and count the secrets.

    Secrets that `redact` has removed before, where a text is cut, are counted too. If there are such texts, each is
    looked at twice, because a secret can be found after the place where a piece of it is. The texts can be written as
    UTF-8: a path may have bytes that cannot.
    """
    cleaner, before = _Cleaner(redact), redact.removed
    without = _cleaned(transcript, cleaner)
    between = redact.removed
    if between == before or not cleaner.cut:
        return without, between
    return _cleaned(transcript, cleaner), before + redact.removed - between


def _cleaned(transcript: Transcript, clean: Callable[[str, str], str]) -> Transcript:
    head: Transcript = mapped(replace(transcript, entries=()), clean)
    entries = (mapped(entry, clean) for entry in transcript.entries)
    return replace(head, entries=tuple(entries) if isinstance(transcript.entries, tuple) else Spool(entries))


class _Cleaner:
    """Replaces the secrets of texts. Short texts, such as names, recur: one without a secret is looked at once.

    `cut` is True once a text was cut, so that a piece of a secret may be left in it which is found later.
    """

    def __init__(self, redact: CutRedactor) -> None:
        self.cut = False
        self._redact, self._known = redact, set[str]()

    def __call__(self, name: str, text: str) -> str:
        if name in FIXED or text in self._known:
            return text
        self.cut = self.cut or redaction.CUT in text
        clean = self._redact(well_formed(text))
        if clean == text and len(text) <= SHORT and len(self._known) < MOST_KNOWN and redaction.CUT not in text:
            self._known.add(text)
        return clean


SHORT, MOST_KNOWN = 64, 10_000  # characters of a text, and how many such texts are known
LONGEST = 1 << 20  # characters of a turn's text, and of all its steps together
MOST_STEPS = 10_000
OVERLAP = 64 << 10  # characters behind a cut that are looked at, so that a secret across it is found
CUT = f"\n[the rest is left out: the first {LONGEST:,} characters are kept]"
NO_MORE_STEPS = (
    f"the other steps are left out: the first {LONGEST:,} characters of a turn's steps, or {MOST_STEPS:,}, are kept"
)
STEPS: dict[str, tuple[StepKind, str]] = {
    "Text": ("said", "text"),
    "Denied": ("denied", "detail"),
    "Question": ("question", "text"),
    "Retry": ("retry", "reason"),
    "Note": ("note", "text"),
    "Error": ("error", "text"),
}
"""The step made of each event other than tool calls, and the field with its text."""


class _Others(Struct):
    """Turns without a message in the session, and imported checks, by the message before them.

    `of_messages` are imported turns, by their messages, and `own` the ids of the session's own turns.
    """

    of_messages: dict[str, MemberTurn] = field(default_factory=dict)
    after: defaultdict[str | None, list[MemberTurn | RanCheck]] = field(default_factory=lambda: defaultdict(list))
    own: set[int] = field(default_factory=set)


def collect(db: Database, session: Session, redact: Callable[[str], str], patches: int = 0) -> Transcript:
    """Build the transcript of a session. Undone messages, turns and checks are in it, marked as such.

    Side turns (summaries, lessons) are left out. The newest `patches` turns that changed files have their patches; all
    of them have if it is -1. `redact` removes the secrets of a text that is cut, and keeps lengths. Entries are read
    from the store each time they are asked for. Raises `DamagedStore`, as they do.
    """
    process = db.the(process_of, "SELECT process FROM sessions WHERE id = ?", session.id)
    return Transcript(
        session.name,
        session.team,
        session.task,
        round(session.created_at * 1000),
        LazyEntries(partial(_entries, db, session, redact, patches, process)),
        session.title,
        result_of(whole_report(db, session.id, process)) if process else None,
        _merges(db, db.path.parent, session),
        took if (took := spent(db, session.id)).turns else None,
    )


def _entries(
    db: Database, session: Session, redact: Callable[[str], str], patches: int, process: Process | None
) -> Iterator[Entry]:
    log = SqliteLog(db, session.id)
    hidden, images = log.hidden(), image_names(db, session.id)
    cleared = {clear.through for clear in clears_in(db, session.id)}
    parts = list(parts_from(db, session.id, 0))
    changed = [turn for part in parts for turn in turns_with_files(db, part.session, patches)] if patches else []
    made = partial(_member_turn, db, redact, frozenset(changed if patches < 0 else changed[-patches:]))
    others = _others(db, session, parts, made)
    _add_imported(others, images, imported_entries(db, session.id))

    def entries() -> Iterator[tuple[Entry, bool]]:
        """List each entry, and whether its turn is one of the session itself."""
        yield from ((entry, id(entry) in others.own) for entry in others.after[None])
        for message in log.newest(0, hidden=True):
            own = found = None
            if message.turn_id is not None:
                own = turn_of_session(db, session.id, message.turn_id)
                found = own or find_any_turn(db, message.turn_id)  # else of a session that this one is a branch of
            turn = made(found, message.content) if found else others.of_messages.get(message.id)
            gone = message.id in hidden
            said = SaidEntry(
                replace(message, turn_id=None, agent=None, typed=0),
                replace(turn, undone=gone) if turn else None,
                images.get(message.id, ()),
                gone,
                message.id in cleared,
                _words(db, message, process),
            )
            yield said, own is not None
            yield from ((entry, id(entry) in others.own) for entry in others.after.get(message.id, ()))

    return _with_checks(entries(), every_check(db, session.id), lambda one: _ran_check(db, one, redact))


def _merges(db: Database, state: Path, session: Session) -> tuple[str, ...]:
    """List the commands that bring in the members' changes in their worktrees."""
    if not (trees := all_of(state, session.id)):
        return ()
    from teamchat.core.worktrees.remove import merge_commands, not_merged  # most conversations have no worktrees

    try:
        return merge_commands(not_merged(state, trees), turns_in_places(db, session.id))
    except CheckpointFailed:  # `teamchat worktrees` says why
        return ()


def _words(db: Database, message: ConversationMessage, process: Process | None) -> str:
    part = part_of(db, message.turn_id) if message.turn_id is not None else None
    said = in_words(part, message.speaker.role_name, message.content, workers_of(process, message.id))
    return "" if said == message.content else said


def _others(
    db: Database, session: Session, parts: Iterable[LineagePart], make: Callable[[Turn, str], MemberTurn]
) -> _Others:
    others = _Others()
    for part in parts:
        for turn in turns_without_reply(db, part.session):
            if _is_part(db, session, part, turn):
                made = make(turn, "")
                others.after[turn.shown_through].append(made)
                others.own |= {id(made)} if part.session == session.id else set()
    return others


def _with_checks(
    entries: Iterable[tuple[Entry, bool]], checks: Iterator[CheckRecord], make: Callable[[CheckRecord], RanCheck]
) -> Iterator[Entry]:
    """Insert each check before the first entry that is behind it."""
    waits = next(checks, None)
    for entry, own in entries:
        turn = entry.turn if isinstance(entry, SaidEntry) else entry
        number = turn.number if own and isinstance(turn, MemberTurn) else None
        moment = entry.message.timestamp if isinstance(entry, SaidEntry) else entry.began_ms
        while waits is not None and ran_before(waits, number, moment):
            yield make(waits)
            waits = next(checks, None)
        yield entry
    if waits is not None:
        yield from map(make, (waits, *checks))


def _ran_check(db: Database, check: CheckRecord, redact: Callable[[str], str]) -> RanCheck:
    result, changes = check.result, check.changes
    file_changes = changes if isinstance(changes, FileChanges) else None
    return RanCheck(
        number=check.number,
        name="" if check.name == check.command else check.name,
        command=check.shown_command,
        status=check.status,
        began_ms=round(check.started_at * 1000),
        reason=result.reason if result else "",
        exit_code=result.exit_code if result else None,
        seconds=result.seconds if result else None,
        by_hand=check.route is None,
        output=_within(output_of(db, check).decode(errors="replace"), redact),
        output_bytes=result.output_bytes if result else 0,
        files=_changed(file_changes),
        more_files=file_changes.more if file_changes else 0,
        undone=check.undone is not None,
    )


def _changed(changes: FileChanges | None) -> tuple[ChangedFile, ...]:
    files = changes.files if changes else ()
    return tuple(ChangedFile(file.path, file.what, file.added, file.removed) for file in files)


def _add_imported(turns: _Others, images: dict[str, tuple[str, ...]], entries: Iterable[ImportedEntry]) -> None:
    for entry in entries:
        turn = entry.turn and turn_from_json(entry.turn)
        if entry.message is None and turn:
            turns.after[entry.after].append(turn)
        elif entry.message is not None:
            images.setdefault(entry.message, entry.images)
            if isinstance(turn, MemberTurn):
                turns.of_messages[entry.message] = turn


def _is_part(db: Database, session: Session, part: LineagePart, turn: Turn) -> bool:
    """Whether a turn without a message in the session belongs to it. One of a branch's parent may have come later."""
    if turn.route is None or (turn.outcome and turn.outcome.reply):
        return False
    if part.session == session.id:
        return True
    shown = place_of(db, part.session, turn.shown_through)
    return shown is not None and shown < part.through


def _member_turn(
    db: Database, redact: Callable[[str], str], patched: Collection[int], turn: Turn, reply: str
) -> MemberTurn:
    outcome, text = turn.outcome, partial_of(db, turn)
    events, all_ = first_events(db, turn.id, MOST_STEPS, LONGEST + OVERLAP)
    steps = list(_untold(_steps(events, _ran_with(turn, "cwd")), (reply, text)))
    if not all_:
        steps.append(TranscriptStep(_at(events[-1]), "note", NO_MORE_STEPS))
    access_note = _ran_with(turn, "access_note")
    usage = (outcome and outcome.usage) or Usage()
    changes = outcome.known_changes if outcome else None
    reported = outcome.files if outcome and not changes else ()
    return made_of(
        MemberTurn,
        turn,
        access=turn.setup.access,
        began_ms=round(turn.started_at * 1000),
        model=(outcome and outcome.model) or turn.setup.model,
        seconds=outcome.seconds if outcome else None,
        failure=outcome.failure.reason if outcome and outcome.failure else None,
        text=_within(text, redact),
        steps=tuple(
            replace(step, text=_within(step.text, redact), output=_within(step.output, redact)) for step in steps
        ),
        files=(*_changed(changes), *map(ChangedFile, reported)),
        more_files=changes.more if changes else 0,
        **{name: getattr(usage, name) for name in QUANTITIES},
        undone=turn.undone is not None,
        host=turn.setup.host,
        patch=patch_of(db.path.parent, turn, redact) if turn.id in patched else "",
        bounded=not access_note.startswith(NOT_ENFORCED) and NOT_PROVEN not in access_note,
    )


def _ran_with(turn: Turn, name: Literal["cwd", "access_note"]) -> str:
    """Return that field of the turn's setup; of a turn on a host the host's own."""
    ran = turn.outcome.ran if turn.outcome else None
    return (getattr(ran, name) if ran else "") or getattr(turn.setup, name)


def _steps(events: list[StoredEvent], folder: str) -> Iterator[TranscriptStep]:
    """List the steps of a turn in that folder, with the paths of tools relative to it."""
    results = {id(call): result for call, result in tool_calls(events)}
    for event in events:
        if result := results.get(id(event)):
            call, came = event.data, result.data
            text = _relative(call["summary"], folder)
            yield TranscriptStep(_at(event), "tool", text, call["name"], came["output"], bool(came.get("failed")))
        elif event.type in STEPS:
            kind, name = STEPS[event.type]
            yield TranscriptStep(_at(event), kind, _relative(event.data[name], folder), event.data.get("tool", ""))


def _untold(steps: Iterable[TranscriptStep], told: tuple[str, str]) -> Iterator[TranscriptStep]:
    """Leave out steps whose text is in the reply, or in the text of a failed turn (whose end is cut)."""
    reply, text = told
    for step in steps:
        said = step.text.strip()
        if step.kind == "said" and (said in reply or said in text or said.startswith(text[:LONGEST].strip() or "\0")):
            continue
        yield step


def _within(text: str, redact: Callable[[str], str]) -> str:
    """Return the text up to the cut. A secret across it is found first, as after it only a piece is left."""
    return text if len(text) <= LONGEST else f"{redact(text[: LONGEST + OVERLAP])[:LONGEST]}{CUT}"


def _relative(text: str, folder: str) -> str:
    return text.replace(f"{folder.rstrip('/')}/", "") if folder.strip("/") else text


def _at(event: StoredEvent) -> float:
    return max(event.at, 0.0)
