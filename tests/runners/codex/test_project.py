"""What a member of Codex is given in a folder that its user trusts in Codex itself."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from teamchat.runners.codex.project import CUT, LARGEST, without_project
from teamchat.runners.untrusted.toml import in_toml

UP = "Always say ROOT."


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    """A folder in a repository with instructions in three places, one of them above it."""
    repository = tmp_path / "up" / "repo"
    (repository / "a" / "b").mkdir(parents=True)
    (repository / ".git").mkdir()
    (tmp_path / "up" / "AGENTS.md").write_text("Not of the repository.")
    (repository / "AGENTS.md").write_text(f"{UP}\n")
    (repository / "a" / "b" / "AGENTS.md").write_text("passed over")
    (repository / "a" / "b" / "AGENTS.override.md").write_text('Say "Ü" and \\ twice.\n')
    return repository / "a" / "b"


def given(cwd: Path, text: str) -> dict[str, Any]:
    """The settings on its command line where the user's file has this text."""
    home = cwd.parents[3] / "home"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)
    words = without_project(cwd, {"CODEX_HOME": str(home)})
    assert set(words[::2]) <= {"-c"}
    return tomllib.loads("\n".join(words[1::2]))


def trusting(folder: Path, before: str = "") -> str:
    return f'{before}\n[projects."{folder}"]\ntrust_level = "trusted"\n'


def distrusted(*folders: Path) -> dict[str, dict[str, str]]:
    return {str(folder): {"trust_level": "untrusted"} for folder in folders}


@pytest.mark.parametrize("text", ["", '[projects."/elsewhere"]\ntrust_level = "trusted"', 'projects = ["odd"]',
                                  '[projects]\n"/" = 5'])  # fmt: skip
def test_nothing_is_said_of_a_project_that_is_not_trusted(cwd: Path, text: str) -> None:
    assert given(cwd, text) == {}


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_its_configuration_is_distrusted_and_its_instructions_are_handed_over(cwd: Path, level: int) -> None:
    told = f'# AGENTS.md instructions for {cwd}\n\n<INSTRUCTIONS>\n{UP}\n\nSay "Ü" and \\ twice.\n</INSTRUCTIONS>'
    expected = {"projects": distrusted(cwd, cwd.parents[1]), "developer_instructions": told}
    assert given(cwd, trusting((cwd, *cwd.parents)[level])) == expected


def test_the_users_own_instructions_and_sizes_hold(cwd: Path) -> None:
    (cwd / "AGENTS.override.md").unlink()
    (cwd / "AGENTS.md").unlink()
    (cwd / "NOTES.md").write_text("Notes.")
    own = 'developer_instructions = "Mine."\nproject_doc_max_bytes = 20\nproject_doc_fallback_filenames = ["NOTES.md"]'
    told = given(cwd, trusting(cwd, own))["developer_instructions"]
    assert told.startswith("Mine.\n\n# AGENTS.md instructions for ")
    assert told.endswith(f"<INSTRUCTIONS>\n{UP}\n\nNo\n</INSTRUCTIONS>")


@pytest.mark.parametrize(
    ("text", "own"),
    [("\x01" * 40_000, ""), ('"\\' * 16_000, "Mine. " * 10_000), ("x" * 120_000, ""), ("x", "\x7f" * 30_000)],
)
def test_an_argument_holds_it_and_what_is_cut_is_told(cwd: Path, text: str, own: str) -> None:
    (cwd / "AGENTS.override.md").write_text(text)
    (cwd.parents[1] / "AGENTS.md").unlink()
    head = f"developer_instructions = {in_toml(own)}\nproject_doc_max_bytes = 200_000"
    told = given(cwd, trusting(cwd, head))["developer_instructions"]
    assert len(in_toml(told).encode()) <= LARGEST
    assert CUT in told
    assert told.endswith("</INSTRUCTIONS>")


def test_what_an_argument_holds_is_whole(cwd: Path) -> None:
    (cwd / "AGENTS.override.md").write_text("\x7f" * 10_000)
    told = given(cwd, trusting(cwd))["developer_instructions"]
    assert "\x7f" * 10_000 in told
    assert CUT not in told


def test_a_project_without_instructions_is_distrusted_alone(cwd: Path) -> None:
    for file in cwd.parents[2].rglob("AGENTS*.md"):
        file.unlink()
    assert given(cwd, trusting(cwd)) == {"projects": distrusted(cwd, cwd.parents[1])}


@pytest.mark.parametrize("text", ["not toml =", '[projects."x"]\nname = {\n a = 1,\n}\n'])
def test_a_file_that_is_not_understood_may_trust_it(cwd: Path, text: str) -> None:
    assert given(cwd, text)["projects"] == distrusted(cwd, cwd.parents[1])


def test_in_a_work_tree_of_git_the_trust_may_be_another_folders(cwd: Path) -> None:
    (cwd.parents[1] / ".git").rmdir()
    (cwd.parents[1] / ".git").write_text("gitdir: /main/.git/worktrees/repo")
    assert given(cwd, trusting(Path("/main")))["projects"] == distrusted(cwd, cwd.parents[1])
