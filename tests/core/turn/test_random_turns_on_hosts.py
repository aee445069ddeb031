"""Random turns of two members on two hosts, and random edits at home: what is merged is what a model of it says.

HEAD, index, stash and the branches of people stay as they are, on both sides. `TURNS_ON_HOSTS=200` takes more turns.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from teamchat.core.turn.carried import carried
from teamchat.core.worker.files import prepared
from teamchat.core.worktrees.make import need_worktree, ready, usable
from teamchat.core.worktrees.merging import merge_into
from teamchat.core.worktrees.records import Owner
from tests.core.checkpoint.worktree import WorkTree

TURNS = int(os.environ.get("TURNS_ON_HOSTS", "6"))
NAMES = ("a", "b", "c", "d/a", "d/b", "e/f/a", "e/f/b", "x y", "ä")
OWNER = Owner(1, "s1", "refs/teamchat/0123456789ab")
HOSTS = {"max": "alpha", "sarah": "beta"}


@dataclass(frozen=True)
class Entry:
    """A file by its content and whether it can be run, or a link by where it leads."""

    content: str
    runs: bool = False
    link: bool = False


Files = dict[str, Entry]


@dataclass
class Model:
    """The files of home, and of each member its own and the ones that both had at the last merge."""

    home: Files
    own: dict[str, Files] = field(default_factory=dict)
    base: dict[str, Files] = field(default_factory=dict)

    def begins(self, member: str) -> None:
        """A turn begins with the newest files of home, unless the member has something that is not there."""
        own, base = self.own.get(member), self.base.get(member)
        changed = own is not None and base is not None and differing(base, own)
        if own is None or not any(self.home.get(path) != own.get(path) for path in changed or ()):
            self.own[member], self.base[member] = dict(self.home), dict(self.home)

    def merged(self, member: str) -> tuple[Files, set[str]]:
        """Home after the merge, with the member's side where both changed the same; and the paths where they did."""
        base, theirs, made, clashes = self.base[member], self.own[member], dict(self.home), set()
        for path in {*base, *theirs, *self.home}:
            was, ours, new = base.get(path), self.home.get(path), theirs.get(path)
            if new in (was, ours):
                continue
            found = new
            if ours != was:
                both = combined(was, ours, new)
                clashes |= set() if both else {path}
                found = both or favoured(was, ours, new)
            made = {name: entry for name, entry in made.items() if name != path}
            if found:
                made[path] = found
        return made, clashes


def combined(was: Entry | None, ours: Entry | None, new: Entry | None) -> Entry | None:
    """What both sides have made of a file, one of its content and the other of its mode; None if they exclude."""
    if not (was and ours and new) or was.link or ours.link or new.link:
        return None
    content = new.content if ours.content in (was.content, new.content) else ours.content
    if ours.content != was.content and new.content not in (was.content, ours.content):
        return None
    runs = new.runs if ours.runs == was.runs else ours.runs
    return Entry(content, runs)


def favoured(was: Entry | None, ours: Entry | None, new: Entry | None) -> Entry | None:
    """The member's side of a clash; a mode that only home has changed is no part of it."""
    if was and ours and new and not (was.link or ours.link or new.link) and new.runs == was.runs:
        return Entry(new.content, ours.runs)
    return new


def differing(one: Mapping[str, Entry], other: Mapping[str, Entry]) -> set[str]:
    return {path for path in {*one, *other} if one.get(path) != other.get(path)}


def there(top: Path) -> Files:
    """The files below a folder, without those of git and of this test."""
    found = {}
    for place, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name != ".git" and not (Path(place, name)).is_symlink()]
        links = (path for path in Path(place).iterdir() if path.is_symlink() and path.name not in names)
        for path in (*(Path(place, name) for name in names), *links):
            inside = os.path.relpath(path, top)
            if inside in (".git", ".gitignore"):
                continue
            if path.is_symlink():
                found[inside] = Entry(str(path.readlink()), link=True)
            else:
                found[inside] = Entry(path.read_text(), bool(path.stat().st_mode & 0o100))
    return found


