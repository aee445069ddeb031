"""Finds the version of a CLI without running it: `--version` takes Gemini a second and a half (0.61.0).

npm installs a program as a link into its package, whose package.json has the version. A version manager's script,
which finds the real program, belongs to no package, so its version is unknown.
"""

from __future__ import annotations

import os
from pathlib import Path

from teamchat.runners.untrusted.json import object_in, one_line

LARGEST = 1 << 20  # bytes; those of Claude, Codex and Gemini have at most 1,500


def installed_version(program: str, package: str | None) -> str | None:
    """Find the version of the npm package that `program` belongs to; None if it does not belong to `package`."""
    if package is None:
        return None
    for folder in Path(os.path.realpath(program)).parents:
        match object_in(folder / "package.json", LARGEST):
            case {"name": name, "version": str(version)} if name == package:
                return one_line(version)
    return None
