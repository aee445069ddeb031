"""Colours and styles: a colour of its own for each member, and none where a terminal or a person wants none."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping

from msgspec import Struct

BAR = "▌"
# some of the 256 colours: they differ from each other and have a contrast of at least 3 on black and on white
COLOURS = (31, 133, 64, 130, 62, 168, 29, 97)
DARK_YELLOW = 130
WHITE = ("7", "15")  # among the 16 colours


def colours_of(names: Collection[str]) -> dict[str, int]:
    """Derive a colour from each name; of two names with the same one, the later in the alphabet takes the next."""
    given: dict[str, int] = {}
    for name in sorted(names):
        first = own_colour(name)
        free = [
            place for place in range(first, first + len(COLOURS)) if COLOURS[place % len(COLOURS)] not in given.values()
        ]
        given[name] = COLOURS[(free[0] if free else first) % len(COLOURS)]
    return given


def colour_of(name: str, names: Collection[str]) -> int:
    """Return the colour of a speaker in a team of these names; the speaker need not be one of them."""
    return colours_of(names).get(name, COLOURS[own_colour(name)])


def own_colour(name: str) -> int:
    """Return the index in `COLOURS` derived from the name alone."""
    return zlib.crc32(name.casefold().encode("utf-8", "replace")) % len(COLOURS)


class Look(Struct, frozen=True):
    """How a terminal shows text: `styles` such as bold and dim, and `colours`, on a dark or a `light` background."""

    styles: bool = True
    colours: bool = True
    light: bool = False

    def bold(self, text: str) -> str:
        return self._with("1", text)

    def dim(self, text: str) -> str:
        return self._with("2", text)

    def bad(self, text: str) -> str:
        """Style a failure or a refusal."""
        return self._with("31" if self.colours else "1", text)

    def warn(self, text: str) -> str:
        yellow = f"38;5;{DARK_YELLOW}" if self.light else "33"
        return self._with(yellow if self.colours else "", text)

    def coloured(self, text: str, colour: int, *, bold: bool = False) -> str:
        codes = [*(["1"] if bold else []), *([f"38;5;{colour}"] if self.colours else [])]
        return self._with(";".join(codes), text)

    def _with(self, codes: str, text: str) -> str:
        return f"\x1b[{codes}m{text}\x1b[0m" if self.styles and codes and text else text


def look_of(env: Mapping[str, str], *, light: bool | None = None) -> Look:
    """Choose the look for a terminal, by NO_COLOR and TERM. `light` is the terminal's report on its background."""
    dumb = env.get("TERM", "") in ("", "dumb", "unknown")
    known = named_light(env)
    on_light = bool(light) if known is None else known
    return Look(styles=not dumb, colours=not dumb and not env.get("NO_COLOR"), light=on_light)


def named_light(env: Mapping[str, str]) -> bool | None:
    """Return whether TEAMCHAT_THEME, or COLORFGBG of some terminals, calls the background light; None: neither does."""
    if (theme := env.get("TEAMCHAT_THEME")) in ("light", "dark"):
        return theme == "light"
    background = env.get("COLORFGBG", "").rpartition(";")[2]
    return background in WHITE if background else None
