"""Messages as prompts quote them, kept in memory from one prompt of a run to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from teamchat.core.messages import Said

MOST_CHARACTERS = 16_000_000  # of texts; where there would be more, all are forgotten
OVERHEAD = 500  # characters that a short message counts as


class Quotes:
    """The quotes of stored messages by their places in the store. A stored message does not change."""

    def __init__(self) -> None:
        self._by_place: dict[int, Said] = {}
        self._first = 0  # the lowest place
        self._characters = 0

    def reach(self, place: int) -> bool:
        """Whether some of the messages up to that place are kept."""
        return bool(self._by_place) and self._first <= place

    def missing(self, places: Sequence[int]) -> int:
        """How many of the first places reach up to the last one that is not kept."""
        return max((count for count, place in enumerate(places, 1) if place not in self._by_place), default=0)

    def get(self, place: int) -> Said | None:
        return self._by_place.get(place)

    def keep(self, quotes: Mapping[int, Said]) -> None:
        size = sum([len(said.message.content) + OVERHEAD for said in quotes.values()])
        if self._characters + size > MOST_CHARACTERS:
            self._by_place.clear()
            self._characters = 0
        self._first = min([*quotes, *([self._first] if self._by_place else [])], default=0)
        self._by_place |= quotes
        self._characters += size
