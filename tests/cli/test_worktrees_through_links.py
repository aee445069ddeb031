"""Links in the user's `.git` lead no worktree elsewhere: nothing is made, moved on or removed through them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from teamchat.core.checkpoint.linked import link
from tests.cli.helpers import refused
from tests.cli.test_worktrees import folder_of, shell
from tests.cli.test_worktrees import tree as tree  # noqa: PLC0414 (a fixture)
from tests.core.checkpoint.worktree import WorkTree
from tests.program import run_here

PLACES = ("refs", "refs/heads", "refs/heads/teamchat", "worktrees", "packed-refs")


def replaced(place: Path, elsewhere: Path) -> None:
    """Move what is at the place elsewhere, and have a link there lead to it."""
    elsewhere.parent.mkdir(exist_ok=True)
    if place.exists():
        shutil.move(place, elsewhere)
    elif place.name == "packed-refs":
        elsewhere.write_text("# pack-refs with: peeled fully-peeled sorted \n")
    else:
        elsewhere.mkdir()
    place.symlink_to(elsewhere)


def held(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("name", PLACES)
def test_no_worktree_is_made_through_a_link(tree: WorkTree, name: str, tmp_path: Path) -> None:
    shell(tree.top, max="echo more >> app.txt")
    place = tree.top / ".git" / name
    replaced(place, tmp_path / "elsewhere/x")
    before = held(tmp_path / "elsewhere")
    ran = run_here("send", "Go")
    assert f"{place} is a link, and no worktree is made or changed through it; remove it" in ran.err
    assert "Traceback" not in ran.err
    assert ran.code != 0
    assert held(tmp_path / "elsewhere") == before


@pytest.mark.parametrize("name", [*PLACES, "worktrees/teamchat-*"])
def test_no_worktree_is_removed_through_a_link(tree: WorkTree, name: str, tmp_path: Path) -> None:
    shell(tree.top, max="echo more >> app.txt")
    assert run_here("send", "Go").code == 0
    place = next((tree.top / ".git").glob(name), tree.top / ".git" / name)
    replaced(place, tmp_path / "elsewhere/x")
    before = held(tmp_path / "elsewhere")
    ran = run_here("worktrees", "remove", "max", "--force")
    assert refused(ran).endswith(f"{place} is a link, and no worktree is made or changed through it; remove it")
    assert held(tmp_path / "elsewhere") == before
    assert folder_of(tree, "max").exists()


def test_what_somebody_left_where_a_worktree_is_to_be_is_written_to_by_nobody(tree: WorkTree, tmp_path: Path) -> None:
    """The name is known before: it is a digest of the folder."""
    folder, mine = tmp_path / "folder", tmp_path / "mine"
    repository = tree.repository
    link(repository, tree.state, folder, "one")
    (own,) = (tree.top / ".git/worktrees").iterdir()
    for name in ("HEAD", "gitdir", "commondir", "index.new"):
        mine.write_text("mine")
        (own / name).unlink(missing_ok=True)
        (own / name).symlink_to(mine)
        link(repository, tree.state, folder, "one")
        assert mine.read_text() == "mine"
        assert not (own / name).is_symlink()
