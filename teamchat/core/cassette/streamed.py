"""Secrets in text that an agent streams: each line of JSON has a piece, and only all pieces together show the secret.

Which text goes on in which is not asked of each CLI's events: what stands at the same place in line after line is read
as one text.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

Path = tuple[str | int, ...]


def redact_streamed(lines: list[str], redact: Callable[[str], str]) -> list[str]:
    """The lines without the secrets that are in their pieces; `redact` keeps lengths."""
    values = [_parsed(line) for line in lines]
    pieces: defaultdict[Path, list[tuple[int, str]]] = defaultdict(list)
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
    """The object that the line is; None for anything else."""
    try:
        return json.loads(line) if line.startswith("{") else None
    except (ValueError, RecursionError):
        return None


def _texts(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every text in it with its place. It is not nested deeper than it could be parsed."""
    waiting: list[tuple[Path, Any]] = [(path, value)]
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


def _put(value: Any, path: Path, text: str) -> None:
    *way, last = path
    for step in way:
        value = value[step]
    value[last] = text
