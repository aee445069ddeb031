"""A scripted model that changes files of a work tree at random, by the shell and the edit tools of a CLI.

What a turn is to do is planned from what stands on disk before it, so that turns of several CLIs may follow each other
in one tree. They take nine, and 200 with `CHANGES=200 make real`. An `edit` member with `ALLOW` may do all of it, and a
denial is a fault of the plan. No name has a sign of a pattern (`*`, `?`, `[`): Claude refuses them in a command that
writes, in quotes, too.
"""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from random import Random
from shlex import quote

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply, ToolUse
from tests.real.model.table import SELF_TESTS

ALLOW = ("chmod", "cp", "ln", "mkdir", "mv", "printf", "rm", "sed", "touch")
"""What `allow` has to name; for Codex nothing."""
NAMES = (
    "plain",
    "with space",
    "ünïcode",
    "it's",
    "-dash",
    "dot.d/deep",
    "two/three/four",
    'a"quote',
    "a,b",
    "tab\tname",
)
MOST = 6  # changes in a turn


class TurnOfChanges:
    """The changes of one turn, as calls of tools. `done` says in words what each is.

    `by_tools` are the files that edit tools write, of which a CLI reports.
    """

    def __init__(self, vendor: Vendor, top: Path, random: Random, *, number: int) -> None:
        self.calls: list[ToolUse] = []
        self.done: list[str] = []
        self.by_tools: set[str] = set()
        self._vendor, self._top, self._random, self._number = vendor, top, random, number
        self._files = {path for path in _paths(top) if not (top / path).is_symlink()}
        self._links = {path for path in _paths(top) if (top / path).is_symlink()}
        self._fresh: set[str] = set()  # what this turn has made or changed: its content is not what stands on disk
        for _ in range(random.randint(1, MOST)):
            random.choice(self._possible())()

    @property
    def replies(self) -> list[Reply]:
        """One call in a reply, since some change what others have made; then the answer."""
        return [*(Reply(tools=(call,)) for call in self.calls), Reply(f"Turn {self._number} is done.")]

    def _possible(self) -> list[Callable[[], None]]:
        able = [self._create, self._link]
        if self._vendor != "gemini":  # `allow` gives Gemini no `>` and no tab in a command
            able += [self._print]
            able += [self._append] if self._files else []
        if self._files:
            able += [self._sed, self._mode, self._copy, self._become_a_link]
        if self._files - self._fresh:
            able += [self._edit]
        if self._files | self._links:
            able += [self._remove, self._move]
        return able

    def _create(self) -> None:
        path, text = self._new(), self._text()
        if not self._tool_takes(path):
            return
        self._call("create", path, written(self._vendor, self._top / path, text))
        self.by_tools.add(path)
        self._made(path)

    def _print(self) -> None:
        path = self._new()
        if "/" in path:
            self._shell("folder", path, f"mkdir -p {_said(path.rpartition('/')[0])}")
        self._shell("print", path, f"printf '%s\\n' {quote(self._text().strip())} > {_said(path)}")
        self._made(path)

    def _link(self) -> None:
        path = self._new(folders=False)
        target = self._random.choice(sorted(self._files) or ["nowhere"])
        self._shell("link", path, f"ln -s -- {quote(target)} {quote(path)}")
        self._links.add(path)

    def _become_a_link(self) -> None:
        self._remove_one(path := self._any(self._files))
        self._shell("link", path, f"ln -s -- nowhere {quote(path)}")
        self._links.add(path)

    def _append(self) -> None:
        path = self._any(self._files)
        self._shell("append", path, f"printf 'more %s\\n' {self._random.randrange(10**9)} >> {_said(path)}")
        self._fresh.add(path)

    def _sed(self) -> None:
        path = self._any(self._files)
        self._shell("sed", path, f"sed -i '1s/^/{self._random.randrange(10**9)} /' {_said(path)}")
        self._fresh.add(path)

    def _mode(self) -> None:
        path = self._any(self._files)
        on_disk = self._top / path
        runs = on_disk.exists() and bool(on_disk.stat().st_mode & stat.S_IXUSR)
        self._shell("mode", path, f"chmod {'-x' if runs else '+x'} {_said(path)}")

    def _copy(self) -> None:
        path, new = self._any(self._files), self._new(folders=False)
        self._shell("copy", f"{path} to {new}", f"cp {_said(path)} {_said(new)}")
        self._made(new)

    def _edit(self) -> None:
        path = self._any(self._files - self._fresh)
        on_disk = self._top / path
        line = on_disk.read_text().split("\n")[0]
        if not (line.strip() and self._tool_takes(path)):
            return
        for call in edited(self._vendor, on_disk, line, f"{line} edited {self._random.randrange(10**9)}"):
            self._call("edit", path, call)
        self.by_tools.add(path)
        self._fresh.add(path)

    def _remove(self) -> None:
        self._remove_one(self._any(self._files | self._links))

    def _remove_one(self, path: str) -> None:
        self._shell("remove", path, f"rm {_said(path)}")
        self._forget(path)

    def _move(self) -> None:
        path, new = self._any(self._files | self._links), self._new(folders=False)
        self._shell("move", f"{path} to {new}", f"mv {_said(path)} {_said(new)}")
        (self._links if path in self._links else self._files).add(new)
        self._forget(path)
        self._fresh.add(new)

    def _made(self, path: str) -> None:
        self._files.add(path)
        self._fresh.add(path)

    def _forget(self, path: str) -> None:
        self._files.discard(path)
        self._links.discard(path)

    def _any(self, of: set[str]) -> str:
        return self._random.choice(sorted(of))

    def _new(self, *, folders: bool = True) -> str:
        names = [name for name in NAMES if (folders or "/" not in name) and self._may_say(name)]
        return f"{self._random.choice(names)} {self._number}.{self._random.randrange(10**6)}"

    def _may_say(self, name: str) -> bool:
        return self._vendor != "gemini" or "\t" not in name

    def _tool_takes(self, path: str) -> bool:
        """Gemini's edit tools refuse control characters and double quotes in a name, and Codex's leave tabs out."""
        return self._vendor == "claude" or (path.isprintable() and (self._vendor == "codex" or '"' not in path))

    def _text(self) -> str:
        return f"{self._random.randrange(10**9)} one\n{self._random.randrange(10**9)} two\n"

    def _shell(self, what: str, path: str, command: str) -> None:
        self._call(what, path, SELF_TESTS[self._vendor].running(command))

    def _call(self, what: str, path: str, call: ToolUse) -> None:
        self.calls.append(call)
        self.done.append(f"{what} {path}")


