"""Files that make agent CLIs, editors, shells and builds run something: hooks, tasks, server commands, build rules.

A member that may edit files can make the next tool run anything by writing one of them. A turn that changed one is
marked, whether its CLI reported the change or only the file system shows it.
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.agents import CLIS
from teamchat.patterns import regex
from teamchat.runners.child.running import Exit, Launch
from teamchat.runners.untrusted.regular_files import read_regular

KNOWN = (
    *(file for cli in CLIS for file in cli.row.files_that_run),
    ".cursor/mcp.json", ".cursor/hooks.json", "teamchat.toml",
    ".qwen/settings.json", ".kilo/mcp.json", ".kilo/plugin/*", ".kilo/tool/*", "kilo.json", ".pi/settings.json",
    ".pi/extensions/*", ".vibe/config.toml", ".vibe/hooks.toml", ".github/hooks/*", ".github/mcp.json",
    ".env", ".envrc", ".tool-versions", ".mise.toml", "mise.toml",
    ".git/config", ".git/config.worktree", ".git/hooks/*", ".git/info/attributes",
    ".git/modules/*/config", ".git/modules/*/hooks/*",
    ".githooks/*", ".husky/*", ".pre-commit-config.yaml", "lefthook.yml",
    ".vscode/tasks.json", ".vscode/launch.json", ".vscode/settings.json", ".vscode/mcp.json",
    ".devcontainer/devcontainer.json", ".devcontainer.json",
    "GNUmakefile", "makefile", "Makefile", "justfile", ".justfile", "Taskfile.yml", "package.json", ".npmrc",
    "tsconfig.json", "jsconfig.json",
    ".cargo/config.toml", ".github/workflows/*", ".gitlab-ci.yml", "Jenkinsfile",
)  # fmt: skip
OF_REPOSITORIES = tuple(known for known in KNOWN if known.startswith(".git/"))
UNOPENED = frozenset({".env", ".npmrc"})  # these may hold a login
MOST_READ = 1 << 18  # bytes; the content of a larger file is not compared, only its size and times
MOST_FOLDERS = 2_000  # Folders that are searched for repositories.
MOST_LOOKED_AT = 1_000  # names, and up to one more of each pattern
_KNOWN = regex("(?:^|/)(?:" + "|".join(re.escape(known).replace(r"\*", "[^/]+") for known in KNOWN) + r")\Z")

_Place = tuple[str, str]
_BELOW: _Place = ("", "repositories below")
# paths are strings here: making a `Path` of each takes longer than checking that it exists


def files_that_run(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that are files which make tools run something, in any folder."""
    return tuple(dict.fromkeys(path for path in paths if _KNOWN.search(os.path.normpath(path))))


def look(what: Launch) -> Callable[[Exit], Exit] | None:
    """Look at the known files before a process starts. Return a function that adds changed ones to its exit.

    It looks at the known names in the folder and at the root of its repository, and at git's names in repositories
    below. Paths are relative to the folder. Returns None for a process that cannot write.
    """
    if not what.may_write:
        return None
    before = _look(what.cwd)

    def compared(ended: Exit) -> Exit:
        after = _look(what.cwd)
        changed = tuple(os.path.relpath(file, what.cwd) for file in _changed(before, after))
        return replace(ended, changed=changed, not_all_looked_at=bool((before.cut | after.cut) - {_BELOW}))

    return compared


class _Look(Struct, frozen=True):
    """The state of each file looked at: a fingerprint, or None if there is no file.

    `places` holds the folder and pattern that found each file, `cut` the patterns with names not looked at.
    """

    states: Mapping[str, str | None]
    places: Mapping[str, _Place]
    cut: frozenset[_Place]

    def tells(self, file: str, place: _Place) -> bool:
        return file in self.states or place not in self.cut


def _changed(before: _Look, after: _Look) -> Iterator[str]:
    """List the files that differ, if both looks cover them."""
    for file, place in sorted((dict(before.places) | dict(after.places)).items()):
        covered = before.tells(file, place) and (after.tells(file, place) or not os.path.lexists(file))
        if covered and before.states.get(file) != after.states.get(file):
            yield file


def _look(cwd: Path) -> _Look:
    """Look at the known files, taking one name of each pattern in turn, so that no full folder uses up the limit."""
    root = next((folder for folder in (cwd, *cwd.parents) if os.path.lexists(folder / ".git")), cwd)
    folders = dict.fromkeys((str(cwd), str(root)))
    left = {(folder, known): _matching(folder, known) for folder in folders for known in _in(folder)}
    places: dict[str, _Place] = {}
    while left and len(places) < MOST_LOOKED_AT:
        for place, files in tuple(left.items()):
            if file := next(files, None):
                places[file] = place
            else:
                del left[place]
    cut = frozenset(left)
    for below in _repositories_below(str(cwd)):
        if below is None:
            cut |= {_BELOW}
            break
        for known in OF_REPOSITORIES:
            places |= dict.fromkeys(islice(_matching(below, known), MOST_LOOKED_AT), _BELOW)
    return _Look({file: _state(file) for file in places}, places, cut)


def _repositories_below(top: str) -> Iterator[str | None]:
    """Find the folders below that have a `.git`, the highest first; end with None if there are too many folders."""
    waiting, seen = deque([top]), 0
    while waiting:
        if (seen := seen + 1) > MOST_FOLDERS:
            yield None
            return
        folder = waiting.popleft()
        if folder != top and os.path.lexists(f"{folder}/.git"):
            yield folder
        with suppress(OSError), os.scandir(folder) as entries:
            waiting.extend(
                entry.path for entry in entries if entry.name != ".git" and entry.is_dir(follow_symlinks=False)
            )


def _in(folder: str) -> Iterator[str]:
    """List the known names, except those below missing folders: most are below a few folders."""
    there = cache(lambda name: os.path.lexists(f"{folder}/{name}"))
    for known in KNOWN:
        first, below, _ = known.partition("/")
        if not below or there(first):
            yield known


def _matching(folder: str, known: str) -> Iterator[str]:
    parent, several, rest = known.partition("*")
    if not several:
        yield f"{folder}/{known}" if known else folder
        return
    with suppress(OSError), os.scandir(f"{folder}/{parent}") as entries:  # `glob` would read the whole folder first
        for entry in entries:
            yield from _matching(entry.path, rest.removeprefix("/"))


def _state(file: str) -> str | None:
    """Return the mode and the content or times of a regular file, or of a link to one; None for anything else."""
    try:
        about = os.stat(file)  # noqa: PTH116
        opened = about.st_size <= MOST_READ and file.rpartition("/")[2] not in UNOPENED
        content = sha256(read_regular(Path(file), MOST_READ)).hexdigest() if opened else _times(about)
    except ValueError:  # it has grown since
        content = _times(about)
    except OSError:
        return None
    return f"{about.st_mode:o} {content}" if stat.S_ISREG(about.st_mode) else None


def _times(about: os.stat_result) -> str:
    return f"{about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}"
