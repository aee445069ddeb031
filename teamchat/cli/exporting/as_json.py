"""The formats of `export` that are JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from teamchat.cli.exporting.formats import ExportOptions
from teamchat.core.context import snapshot
from teamchat.core.transcripts.json_form import to_json, to_lines
from teamchat.core.transcripts.transcript import Transcript


def write_object(transcript: Transcript, options: ExportOptions) -> Iterator[str]:
    """One JSON object: what `teamchat import` reads back as it was."""
    del options
    yield from json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(to_json(transcript))
    yield "\n"


def write_lines(transcript: Transcript, options: ExportOptions) -> Iterator[str]:
    """One JSON object a line: the conversation, then each message and turn."""
    del options
    for line in to_lines(transcript):
        yield json.dumps(line, ensure_ascii=False) + "\n"


def write_snapshot(transcript: Transcript, options: ExportOptions) -> Iterator[str]:
    """A snapshot of version 1, for other programs: messages and task, without turns."""
    del options
    made = snapshot.to_json((said.message for said in transcript.said), transcript.task)
    yield json.dumps(made, ensure_ascii=False, indent=2) + "\n"
