"""The five tools: the questions that a model may ask of git, and the git commands that answer them.

A model's words become a revision that was looked up and goes on by its full name, a path behind `--`, or a number. None
of them can be an option. The docstring of a tool is its description for the model.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from teamchat.runners.git_server.output import Page
from teamchat.runners.git_server.repository import Git

PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short")
OUTSIDE = "--ignore-submodules=dirty"  # to see what changed inside a submodule, git would run in it
MOST_COMMITS = 500

Paths = Annotated[list[str], Field(description="Only these files and folders.")]
Number = Annotated[int, Field(ge=1)]


class Tool(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    from_line: Annotated[int, Field(ge=1, description="Where to go on in a long answer.")] = 1

    @abstractmethod
    def command(self, git: Git) -> Sequence[str]:
        """Build the arguments of git. Raises `GitError`."""

    def answer(self, git: Git) -> str:
        """Return git's output, and behind it a note of anything left out. Raises `GitError`."""
        page = git(*self.command(git), first=self.from_line)
        return "\n\n".join((page.text.rstrip("\n") or "(nothing)", *_left_out(page)))


def _left_out(page: Page) -> list[str]:
    notes = []
    if page.more:
        notes.append(f"(lines {page.first} to {page.last}; for more: from_line = {page.last + 1}, or name paths)")
    if page.cut:
        notes.append(f"(long lines that are not whole: {page.cut})")
    return notes


class Status(Tool):
    """Files that differ from the last commit, and files that git does not know yet."""

    paths: Paths = []

    def command(self, git: Git) -> Sequence[str]:
        return ("status", "--short", "--branch", OUTSIDE, "--", *map(git.path, self.paths))


class Diff(Tool):
    """What changed, as a patch. Without arguments: everything since the last commit, but for files git does not know.

    `revisions` is one revision, to compare the files with it, or two: A..B, or A...B for what B has since it left A.
    """

    revisions: str = "HEAD"
    paths: Paths = []
    staged: Annotated[bool, Field(description="Compare what is staged, and not the files.")] = False
    stat: Annotated[bool, Field(description="Only which files changed, and how much.")] = False

    def command(self, git: Git) -> Sequence[str]:
        options = (*(("--cached",) if self.staged else ()), *(("--stat=200",) if self.stat else ()))
        return ("diff", *PLAIN, OUTSIDE, *options, git.commits(self.revisions), "--", *map(git.path, self.paths))


class Log(Tool):
    """Commits, newest first. `revisions` is where to begin, or A..B for what B has and A has not."""

    revisions: str = "HEAD"
    paths: Paths = []
    count: Annotated[int, Field(ge=1, le=MOST_COMMITS)] = 20
    skip: Annotated[int, Field(ge=0)] = 0
    patch: Annotated[bool, Field(description="With what each commit changed.")] = False

    def command(self, git: Git) -> Sequence[str]:
        shown = "--patch" if self.patch else "--no-patch"
        bounds = (f"--max-count={self.count}", f"--skip={self.skip}")
        ways = (*PLAIN, OUTSIDE, "--decorate=short", "--date=iso")
        return ("log", *ways, *bounds, shown, git.commits(self.revisions), "--", *map(git.path, self.paths))


class Show(Tool):
    """One commit with what it changed; with `path` that file, or folder, as it was there."""

    revision: str = "HEAD"
    path: str | None = None

    def command(self, git: Git) -> Sequence[str]:
        commit = git.commit(self.revision)
        if self.path is None:
            return ("show", *PLAIN, OUTSIDE, "--decorate=short", "--date=iso", commit, "--")
        return ("show", *PLAIN, f"{commit}:./{git.path(self.path)}")


class Blame(Tool):
    """Which commit each line of a file comes from; without `revision` the file as it is now."""

    path: str
    revision: str | None = None
    first: Number = 1
    last: Number | None = None

    def command(self, git: Git) -> Sequence[str]:
        lines = f"-L{self.first},{self.last or ''}"
        at = () if self.revision is None else (git.commit(self.revision),)
        path = git.path(self.path) if at else git.file(self.path)
        return ("blame", "--no-textconv", "--date=short", lines, *at, "--", path)


TOOLS: Mapping[str, type[Tool]] = MappingProxyType(
    {"git_status": Status, "git_diff": Diff, "git_log": Log, "git_show": Show, "git_blame": Blame}
)
