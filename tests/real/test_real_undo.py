"""Undo over the real CLIs: all files come back, and no later request to a model holds an undone word."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.runners.base import Vendor
from tests.core.checkpoint.worktree import WorkTree
from tests.real.file_changes import ALLOW, edited, written
from tests.real.model.replies import Reply, ToolUse
from tests.real.model.table import MODELS, SELF_TESTS
from tests.real.world import MEMBERS, Ran, World

pytestmark = pytest.mark.real
ALL = f"[NEXT: {' + '.join(MEMBERS.values())}]"
SAID = ("quagga-asked", "quagga-replied")


def team(user: World, memory: str) -> None:
    members = ['[[members]]\nname = "kailai"\ntype = "human"\n']
    for vendor, name in MEMBERS.items():
        allow = [] if vendor == "codex" else list(ALLOW)
        keys = f'access = "edit"\nworkspace = "shared"\nmemory = "{memory}"\nallow = {allow}\n'
        members.append(f'[[members]]\nname = "{name}"\nagent = "{vendor}"\nmodel = "{MODELS[vendor]}"\n{keys}')
    user.team("".join(members))


@pytest.fixture
def tree(user: World, tmp_path: Path) -> WorkTree:
    """Files for each member to change; half of them are committed."""
    made = WorkTree(user.cwd, tmp_path / "unused")
    made.git("init", "-q")
    for untracked in ("", ".untracked"):
        for name in MEMBERS.values():
            made.write(f"{name}.removed{untracked}", b"\0binary\r\n")
            made.write(f"{name}.sed{untracked}", b"old\r\nlast", mode=0o755)
            made.write(f"deep/{name}.edited{untracked}", b"one\ntwo\n")
        if not untracked:
            made.git("add", "--all")
            made.git("-c", "user.name=kai", "-c", "user.email=kai@example.org", "commit", "-q", "-m", "first")
    return made


def changes(vendor: Vendor, top: Path) -> list[ToolUse]:
    """Writes, edits, removals and `sed -i`, and a tool that prints."""
    name = MEMBERS[vendor]
    calls = [written(vendor, top / "new folder" / f"{name}.new", "quagga in a file\n")]
    commands = ["printf 'quagga-%s\\n' printed"]
    for kind in ("", ".untracked"):
        calls += edited(vendor, top / "deep" / f"{name}.edited{kind}", "one", "quagga")
        commands += [f"rm {name}.removed{kind}", f"sed -i s/old/quagga/ {name}.sed{kind}"]
    return [*calls, *(SELF_TESTS[vendor].running(command) for command in commands)]


def ran(user: World, *words: str) -> Ran:
    done = user.json(*words)
    assert done.code == 0, done.err
    return done


def replies(user: World, text: str) -> None:
    for vendor in MEMBERS:
        user.server.script(vendor, [Reply(text)])


def holding(user: World, word: str, *, since: int = 0) -> set[str]:
    """The vendors whose models were sent that word."""
    return {str(one.vendor) for one in user.server.requests[since:] if word.encode() in one.raw}


@pytest.mark.parametrize("memory", ["resume", "fresh"])
def test_undo_takes_all_back_and_redo_brings_all_again(user: World, tree: WorkTree, memory: str) -> None:
    team(user, memory)
    replies(user, "First answer.")
    ran(user, "send", "--trust", f"{ALL} First question.")
    files, status = tree.files(), tree.git("status", "--porcelain")
    for vendor in MEMBERS:
        calls = (Reply(tools=(call,)) for call in changes(vendor, tree.top))
        user.server.script(vendor, [*calls, Reply("quagga-replied")])
    ran(user, "send", f"{ALL} Change the files.")
    assert not any(turn.outcome.failed_tools for turn in user.turns if turn.outcome)
    assert holding(user, "quagga-printed") == set(MEMBERS)  # by a tool whose call holds no such word
    changed = tree.files()
    assert len([path for path in {*files, *changed} if files.get(path) != changed.get(path)]) == 7 * len(MEMBERS)

    ran(user, "undo", "--yes")
    assert (tree.files(), tree.git("status", "--porcelain")) == (files, status)
    ran(user, "redo", "--yes")
    assert tree.files() == changed
    begun = len(user.server.requests)
    replies(user, "Second answer.")
    ran(user, "send", f"{ALL} quagga-asked")
    for word in SAID:
        assert holding(user, word, since=begun) == set(MEMBERS)
    assert all(turn.setup.resumes for turn in user.turns[-3:]) == (memory == "resume")

    ran(user, "undo", "4", "--yes")
    assert (tree.files(), tree.git("status", "--porcelain")) == (files, status)
    begun = len(user.server.requests)
    ran(user, "send", f"{ALL} Third question.")
    assert holding(user, "First answer.", since=begun) == holding(user, "Third question.", since=begun) == set(MEMBERS)
    assert holding(user, "quagga", since=begun) == set()


@pytest.mark.parametrize("memory", ["resume", "fresh"])
def test_a_retry_by_another_vendor_knows_nothing_of_what_was_undone(user: World, tree: WorkTree, memory: str) -> None:
    team(user, memory)
    begun: dict[str, int] = {}
    vendors = list(MEMBERS)
    for vendor, other in zip(vendors, [*vendors[1:], vendors[0]], strict=True):
        word = f"zebra-{vendor}"
        files = tree.files()
        wrote = written(vendor, tree.top / "made", f"{word}\n")
        prints = SELF_TESTS[vendor].running(f"printf '{word}\\n'")
        user.server.script(vendor, [*(Reply(tools=(call,)) for call in (wrote, prints)), Reply(word)])
        ran(user, "send", "--trust", "--to", MEMBERS[vendor], "Write it.")
        assert (tree.top / "made").read_text().strip() == word
        assert holding(user, word) == {vendor}
        begun[word] = len(user.server.requests)
        user.server.script(other, [Reply(f"{other} answers.")])
        done = ran(user, "retry", "--yes", "--with", MEMBERS[other])
        assert (done.result["text"], tree.files()) == (f"{other} answers.", files)
    replies(user, "Last answer.")
    ran(user, "send", f"{ALL} Last question.")
    assert holding(user, "Last question.") == set(MEMBERS)
    assert not any(holding(user, word, since=since) for word, since in begun.items())
