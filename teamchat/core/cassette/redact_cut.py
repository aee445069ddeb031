"""What is left of a secret where a text that held it was cut: the summary of a tool call, a message over the budget.

A piece of a key has no shape that could be known; but the key was seen whole before, in what the text was cut from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

CUT = "…"  # how every text that is cut here ends, or goes on
SHORTEST = 6  # characters; less of a key is worth nothing


class CutRedactor:
    """A redactor that remembers the secrets that another one found, and takes out their pieces, too."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._known: set[str] = set()

    def __call__(self, text: str) -> str:
        """`text` with every secret and piece of one replaced by as many `*`."""
        clean = self._redact(text)
        if clean != text:
            self._known.update(_taken_out(text, clean))
        for found in re.finditer(CUT, clean) if self._known else ():
            for start, end in self._pieces(clean, found.start()):
                clean = clean[:start] + "*" * (end - start) + clean[end:]
        return clean

    def _pieces(self, text: str, cut: int) -> Iterator[tuple[int, int]]:
        """The longest beginning of a secret before the cut, and the longest end of one behind it."""
        behind = cut + len(CUT)
        sizes = [(secret, size) for secret in self._known for size in range(len(secret) - 1, SHORTEST - 1, -1)]
        heads = (size for secret, size in sizes if text.endswith(secret[:size], 0, cut))
        tails = (size for secret, size in sizes if text.startswith(secret[-size:], behind))
        if head := max(heads, default=0):
            yield cut - head, cut
        if tail := max(tails, default=0):
            yield behind, behind + tail


def _taken_out(text: str, clean: str) -> Iterator[str]:
    for stars in re.finditer(r"\*+", clean):
        secret = text[stars.start() : stars.end()]
        if len(secret) > SHORTEST and set(secret) != {"*"}:
            yield secret
