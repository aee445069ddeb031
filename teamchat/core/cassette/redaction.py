"""Removes secrets from the output that a cassette keeps, line by line and across the pieces of a stream."""

from __future__ import annotations

import base64
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teamchat.runners.process.running import Chunk, LineFramer

CUT = "…"  # the mark at a cut, at the end of one text or the beginning of the next
SHORTEST = 6  # characters; a shorter part of a key is worthless


class CutRedactor:
    """A redactor that remembers the secrets found by another one, and also removes their pieces.

    `removed` counts what it has replaced.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._known: set[str] = set()
        self.removed = 0

    def __call__(self, text: str) -> str:
        """`text` with every secret and piece of one replaced by as many `*`."""
        clean = self._redact(text)
        if clean != text:
            found = list(_removed(text, clean))
            self._known.update(secret for secret in found if len(secret) > SHORTEST)
            self.removed += len(found)
        for cut in re.finditer(CUT, clean) if self._known else ():
            for start, end in self._pieces(clean, cut.start()):
                clean = clean[:start] + "*" * (end - start) + clean[end:]
                self.removed += 1
        return clean

    def _pieces(self, text: str, cut: int) -> Iterator[tuple[int, int]]:
        """The longest beginning of a secret before the cut, and the longest end of one after it."""
        behind = cut + len(CUT)
        sizes = [(secret, size) for secret in self._known for size in range(len(secret) - 1, SHORTEST - 1, -1)]
        heads = (size for secret, size in sizes if text.endswith(secret[:size], 0, cut))
        tails = (size for secret, size in sizes if text.startswith(secret[-size:], behind))
        if head := max(heads, default=0):
            yield cut - head, cut
        if tail := max(tails, default=0):
            yield behind, behind + tail


def _removed(text: str, clean: str) -> Iterator[str]:
    for stars in re.finditer(r"\*+", clean):
        secret = text[stars.start() : stars.end()]
        if set(secret) != {"*"}:
            yield secret


KeyPath = tuple[str | int, ...]


def redact_streamed(lines: list[str], redact: Callable[[str], str]) -> list[str]:
    """The lines without the secrets that span their pieces. `redact` keeps lengths."""
    values = [_parsed(line) for line in lines]
    pieces: defaultdict[KeyPath, list[tuple[int, str]]] = defaultdict(list)
    for index, value in enumerate(values):
        for path, text in _texts(value):
            pieces[path].append((index, text))
    changed = set()
    for path, texts in pieces.items():
        whole = "".join(text for _, text in texts)
        clean, start = redact(whole), 0
        if clean == whole:
            continue
        for index, text in texts:
            piece = clean[start : start + len(text)]
            start += len(text)
            if piece != text:
                _put(values[index], path, piece)
                changed.add(index)
    return [json.dumps(values[index]) + "\n" if index in changed else line for index, line in enumerate(lines)]


def _parsed(line: str) -> Any:
    """The object on the line; None for any other line."""
    try:
        return json.loads(line) if line.startswith("{") else None
    except (ValueError, RecursionError):
        return None


def _texts(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Every text in it with its place. Its depth is limited by the parser."""
    waiting: list[tuple[KeyPath, Any]] = [(path, value)]
    while waiting:
        path, value = waiting.pop()
        match value:
            case str():
                yield path, value
            case dict():
                waiting += [((*path, key), item) for key, item in value.items()]
            case list():
                waiting += [((*path, index), item) for index, item in enumerate(value)]
            case _:
                pass


def _put(value: Any, path: KeyPath, text: str) -> None:
    *way, last = path
    for step in way:
        value = value[step]
    value[last] = text


@dataclass(frozen=True, slots=True)
class OutputLine:
    """A line of output with its line end, and when its last byte came."""

    at: float
    stream: str
    data: bytes


def named(cwd: Path | None, lines: Iterable[OutputLine]) -> str | None:
    """The folder, if the output mentions it anyway."""
    name = str(cwd)
    written = {form.encode(errors="surrogateescape") for form in (name, json.dumps(name)[1:-1])}
    return name if cwd and any(form in line.data for line in lines for form in written) else None


def output_lines(chunks: Iterable[Chunk]) -> list[OutputLine]:
    """The output of a turn, line by line, in the order in which the lines were complete."""
    framers = {"out": LineFramer(), "err": LineFramer()}
    lines, at = [], 0.0
    for chunk in chunks:
        at = chunk.at
        lines += [OutputLine(at, chunk.stream, line + b"\n") for line in framers[chunk.stream].push(chunk.data)]
    return lines + [OutputLine(at, stream, line) for stream, framer in framers.items() for line in framer.flush()]


def redact_lines(lines: list[OutputLine], redact: Callable[[str], str]) -> list[OutputLine]:
    """Remove secrets from the output itself, even if they span lines or were streamed in pieces."""
    result = list(lines)
    for stream in ("out", "err"):
        places = [index for index, line in enumerate(lines) if line.stream == stream]
        whole = b"".join(lines[index].data for index in places).decode("utf-8", "surrogateescape")
        # the pieces first: a removal in one of them alone could hide the rest of the secret
        clean = redact("".join(redact_streamed(_split(whole), redact)))
        for index, text in zip(places, _split(clean), strict=True):
            result[index] = OutputLine(lines[index].at, stream, text.encode("utf-8", "surrogateescape"))
    return result


def _split(text: str) -> list[str]:
    """Split at line feeds only, and keep them."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def encoded(line: OutputLine) -> tuple[float, str, str]:
    at = round(line.at, 3)
    try:
        return at, line.stream, line.data.decode()
    except UnicodeDecodeError:
        return at, f"{line.stream}64", base64.b64encode(line.data).decode()
