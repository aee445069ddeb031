"""The search index of a workspace's knowledge files, and the pieces of their texts.

The index is a cache: a damaged one is built again. A file is read again when its times or size change, and indexed
again when its hash does. If nothing has changed, a turn only lists the folders. The index holds no messages and belongs
to no session.

A text is cut into pieces that are found and quoted separately. Joined again they are the text, byte for byte. Markdown
is cut at its headings. Any other text is cut at blank lines, first at those before an unindented line: the text between
them is a paragraph, or one function of a program. A piece that is still too large is cut at lines, then sentences, then
words.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from teamchat.assemblers.truncation import byte_length
from teamchat.core.errors import StoreError
from teamchat.core.files.folders import WRITABLE
from teamchat.core.files.whole_files import write_private
from teamchat.core.knowledge.files import KnowledgeFile, harmless_text, read_source
from teamchat.core.text.words import TOKENIZER, spaced
from teamchat.patterns import regex

INDEX_NAME = "knowledge.db"
VERSION = 5  # version of the tables and of how texts are read and cut; any other index is deleted
BUSY_S = 30.0
MARKDOWN = frozenset({".md", ".markdown", ".mdx"})
CANDIDATES = 200  # pieces considered for a prompt
JUST_CHANGED_NS = 2_000_000_000  # a file may change again within one tick of its file system's clock
_SHAPE = f"""
    CREATE TABLE files (id INTEGER PRIMARY KEY, path BLOB UNIQUE, stamp TEXT, hash TEXT, problem TEXT);
    CREATE TABLE pieces (
        id INTEGER PRIMARY KEY, file INTEGER, number INTEGER, first INTEGER, last INTEGER,
        heading TEXT, bytes INTEGER, text TEXT
    );
    CREATE INDEX pieces_of_file ON pieces (file, number);
    CREATE VIRTUAL TABLE words USING fts5 (heading, body, tokenize = '{TOKENIZER}');
    PRAGMA user_version = {VERSION};
"""


class _Row(NamedTuple):
    """An indexed file. `problem` says why it has no text."""

    id: int
    stamp: str
    hash: str
    problem: str


class KnowledgeHit(Struct, frozen=True):
    """A piece of a file. A higher `score` is a better match; it is 0 when nothing was searched for."""

    file: KnowledgeFile
    number: int
    first: int
    last: int
    heading: str
    bytes: int
    text: str
    score: float = 0.0


class Indexed(Struct, frozen=True):
    """The files of a set that have text, by their row; their total size in bytes; the problems of the others."""

    files: dict[int, KnowledgeFile]
    bytes: int
    problems: tuple[str, ...]


class KnowledgeIndex:
    """The index in the file at `path`, created when first needed. Many processes may use it at once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextlib.contextmanager
    def open(self) -> Iterator[OpenIndex]:
        """Open the index; a damaged one is removed, and the next turn creates a new one. Raises `StoreError`."""
        try:
            db = self._connect()
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error
        try:
            yield OpenIndex(db)
        except sqlite3.DatabaseError as error:
            if _damaged(error):  # the next turn creates a new one
                self._remove()
            raise self._unusable(error) from error
        finally:
            db.close()

    def _unusable(self, error: sqlite3.DatabaseError) -> StoreError:
        return StoreError(f"the index of the team's knowledge, {self.path}, cannot be used: {error}; {WRITABLE}")

    def _connect(self) -> sqlite3.Connection:
        try:
            return _prepared(self.path)
        except sqlite3.DatabaseError as error:
            if not _damaged(error):
                raise
            self._remove()
            return _prepared(self.path)

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)


