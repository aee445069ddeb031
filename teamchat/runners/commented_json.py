"""JSON with comments, as people write it into a CLI's settings."""

from __future__ import annotations

import json
import re
from pathlib import Path

LARGEST = 1 << 26  # bytes: Claude's record of all folders may be large
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*+"|//[^\n]*+|/\*.*?(?:\*/|\Z)', re.DOTALL)


def table_in(file: Path) -> dict[str, object]:
    """The object in a file; an empty one where there is no such file, or no JSON object in it that can be read."""
    try:
        if not file.is_file() or file.stat().st_size > LARGEST:
            return {}
        text = file.read_text("utf-8-sig")
        content = json.loads(_COMMENT.sub(lambda found: found[0] if found[0].startswith('"') else " ", text))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def table_of(content: dict[str, object], *keys: str) -> dict[str, object]:
    """The table under these keys, one in the other; an empty one where there is none."""
    for key in keys:
        inner = content.get(key)
        content = inner if isinstance(inner, dict) else {}
    return content
