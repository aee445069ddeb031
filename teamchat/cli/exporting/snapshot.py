"""A snapshot of version 1, for other programs: messages and task, without turns."""

from __future__ import annotations

import json
from collections.abc import Iterator

from teamchat.cli.exporting.formats import Options
from teamchat.core.context.snapshot import to_json
from teamchat.core.transcripts.transcript import Transcript


def write(transcript: Transcript, options: Options) -> Iterator[str]:
    del options
    snapshot = to_json((said.message for said in transcript.said), transcript.task)
    yield json.dumps(snapshot, ensure_ascii=False, indent=2) + "\n"
