"""Entries of a transcript on the disk: a conversation may be larger than memory."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from struct import Struct as Layout
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any
from weakref import finalize

from msgspec.msgpack import Decoder, encode

from teamchat.core.errors import DiskFull
from teamchat.core.files.folders import FULL, NO_ROOM
from teamchat.core.transcripts.transcript import Entry, MemberTurn, RanCheck, SaidEntry

_KINDS = (SaidEntry, MemberTurn, RanCheck)
_HEAD = Layout("<BI")  # the kind of an entry, and its bytes
_BUFFER = 1 << 18


class Spool:
    """Entries that are read anew each time they are asked for. Their file has no name, and ends with this.

    Raises `DiskFull`.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 (closed with this)
        finalize(self, _close, self._file)
        for entry in entries:
            data = encode(entry)
            self._write(_HEAD.pack(_KINDS.index(type(entry)), len(data)) + data)
        self._write(b"")

    def _write(self, data: bytes) -> None:
        try:
            self._file.write(data)
            if not data:
                self._file.flush()
        except OSError as error:
            if error.errno not in (*FULL, errno.EFBIG):
                raise
            raise DiskFull(f"{gettempdir()} {NO_ROOM}") from None

    def __iter__(self) -> Iterator[Entry]:
        decoders = [Decoder(kind) for kind in _KINDS]
        with io.BufferedReader(_Part(self._file.fileno()), _BUFFER) as file:
            while head := file.read(_HEAD.size):
                kind, size = _HEAD.unpack(head)
                yield decoders[kind].decode(file.read(size))


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):  # a full disk: the rest is lost
        file.close()


class _Part(io.RawIOBase):
    """A file from its beginning, with a place of its own."""

    def __init__(self, file: int) -> None:
        self._file, self._at = file, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = os.preadv(self._file, [buffer], self._at)
        self._at += read
        return read
