"""The formats of `export` that are JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from msgspec.structs import replace

from teamchat.cli.exporting.formats import ExportOptions
from teamchat.core.context import snapshot
from teamchat.core.transcripts.json_form import entry_fields, to_json, to_lines
from teamchat.core.transcripts.transcript import Transcript


def write_object(transcript: Transcript, options: ExportOptions) -> Iterator[str]:
    """Write one JSON object, which `teamchat import` reads back unchanged."""
    del options
    whole = json.dumps(to_json(replace(transcript, entries=())), ensure_ascii=False, indent=2)
    begins = whole.removesuffix("]\n}")
    yield begins
    before, after = "\n    ", ""
    for entry in transcript.entries:
        yield before + json.dumps(entry_fields(entry), ensure_ascii=False, indent=2).replace("\n", "\n    ")
        before, after = ",\n    ", "\n  "
    yield f"{after}]\n}}\n"


def write_lines(transcript: Transcript, options: ExportOptions) -> Iterator[str]:
    """Write one JSON object a line: the conversation, then each message and turn."""
    del options
    for line in to_lines(transcript):
        yield json.dumps(line, ensure_ascii=False) + "\n"


def write_snapshot(transcript: Transcript, options: ExportOptions) -> Iterator[str]:
    """Write a snapshot of version 1, for other programs: messages and task, without turns."""
    del options
    made = snapshot.to_json((said.message for said in transcript.said), transcript.task)
    yield json.dumps(made, ensure_ascii=False, indent=2) + "\n"
