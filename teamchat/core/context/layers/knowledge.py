"""The knowledge layer: the files and folders that the team file names, whole or in the pieces that match best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from teamchat.assemblers.truncation import BYTES_PER_TOKEN
from teamchat.core.context.layers.collector import LayerContext, LayerText
from teamchat.core.knowledge.files import find_files
from teamchat.core.knowledge.index import KnowledgeIndex
from teamchat.core.knowledge.quoting import quote_best, quote_whole
from teamchat.core.text.words import match_query


class KnowledgeLayer:
    """A source: the member's files if `max_tokens` hold them, else the pieces that match message, request and task.

    `others` are the paths of the other members' knowledge, which the index keeps, too.
    """

    def __init__(self, index: KnowledgeIndex, max_tokens: int, others: Iterable[Path] = ()) -> None:
        self._index, self._max_bytes, self._others = index, max_tokens * BYTES_PER_TOKEN, frozenset(others)

    def __call__(self, context: LayerContext) -> LayerText | None:
        """None for a member without knowledge. Raises `StoreError`."""
        named = context.member.knowledge
        if not named:
            return None
        found = find_files(named)
        with self._index.open() as index:
            indexed = index.bring_up_to_date(found.files, self._others.union(named.values()))
            note = _left_out(Counter(found.left_out) + Counter(indexed.problems))
            if indexed.bytes <= self._max_bytes:
                whole = quote_whole(index.whole(indexed.files), self._max_bytes)
                if whole is not None:
                    return LayerText(*whole, note)
            query = match_query(context.text, context.request, context.task)
            hits = index.search(indexed.files, query) if query else []
        text, excerpts = quote_best(hits, self._max_bytes)
        return LayerText(text, excerpts, note if text else f"nothing in it fits{f'; {note}' if note else ''}")


def _left_out(reasons: Mapping[str, int]) -> str | None:
    """In one line, what was not looked into."""
    return f"left out: {', '.join(f'{reason} ({count})' for reason, count in reasons.items())}" if reasons else None
