"""The size of a photo that is made smaller."""

from __future__ import annotations


def fitted(width: int, height: int, most: int) -> tuple[int, int]:
    """The size of a photo of the same shape of which no side is longer than `most`."""
    return most, height * most // width
