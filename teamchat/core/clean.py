"""Makes agent text harmless: control and escape sequences go. The store and `--json` keep them.

An agent's text reaches terminals and other agents' prompts. A sequence in it could repaint what a person saw, set a
window's title or the clipboard, or hide words from whoever reads along. A control that turns the direction of writing
could show a person other words than an agent or a compiler reads: people see its code instead, and prompts keep it.
Characters that nobody sees (zero-width ones, tags) could tell an agent what no person reads: people see their codes,
and other members are told the text without them. Those that emoji and some scripts are written with stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# The bounds are far above what is in use; because of them no piece of text waits long for its end.
_CSI = r"(?: \x1b\[ | \x9b ) [0-?]{0,256}+ [ -/]{0,16}+"  # colours, cursor, screen
_STRING = r"(?: \x1b [\]P^_X] | [\x9d\x90\x9e\x9f\x98] )"  # OSC, DCS, PM, APC, SOS: up to their end, but not over lines
_TEXT = r"[^\x07\x1b\x9c\n]*+"
_OTHER = r"\x1b [ -/]{0,16}+"
_SEQUENCE = re.compile(rf"{_CSI} [@-~] | {_STRING} {_TEXT} (?: \x07 | \x1b\\ | \x9c )? | {_OTHER} [0-~]", re.VERBOSE)
_OPEN = re.compile(rf"(?P<intro> {_STRING} ) {_TEXT} (?P<last> \x1b? ) \Z | {_CSI} \Z | {_OTHER} \Z", re.VERBOSE)
_BEGINS_SEQUENCE = re.compile(r"[\x1b\x80-\x9f]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]+")
_BYTES = bytes(code for code in range(128) if _CONTROL.match(chr(code)))
_COPIED = 2 * 1024 * 1024  # characters that are copied for a look that takes a tenth of the time
_TURNS = {chr(code): f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_TURN = re.compile(f"[{''.join(_TURNS)}]")
# the default-ignorable characters of Unicode 15, without marks of direction, which writing from right to left needs
INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_INVISIBLE_RUN = re.compile(f"[{INVISIBLE}]+")
_FLAG = re.compile("[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f")  # of England, behind a black flag
_DIRECTION = frozenset((*_TURNS, "\u061c", "\u200e", "\u200f"))  # not seen either: nothing is written with one before
_TAGS = frozenset(map(chr, range(0xE0000, 0xE0080)))  # a flag is all that is written with them


def clean(text: str) -> str:
    """`text` without escape sequences and control characters; line ends and tabs stay."""
    if len(text) <= _COPIED and text.isascii() and len(data := text.encode()) == len(data.translate(None, _BYTES)):
        return text
    if _BEGINS_SEQUENCE.search(text):  # most texts have none, and a look for one character costs little
        text = _SEQUENCE.sub("", text)
    return _CONTROL.sub("", text)


def told(text: str) -> str:
    """`text` as another member is told it: clean, and without what nobody sees."""
    text = clean(text)
    return text if text.isascii() else _INVISIBLE_RUN.sub(_written, text)


def visible(text: str) -> str:
    """`text` as a person is shown it: clean, and by their codes what nobody sees and what turns writing around."""
    return codes_shown(clean(text))


def codes_shown(text: str) -> str:
    """`text`, clean already, with the codes of what nobody sees and of what turns the direction of writing."""
    if text.isascii():
        return text
    return _TURN.sub(lambda found: _TURNS[found[0]], _INVISIBLE_RUN.sub(_with_codes, text))


def _written(run: re.Match[str]) -> str:
    """What of invisible characters belongs to the visible one before them, or to a text that went before."""
    before = run.string[max(run.start() - 1, 0) : run.start()]
    first, second = run[0][0], run[0][1:2]
    if first in _TAGS:
        return run[0] if before == "\U0001f3f4" and _FLAG.fullmatch(run[0]) else ""
    if before and (before.isascii() or before in _DIRECTION) and not (first == "\ufe0f" and before in "0123456789#*"):
        return ""
    return first + second if (first, second) == ("\ufe0f", "\u200d") else first


def _with_codes(run: re.Match[str]) -> str:
    written = _written(run)
    return written + "".join(
        f"\\u{ord(c):04x}" if c < "\U00010000" else f"\\U{ord(c):08x}" for c in run[0][len(written) :]
    )


def sequences(text: str) -> Iterator[tuple[int, int]]:
    """Where escape sequences begin and end, which nobody is shown."""
    if _BEGINS_SEQUENCE.search(text):
        yield from (found.span() for found in _SEQUENCE.finditer(text))


class Cleaner:
    """Cleans text that comes in pieces, to the same effect: a sequence that a piece ends in is held back."""

    def __init__(self) -> None:
        self._held = ""

    def push(self, piece: str) -> str:
        text = self._held + piece
        found = _open(text)
        if found is None:
            self._held = ""
            return clean(text)
        # what an open string says is never shown: its beginning and the half of its end are all that has to wait
        self._held = found["intro"] + found["last"] if found["intro"] else found[0]
        return clean(text[: found.start()])

    def flush(self) -> str:
        held, self._held = self._held, ""
        return clean(held)


def _open(text: str) -> re.Match[str] | None:
    """The sequence that `text` ends in the middle of. No line end is in it, and an escape only first or last."""
    begin = max(*(text.rfind(end) + 1 for end in "\n\x07\x9c"), text.rfind("\x1b", 0, max(len(text) - 1, 0)))
    if text.isascii():  # one that is open begins with an escape, which is quick to find
        first = text.find("\x1b", begin)
    else:
        found = _BEGINS_SEQUENCE.search(text, begin)
        first = found.start() if found else -1
    return _OPEN.search(text, first) if first >= 0 else None