def write(top: Path, path: str, entry: Entry | None) -> None:
    place = top / path
    if place.is_symlink() or place.exists():
        place.unlink()
    if entry is None:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if entry.link:
        place.symlink_to(entry.content)
    else:
        place.write_text(entry.content)
        place.chmod(0o755 if entry.runs else 0o644)


class Chance(random.Random):
    """What happens next."""

    count = 0

    def edit(self, files: Files) -> dict[str, Entry | None]:
        """Some paths, and what each is to be."""
        edits: dict[str, Entry | None] = {}
        for path in self.sample(NAMES, self.randint(1, 3)):
            self.count += 1
            now = files.get(path)
            kind = self.choice(("write", "write", "delete", "mode", "link"))
            match kind:
                case "delete":
                    edits[path] = None
                case "mode" if now and not now.link:
                    edits[path] = Entry(now.content, not now.runs)
                case "link":
                    edits[path] = Entry(f"target-{self.count}", link=True)
                case _:
                    edits[path] = Entry(f"{path} {self.count}\n", bool(now and now.runs and not now.link))
        return {path: entry for path, entry in edits.items() if entry or path in files}


def apply(top: Path, files: Files, edits: Mapping[str, Entry | None]) -> None:
    for path, entry in edits.items():
        write(top, path, entry)
        files.pop(path, None)
        if entry:
            files[path] = entry


def people(tree: WorkTree) -> dict[str, object]:
    """What belongs to the people of a repository: without the branches of worktrees."""
    git = tree.git
    refs = [line for line in git("for-each-ref").splitlines() if "refs/heads/teamchat/" not in line]
    return {
        "HEAD": git("symbolic-ref", "HEAD"),
        "refs": refs,
        "index": git("ls-files", "-s"),
        "stash": git("stash", "list"),
    }


@pytest.mark.parametrize("seed", range(max(1, TURNS // 20)))
def test_what_is_merged_of_turns_on_hosts_is_what_the_model_says(tmp_path: Path, seed: int) -> None:
    chance = Chance(seed)
    begun = {path: f"{path} 0\n".encode() for path in NAMES[:6]}
    home = WorkTree.committed(tmp_path / "home" / "shop", tmp_path / "state", begun)
    clones = {}
    for member, host in HOSTS.items():
        folder = tmp_path / host / "clone"
        subprocess.run(("git", "clone", "-q", home.top, folder), check=True)
        clones[member] = WorkTree(folder, tmp_path / host / "state")
    head = home.git("rev-parse", "HEAD").strip()
    standing = [people(tree) for tree in (home, *clones.values())]
    model = Model(there(home.top))
    turns = 0
    while turns < min(TURNS, 20):
        match chance.choice(("edit", "turn", "turn", "merge")):
            case "edit":
                apply(home.top, model.home, chance.edit(model.home))
            case "turn":
                turns += 1
                member = chance.choice(tuple(HOSTS))
                model.begins(member)
                ready(home.state, OWNER, member, home.top)
                worktree = carried(home.state, 1, "s1", member, HOSTS[member])
                clone = clones[member]
                files = prepared(clone.state, worktree.files([head]), clone.top, "")
                assert there(files.cwd) == model.own[member], (seed, turns)
                apply(files.cwd, model.own[member], chance.edit(model.own[member]))
                worktree.bring(made := files.made()[0])
                worktree.bring(made)  # as after a kill
                assert there(worktree.there.tree.folder) == model.own[member], (seed, turns)
            case _:
                for member in [member for member in HOSTS if member in model.own]:
                    merge(home, model, member)
        assert there(home.top) == model.home, (seed, turns)
    assert [people(tree) for tree in (home, *clones.values())] == standing


def merge(home: WorkTree, model: Model, member: str) -> None:
    expected, clashes = model.merged(member)
    opened = usable(home.state, need_worktree(home.state, 1, "s1", member))
    made = merge_into(home.state, opened)
    assert (made.done, {clash.path for clash in made.clashes}) == (not clashes, clashes)
    if clashes:
        assert there(home.top) == model.home
        made = merge_into(home.state, usable(home.state, opened.tree), "theirs")
    if made.done:
        model.home, model.base[member] = expected, dict(model.own[member])
