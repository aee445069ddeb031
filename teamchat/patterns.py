"""Regular expressions that are compiled when they are first used.

Most are for what happens in few runs, and to compile all takes longer than a command does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from re import compile as regex
else:

    class regex:  # noqa: N801 (called like `re.compile`)
        """A pattern as `re.compile` makes it. The first use of a method makes it an attribute, which is as fast."""

        def __init__(self, *given: Any) -> None:
            self.__given = given

        def __getattr__(self, name: str) -> Any:
            found = vars(self)[name] = getattr(re.compile(*self.__given), name)  # `re` keeps what it has compiled
            return found


__all__ = ["regex"]
