"""A checkpoint that is begun ahead of its turn serves only while nothing can have happened since."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.checkpoint import take as taking
from teamchat.core.checkpoint.compare import changes
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.take import take
from teamchat.core.checkpoint.values import GitRepository, Latest, NoRepository
from teamchat.core.team.team import AgentSpec
from teamchat.core.turn import ahead as module
from teamchat.core.turn.ahead import Ahead
from teamchat.runners.file_changes import FileChanges
from tests.core.checkpoint.worktree import WorkTree
from tests.core.fake_conversation import Stage, team_of
from tests.runners.processes import eventually

BEFORE, AFTER = "refs/teamchat/s/2/before", "refs/teamchat/s/1/after"


@pytest.fixture
def tree(tmp_path: Path) -> WorkTree:
    made = WorkTree.make(tmp_path / "work", tmp_path / "state")
    made.write("notes.txt", b"first\n")
    return made


def begun(tree: WorkTree) -> tuple[Ahead, GitRepository]:
    """With a complete checkpoint."""
    ahead = Ahead(tree.state)
    ahead.begin(tree.top)
    found = ahead.find(tree.top)
    assert isinstance(found, GitRepository)
    return ahead, found


def changed_since(tree: WorkTree, checkpoint: str) -> list[str]:
    now = take(tree.repository, tree.state, "refs/teamchat/s/now")
    return [change.path for change in changes(tree.repository, checkpoint, now.tree)]


def test_no_file_is_looked_at_again(tree: WorkTree) -> None:
    ahead, repository = begun(tree)
    tree.write("notes.txt", b"changed\n")
    before = ahead.before(repository, BEFORE)
    assert tree.git("rev-parse", BEFORE).strip() == before.tree
    assert changed_since(tree, before.tree) == ["notes.txt"]


def test_the_checkpoint_after_a_turn_is_the_one_before_the_next(tree: WorkTree) -> None:
    ahead, repository = Ahead(tree.state), tree.repository
    after = ahead.after(repository, AFTER)
    tree.write("notes.txt", b"changed\n")
    ahead.begin(tree.top)
    assert ahead.find(tree.top) == repository
    assert ahead.before(repository, BEFORE).tree == after.tree
    assert tree.git("rev-parse", BEFORE, AFTER).split() == [after.tree] * 2


def test_it_serves_one_turn(tree: WorkTree) -> None:
    ahead, repository = begun(tree)
    ahead.before(repository, BEFORE)
    tree.write("notes.txt", b"changed\n")
    assert changed_since(tree, ahead.before(repository, "refs/teamchat/s/3/before").tree) == []


def old(_ahead: Ahead, _tree: WorkTree, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "OLDEST_S", 0.0)


def forgotten(ahead: Ahead, _tree: WorkTree, _patch: pytest.MonkeyPatch) -> None:
    ahead.forget()


def followed_by_the_end_of_a_turn(_ahead: Ahead, tree: WorkTree, _patch: pytest.MonkeyPatch) -> None:
    take(tree.repository, tree.state, "refs/teamchat/t/7/after")


def followed_by_an_undo(_ahead: Ahead, tree: WorkTree, _patch: pytest.MonkeyPatch) -> None:
    take(tree.repository, tree.state, "refs/teamchat/t/undo-1/before")


def collected_as_garbage(_ahead: Ahead, tree: WorkTree, _patch: pytest.MonkeyPatch) -> None:
    tree.git("prune", "--expire=now")


@pytest.mark.parametrize(
    "made", [old, forgotten, followed_by_the_end_of_a_turn, followed_by_an_undo, collected_as_garbage]
)
def test_the_files_are_looked_at_again(
    tree: WorkTree, monkeypatch: pytest.MonkeyPatch, made: Callable[[Ahead, WorkTree, pytest.MonkeyPatch], None]
) -> None:
    ahead, repository = begun(tree)
    made(ahead, tree, monkeypatch)
    tree.write("notes.txt", b"changed\n")
    before = ahead.before(repository, BEFORE)
    assert tree.git("rev-parse", BEFORE).strip() == before.tree
    assert changed_since(tree, before.tree) == []


def test_the_beginning_of_another_turn_changes_nothing(tree: WorkTree) -> None:
    ahead, repository = begun(tree)
    take(repository, tree.state, "refs/teamchat/0123456789ab/7/before")
    tree.write("notes.txt", b"changed\n")
    assert changed_since(tree, ahead.before(repository, BEFORE).tree) == ["notes.txt"]


def test_one_that_waited_too_long_is_begun_again(tree: WorkTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a command waits for a conversation that another one runs."""
    ahead = Ahead(tree.state)
    ahead.begin(tree.top)
    ahead._begun[tree.top].result()
    tree.write("notes.txt", b"changed\n")
    with monkeypatch.context() as patch:
        patch.setattr(module, "OLDEST_S", 0.0)
        ahead.begin(tree.top)
    repository = ahead.find(tree.top)
    assert isinstance(repository, GitRepository)
    tree.write("notes.txt", b"changed again\n")
    blob = tree.git("rev-parse", f"{ahead.before(repository, BEFORE).tree}:notes.txt").strip()
    assert tree.git("cat-file", "blob", blob) == "changed\n"


