"""Agent text made harmless: control and escape sequences out (design section 7). The store and `--json` keep them.

An agent's text reaches terminals and other agents' prompts. A sequence in it could repaint what a person saw, set a
window's title or the clipboard, or hide words from whoever reads along.
"""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    r"""
    \x1b \[ [0-?]* [ -/]* [@-~]                      # CSI: colours, cursor, screen
    | \x9b [0-?]* [ -/]* [@-~]
    | (?: \x1b [\]P^_X] | [\x9d\x90\x9e\x9f\x98] )   # OSC, DCS, PM, APC, SOS: up to their end, but not over lines
      [^\x07\x1b\x9c\n]* (?: \x07 | \x1b\\ | \x9c )?
    | \x1b [ -/]* [0-~]                              # all other escapes
    | \r (?= \n )
    """,
    re.VERBOSE,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_HELD = re.compile(r"(?:\x1b|\x9b|[\x9d\x90\x9e\x9f\x98])[^\n]{0,64}\Z|\r\Z")


def clean(text: str) -> str:
    """`text` without escape sequences and control characters; line ends and tabs stay."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text))


class Cleaner:
    """Cleans text that comes in pieces, holding back a sequence that a piece ends in the middle of."""

    def __init__(self) -> None:
        self._held = ""

    def push(self, piece: str) -> str:
        text = self._held + piece
        held = _HELD.search(text)
        at = held.start() if held and _SEQUENCE.sub("", held[0]) else len(text)
        self._held = text[at:]
        return clean(text[:at])

    def flush(self) -> str:
        held, self._held = self._held, ""
        return clean(held)
