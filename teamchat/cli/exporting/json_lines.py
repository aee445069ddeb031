"""The same as JSON with one object a line: the conversation, then each message and turn."""

from __future__ import annotations

import json
from collections.abc import Iterator

from teamchat.cli.exporting.formats import Options
from teamchat.core.transcripts.form import to_lines
from teamchat.core.transcripts.transcript import Transcript


def write(transcript: Transcript, options: Options) -> Iterator[str]:
    del options
    for line in to_lines(transcript):
        yield json.dumps(line, ensure_ascii=False) + "\n"