def _prepared(path: Path) -> sqlite3.Connection:
    with contextlib.suppress(OSError):  # it exists, or SQLite reports why it cannot
        write_private(path, b"")  # SQLite gives its mode to the files beside it
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        if db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            with _transaction(db):
                if db.execute("PRAGMA user_version").fetchone()[0] != VERSION:  # otherwise another process was faster
                    for name in ("files", "pieces", "words"):
                        db.execute(f"DROP TABLE IF EXISTS {name}")
                    for statement in _SHAPE.split(";\n"):
                        db.execute(statement)
    except BaseException:
        db.close()
        raise
    return db


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _damaged(error: sqlite3.DatabaseError) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class OpenIndex:
    """The index while it is in use."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def bring_up_to_date(self, files: Sequence[KnowledgeFile], named: Iterable[Path]) -> Indexed:
        """Index the `files` that have changed, and remove files that are no longer below any of the `named` paths."""
        known = self._known()
        changed = [file for file in files if file.path not in known or known[file.path].stamp != file.stamp]
        for file in changed:
            content = read_source(file)
            digest = sha256(content).hexdigest() if content is not None else ""
            stamp = "" if time.time_ns() - file.changed_ns < JUST_CHANGED_NS else file.stamp
            with _transaction(self._db):  # one for each file: other indexers wait for this one, not for all
                self._write(file, content, digest, stamp)
        if changed:
            with _transaction(self._db):
                there, roots = {file.path for file in files}, list(named)
                for path, row in self._known().items():
                    stays = path in there or (any(map(path.is_relative_to, roots)) and path.exists())
                    if not stays:
                        self._drop(row.id)
            known = self._known()
        rows = {file: known[file.path] for file in files if file.path in known}  # another process may remove one
        readable = {row.id: file for file, row in rows.items() if not row.problem}
        size = self._db.execute(
            "SELECT COALESCE(SUM(bytes), 0) FROM pieces WHERE file IN (SELECT value FROM json_each(?))",
            (_ids(readable),),
        ).fetchone()[0]
        return Indexed(readable, size, tuple(row.problem for row in rows.values() if row.problem))

    def _known(self) -> dict[Path, _Row]:
        rows = self._db.execute("SELECT path, id, stamp, hash, problem FROM files")
        return {Path(os.fsdecode(path)): _Row(*rest) for path, *rest in rows}

    def _write(self, file: KnowledgeFile, content: bytes | None, digest: str, stamp: str) -> None:
        select = "SELECT id, stamp, hash, problem FROM files WHERE path = ?"
        stored = self._db.execute(select, (os.fsencode(file.path),)).fetchone()
        before = _Row(*stored) if stored else None
        if before and before.stamp == file.stamp:
            return  # another process was faster
        if before and before.hash == digest and content is not None:
            self._db.execute("UPDATE files SET stamp = ? WHERE id = ?", (stamp, before.id))
            return
        if before:
            self._drop(before.id)
        text = None if content is None else harmless_text(content)
        problem = "unreadable" if content is None else "not text" if text is None else ""
        row = self._db.execute(
            "INSERT INTO files (path, stamp, hash, problem) VALUES (?, ?, ?, ?) RETURNING id",
            (os.fsencode(file.path), stamp if content is not None else "", digest, problem),
        ).fetchone()[0]
        markdown = file.path.suffix.lower() in MARKDOWN
        for number, piece in enumerate(cut_pieces(text or "", markdown=markdown)):
            size = byte_length(piece.text)
            piece_row = self._db.execute(
                "INSERT INTO pieces (file, number, first, last, heading, bytes, text) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (row, number, piece.first, piece.last, piece.heading, size, piece.text),
            ).lastrowid
            heading = spaced(f"{os.fsencode(file.path.name).decode(errors='replace')} {piece.heading}")
            self._db.execute("INSERT INTO words (rowid, heading, body) VALUES (?, ?, ?)",
                             (piece_row, heading, spaced(piece.text)))  # fmt: skip

    def _drop(self, row: int) -> None:
        self._db.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM pieces WHERE file = ?)", (row,))
        self._db.execute("DELETE FROM pieces WHERE file = ?", (row,))
        self._db.execute("DELETE FROM files WHERE id = ?", (row,))

    def whole(self, files: dict[int, KnowledgeFile]) -> list[KnowledgeHit]:
        """List every piece of these files, in order."""
        rows = self._db.execute(
            """SELECT file, number, first, last, heading, bytes, text FROM pieces
            WHERE file IN (SELECT value FROM json_each(?))""",
            (_ids(files),),
        )
        place = {row: number for number, row in enumerate(files)}
        hits = [(place[row], KnowledgeHit(files[row], *rest)) for row, *rest in rows]
        return [hit for _, hit in sorted(hits, key=lambda pair: (pair[0], pair[1].number))]

    def search(self, files: dict[int, KnowledgeFile], query: str) -> list[KnowledgeHit]:
        """Find the pieces of these files that match best, best first. A word in a heading counts twice."""
        rows = self._db.execute(
            """SELECT file, number, first, last, pieces.heading, bytes, text, -bm25(words, 2.0, 1.0) AS score
            FROM words JOIN pieces ON pieces.id = words.rowid WHERE words MATCH ?
            AND file IN (SELECT value FROM json_each(?)) ORDER BY score DESC, pieces.id LIMIT ?""",
            (query, _ids(files), CANDIDATES),
        )
        return [KnowledgeHit(files[row], *rest) for row, *rest in rows]


def _ids(files: Iterable[int]) -> str:
    return str(list(files))


LARGEST = 1600  # UTF-8 bytes of a piece, about 400 tokens
DEEPEST = 6  # levels of headings
SEPARATOR = " > "  # separates the headings above a piece
_LINE = regex(r"[^\n]*\n|[^\n]+")
_WORD = regex(r"[^\s。！？；]*(?:[\s。！？；]+|\Z)")
_FENCE = regex(r" {0,3}(`{3,}|~{3,})")


class FilePiece(Struct, frozen=True):
    """The lines `first` to `last` of a file, or parts of them. `heading` names the headings above them."""

    text: str
    first: int
    last: int
    heading: str = ""


def cut_pieces(text: str, *, markdown: bool) -> list[FilePiece]:
    """Cut all of `text` in order into pieces of at most `LARGEST` bytes. The cost is linear."""
    pieces: list[FilePiece] = []
    line = 1
    for heading, section in _sections(text) if markdown else [("", text)]:
        for part in _fitting(section):
            next_line = line + part.count("\n")
            pieces.append(FilePiece(part, line, max(line, next_line - part.endswith("\n")), heading))
            line = next_line
    return pieces


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Split the text into sections with their headings. A heading without text belongs to the next section."""
    path: list[str] = []
    held: list[str] = []
    has_text = False
    fence = ""
    for line in _LINE.findall(text):
        level = _level(line) if "#" in line and not fence else 0
        if level and has_text:
            yield _named(path), "".join(held)
            held, has_text = [], False
        if level:
            path = [*(path + [""] * level)[: level - 1], line.strip()[level:].strip("# \t")]
        elif not line.isspace():
            has_text = True
            fence = _after(fence, line) if "```" in line or "~~~" in line else fence
        held.append(line)
    if held:
        yield _named(path), "".join(held)


