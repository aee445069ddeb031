"""Under which folder's name Claude notes what the user has set up for a project."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from teamchat.runners.claude.folders import noted_at
from teamchat.runners.claude.tools import servers

LIKE_GIT = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "init.defaultBranch=main")


def git(*words: str | Path) -> None:
    subprocess.run(["git", *LIKE_GIT, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a commit and a folder in it."""
    git("init", made := tmp_path / "repo")
    git("-C", made, "commit", "--allow-empty", "-m", "x")
    (made / "pkg").mkdir()
    return made


def test_a_folder_of_no_repository_is_noted_itself_by_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "plain" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "plain")
    assert noted_at(tmp_path / "link" / "sub") == tmp_path / "plain" / "sub"


def test_a_folder_of_a_repository_is_noted_at_its_root(repository: Path) -> None:
    (repository.parent / "link").symlink_to(repository / "pkg")
    assert noted_at(repository) == noted_at(repository / "pkg") == repository
    assert noted_at(repository.parent / "link") == repository


def test_a_work_tree_is_noted_at_its_repository(repository: Path) -> None:
    tree = repository.parent / "tree"
    git("-C", repository, "worktree", "add", tree)
    (tree / "sub").mkdir()
    assert noted_at(tree / "sub") == repository
    git("clone", "--bare", repository, bare := repository.parent / "bare.git")
    git("-C", bare, "worktree", "add", other := repository.parent / "other")
    assert noted_at(other) == bare


def test_what_only_says_that_it_is_a_work_tree_is_noted_itself(repository: Path, tmp_path: Path) -> None:
    """A folder that names another's repository would have the servers that the user set up for that."""
    git("-C", repository, "worktree", "add", tree := tmp_path / "tree")
    (thief := tmp_path / "thief").mkdir()
    (thief / ".git").write_bytes((tree / ".git").read_bytes())
    assert noted_at(thief) == thief
    for text in (f"gitdir: {tmp_path}/nowhere", "gitdir: \0", "odd", "\xff"):
        (thief / ".git").write_text(text, "latin-1")
        assert noted_at(thief) == thief
    (thief / ".git").unlink()
    os.mkfifo(thief / ".git")
    assert noted_at(thief) == thief


def test_the_servers_of_a_project_are_found_below_its_root(repository: Path) -> None:
    home = repository.parent
    local = {str(repository): {"mcpServers": {"here": {"command": "x"}}}, str(repository / "pkg"): {"mcpServers": {}}}
    (home / ".claude.json").write_text(json.dumps({"projects": local}))
    assert servers(repository / "pkg", {"HOME": str(home), "CLAUDE_CONFIG_DIR": ""}) == {"here": {"command": "x"}}
