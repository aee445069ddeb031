"""Small images for tests, made here: what they show does not matter."""

from __future__ import annotations

import struct
import zlib


def png(red: int = 255) -> bytes:
    """A real one of 8 by 8 pixels in one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes((red, 0, 0)) * 8) * 8
    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
