from __future__ import annotations

from pathlib import Path

from teamchat.runners.gemini_env import silenced


def test_every_variable_of_the_project_that_the_user_lacks_is_set_to_nothing(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nexport B = http://x\n# C=3\r\nD: 4\nBASH_ENV=./evil.sh\nHAVE=theirs\n")
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / ".env").write_bytes(b"\xff\xfe=1\nGEMINI_SYSTEM_MD=x")
    assert silenced(tmp_path, {"HAVE": "mine"}) == dict.fromkeys(("A", "B", "BASH_ENV", "D", "GEMINI_SYSTEM_MD"), "")


def test_folders_above_count_but_not_the_users_home(tmp_path: Path) -> None:
    project = tmp_path / "home" / "project" / "sub"
    project.mkdir(parents=True)
    (project.parent / ".env").write_text("FROM_PROJECT=1")
    (tmp_path / "home" / ".env").write_text("FROM_HOME=1")
    assert silenced(project, {"HOME": str(tmp_path / "home")}) == {"FROM_PROJECT": ""}


def test_the_keys_that_gemini_takes_from_any_folder_are_left(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("GEMINI_API_KEY=theirs\nGOOGLE_GEMINI_BASE_URL=http://elsewhere")
    assert silenced(tmp_path, {}) == {"GOOGLE_GEMINI_BASE_URL": ""}


def test_without_files_nothing_is_set(tmp_path: Path) -> None:
    assert silenced(tmp_path, {}) == {}
