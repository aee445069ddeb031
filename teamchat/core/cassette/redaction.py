"""Removes secrets from the output that a cassette keeps, line by line and across the pieces of a stream."""

from __future__ import annotations

import base64
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from teamchat.runners.child.running import MAX_OUTPUT_BYTES, Chunk
from teamchat.runners.child.supervisor import LineFramer

CUT = "…"  # the mark at a cut, at the end of one text or the beginning of the next
SHORTEST = 6  # characters; a shorter part of a key is worthless


class CutRedactor:
    """A redactor that remembers the secrets found by another one, and also removes their pieces.

    `removed` counts the replacements.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._heads, self._tails = _Beginnings(), _Beginnings()  # of the secrets, and of the reversed secrets
        self.removed = 0

    def __call__(self, text: str) -> str:
        """Replace every secret and piece of one in `text` by as many `*`."""
        clean = self._redact(text)
        if clean != text:
            pieces = list(_removed(text, clean))
            self.removed += len(pieces)
            secrets = {secret for secret in pieces if len(secret) > SHORTEST}
            self._heads.add(secrets)
            self._tails.add({secret[::-1] for secret in secrets})
        if not self._heads.longest or CUT not in clean:
            return clean
        first, *others = clean.split(CUT)
        parts = [first, *(self._without_tail(part) if len(part) >= SHORTEST else part for part in others)]
        last = parts.pop()
        return CUT.join([*(self._without_head(part) if len(part) >= SHORTEST else part for part in parts), last])

    def _without_tail(self, part: str) -> str:
        """Star out the longest end of a secret at the beginning of the text after a cut."""
        size = self._tails.at_end_of(part[: self._tails.longest][::-1])
        self.removed += size > 0
        return "*" * size + part[size:]

    def _without_head(self, part: str) -> str:
        """Star out the longest beginning of a secret at the end of the text before a cut."""
        size = self._heads.at_end_of(part[-self._heads.longest :])
        self.removed += size > 0
        return part[: len(part) - size] + "*" * size


class _Beginnings:
    """Beginnings of texts, of `SHORTEST` characters or more but never whole texts. `longest` is the greatest length."""

    def __init__(self) -> None:
        self.longest = 0
        self._texts: defaultdict[str, set[str]] = defaultdict(set)  # texts by their first characters

    def add(self, texts: set[str]) -> None:
        for text in texts:
            self._texts[text[:SHORTEST]].add(text)
            self.longest = max(self.longest, len(text) - 1)

    def at_end_of(self, text: str) -> int:
        """Return the length of the longest beginning that `text` ends with; 0 if it ends with none."""
        for at in range(len(text) - SHORTEST + 1):
            piece = text[at:]
            if any(whole.startswith(piece) and whole != piece for whole in self._texts.get(piece[:SHORTEST], ())):
                return len(piece)
        return 0


def _removed(text: str, clean: str) -> Iterator[str]:
    for stars in re.finditer(r"\*+", clean):
        secret = text[stars.start() : stars.end()]
        if set(secret) != {"*"}:
            yield secret


KeyPath = tuple[str | int, ...]


def redact_streamed(lines: list[str], redact: Callable[[str], str]) -> list[str]:
    """Remove the secrets that span the pieces of a stream from its lines. `redact` keeps lengths."""
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
    """Read the object on the line; None for any other line."""
    try:
        return json.loads(line) if line.startswith("{") else None
    except (ValueError, RecursionError):
        return None


def _texts(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """List every text in it with its place. Its depth is limited by the parser."""
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


def _put(value: Any, path: KeyPath, text: str) -> None:
    *way, last = path
    for step in way:
        value = value[step]
    value[last] = text


class OutputLine(Struct, frozen=True):
    """A line of output with its line end, and the time of its last byte."""

    at: float
    stream: str
    data: bytes


def named(cwd: Path | None, lines: Iterable[OutputLine]) -> str | None:
    """Return the folder if the output mentions it; None otherwise."""
    name = str(cwd)
    written = {form.encode(errors="surrogateescape") for form in (name, json.dumps(name)[1:-1])}
    return name if cwd and any(form in line.data for line in lines for form in written) else None


def output_lines(chunks: Iterable[Chunk]) -> list[OutputLine]:
    """Split the output of a turn into lines, in the order of their completion."""
    framers = {"out": LineFramer(MAX_OUTPUT_BYTES), "err": LineFramer(MAX_OUTPUT_BYTES)}
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
