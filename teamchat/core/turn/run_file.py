"""The file of a session's last run: its lines as they come, for who watches from another process.

The process that runs the conversation appends; a new run begins a new file by rename. A file that grows is written anew
in the same way, without the pieces of text that a finished block replaces, and without its middle if that is still too
much. Readers hold no lock and delay nobody: they count lines, and so go on in the new file where they were.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import compress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from msgspec import DecodeError, Struct, convert
from msgspec.json import Decoder, decode

from teamchat.core.store.rows import encoded
from teamchat.core.turn.lines import (
    ANY,
    LINES,
    LeftOutLine,
    LineMaker,
    RunLine,
    TextDeltaLine,
    TextLine,
    TurnFinishedLine,
    result_line,
)
from teamchat.core.turn.run_events import AgentSpoke, Conclusion, ConversationEvent, JsonLine
from teamchat.runners.untrusted.regular_files import open_regular

T = TypeVar("T")
RUNS = "runs"  # The folder of a workspace with the files.
LARGEST = 64 << 20  # Bytes of a file.
FIRST = LARGEST // 4  # Bytes kept at the beginning if the middle is left out.
LAST = LARGEST // 2  # Bytes kept at the end.
REPLACED = 1 << 20  # Bytes of replaced pieces of text from which on a file is written anew.
ROOM = 16 << 20  # Bytes that stay free on the disk: the end of a turn is stored first.
_KINDS = {str(line.__struct_config__.tag): line for line in LINES}
LONGEST_FIRST = 1 << 10  # bytes of the first line, with the session's name


def run_file(state: Path, session: int) -> Path:
    """Return the path of a session's file of its last run, by its id in the store of that state folder."""
    return state / RUNS / f"session-{session}.jsonl"


def remove_run_file(state: Path, session: int) -> None:
    """Remove the files that a session's runs left. A file that cannot be removed stays."""
    file = run_file(state, session)
    for path in (file, _new(file)):
        with contextlib.suppress(OSError):
            path.unlink()


def _new(path: Path) -> Path:
    return path.with_suffix(".new")


def tell_watchers(state: Path, session: int, name: str, event: ConversationEvent) -> None:
    """Tell watchers about a command without a turn: behind the lines of the last run."""
    with contextlib.closing(RunFile(run_file(state, session), name, further=True)) as file:
        file(event)


