from __future__ import annotations

import os
from pathlib import Path

import pytest

from teamchat.core.errors import StoreError
from teamchat.core.files.folders import WRITABLE, config_dir, state_dir, workspace_dir


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("TEAMCHAT_HOME", raising=False)
    return home


def mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_the_state_folder_is_in_the_users_home_and_for_the_user_alone(home: Path) -> None:
    folder = state_dir()
    assert folder.is_relative_to(home)
    assert folder.name == "teamchat"
    assert mode(folder) == 0o700


def test_teamchat_home_is_the_state_folder_when_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAMCHAT_HOME", str(tmp_path / "mine"))
    assert state_dir() == tmp_path / "mine"
    assert mode(tmp_path / "mine") == 0o700


def test_a_relative_teamchat_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEAMCHAT_HOME", "mine")
    assert state_dir() == tmp_path / "mine"


def test_an_empty_teamchat_home_counts_as_unset(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAMCHAT_HOME", "")
    assert state_dir().is_relative_to(home)


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    monkeypatch.setenv("TEAMCHAT_HOME", str(shared))
    assert mode(state_dir()) == 0o755


def test_a_state_folder_that_can_not_be_made_is_a_store_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TEAMCHAT_HOME", str(tmp_path / "file" / "x"))
    with pytest.raises(StoreError) as failed:
        state_dir()
    assert str(failed.value) == f"the folder {tmp_path}/file/x cannot be made: Not a directory; {WRITABLE}"


def test_every_workspace_has_a_readable_folder_of_its_own(tmp_path: Path) -> None:
    one, two = tmp_path / "a" / "my project", tmp_path / "b" / "my project"
    folders = [workspace_dir(one), workspace_dir(two)]
    assert folders[0] != folders[1]
    for folder in folders:
        assert folder.name.startswith("my-project-")
        assert folder.is_relative_to(state_dir())
        assert mode(folder) == 0o700


def test_a_workspace_reached_by_a_link_is_the_same_workspace(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert workspace_dir(tmp_path / "link") == workspace_dir(tmp_path / "real")
    assert workspace_dir(tmp_path / "real" / ".." / "real") == workspace_dir(tmp_path / "real")


@pytest.mark.parametrize("name", ["项目", "...", "-", os.fsdecode(b"\xff")])
def test_a_workspace_of_any_name_has_a_folder(name: str, tmp_path: Path) -> None:
    assert workspace_dir(tmp_path / name).name.startswith("folder-")


def test_the_root_of_all_folders_is_a_workspace_too() -> None:
    assert workspace_dir(Path("/")).name.startswith("folder-")


def test_a_long_name_is_cut(tmp_path: Path) -> None:
    assert len(workspace_dir(tmp_path / ("x" * 200)).name) == 40 + 1 + 12


def test_the_configuration_folder_is_not_created(home: Path) -> None:
    folder = config_dir()
    assert folder.is_relative_to(home)
    assert folder.name == "teamchat"
    assert not folder.exists()


def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a container runs a user that its machine does not know."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    homeless(monkeypatch)
    for folder in (state_dir, config_dir):
        with pytest.raises(StoreError, match=rf"^this user has no home folder; {WRITABLE}$"):
            folder()


def test_teamchat_home_is_enough_for_a_user_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homeless(monkeypatch)
    monkeypatch.setenv("TEAMCHAT_HOME", str(tmp_path / "mine"))
    assert state_dir() == config_dir() == tmp_path / "mine"


@pytest.mark.parametrize("name", ["workspaces", "a workspace"])
def test_a_link_in_the_place_of_a_workspace_is_not_followed(tmp_path: Path, name: str) -> None:
    folder = workspace_dir(tmp_path)
    place = folder.parent if name == "workspaces" else folder
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=r"is a link, which is not followed; remove it"):
        workspace_dir(tmp_path)
