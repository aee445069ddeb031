"""The sources of a layer, as `send --dry-run` and the receipt name them."""

from __future__ import annotations

from msgspec import Struct


class Excerpt(Struct, frozen=True):
    """A part of a layer and its source. `why` says why it was chosen, `bytes` how much room it takes."""

    name: str
    why: str
    bytes: int
