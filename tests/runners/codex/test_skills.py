"""The names by which a prompt may mention a skill of Codex, found where Codex looks for skills."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.runners.codex import skills as codex_skills
from teamchat.runners.codex.skills import EVERY, is_skill, skill_names


def put(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home")}


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    return tmp_path / "repo" / "src"


def test_skills_are_looked_for_in_the_homes_and_in_the_project_and_its_parents(
    tmp_path: Path, cwd: Path, env: dict[str, str]
) -> None:
    places = {
        "one": ".codex/skills/a", "system": ".codex/skills/.system/b", "agents": ".agents/skills/c",
    }  # fmt: skip
    for name, place in places.items():
        put(tmp_path / "home" / place, f"---\nname: {name}\ndescription: x\n---\n")
    put(cwd / ".agents" / "skills" / "d", '---\nname: "near"\n---\n')
    put(cwd.parent / ".codex" / "skills" / "e", "---\ndescription: x\nname: 'above'\n---\n")
    names = skill_names(cwd, env)
    assert names == {"one", "system", "agents", "near", "above", *"abcde"}


def test_codex_home_is_looked_into_in_place_of_the_folder_in_the_home(tmp_path: Path, cwd: Path) -> None:
    put(tmp_path / "home" / ".codex" / "skills" / "a", "---\nname: old\n---\n")
    put(tmp_path / "other" / "skills" / "a", "---\nname: new\n---\n")
    env = {"HOME": str(tmp_path / "home"), "CODEX_HOME": str(tmp_path / "other")}
    assert skill_names(cwd, env) == {"a", "new"}


def test_a_skill_of_a_plugin_is_mentioned_with_the_plugins_name(tmp_path: Path, cwd: Path, env: dict[str, str]) -> None:
    place = tmp_path / "home" / ".codex" / "plugins" / "cache" / "market" / "git" / "1.0" / "skills" / "commit"
    put(place, "---\nname: commit\n---\n")
    names = skill_names(cwd, env)
    assert is_skill("$git:commit", names)
    assert is_skill("$commit", names)
    assert not is_skill("$git:push", names)


@pytest.mark.parametrize(
    "head", ["{name: x}", '"name": x', 'name: "z\\x65bra"', "name: >\n  zebra", "name:\n  zebra", ""]
)
def test_a_name_that_is_not_plainly_written_stands_for_every_name(cwd: Path, env: dict[str, str], head: str) -> None:
    put(cwd / ".codex" / "skills" / "a", f"---\n{head}\n---\n")
    assert EVERY in skill_names(cwd, env)
    assert is_skill("$anything", skill_names(cwd, env))


def test_more_folders_than_are_looked_into_stand_for_every_name(
    cwd: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        put(cwd / ".codex" / "skills" / f"s{number}", f"---\nname: s{number}\n---\n")
    assert EVERY not in skill_names(cwd, env)
    monkeypatch.setattr(codex_skills, "MOST_SKILLS", 3)
    assert EVERY in skill_names(cwd, env)


def test_links_are_followed_and_circles_end(tmp_path: Path, cwd: Path, env: dict[str, str]) -> None:
    put(tmp_path / "elsewhere" / "zebra", "---\nname: zebra\n---\n")
    place = cwd / ".codex" / "skills"
    place.mkdir(parents=True)
    (place / "linked").symlink_to(tmp_path / "elsewhere")
    (place / "circle").symlink_to(place)
    assert "zebra" in skill_names(cwd, env)


def test_where_there_are_no_skills_there_are_no_names(cwd: Path, env: dict[str, str]) -> None:
    assert skill_names(cwd, env) == frozenset()
    assert not is_skill("$HOME", frozenset())


def test_a_file_that_cannot_be_read_is_a_skill_by_its_folder_alone(cwd: Path, env: dict[str, str]) -> None:
    (cwd / ".codex" / "skills" / "a" / "SKILL.md").mkdir(parents=True)
    (cwd / ".codex" / "skills" / "b").mkdir()
    (cwd / ".codex" / "skills" / "b" / "SKILL.md").symlink_to("/nonexistent")
    assert skill_names(cwd, env) == {"b"}