def _level(line: str) -> int:
    """Return the heading level of the line, from 1; 0 for other lines."""
    bare = line.strip()
    level = len(bare) - len(bare.lstrip("#"))
    indented = line.startswith(("    ", "\t"))
    return level if 1 <= level <= DEEPEST and bare[level : level + 1] in ("", " ", "\t") and not indented else 0


def _named(path: Iterable[str]) -> str:
    return SEPARATOR.join(filter(None, path))


def _after(fence: str, line: str) -> str:
    """Return the code fence that is open on the next line; empty if none is."""
    match = _FENCE.match(line)
    if not fence:
        return match[1] if match else ""
    closes = match is not None and match[1].startswith(fence) and line.strip() == match[1]
    return "" if closes else fence


def _fitting(text: str, level: int = 0) -> list[str]:
    """Cut `text` into parts that are small enough, at the coarsest of the `LEVELS` that is fine enough."""
    if byte_length(text) <= LARGEST:
        return [text] if text else []
    fitting: list[str] = []
    held: list[str] = []
    size = 0
    for part in LEVELS[level](text):
        room = byte_length(part)
        if held and size + room > LARGEST:
            fitting.append("".join(held))
            held, size = [], 0
        if room > LARGEST:
            fitting += _fitting(part, level + 1)
        else:
            held.append(part)
            size += room
    return [*fitting, *(["".join(held)] if held else [])]


def _blocks(text: str, begins: Callable[[str], bool]) -> list[str]:
    """Split the text before each line that follows a blank line and satisfies `begins`."""
    parts: list[list[str]] = [[]]
    blank = False
    for line in _LINE.findall(text):
        if blank and begins(line) and parts[-1]:
            parts.append([])
        parts[-1].append(line)
        blank = line.isspace()
    return ["".join(part) for part in parts]


def _characters(text: str) -> list[str]:
    step = LARGEST // 4  # no character takes more than four bytes
    return [text[start : start + step] for start in range(0, len(text), step)]


LEVELS: tuple[Callable[[str], list[str]], ...] = (
    lambda text: _blocks(text, lambda line: not line[0].isspace()),
    lambda text: _blocks(text, lambda line: not line.isspace()),
    _LINE.findall,
    lambda text: list(filter(None, _WORD.findall(text))),
    _characters,
)
