"""Which version of a CLI a program is, without running it: `--version` takes Gemini a second and a half (0.61.0).

npm installs a program as a link into its package, whose package.json has the version. What a version manager puts in a
program's place (a script that finds the real one) is part of no package, and its version is unknown.
"""

from __future__ import annotations

import os
from pathlib import Path

from teamchat.runners.regular_files import read_regular
from teamchat.runners.untrusted_json import decode, one_line

LARGEST = 1 << 20  # bytes; those of Claude, Codex and Gemini have at most 1,500


def installed_version(program: str, package: str | None) -> str | None:
    """The version of the npm package that `program` is part of; None where it is not part of `package`."""
    if package is None:
        return None
    for folder in Path(os.path.realpath(program)).parents:
        match _description(folder / "package.json"):
            case {"name": name, "version": str(version)} if name == package:
                return one_line(version)
    return None


def _description(path: Path) -> dict[str, object] | None:
    try:
        return decode(read_regular(path, LARGEST))
    except (OSError, ValueError):
        return None
