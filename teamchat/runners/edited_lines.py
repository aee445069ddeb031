"""How many lines a call of an editing tool adds and removes, by the texts that it replaces."""

from __future__ import annotations

from itertools import takewhile

Lines = tuple[int, int]
"""Lines added and lines removed."""


def edited(old: object, new: object) -> Lines | None:
    """What replacing one text by another does, without the lines that both begin or end with. None without texts."""
    if not isinstance(old, str) or not isinstance(new, str):
        return None
    before, after = old.splitlines(), new.splitlines()
    same = _same(zip(before, after, strict=False))
    before, after = before[same:], after[same:]
    same = _same(zip(reversed(before), reversed(after), strict=False))
    return len(after) - same, len(before) - same


def _same(pairs: zip[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def lines_of(arguments: object) -> Lines | None:
    """The lines of a call by its arguments; None if they do not say what is replaced, as those that write a file."""
    match arguments:
        case {"old_string": old, "new_string": new} | {"oldString": old, "newString": new}:
            return edited(old, new)
        case {"edits": [*edits]} if edits:
            counts = [lines_of(edit) for edit in edits]
            known = [count for count in counts if count is not None]
            return (sum(add for add, _ in known), sum(gone for _, gone in known)) if len(known) == len(counts) else None
    return None
