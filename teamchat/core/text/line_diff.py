"""A unified diff of lines, made by `difflib`, fast for any text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

AT_MOST = 4_000_000
"""Pairs of lines that `difflib` compares, which takes it seconds at worst. A larger part counts as replaced."""


def unified_diff(old: Sequence[str], new: Sequence[str], before: str, after: str, context: int) -> Iterator[str]:
    """Write the lines of the diff; `before` and `after` are its names for the texts. Nothing where they are equal."""
    most = min(len(old), len(new))
    start = next((at for at in range(most) if old[at] != new[at]), most)
    end = next((at for at in range(most - start) if old[-1 - at] != new[-1 - at]), most - start)
    if start == len(old) == len(new):
        return
    start, end = max(start - context, 0), max(end - context, 0)
    old_part, new_part = old[start : len(old) - end], new[start : len(new) - end]
    yield from (f"--- {before}", f"+++ {after}")
    for group in _groups(old_part, new_part, context):
        (_, old_begin, _, new_begin, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        yield f"@@ -{_range(start + old_begin, start + old_end)} +{_range(start + new_begin, start + new_end)} @@"
        for kind, old_at, old_stop, new_at, new_stop in group:
            if kind == "equal":
                yield from (f" {line}" for line in old_part[old_at:old_stop])
            else:
                yield from (f"-{line}" for line in old_part[old_at:old_stop])
                yield from (f"+{line}" for line in new_part[new_at:new_stop])


def _groups(old: Sequence[str], new: Sequence[str], context: int) -> Iterator[list[tuple[str, int, int, int, int]]]:
    if len(old) * len(new) <= AT_MOST:
        yield from SequenceMatcher(None, old, new).get_grouped_opcodes(context)
    else:
        yield [("replace", 0, len(old), 0, len(new))]


def _range(begin: int, end: int) -> str:
    """Name lines as a diff does: the first one, from 1, and their number."""
    return f"{begin + 1}" if end - begin == 1 else f"{begin + (end > begin)},{end - begin}"
