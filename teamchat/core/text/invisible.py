"""Characters that nobody sees, and the few places where writing needs one.

The places: a variation selector behind a symbol, in a keycap or behind a Han ideograph; a joiner between emoji; a
joiner or non-joiner between letters of a script that joins them; a space of no width between letters of a script
without spaces; a selector behind a Mongolian letter; the tags of a flag. Each place has one character, except
for U+FE0F U+200D between emoji and for flags. Everything else could carry words that agents read and people do not.
"""

from __future__ import annotations

import re
from functools import cache

from teamchat.patterns import regex

# the default-ignorable characters of Unicode 15, without marks of direction, which writing from right to left needs
INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
TURNS = "\u202a-\u202e\u2066-\u2069"  # turn the direction of writing; prompts keep them
_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23fa\u24c2\u25aa\u25ab"
    "\u25b6\u25c0\u25fb-\u25fe\u2600-\u2767\u2794-\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff"
)
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\ufa0e-\ufa29\U00020000-\U000323af"
_MONGOLIAN = "\u1820-\u1878\u1880-\u18aa"
# letters and marks, without digits and punctuation
_KHMER_MYANMAR = (
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\u1780-\u17b3\u17b6-\u17d3\u17d7\u17dc\u17dd\uaa60-\uaa76\uaa7a-\uaa7f"
)
_JOINED = (
    (
        "\u0610-\u061a\u0620-\u065f\u066e-\u06d3\u06d5-\u06dc\u06df-\u06e8\u06ea-\u06ef\u06fa-\u06fc\u06ff"  # Arabic
        "\u0710-\u077f\u07ca-\u07f5\u07fa-\u07fd\u0840-\u085b\u0860-\u0887\u0889-\u088e\u0898-\u08e1\u08e3-\u08ff"
        "\u0900-\u0963\u0971-\u09e3\u09f0\u09f1\u09fc\u09fe-\u0a5e\u0a70-\u0a75\u0a81-\u0ae3\u0af9-\u0b63"  # Indic
        "\u0b71\u0b82-\u0bd7\u0c00-\u0c63\u0c80-\u0c83\u0c85-\u0ce3\u0cf1-\u0d4e\u0d54-\u0d57\u0d5f-\u0d63\u0d7a-\u0ddf"
        "\u0df2\u0df3\u1b00-\u1b4c\ua840-\ua873\ua8e0-\ua8f7\ua8fb\ua8fd-\ua8ff\ua980-\ua9c0\ua9cf\U00010d00-\U00010d27\U0001e900-\U0001e94b"
    )
    + _MONGOLIAN
    + _KHMER_MYANMAR
)
_SPACELESS = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u0edc-\u0edf" + _KHMER_MYANMAR  # Thai, Lao
# a word may end with a joiner here: viramas (Malayalam has letters that are written so), and the Arabic heh of dates
_ENDS = "\u0647\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d3b\u0d3c\u0d4d\u0dca"


def _tags(text: str) -> str:
    return "".join(chr(0xE0000 + ord(character)) for character in text)


# England, Scotland and Wales, the only ones that Unicode recommends
_FLAG = f"\U0001f3f4{_tags('gb')}(?:{'|'.join(map(_tags, ('eng', 'sct', 'wls')))})\U000e007f"
_TAGS_OF_FLAG = 6
_FLAGS_TAGS = "".join(map(_tags, sorted(set("gbengsctwls")))) + "\U000e007f"
_NEEDED = {  # the places where an invisible character is needed; each pattern ends with that character
    "\ufe0e\ufe0f": (f"[{_EMOJI}].", "[0-9#*].(?=\u20e3)"),
    "\u200d": (
        f"[{_EMOJI}].(?=[{_EMOJI}])",
        f"[{_EMOJI}]\ufe0f.(?=[{_EMOJI}])",
        f"[{_JOINED}].(?=[{_JOINED}])",
        f"[{_ENDS}].",
    ),
    "\u200c": (f"[{_JOINED}].(?=[{_JOINED}])",),
    "\u200b": (f"[{_SPACELESS}].(?=[{_SPACELESS}])",),
    "\u180b-\u180f": (f"[{_MONGOLIAN}].",),
    "\U000e0100-\U000e01ef": (f"[{_HAN}].",),
    _FLAGS_TAGS: tuple(f"(?={_FLAG}).{{{behind}}}" for behind in range(2, 2 + _TAGS_OF_FLAG)),
}
_NOT_NEEDED = "|".join(
    (
        f"(?<![{''.join(_NEEDED)}])",
        *(f"(?<=[{some}])" + "".join(f"(?<!{place})" for place in places) for some, places in _NEEDED.items()),
    )
)
_PIECE = 64 * 1024  # characters at a time, or a hostile text takes much memory
# the last visible character, and the invisible ones behind it; in a longer run no place needs one
_TAIL = regex(f"[^{INVISIBLE}{TURNS}][{INVISIBLE}]{{0,{_TAGS_OF_FLAG}}}\\Z")


@cache  # built for the first text beyond ASCII: most commands see none, and building takes milliseconds
def _runs_not_needed(characters: str) -> re.Pattern[str]:
    # no character behind an unneeded one is needed
    return re.compile(f"([{characters}](?:{_NOT_NEEDED})[{characters}]*+)", re.DOTALL)


_INVISIBLE = regex(f"[{INVISIBLE}]")


def is_invisible(character: str) -> bool:
    """Whether nobody sees the character, needed or not."""
    return bool(_INVISIBLE.match(character))


def without_invisible(text: str) -> str:
    """Remove the invisible characters that writing does not need from `text`."""
    return text if text.isascii() else _runs_not_needed(INVISIBLE).sub("", text)


def with_codes(text: str) -> str:
    """Write codes for the invisible characters in `text` that writing does not need, and for marks that turn it."""
    if text.isascii():
        return text
    pieces = CodedPieces()
    return pieces.push(text) + pieces.flush()


def _coded(text: str) -> str:
    if text.isascii():
        return text
    parts = _runs_not_needed(INVISIBLE + TURNS).split(text)
    # all runs at once: a hostile text has a run at every other character
    parts[1::2] = "\n".join(parts[1::2]).translate(_CODES).split("\n") if len(parts) > 1 else ()
    return "".join(parts)


class _Codes(dict[int, str]):
    """The codes of characters, each made at its first use: there are thousands."""

    def __missing__(self, code: int) -> str:
        self[code] = chr(code) if code == ord("\n") else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
        return self[code]


_CODES = _Codes()


class CodedPieces:
    """`with_codes` of a text that comes in pieces: invisible characters at the end of one wait for the next."""

    def __init__(self) -> None:
        self._tail = ""  # begins with a character that people see, which is given out already and stays as it is

    def push(self, piece: str) -> str:
        if piece.isascii() and self._tail.isascii():
            self._tail = piece[-1:] or self._tail
            return piece
        return "".join([self._push(piece[at : at + _PIECE]) for at in range(0, len(piece), _PIECE)])

    def _push(self, piece: str) -> str:
        text, given = self._tail + piece, len(self._tail[:1])
        match = _TAIL.search(text, max(len(text) - 1 - _TAGS_OF_FLAG, 0))
        self._tail = match[0] if match else ""
        return _coded(text[: match.start() + 1] if match else text)[given:]

    def flush(self) -> str:
        """Return the rest; the next push begins another text."""
        rest, self._tail = self._tail, ""
        return _coded(rest)[1:]
