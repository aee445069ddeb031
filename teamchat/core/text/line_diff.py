"""A unified diff of lines, as `difflib` makes it, in a time that no text makes long.

Where two texts have many lines, `difflib` can take hours. It is asked only about parts that are small enough. Larger
ones are first divided at their common ends and at lines that each text has once; a part in which nothing of that helps
counts as replaced, which is a longer diff and a true one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

AT_MOST = 1_000_000  # pairs of lines that `difflib` compares in all; it takes a second at worst


def unified_diff(old: Sequence[str], new: Sequence[str], before: str, after: str, context: int) -> Iterator[str]:
    """The lines of the diff; `before` and `after` are its names for the texts. Nothing where they are the same."""
    head = [f"--- {before}", f"+++ {after}"]
    for group in _Lines(old, new).get_grouped_opcodes(context):
        yield from head
        head = []
        (_, old_begin, _, new_begin, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        yield f"@@ -{_range(old_begin, old_end)} +{_range(new_begin, new_end)} @@"
        for kind, old_at, old_stop, new_at, new_stop in group:
            if kind == "equal":
                yield from (f" {line}" for line in old[old_at:old_stop])
            else:
                yield from (f"-{line}" for line in old[old_at:old_stop])
                yield from (f"+{line}" for line in new[new_at:new_stop])


def _range(begin: int, end: int) -> str:
    """Lines as a diff names them: the first one, from 1, and how many there are."""
    return f"{begin + 1}" if end - begin == 1 else f"{begin + (end > begin)},{end - begin}"


class _Part(NamedTuple):
    """Lines of the old text, from one up to another, and lines of the new text."""

    old: int
    old_end: int
    new: int
    new_end: int

    @property
    def pairs(self) -> int:
        return (self.old_end - self.old) * (self.new_end - self.new)


class _Lines(SequenceMatcher[str]):
    """`SequenceMatcher` has the rest of what is made of its matching blocks."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__(None, (), ())
        self._old, self._new = old, new
        self._left = AT_MOST

    def get_matching_blocks(self) -> list[Match]:
        whole = _Part(0, len(self._old), 0, len(self._new))
        found = self._compared(whole) if whole.pairs <= AT_MOST else self._divided(whole)
        return [*_joined(found), Match(whole.old_end, whole.new_end, 0)]

    def _divided(self, part: _Part) -> Iterator[Match]:
        """The blocks of a large part."""
        inner = self._without_same_ends(part)
        yield Match(part.old, part.new, inner.old - part.old)
        lines = self._lines_of_both(inner)
        ends = [(inner.old - 1, inner.new - 1), *lines, (inner.old_end, inner.new_end)]
        for (old, new), (old_end, new_end) in pairwise(ends):
            between = _Part(old + 1, old_end, new + 1, new_end)
            small = self._without_same_ends(between)
            yield Match(between.old, between.new, small.old - between.old)
            yield from self._compared(small)
            yield Match(small.old_end, small.new_end, old_end - small.old_end)
            if old_end < inner.old_end:
                yield Match(old_end, new_end, 1)
        yield Match(inner.old_end, inner.new_end, part.old_end - inner.old_end)

    def _without_same_ends(self, part: _Part) -> _Part:
        old, old_end, new, new_end = part
        while old < old_end and new < new_end and self._old[old] == self._new[new]:
            old, new = old + 1, new + 1
        while old < old_end and new < new_end and self._old[old_end - 1] == self._new[new_end - 1]:
            old_end, new_end = old_end - 1, new_end - 1
        return _Part(old, old_end, new, new_end)

    def _lines_of_both(self, part: _Part) -> list[tuple[int, int]]:
        """Where lines are that both texts have once, as many as are in the same order in both."""
        once = [
            {line for line, times in Counter(lines).items() if times == 1}
            for lines in (self._old[part.old : part.old_end], self._new[part.new : part.new_end])
        ]
        common = once[0] & once[1]
        places = {self._new[at]: at for at in range(part.new, part.new_end) if self._new[at] in common}
        pairs = [(at, places[self._old[at]]) for at in range(part.old, part.old_end) if self._old[at] in common]
        return _longest_rise(pairs)

    def _compared(self, part: _Part) -> list[Match]:
        """The blocks that `difflib` finds; none once it has compared enough."""
        old, new = self._old[part.old : part.old_end], self._new[part.new : part.new_end]
        if part.pairs > self._left or set(old).isdisjoint(new):
            return []
        self._left -= part.pairs
        blocks = SequenceMatcher(None, old, new).get_matching_blocks()
        return [Match(one.a + part.old, one.b + part.new, one.size) for one in blocks]


def _longest_rise(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most of the pairs, whose first numbers rise, whose second ones rise as well."""
    lasts: list[int] = []  # the least second number that so many pairs can end with
    ends: list[int] = []  # and the pair that has it
    before: list[int] = []
    for at, (_, second) in enumerate(pairs):
        length = bisect_left(lasts, second)
        before.append(ends[length - 1] if length else -1)
        lasts[length : length + 1], ends[length : length + 1] = [second], [at]
    found: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _joined(blocks: Iterator[Match] | Sequence[Match]) -> Iterator[Match]:
    """The blocks, with those that follow each other in both texts as one."""
    last = Match(0, 0, 0)
    for one in blocks:
        if (last.a + last.size, last.b + last.size) == (one.a, one.b):
            last = Match(last.a, last.b, last.size + one.size)
        elif one.size:
            if last.size:
                yield last
            last = one
    if last.size:
        yield last
