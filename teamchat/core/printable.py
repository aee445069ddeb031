"""Text of a file that others wrote, made safe to show on one line of a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` with every line break, control, escape and direction-changing character written as its escape code.

    A team file is shown before it is trusted, so what it says must not be able to hide or rewrite its own display.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
