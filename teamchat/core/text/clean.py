"""Makes agent text harmless: control and escape sequences go. The store and `--json` keep them.

An agent's text reaches terminals and other agents' prompts. A sequence in it could repaint the screen that a person
reads, set a window's title or the clipboard, or hide words from a reader. A control that turns the direction of writing
could show a person other words than an agent or a compiler reads: people see its code instead, and prompts keep it.
Invisible characters (zero-width ones, tags) could tell an agent something that no person reads: people see their codes,
and other members are told the text without them. Characters that writing needs stay (`invisible.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from teamchat.core.text.invisible import CodedPieces, is_invisible, with_codes, without_invisible
from teamchat.patterns import regex


def printable(text: str) -> str:
    """Write every line break, control, escape and direction-changing character in `text` as its escape code.

    A team file is shown before it is trusted, so its text must not be able to hide or rewrite its own display. The
    joiners that writing needs stay.
    """
    return text if text.isprintable() else "".join(map(_escaped, with_codes(text)))


def _escaped(character: str) -> str:
    """Return the character, or its code; `with_codes` has left the invisible ones that are needed."""
    if character.isprintable() or is_invisible(character):
        return character
    return character.encode("unicode_escape").decode("ascii")


# The bounds are far above what is in use; because of them no piece of text waits long for its end.
_CSI = r"(?: \x1b\[ | \x9b ) [0-?]{0,256}+ [ -/]{0,16}+"  # colours, cursor, screen
_STRING = r"(?: \x1b [\]P^_X] | [\x9d\x90\x9e\x9f\x98] )"  # OSC, DCS, PM, APC, SOS: up to their end, but not over lines
_TEXT = r"[^\x07\x1b\x9c\n]*+"
_OTHER = r"\x1b [ -/]{0,16}+"
SEQUENCE = rf"(?: {_CSI} [@-~] | {_STRING} {_TEXT} (?: \x07 | \x1b\\ | \x9c )? | {_OTHER} [0-~] )"
_SEQUENCE = regex(SEQUENCE, re.VERBOSE)
_SEQUENCES = regex(rf"{SEQUENCE}{{1,1000}}+", re.VERBOSE)  # a hostile text has nothing else
_OPEN = regex(rf"(?P<intro> {_STRING} ) {_TEXT} (?P<last> \x1b? ) \Z | {_CSI} \Z | {_OTHER} \Z", re.VERBOSE)
_BEGINS_SEQUENCE = regex(r"[\x1b\x80-\x9f]")
_CONTROL = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]+")
_PIECE = 1 << 18  # characters that one call takes: no other thread runs meanwhile, so nothing answers Ctrl-C


def clean(text: str) -> str:
    """Remove escape sequences and control characters from `text`; line ends and tabs stay."""
    if len(text) <= _PIECE:
        return _cleaned(text)
    cleaner = Cleaner()
    pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
    return "".join((*map(cleaner.push, pieces), cleaner.flush()))


def _cleaned(text: str) -> str:
    return _CONTROL.sub("", without_sequences(text))


def without_sequences(text: str) -> str:
    """Remove escape sequences from `text`."""
    # most texts have none, and a look for one character costs little
    return _SEQUENCES.sub("", text) if _BEGINS_SEQUENCE.search(text) else text


def told(text: str) -> str:
    """Return `text` as another member is told it: clean, and without invisible characters."""
    return without_invisible(clean(text))


def visible(text: str) -> str:
    """Return `text` as a person is shown it: clean, with codes for invisible and direction-changing characters."""
    return with_codes(clean(text))


def sequences(text: str) -> Iterator[tuple[int, int]]:
    """Find the start and end of every run of escape sequences, in order. Nobody is shown these."""
    return (match.span() for match in _SEQUENCES.finditer(text))


class Cleaner:
    """Cleans text that comes in pieces like whole text: a sequence that a piece ends in is held back."""

    def __init__(self) -> None:
        self._held = ""

    def push(self, piece: str) -> str:
        text = self._held + piece
        match = _open(text)
        if match is None:
            self._held = ""
            return _cleaned(text)
        # the text of an open string is never shown: only its beginning and the half of its end have to wait
        self._held = match["intro"] + match["last"] if match["intro"] else match[0]
        return _cleaned(text[: match.start()])

    def flush(self) -> str:
        held, self._held = self._held, ""
        return _cleaned(held)


class VisibleCleaner:
    """`visible` of a text that comes in pieces."""

    def __init__(self) -> None:
        self._cleaner, self._coded = Cleaner(), CodedPieces()

    def push(self, piece: str) -> str:
        return self._coded.push(self._cleaner.push(piece))

    def flush(self) -> str:
        """Return the rest; the next push begins another text."""
        return self._coded.push(self._cleaner.flush()) + self._coded.flush()


def _open(text: str) -> re.Match[str] | None:
    """Find the unfinished sequence at the end of `text`. No line end is in it, and an escape only first or last."""
    begin = max(*(text.rfind(end) + 1 for end in "\n\x07\x9c"), text.rfind("\x1b", 0, max(len(text) - 1, 0)))
    if text.isascii():  # one that is open begins with an escape, which is quick to find
        first = text.find("\x1b", begin)
    else:
        match = _BEGINS_SEQUENCE.search(text, begin)
        first = match.start() if match else -1
    return _OPEN.search(text, first) if first >= 0 else None
