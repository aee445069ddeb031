"""Claude, Codex and Gemini in worktrees of their own: they write at once, are compared, merged and undone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.core.checkpoint.worktree import Files, WorkTree
from tests.real.file_changes import ALLOW, edited, written
from tests.real.model.replies import Reply
from tests.real.model.table import MODELS, SELF_TESTS
from tests.real.test_real_undo import holding, ran, replies
from tests.real.world import MEMBERS, World

pytestmark = pytest.mark.real
ALL = f"[NEXT: {' + '.join(MEMBERS.values())}]"


@dataclass
class Group:
    """The members of a group, of which the team file says nothing of a workspace."""

    user: World
    tree: WorkTree

    @property
    def worktrees(self) -> dict[str, WorkTree]:
        """Each member's."""
        listed = self.user("worktrees", "--json").events
        return {one["member"]: WorkTree(Path(one["folder"]), self.tree.state) for one in listed}

    def files(self) -> dict[str, Files]:
        return {member: tree.files() for member, tree in self.worktrees.items()}

    def write(self) -> None:
        """A turn of all: each changes the same line, and files that no other one changes."""
        for vendor, name in MEMBERS.items():
            top = self.worktrees[name].top
            calls = [written(vendor, top / f"{name}.new", "quagga in a file\n")]
            calls += edited(vendor, top / "shared", "two", f"two by {name}")
            commands = (f"rm {name}.removed", f"sed -i s/old/quagga/ {name}.sed", "printf 'quagga-%s\\n' printed")
            calls += [SELF_TESTS[vendor].running(command) for command in commands]
            self.user.server.script(vendor, [*(Reply(tools=(call,)) for call in calls), Reply("quagga-replied")])
        self.compared = ran(self.user, "send", f"{ALL} Change the files.").events


@pytest.fixture
def group(user: World, tmp_path: Path) -> Group:
    """After a turn in which nobody has changed anything."""
    tree = WorkTree(user.cwd, tmp_path / "unused")
    tree.git("init", "-q")
    members = ['[[members]]\nname = "kailai"\ntype = "human"\n']
    for vendor, name in MEMBERS.items():
        allow = [] if vendor == "codex" else list(ALLOW)
        model = MODELS[vendor]
        members.append(
            f'[[members]]\nname = "{name}"\nagent = "{vendor}"\nmodel = "{model}"\naccess = "edit"\nallow = {allow}\n'
        )
        tree.write(f"{name}.removed", b"\0binary\r\n")
        tree.write(f"{name}.sed", b"old\r\nlast", mode=0o755)
    user.team("".join(members))
    tree.write("shared", b"one\ntwo\nthree\n")
    tree.git("add", "--all")
    tree.git("-c", "user.name=kai", "-c", "user.email=kai@example.org", "commit", "-q", "-m", "first")
    tree.write("shared", b"one\ntwo\nthree, not committed\n")
    replies(user, "First answer.")
    ran(user, "send", "--trust", f"{ALL} First question.")
    return Group(user, tree)


def paths(old: Files, new: Files) -> set[str]:
    return {path.decode() for path in {*old, *new} if old.get(path) != new.get(path)}


def test_all_write_at_once_and_each_is_merged_or_its_conflict_named(group: Group) -> None:
    user, tree = group.user, group.tree
    before, standing, users = group.files(), tree.standing(), tree.files()
    assert set(before) == set(MEMBERS.values())
    group.write()
    outcomes = {turn.member: (turn.started_at, turn.outcome) for turn in user.turns[-3:] if turn.outcome}
    ends = (began + (outcome.seconds or 0) for began, outcome in outcomes.values())
    assert max(began for began, _ in outcomes.values()) < min(ends)
    assert not any(outcome.failed_tools or outcome.denied for _, outcome in outcomes.values())
    assert (tree.standing(), tree.files()) == (standing, users)
    for member, files in group.files().items():
        changed = {"shared", *(f"{member}.{what}" for what in ("new", "removed", "sed"))}
        found = outcomes[member][1].known_changes
        assert paths(before[member], files) == changed
        assert found
        assert {file.path for file in found.files} == changed
    (compared,) = (event for event in group.compared if event["type"] == "group_compared")
    pairs = [["max", "sarah"], ["max", "carol"], ["sarah", "carol"]]
    assert sorted(sorted(one["members"]) for one in compared["conflicts"]) == sorted(map(sorted, pairs))
    assert {(one["path"], one["why"]) for one in compared["conflicts"]} == {("shared", "the same lines")}

    assert user("merge", "max").code == 0
    merged = tree.files()
    assert paths(users, merged) == {"shared", "max.new", "max.removed", "max.sed"}
    for member in ("sarah", "carol"):
        refused = user("merge", member)
        assert (refused.code, tree.files()) == (1, merged)
        assert "conflict: shared (the same lines)" in refused.err
        assert (group.worktrees[member].top / "shared").read_text() == f"one\ntwo by {member}\nthree, not committed\n"
    assert user("merge", "sarah", "--ours").code == 0
    assert (tree.top / "shared").read_text() == "one\ntwo by max\nthree, not committed\n"
    assert user("merge", "carol", "--theirs").code == 0
    assert (tree.top / "shared").read_text() == "one\ntwo by carol\nthree, not committed\n"
    assert paths(users, tree.files()) == {
        "shared", *(f"{name}.{what}" for name in MEMBERS.values() for what in ("new", "removed", "sed")),
    }  # fmt: skip
    after = tree.standing()
    assert {**after, "status": None} == {**standing, "status": None}
    assert tree.git("fsck", "--strict") == ""


def test_undo_takes_back_what_was_written_in_worktrees_and_leaves_what_was_merged(group: Group) -> None:
    user, tree = group.user, group.tree
    before, users = group.files(), tree.files()
    group.write()
    changed = group.files()
    ran(user, "undo", "--yes")
    assert (group.files(), tree.files()) == (before, users)
    ran(user, "redo", "--yes")
    assert (group.files(), tree.files()) == (changed, users)
    assert user("merge", "max").code == 0
    merged = tree.files()
    ran(user, "undo", "--yes")
    assert (group.files(), tree.files()) == (before, merged)
    begun = len(user.server.requests)
    replies(user, "Second answer.")
    ran(user, "send", f"{ALL} Second question.")
    assert holding(user, "First answer.", since=begun) == holding(user, "Second question.", since=begun) == set(MEMBERS)
    assert holding(user, "quagga", since=begun) == set()
    assert user("merge", "max", "--undo").code == 0
    assert tree.files() == users