class RunFile:
    """Appends a run's lines to its file, which the first line begins. `session` is the session's name.

    An output that prints the same lines may share `lines`, which makes them.

    Nothing here raises: a line that has no room is counted, and the next one says so. With `further` the lines follow
    the last run's lines.
    """

    def __init__(self, path: Path, session: str, lines: LineMaker | None = None, *, further: bool = False) -> None:
        self._path, self._session, self._further = path, session, further
        self._lines = lines or LineMaker()
        self._file: int | None = None
        self._waiting: list[JsonLine] = []
        self._missing = self._size = self._replaced = 0
        self._pieces = Counter[int]()  # bytes of text pieces not replaced yet, by the turn
        self._torn = self._full = False

    def _begin(self, size: int) -> None:
        """Open the file, unless it has no room for `size` more bytes. Raises `OSError`."""
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        if not _has_room(self._path, size):
            return
        if self._further and self._path.exists():
            self._file = _locked(self._path)
            return
        number = 0 if self._further else _number(self._path) + 1
        run = os.urandom(8).hex() if number else ""
        first = encoded(RunLine(number=number, session=self._session, id=run)) + b"\n"
        file = _opened(_new(self._path), os.O_APPEND | os.O_CREAT | os.O_TRUNC)
        with contextlib.ExitStack() as failed:
            failed.callback(os.close, file)
            if os.write(file, first) == len(first):
                _new(self._path).replace(self._path)
                self._file, self._size = file, len(first)
                failed.pop_all()

    def __call__(self, event: ConversationEvent) -> None:
        """Append the lines of an event. Events read together are written together."""
        self._waiting += self._lines.of(event)
        if not (isinstance(event, AgentSpoke) and event.more):
            self._flush()

    def finish(self, conclusion: Conclusion) -> None:
        """Append the result of the run."""
        self._waiting.append(result_line(self._session, conclusion))
        self._full = False
        self._flush()
        if self._replaced:
            self._write_anew()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _flush(self) -> None:
        lines, self._waiting = self._waiting, []
        if not lines:
            return
        data = [encoded(line) + b"\n" for line in lines]
        left = 0 if self._full else self._put(b"".join(data))
        for line, raw in zip(lines, data, strict=True):
            left -= len(raw)
            if left < -1:  # a line without its end is whole
                self._missing += _count(type(line), getattr(line, "lines", None))
            elif isinstance(line, TextDeltaLine):
                self._pieces[line.turn] += len(raw)
            elif isinstance(line, TextLine | TurnFinishedLine):
                self._replaced += self._pieces.pop(line.turn, 0)
        if self._replaced > max(REPLACED, self._size // 2) or self._size > LARGEST:
            self._write_anew()

    def _put(self, data: bytes) -> int:
        """Write the data behind a line on any missing lines. Return the number of its bytes that were written."""
        try:
            if self._file is None:
                self._begin(len(data))
            if self._file is None or not _has_room(self._path, len(data)):
                return 0
            before = b"\n" * self._torn + (encoded(LeftOutLine(lines=self._missing)) + b"\n") * bool(self._missing)
            written = os.write(self._file, before + data)
        except OSError:
            return 0
        self._size += written
        if written >= len(before):
            self._missing = 0
        self._torn = written < len(before) + len(data)
        return max(written - len(before), 0)

    def _write_anew(self) -> None:
        """Write the file without lines that nobody needs any more. Without room for that, it stays unchanged."""
        self._full = self._size > LARGEST
        if self._file is None:
            return
        try:
            if not _has_room(self._path, self._size):
                return
            fcntl.flock(self._file, fcntl.LOCK_EX)  # nobody else appends meanwhile
            with (
                os.fdopen(os.dup(self._file), "rb") as old,  # whatever is at the path now
                os.fdopen(_opened(_new(self._path), os.O_CREAT | os.O_TRUNC), "wb") as new,
            ):
                new.writelines(_kept(old))
            begun = _opened(_new(self._path), os.O_APPEND)
            _new(self._path).replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_UN)
            return
        self.close()
        self._file, self._size, self._replaced, self._full = begun, os.fstat(begun).st_size, 0, False


def _has_room(path: Path, size: int) -> bool:
    """Whether `size` more bytes leave the store enough room for the end of a turn. Raises `OSError`."""
    disk = os.statvfs(path.parent)
    return disk.f_bavail * disk.f_frsize > size + ROOM


def _opened(path: Path, flags: int) -> int:
    return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | flags, 0o600)


def _locked(path: Path) -> int:
    """Open and lock the file at the path to append to it; its run puts no other file there before it is closed."""
    while True:
        file = _opened(path, os.O_APPEND)
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.path.samestat(os.fstat(file), path.stat()):
            return file
        os.close(file)


def _number(path: Path) -> int:
    """Return the number of the run in the file; 0 without a file."""
    with contextlib.suppress(OSError, DecodeError), open_regular(path) as file:
        return decode(file.readline(LONGEST_FIRST), type=RunLine).number
    return 0


class _Head(Struct, frozen=True, gc=False, rename={"tag": "type"}):
    """What `_kept` has to know about a line. All else is skipped and not built: a reply is a line of megabytes."""

    tag: str = ""
    turn: int | None = None
    lines: Any = None

    @property
    def kind(self) -> type[JsonLine] | None:
        """The class of the line; None if a full disk has cut it, or if only a later teamchat knows it."""
        return _KINDS.get(self.tag)


def _kept(file: BinaryIO) -> Iterator[bytes]:
    """List the lines of a file that are still needed. If there are too many, count those in the middle.

    Each line is parsed once.
    """
    replaced = dict[int | None, int]()  # the place of the last line that replaces pieces, by the turn
    decoder, heads, sizes = Decoder(_Head), list[_Head](), list[int]()
    file.seek(0)
    for raw in file:
        head = _read(raw, decoder) or _Head()
        if head.kind in (TextLine, TurnFinishedLine):
            replaced[head.turn] = len(heads)
        heads.append(head)
        sizes.append(len(raw))
    needed = [head.kind is not TextDeltaLine or place >= replaced.get(head.turn, 0) for place, head in enumerate(heads)]
    size = sum(compress(sizes, needed))
    last = size - LAST if size > LARGEST else 0
    at = missing = 0
    file.seek(0)
    for raw, head in compress(zip(file, heads, strict=True), needed):
        at += len(raw)
        if FIRST < at <= last or head.kind is LeftOutLine:
            missing += _count(head.kind, head.lines)
            continue
        if missing:
            yield encoded(LeftOutLine(lines=missing)) + b"\n"
            missing = 0
        yield raw
    if missing:
        yield encoded(LeftOutLine(lines=missing)) + b"\n"


