"""JSON with comments, as people write it into a CLI's settings."""

from __future__ import annotations

import json
import re
from pathlib import Path

from teamchat.patterns import regex
from teamchat.runners.regular_files import LARGEST, read_regular_text
from teamchat.runners.untrusted_json import one_line

# A string may be open: it is taken as far as its line goes, or each of its quotes would be looked at again.
_COMMENT = regex(r'"(?:[^"\\\n]|\\.)*+"?|//[^\n]*+|/\*.*?(?:\*/|\Z)', re.DOTALL)


def table_in(file: Path) -> dict[str, object]:
    """The object in a file; empty if the file is missing, or has no readable JSON object."""
    try:
        return _table(file)
    except (OSError, ValueError):
        return {}


def broken(file: Path) -> str | None:
    """Why the file has no JSON object; None if it has one, or is missing."""
    try:
        _table(file)
    except (OSError, ValueError) as error:
        return one_line(str(error))
    return None


def _table(file: Path) -> dict[str, object]:
    """The object in a file; empty if the file is missing. Raises OSError and ValueError."""
    if not file.is_file() or file.stat().st_size > LARGEST:
        return {}
    text = read_regular_text(file, "utf-8-sig", "replace")
    try:
        content = json.loads(_COMMENT.sub(lambda found: found[0] if found[0].startswith('"') else " ", text))
    except RecursionError:
        raise ValueError("lists or objects too deep in one another") from None
    if not isinstance(content, dict):
        raise ValueError("it holds no JSON object")  # noqa: TRY004 (as for all that is not to be read)
    return content


def table_of(content: dict[str, object], *keys: str) -> dict[str, object]:
    """The nested table under these keys; empty if there is none."""
    for key in keys:
        inner = content.get(key)
        content = inner if isinstance(inner, dict) else {}
    return content
