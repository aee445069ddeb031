"""JSON as people write it into a CLI's settings: with comments, or with all that JSON5 has."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path

from teamchat.patterns import regex
from teamchat.runners.untrusted.json import not_too_deep, one_line
from teamchat.runners.untrusted.regular_files import LARGEST, read_regular, read_regular_text

TOO_DEEP, NO_OBJECT = "lists or objects too deep in one another", "it holds no JSON object"
LARGEST_JSON5 = 1 << 15  # bytes: the library takes a second for 20,000
# An open string is taken to the end of its line, or each of its quotes would be looked at again.
_COMMENT = regex(r'"(?:[^"\\\n]|\\.)*+"?|//[^\n]*+|/\*.*?(?:\*/|\Z)', re.DOTALL)


def table_in(file: Path) -> dict[str, object]:
    """Read the object in a file; empty if the file is missing, or has no readable JSON object."""
    try:
        return _table(file)
    except (OSError, ValueError):
        return {}


def broken(file: Path) -> str | None:
    """Say why the file has no JSON object; None if it has one, or is missing."""
    try:
        _table(file)
    except (OSError, ValueError) as error:
        return one_line(str(error))
    return None


def _table(file: Path) -> dict[str, object]:
    """Read the object in a file; empty if the file is missing or too large. Raises `OSError` and `ValueError`."""
    if not file.is_file() or file.stat().st_size > LARGEST:
        return {}
    text = read_regular_text(file, "utf-8-sig", "replace")
    try:
        content = not_too_deep(json.loads(_COMMENT.sub(_without_comment, text)))
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if not isinstance(content, dict):
        raise ValueError(NO_OBJECT)  # noqa: TRY004 (as for all that is not to be read)
    return content


def _without_comment(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else " "


def json5_in(file: Path) -> dict[str, object]:
    """Read the object in a file of JSON5; empty if the file is missing or empty.

    Raises `OSError` and `ValueError` for a file that is there and has none.
    """
    try:
        content = read_regular(file)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return _json5(content.decode("utf-8-sig", "replace")) if content else {}


@lru_cache(maxsize=16)
def _json5(text: str) -> dict[str, object]:
    try:
        try:
            content = not_too_deep(json.loads(text))
        except json.JSONDecodeError:
            if len(text) > LARGEST_JSON5:
                raise ValueError(f"it is no JSON, and for JSON5 larger than {LARGEST_JSON5:,} bytes") from None
            import json5

            try:
                content = not_too_deep(json5.loads(text))
            except ValueError as error:
                raise ValueError(str(error).replace("<string>:", "line ", 1)) from None
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if not isinstance(content, dict):
        raise ValueError(NO_OBJECT)  # noqa: TRY004 (as for all that is not to be read)
    return content


def table_of(content: dict[str, object], *keys: str) -> dict[str, object]:
    """Return the nested table under these keys; empty if there is none."""
    for key in keys:
        inner = content.get(key)
        content = inner if isinstance(inner, dict) else {}
    return content