def test_where_no_checkpoint_can_be_taken_the_reason_is_found(tmp_path: Path) -> None:
    ahead = Ahead(tmp_path / "state")
    ahead.begin(tmp_path)
    assert ahead.find(tmp_path) == NoRepository("no git repository") == find_repository(tmp_path)


def test_turns_that_end_while_others_are_looked_at_share_the_next_look(
    tree: WorkTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str | None] = []
    refs = [f"refs/teamchat/s/{number}/after" for number in range(8)]
    take_latest = taking.take_latest

    def look(repository: GitRepository, state_folder: Path, ref: str | None, *, waits: bool) -> Latest:
        looks.append(ref)
        found = take_latest(repository, state_folder, ref, waits=waits)
        if len(looks) == 1:  # the others end before this one is over
            others = [pool.submit(ahead.after, repository, one) for one in refs[1:]]
            assert eventually(lambda: all(one.running() for one in others))
            time.sleep(0.05)  # until all of them wait
        return found

    monkeypatch.setattr(taking, "take_latest", look)
    ahead = Ahead(tree.state)
    with ThreadPoolExecutor(len(refs)) as pool:
        ahead.after(tree.repository, refs[0])
    assert len(looks) == 2
    assert len(set(tree.git("rev-parse", *refs).split())) == 1


def test_a_turn_that_ends_after_a_look_began_is_not_served_by_it(tree: WorkTree) -> None:
    ahead = Ahead(tree.state)
    before = ahead.after(tree.repository, AFTER)
    tree.write("notes.txt", b"changed\n")
    assert ahead.after(tree.repository, "refs/teamchat/s/2/after").tree != before.tree


def test_what_is_changed_between_two_messages_of_a_program_is_nobodys_change(tree: WorkTree) -> None:
    """A program that uses the core has one run for many messages."""
    team = team_of(tree.top, {"max": "plain"})
    script = tree.top.parent / "agent.sh"
    script.write_text("cat > /dev/null; echo Hello")
    agents = {"max-agent": AgentSpec("max-agent", ("sh", str(script)), "plain")}
    stage = Stage(tree.top.parent, replace(team, agents=agents))

    async def main() -> None:
        coordinator = stage.open_real()
        await coordinator.send("[NEXT: max] Go")
        tree.write("notes.txt", b"changed by a person\n")
        await coordinator.send("[NEXT: max] Go on")
        await coordinator.close()

    asyncio.run(main())
    found = [turn.outcome.changes for turn in stage.turns if turn.outcome]
    assert [change.files for change in found if isinstance(change, FileChanges)] == [(), ()]
