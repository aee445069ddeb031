"""The lessons of this workspace, one per line. When not all fit, those that match the message are taken first."""

from __future__ import annotations

from collections.abc import Iterable

from teamchat.assemblers.truncation import BYTES_PER_TOKEN, byte_length
from teamchat.core.context.layers.collector import LayerContext, LayerText
from teamchat.core.knowledge.excerpt import Excerpt
from teamchat.core.store.database import Database
from teamchat.core.store.lessons import Lesson, fitting_lessons, newest_lessons


class LessonsLayer:
    """A source: all lessons if `max_tokens` hold them, else the best matches and then the newest."""

    def __init__(self, db: Database, max_tokens: int) -> None:
        self._db, self._max_bytes = db, max_tokens * BYTES_PER_TOKEN

    def __call__(self, context: LayerContext) -> LayerText | None:
        """None when there is no lesson."""
        newest = newest_lessons(self._db)
        chosen = [(lesson, "all fit in") for lesson in newest]
        if _size(newest) > self._max_bytes:
            from teamchat.core.text.words import match_query

            query = match_query(context.text, context.request, context.task)
            fitting = fitting_lessons(self._db, query) if query else []
            ranked = [(one, f"rank {rank}, score {one.score:.2f}") for rank, one in enumerate(fitting, 1)]
            there = {one.number for one in fitting}
            ranked += [(one, "newest") for one in newest if one.number not in there]
            chosen = _within(ranked, self._max_bytes)
        chosen.sort(key=lambda pair: pair[0].number)
        excerpts = tuple(Excerpt(f"lesson {one.number}", why, byte_length(one.line)) for one, why in chosen)
        return LayerText("\n".join(one.line for one, _ in chosen), excerpts) if chosen else None


def _within(ranked: Iterable[tuple[Lesson, str]], room: int) -> list[tuple[Lesson, str]]:
    """As many as there is room for, the first ones first."""
    chosen = []
    for lesson, why in ranked:
        needed = _size([lesson])
        if needed <= room:
            chosen.append((lesson, why))
            room -= needed
    return chosen


def _size(lessons: Iterable[Lesson]) -> int:
    return sum(byte_length(f"{lesson.line}\n") for lesson in lessons)
