"""Files that make agent CLIs, editors, shells and builds run something: hooks, tasks, server commands, build rules.

A member that may edit files can have the next tool run what it likes by writing one of them. So a turn that changed one
is marked, whether the CLI told of the change or only the file system shows it, as after a shell command.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path, PurePath

from teamchat.runners.agent_events import Failure
from teamchat.runners.regular_files import read_regular
from teamchat.runners.running import Chunk, Cut, Exit, Launch, Launcher, Running

KNOWN = (
    ".claude/settings.json", ".claude/settings.local.json", ".claude/scheduled_tasks.json", ".claude/agents/*",
    ".claude/commands/*", ".claude/hooks/*", ".claude/skills/*/*", ".mcp.json",
    ".codex/config.toml", ".codex/hooks.json", ".codex/prompts/*", ".codex/rules/*", ".agents/skills/*/*",
    ".gemini/settings.json", ".gemini/.env", ".gemini/commands/*", ".gemini/policies/*", ".gemini/extensions/*/*",
    ".cursor/mcp.json", ".cursor/hooks.json", "teamchat.toml",
    ".env", ".envrc", ".tool-versions", ".mise.toml", "mise.toml",
    ".git/config", ".git/hooks/*", ".githooks/*", ".husky/*", ".pre-commit-config.yaml", "lefthook.yml",
    ".vscode/tasks.json", ".vscode/launch.json", ".vscode/settings.json", ".vscode/mcp.json",
    ".devcontainer/devcontainer.json", ".devcontainer.json",
    "GNUmakefile", "makefile", "Makefile", "justfile", ".justfile", "Taskfile.yml", "package.json", ".npmrc",
    ".cargo/config.toml", ".github/workflows/*", ".gitlab-ci.yml", "Jenkinsfile",
)  # fmt: skip
UNOPENED = frozenset({".env", ".npmrc"})  # which may hold a login
MOST_READ = 1 << 20  # bytes of a file whose content is compared; a larger one counts by its size and times


def files_that_run(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of the paths that are such files, wherever they lie."""
    return tuple(dict.fromkeys(path for path in paths if any(PurePath(path).match(known) for known in KNOWN)))


def watching(launcher: Launcher) -> Launcher:
    """The same, whose processes tell at their exit which such files changed while they ran, from the folder's view.

    Looked at are the known names in the folder and at the root of its repository, not in folders below.
    """

    def launch(what: Launch) -> Running:
        before = _look(what.cwd)
        return _Watched(launcher(what), what.cwd, before)

    return launch


class _Watched:
    def __init__(self, process: Running, cwd: Path, before: Mapping[Path, str]) -> None:
        self._process, self._cwd, self._before = process, cwd, before
        self._exit: Exit | None = None

    @property
    def exit(self) -> Exit | None:
        if self._exit is None and (ended := self._process.exit):
            self._exit = replace(ended, changed=_changed(self._before, _look(self._cwd), self._cwd))
        return self._exit

    def over(self) -> None:
        self._process.over()

    def end_input(self) -> bool:
        return self._process.end_input()

    def stop(self, why: Failure | None = None, *, hard: bool = False) -> None:
        self._process.stop(why, hard=hard)

    async def chunks(self) -> AsyncGenerator[Chunk | Cut, None]:
        async with aclosing(self._process.chunks()) as chunks:
            async for chunk in chunks:
                yield chunk


def _changed(before: Mapping[Path, str], after: Mapping[Path, str], cwd: Path) -> tuple[str, ...]:
    names = dict.fromkeys((*before, *after))
    return tuple(os.path.relpath(file, cwd) for file in names if before.get(file) != after.get(file))


def _look(cwd: Path) -> dict[Path, str]:
    """The known files that are there, each with what tells it from another content."""
    found: dict[Path, str] = {}
    for file in _known_in(cwd):
        if state := _state(file):
            found[file] = state
    return found


def _known_in(cwd: Path) -> Iterator[Path]:
    root = next((folder for folder in (cwd, *cwd.parents) if os.path.lexists(folder / ".git")), cwd)
    for folder in dict.fromkeys((cwd, root)):
        for known in KNOWN:
            try:
                yield from sorted(folder.glob(known)) if "*" in known else (folder / known,)
            except OSError:  # a folder that may not be looked into
                continue


def _state(file: Path) -> str | None:
    """Of a regular file or a link to one its mode, and its content or its times; None for anything else."""
    try:
        about = file.stat()
        opened = about.st_size <= MOST_READ and file.name not in UNOPENED
        content = hashlib.sha256(read_regular(file, MOST_READ)).hexdigest() if opened else _times(about)
    except ValueError:  # it has grown
        content = _times(about)
    except OSError:
        return None
    return f"{about.st_mode:o} {content}" if stat.S_ISREG(about.st_mode) else None


def _times(about: os.stat_result) -> str:
    return f"{about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}"
