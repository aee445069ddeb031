"""The rules for ignored files at one moment, in one list for `git ls-files --exclude-from`, or as given."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.checkpoint.git import GitFailed, GitProgram
from teamchat.core.errors import CheckpointFailed
from teamchat.patterns import regex
from teamchat.runners.untrusted.regular_files import read_regular

RULES = ".gitignore"
READ_BY_GIT = (RULES, ".gitattributes", ".gitmodules")
_SPECIAL = regex(rb"([\\*?\[ ])")
_REFUSED = "GIT_LITERAL_PATHSPECS"  # `git check-ignore` refuses it
_NONE = 1  # the exit code of `git check-ignore` for no match
_BEHIND = b"# ignored as well"
_BOM = b"\xef\xbb\xbf"


def rules_of(top: Path, files: Iterable[str], others: bytes) -> bytes:
    """Collect the rules of the `.gitignore` files, after the `others`.

    A rule of a deeper folder comes later, so it takes precedence, as in git.
    """
    listed = [others]
    for file in sorted(files, key=lambda path: path.count("/")):
        try:
            content = b"" if (top / file).is_symlink() else read_regular(top / file)  # git follows no link either
        except (OSError, ValueError):
            continue
        folder = os.fsencode(file).rpartition(b"/")[0]
        listed += list(_below(folder, content)) if folder else [content]
    return b"\n".join(listed) + b"\n"


def all_rules(rules: bytes, ignored: Iterable[str]) -> bytes:
    """Append folders and files that stay ignored to the rules."""
    listed = [b"/" + _SPECIAL.sub(rb"\\\1", os.fsencode(path)) for path in ignored if _can_be_written(path)]
    return rules + b"\n".join([_BEHIND, *listed]) + b"\n"


def rules_in(rules: bytes) -> bytes:
    """Return the rules that `all_rules` got."""
    return rules.rpartition(_BEHIND + b"\n")[0]


def _can_be_written(path: str) -> bool:
    return "\n" not in path and not path.endswith("\r")


def _below(folder: bytes, content: bytes) -> Iterator[bytes]:
    """Rewrite the rules of a folder's file as they are written at the top."""
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


def named_by(rules: Mapping[str, Iterable[str]], paths: Collection[str]) -> set[str]:
    """Return the paths that rules name as lines of a `.gitignore` in their folder would; `""` is the top.

    git decides, in an empty repository of its own. Raises `CheckpointFailed`.
    """
    if not paths:
        return set()
    with tempfile.TemporaryDirectory(prefix="teamchat-") as top:
        git = GitProgram(Path(top))
        try:
            git("init", "-q", "--template=")
            for folder, lines in rules.items():
                place = Path(top, folder)
                place.mkdir(parents=True, exist_ok=True)
                (place / RULES).write_bytes(b"".join(os.fsencode(line) + b"\n" for line in lines))
            return set(named(git, paths, "-c", f"core.excludesFile={os.devnull}"))
        except (GitFailed, OSError) as failed:
            raise CheckpointFailed(f"git cannot tell which paths are protected: {failed}") from failed


def named(git: GitProgram, paths: Iterable[str], *settings: str) -> list[str]:
    """Return the paths that a rule of that git's work tree names, whatever its index has. Raises `GitFailed`."""
    env = {name: value for name, value in git.env.items() if name != _REFUSED}
    given = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)  # no path begins with a `:`
    check = (*settings, "check-ignore", "--no-index", "-z", "--stdin")
    try:
        found = replace(git, env=env)(*check, given=given)
    except GitFailed as failed:
        if failed.code != _NONE:
            raise
        return []
    return [path.removeprefix("./") for path in os.fsdecode(found).split("\0")[:-1]]
