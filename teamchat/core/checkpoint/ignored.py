"""The rules of what is ignored, as they are at one moment, in one list for `git ls-files --exclude-from`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from teamchat.patterns import regex
from teamchat.runners.untrusted.regular_files import read_regular

RULES = ".gitignore"
READ_BY_GIT = (RULES, ".gitattributes", ".gitmodules")
_SPECIAL = regex(rb"([\\*?\[ ])")
_BOM = b"\xef\xbb\xbf"


def all_rules(top: Path, files: Iterable[str], ignored: Iterable[str], others: bytes) -> bytes:
    """The rules of the `.gitignore` files, after the `others`; `ignored` are folders and files that stay ignored.

    A rule of a deeper folder comes later and so rules, as in git.
    """
    listed = [others]
    for file in sorted(files, key=lambda path: path.count("/")):
        try:
            content = b"" if (top / file).is_symlink() else read_regular(top / file)  # as git, which follows none
        except (OSError, ValueError):
            continue
        folder = os.fsencode(file).rpartition(b"/")[0]
        listed += list(_below(folder, content)) if folder else [content]
    listed += [b"/" + _SPECIAL.sub(rb"\\\1", os.fsencode(path)) for path in ignored if _can_be_written(path)]
    return b"\n".join(listed) + b"\n"


def _can_be_written(path: str) -> bool:
    return "\n" not in path and not path.endswith("\r")


def _below(folder: bytes, content: bytes) -> Iterator[bytes]:
    """The rules of a file in a folder, as they are written at the top."""
    if b"\n" in folder:
        return
    start = b"/" + _SPECIAL.sub(rb"\\\1", folder) + b"/"
    for line in content.removeprefix(_BOM).split(b"\n"):
        rule = line.removesuffix(b"\r")
        if not rule.strip(b" ") or rule.startswith(b"#"):
            continue
        sign, rule = (b"!", rule[1:]) if rule.startswith(b"!") else (b"", rule)
        anchored = b"/" in rule.rstrip(b" ").removesuffix(b"/")
        yield sign + start + (rule.removeprefix(b"/") if anchored else b"**/" + rule)
