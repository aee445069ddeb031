"""The formats of `teamchat export`, in one table. A format's module is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import cast, get_args

from msgspec import Struct

from teamchat.cli.shared.options import FormatName
from teamchat.core.errors import UsageError
from teamchat.core.text.clean import printable
from teamchat.core.transcripts.transcript import Transcript

DEFAULT: FormatName = "md"


class Options(Struct, frozen=True):
    """`max_pause` is the longest pause of a `cast`, in seconds."""

    max_pause: float = 1.5


Write = Callable[[Transcript, Options], Iterator[str]]
_FORMATS: dict[FormatName, tuple[str, tuple[str, ...]]] = {
    "md": ("markdown", (".md", ".markdown")),
    "html": ("html", (".html", ".htm")),
    "json": ("json_form", (".json",)),
    "jsonl": ("json_lines", (".jsonl", ".ndjson")),
    "cast": ("cast", (".cast",)),
    "svg": ("svg", (".svg",)),
    "snapshot": ("snapshot", ()),
}
"""The module of each format in this folder, and the endings of files that are written in it by default."""


def writer(name: FormatName) -> Write:
    """What writes a transcript in that format, in pieces."""
    module, _ = _FORMATS[name]
    return cast("Write", import_module(f"teamchat.cli.exporting.{module}").write)


def format_for(name: FormatName | None, file: Path | None) -> FormatName:
    """The format that was named, else that of the file's ending, else Markdown. Raises `UsageError`."""
    if name is not None:
        return name
    if file is None:
        return DEFAULT
    ending = file.suffix.lower()
    found = next((known for known, (_, endings) in _FORMATS.items() if ending in endings), None)
    if found is None:
        names = ", ".join(get_args(FormatName))
        raise UsageError(
            f"no format has files that end like {printable(file.name)!r}: name one with --format ({names})"
        )
    return found
