"""What a layer is made of, as `send --dry-run` and the receipt name it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a layer and where it is from; `why` says why it is told, `bytes` what it takes."""

    name: str
    why: str
    bytes: int
