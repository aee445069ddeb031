"""The JSON Schema of a cassette's lines, made of the models that read them; `docs/cassette.schema.json` is this."""

from __future__ import annotations

import json

from pydantic import TypeAdapter

from teamchat.core.cassette import Entry, Header


def schema() -> str:
    """The text of the file, for any line of a cassette. `make pages` writes it."""
    lines: TypeAdapter[Header | Entry] = TypeAdapter(Header | Entry)
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A line of a teamchat cassette"}
    return json.dumps({**about, **lines.json_schema()}, indent=1, ensure_ascii=False) + "\n"


def fixed_words() -> set[str]:
    """What a text of a line may be where only some texts may stand: kinds of agents, of failures, and so on."""
    words: set[str] = set()
    json.loads(schema(), object_hook=lambda part: words.update(part.get("enum", ())))
    return words
