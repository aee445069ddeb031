"""One JSON object: what `teamchat import` reads back as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator

from teamchat.cli.exporting.formats import Options
from teamchat.core.transcripts.form import to_json
from teamchat.core.transcripts.transcript import Transcript


def write(transcript: Transcript, options: Options) -> Iterator[str]:
    del options
    yield from json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(to_json(transcript))
    yield "\n"