def _paths(top: Path) -> list[str]:
    found = (path.relative_to(top) for path in top.rglob("*") if path.is_symlink() or path.is_file())
    return sorted(str(path) for path in found if path.parts[0] not in {".git", "teamchat.toml"})


def _said(path: str) -> str:
    """As a word of a command that no program takes for an option."""
    return quote(f"./{path}")


def written(vendor: Vendor, path: Path, text: str) -> ToolUse:
    if vendor == "codex":
        lines = "".join(f"+{line}\n" for line in text.splitlines())
        return ToolUse("apply_patch", {"input": f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch"})
    tools: dict[Vendor, ToolUse] = {
        "claude": ToolUse("Write", {"file_path": str(path), "content": text}),
        "gemini": ToolUse("write_file", {"file_path": str(path), "content": text}),
    }
    return tools[vendor]


def edited(vendor: Vendor, path: Path, old: str, new: str) -> list[ToolUse]:
    """Claude edits nothing that it has not read."""
    if vendor == "codex":
        patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch"
        return [ToolUse("apply_patch", {"input": patch})]
    tools: dict[Vendor, list[ToolUse]] = {
        "claude": [
            ToolUse("Read", {"file_path": str(path)}),
            ToolUse("Edit", {"file_path": str(path), "old_string": old, "new_string": new}),
        ],
        "gemini": [
            ToolUse(
                "replace",
                {"file_path": str(path), "old_string": old, "new_string": new, "instruction": "Say it otherwise"},
            )
        ],
    }
    return tools[vendor]