@cache
def _decoder() -> Decoder[JsonLine]:
    """Make the decoder, once: that takes as long as two hundred lines."""
    return Decoder(ANY)


def _read(raw: bytes, decoder: Decoder[T]) -> T | None:
    """Read a line; None if a full disk has cut it, or if only a later teamchat knows it."""
    with contextlib.suppress(DecodeError):
        return decoder.decode(raw)
    with contextlib.suppress(ValueError, RecursionError):  # msgspec reads no half of a surrogate pair
        return convert(json.loads(raw), decoder.type)
    return None


def _count(kind: type[JsonLine] | None, lines: object) -> int:
    """Count the lines that one of this class, with this field `lines`, stands for.

    Pieces of text count 0: they may be replaced.
    """
    if kind is LeftOutLine:
        return lines if isinstance(lines, int) else 0
    return kind not in (None, TextDeltaLine, RunLine)


class RunReader:
    """Reads the file of a session's runs as it grows, and goes on in the file that takes its place.

    `number` is that of the run being read; 0 before the first one. It begins anew if somebody removes the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.number, self._run = 0, ""
        self._file: BinaryIO | None = None
        self._half: list[bytes] = []
        self._passed = self._told = 0  # lines of this file that were read, and lines of the run that were reported
        self._pieces, self._shown = Counter[int](), Counter[int]()  # pieces read and pieces reported, by the turn

    def read(self) -> Iterator[JsonLine]:
        """Read the lines appended since the last call. A `LeftOutLine` says how many lines are missing at its place.

        A run begins with its `RunLine`. Half a line is kept for the next call.
        """
        while True:
            yield from self._rest()
            if not self._moved():
                return
            yield from self._rest()  # lines appended before the other file took its place
            if not self._open():
                return

    def close(self) -> None:
        if self._file:
            self._file.close()
            self._file = None

    def _moved(self) -> bool:
        """Whether another file has taken the place."""
        try:
            there = self._path.stat()
        except OSError:
            return False
        here = os.fstat(self._file.fileno()) if self._file else None
        return here is None or (here.st_ino, here.st_dev) != (there.st_ino, there.st_dev)

    def _open(self) -> bool:
        """Open the file. Return whether it can be read."""
        try:
            file = open_regular(self._path)
        except OSError:
            return False
        self.close()
        self._file, self._passed = file, 0
        self._half.clear()
        self._pieces.clear()
        return True

    def _rest(self) -> Iterator[JsonLine]:
        while self._file and (raw := self._file.readline()):
            self._half.append(raw)
            if raw.endswith(b"\n"):
                line = _read(b"".join(self._half), _decoder())
                self._half.clear()
                if line and (new := self._new(line)):
                    yield new

    def _new(self, line: JsonLine) -> JsonLine | None:
        """Return the line unless it was already told from an earlier file of its run."""
        if isinstance(line, RunLine):
            if (line.number, line.id) == (self.number, self._run):
                return None
            self.number, self._run, self._told = line.number, line.id, 0
            self._shown.clear()
            return line
        if isinstance(line, TextDeltaLine):
            self._pieces[line.turn] += 1
            if self._pieces[line.turn] <= self._shown[line.turn]:
                return None
            self._shown[line.turn] += 1
            return line
        self._passed += _count(type(line), getattr(line, "lines", None))
        missing = self._passed - self._told
        if isinstance(line, TextLine | TurnFinishedLine):
            self._pieces.pop(line.turn, None)
            if missing > 0:
                self._shown.pop(line.turn, None)
        if missing <= 0:
            return None
        self._told = self._passed
        return LeftOutLine(lines=missing) if isinstance(line, LeftOutLine) else line
