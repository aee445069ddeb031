"""The places of a text in which it is shown rather than said."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Place(StrEnum):
    """A part of a text that is shown rather than said."""

    FENCE = "fence"
    CODE = "code"
    QUOTE = "quote"
    THOUGHT = "thought"
    COMMENT = "comment"


class Span(Struct, frozen=True):
    """The characters from `start` up to `end`."""

    start: int
    end: int
    place: Place
