"""The knowledge layer: the files and folders that the team file names, whole or in the pieces that match best.

Pieces are chosen for a prompt and written each below its source, within a number of bytes. That part is pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from teamchat.assemblers.truncation import BYTES_PER_TOKEN, byte_length, truncate_end
from teamchat.core.context.layers.collector import LayerContext, LayerText
from teamchat.core.knowledge.files import Excerpt, find_files
from teamchat.core.knowledge.index import KnowledgeHit, KnowledgeIndex
from teamchat.core.text.clean import printable
from teamchat.core.text.words import match_query

BETWEEN = "\n\n"
LONGEST_HEADING = 200  # characters


class _Part(Struct, frozen=True):
    """Adjacent pieces of a file. `why` says how they were found."""

    hit: KnowledgeHit
    why: str
    whole: bool = False

    @property
    def name(self) -> str:
        lines = f"{self.hit.first}-{self.hit.last}" if self.hit.last > self.hit.first else f"{self.hit.first}"
        return printable(self.hit.file.name) + ("" if self.whole else f":{lines}")

    @property
    def head(self) -> str:
        heading = "" if self.whole else printable(self.hit.heading)[:LONGEST_HEADING]
        return f"From {self.name}" + (f" ({heading})" if heading else "") + ":\n"

    @property
    def size(self) -> int:
        """The upper limit of its bytes in a prompt."""
        return byte_length(self.head) + self.hit.bytes + len(BETWEEN)

    def __str__(self) -> str:
        return self.head + self.hit.text.strip("\r\n")


def quote_whole(hits: Iterable[KnowledgeHit], max_bytes: int) -> tuple[str, tuple[Excerpt, ...]] | None:
    """Quote all pieces of the files, in order; None if they take more than `max_bytes`."""
    joined = _joined([_Part(hit, "whole", whole=True) for hit in hits])
    parts = [part for part in joined if part.hit.text.strip()]
    return _written(parts) if sum(part.size for part in parts) <= max_bytes else None


def quote_best(hits: Sequence[KnowledgeHit], max_bytes: int) -> tuple[str, tuple[Excerpt, ...]]:
    """Quote as many of the pieces as fit, best first. The best one is cut if it is too long alone.

    They stay in the order of their files, a file with a better piece first. Adjacent pieces are joined.
    """
    chosen: list[_Part] = []
    room = max_bytes
    for rank, hit in enumerate(hits, 1):
        part = _Part(hit, f"rank {rank}, score {hit.score:.2f}")
        if rank == 1 and part.size > room:
            text = truncate_end(part.hit.text, room - (part.size - part.hit.bytes))
            last = part.hit.first + text.rstrip("\n").count("\n")
            part = replace(
                part, hit=replace(part.hit, text=text, bytes=byte_length(text), last=last), why=f"{part.why}, cut"
            )
        if part.hit.text.strip() and part.size <= room:
            chosen.append(part)
            room -= part.size
    order = {part.hit.file.path: place for place, part in reversed(list(enumerate(chosen)))}
    return _written(_joined(sorted(chosen, key=lambda part: (order[part.hit.file.path], part.hit.number))))


def _joined(parts: Sequence[_Part]) -> list[_Part]:
    """Join the parts that directly follow each other in a file."""
    joined: list[_Part] = []
    texts: list[list[str]] = []
    ends: list[KnowledgeHit] = []
    for part in parts:
        if joined and ends[-1].file.path == part.hit.file.path and ends[-1].number + 1 == part.hit.number:
            texts[-1].append(part.hit.text)
            ends[-1] = part.hit
        else:
            joined.append(part)
            texts.append([part.hit.text])
            ends.append(part.hit)
    return [
        replace(part, hit=replace(part.hit, text="".join(text), bytes=byte_length("".join(text)), last=end.last))
        for part, text, end in zip(joined, texts, ends, strict=True)
    ]


def _written(parts: Sequence[_Part]) -> tuple[str, tuple[Excerpt, ...]]:
    excerpts = tuple(Excerpt(part.name, part.why, byte_length(str(part))) for part in parts)
    return BETWEEN.join(map(str, parts)), excerpts


class KnowledgeLayer:
    """A source: the member's files if `max_tokens` hold them, else the pieces that match message, request and task.

    `others` are the paths of the other members' knowledge, which the index keeps, too.
    """

    def __init__(self, index: KnowledgeIndex, max_tokens: int, others: Iterable[Path] = ()) -> None:
        self._index, self._max_bytes, self._others = index, max_tokens * BYTES_PER_TOKEN, frozenset(others)

    def __call__(self, context: LayerContext) -> LayerText | None:
        """Make the layer; None for a member without knowledge. Raises `StoreError`."""
        named = context.member.knowledge
        if not named:
            return None
        listing = find_files(named)
        with self._index.open() as index:
            indexed = index.bring_up_to_date(listing.files, self._others.union(named.values()))
            reasons = (Counter(listing.left_out) + Counter(indexed.problems)).items()
            note = f"left out: {', '.join(f'{reason} ({count})' for reason, count in reasons)}" if reasons else None
            if indexed.bytes <= self._max_bytes:
                whole = quote_whole(index.whole(indexed.files), self._max_bytes)
                if whole is not None:
                    return LayerText(*whole, note)
            query = match_query(context.text, context.request, context.task)
            hits = index.search(indexed.files, query) if query else []
        text, excerpts = quote_best(hits, self._max_bytes)
        return LayerText(text, excerpts, note if text else f"nothing in it fits{f'; {note}' if note else ''}")
