"""Finds the version of Claude Code by its place on the disk."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping

from teamchat.patterns import regex
from teamchat.runners.installed import installed_version

PACKAGE = "@anthropic-ai/claude-code"
_INSTALLER = regex(r"/claude/versions/([0-9.]+)\Z")  # the place that its own installer gives a version (2.1.330)


def version_of(program: str, env: Mapping[str, str]) -> tuple[int, ...]:
    """The numbers of the version; empty if it is not known."""
    found = shutil.which(program, path=env.get("PATH", os.defpath))
    if found is None:
        return ()
    own = _INSTALLER.search(os.path.realpath(found))
    version = own[1] if own else installed_version(found, PACKAGE) or ""
    return tuple(map(int, re.findall("[0-9]{1,9}", version)[:3]))
