"""What two machines know a repository by."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from teamchat.core.dispatch.project import common_name, project_of
from teamchat.core.errors import HostUnavailable

NAMES = {
    "https://github.com/acme/shop": "github.com/acme/shop",
    "https://github.com/acme/shop.git": "github.com/acme/shop",
    "https://user:word@GitHub.com/acme/shop.git/": "github.com/acme/shop",
    "http://github.com:8080/acme/shop": "github.com/acme/shop",
    "ssh://git@github.com:22/acme/shop.git": "github.com/acme/shop",
    "git://github.com/acme/shop": "github.com/acme/shop",
    "git@github.com:acme/shop.git": "github.com/acme/shop",
    "github.com:/acme/shop": "github.com/acme/shop",
    "git@GITHUB.com:acme/shop": "github.com/acme/shop",
    "ssh://git@[::1]/acme/shop": "::1/acme/shop",
    "https://[half/acme/shop": None,
    "https://github.com/": None,
    "https://github.com/.git": None,
    "file:///srv/shop.git": None,
    "/srv/shop.git": None,
    "../shop": None,
    "shop": None,
    "": None,
}


@pytest.mark.parametrize(("url", "name"), NAMES.items())
def test_addresses_of_one_repository_have_one_name(url: str, name: str | None) -> None:
    assert common_name(url) == name


def git(folder: Path, *words: str) -> str:
    argv = ("git", "-c", "user.name=a", "-c", "user.email=a@b", *words)
    return subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "part" / "deep").mkdir(parents=True)
    git(folder, "init", "-q", ".")
    (folder / "part" / "deep" / "file").touch()
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    git(folder, "commit", "-qm", "two", "--allow-empty")
    return folder


def test_clones_have_their_first_commit_in_common(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(repository), "other")
    here, there = project_of(repository), project_of(tmp_path / "other")
    assert here.root == git(repository, "rev-parse", "HEAD^")
    assert here.is_of(there)
    assert there.remotes == (), "a path is no name of a repository"


def test_a_folder_and_a_worktree_are_of_the_repository(repository: Path) -> None:
    git(repository, "worktree", "add", "-q", "../tree")
    whole, tree = project_of(repository), project_of(repository.parent / "tree" / "part")
    assert project_of(repository / "part" / "deep").folder == "part/deep"
    assert (whole.folder, tree.folder) == ("", "part")
    assert whole.is_of(tree)


def test_a_shallow_clone_is_known_by_its_remotes_alone(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", repository.as_uri(), "shallow")
    with pytest.raises(HostUnavailable):
        project_of(tmp_path / "shallow")
    git(tmp_path / "shallow", "remote", "add", "up", "git@github.com:acme/shop.git")
    found = project_of(tmp_path / "shallow")
    assert (found.remotes, found.root) == (("github.com/acme/shop",), None)


def test_a_repository_without_a_commit_is_known_by_its_remotes(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "new")
    with pytest.raises(HostUnavailable) as told:
        project_of(tmp_path / "new")
    assert told.value.hint
    git(tmp_path / "new", "remote", "add", "bad", "https://[half/x")
    git(tmp_path / "new", "remote", "add", "origin", "https://github.com/acme/shop")
    assert project_of(tmp_path / "new").remotes == ("github.com/acme/shop",)


def test_a_bare_repository_and_a_folder_without_one_are_no_project(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare")
    (tmp_path / "plain").mkdir()
    for name in ("bare", "plain"):
        with pytest.raises(HostUnavailable, match="is no project that a host could know"):
            project_of(tmp_path / name)


def test_a_folder_is_known_by_its_whole_name(repository: Path) -> None:
    (repository / "part\nother ").mkdir()
    assert project_of(repository / "part\nother ").folder == "part\nother "


def test_what_is_no_utf_8_is_no_name(repository: Path) -> None:
    odd = repository / os.fsdecode(b"odd\xff")
    odd.mkdir()
    with pytest.raises(HostUnavailable, match="its name is no UTF-8"):
        project_of(odd)
    with (repository / ".git" / "config").open("ab") as config:
        config.write(b'[remote "up"]\n\turl = https://github.com/acme/\xff\n')
    assert project_of(repository).remotes == ()
