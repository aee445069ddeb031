"""Times as people write them: `90`, `60s`, `30m`, `1h30m`, `30d`."""

from __future__ import annotations

import math

from teamchat.patterns import regex

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_SECONDS = regex(_NUMBER)
_LARGE = ((86_400, "d"), (3600, "h"), (60, "min"))
_UNITS = regex(rf"(?:({_NUMBER})d)? ?(?:({_NUMBER})h)? ?(?:({_NUMBER})m)? ?(?:({_NUMBER})s)?")


def roughly(seconds: float) -> str:
    """Write a time in its largest unit: `45 s`, `12 min`, `8 h`, `2 d`."""
    size, unit = next(((size, unit) for size, unit in _LARGE if seconds >= size), (1, "s"))
    return f"{seconds / size:.0f} {unit}"


def parse_duration(text: str) -> float:
    """Read a time in seconds: days, hours, minutes and seconds in that order, or a bare number of seconds.

    Raises ValueError with a sentence for the user; zero is not a duration.
    """
    written = text.strip()
    seconds = 0.0
    if _SECONDS.fullmatch(written):
        seconds = float(written)
    elif match := _UNITS.fullmatch(written):
        days, hours, minutes, rest = (float(part or 0) for part in match.groups())
        seconds = days * 86_400 + hours * 3600 + minutes * 60 + rest
    if not 0 < seconds < math.inf:
        raise ValueError(f'expected a time above zero such as "90s", "30m" or "1h30m", got {text!r}')
    return seconds
