from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from teamchat.core.errors import TeamFileError
from teamchat.core.team import checked
from teamchat.core.team.find import load
from teamchat.core.team.team import Team

FULL = """
[team]
name = "phoenix — über"
task = "Design"
lead = "max"
compactor = "max"
compact_at_tokens = 30000
keep_checkpoints = "7d"

[team.limits]
turns = 3
minutes = 1.5

[[members]]
name = "max"
agent = "claude"
access = "edit"
allow = ["make test", "git log"]
mcp = []
fallback = ["sarah"]
instruction_file = "max.md"
knowledge = ["notes.md"]
timeout = "30m"

[[members]]
name = "sarah"
agent = "console"

[[members]]
name = "kai"
type = "human"
title = "Boss"

[agents.console]
command = ["./console", "--x"]
transport = "pty"
prompt_pattern = "> "
exit = "quit"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TEAMCHAT_HOME", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    (tmp_path / "max.md").write_text("Be brief.")
    (tmp_path / "notes.md").write_text("Notes")
    file = tmp_path / "teamchat.toml"
    file.write_text(FULL)
    return file


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were checked since the test began."""
    seen: list[str] = []
    really: Callable[[str], object] = sys.modules[load.__module__]._checked

    def check(text: str) -> object:
        seen.append(text)
        return really(text)

    monkeypatch.setattr(f"{load.__module__}._checked", check)
    return seen


def kept_files(file: Path) -> list[Path]:
    return sorted((file.parent / "state").glob("checked/*.json"))


def checked_anew(file: Path) -> Team:
    """The team of the file without anything that was kept."""
    for kept in kept_files(file):
        kept.unlink()
    return load(file)


def test_an_unchanged_file_is_checked_once(file: Path, checks: list[str]) -> None:
    first = load(file)
    assert load(file) == first
    assert len(checks) == 1
    assert [kept.stat().st_mode & 0o777 for kept in kept_files(file)] == [0o600]


def test_an_unchanged_file_is_read_without_pydantic_and_without_a_parser(file: Path) -> None:
    load(file)
    program = (
        "import sys; from pathlib import Path; from teamchat.core.team.find import load\n"
        f"load(Path({str(file)!r})); print(sorted({{'pydantic', 'tomllib'}} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_a_file_with_values_of_the_environment_is_not_kept(file: Path, checks: list[str]) -> None:
    load(file)
    file.write_text(FULL.replace("mcp = []", 'env = { A = "correcthorse", "Ä" = "\\u2028" }'))
    assert load(file) == load(file)
    assert len(checks) == 3
    assert kept_files(file) == []


def test_what_the_file_names_is_read_each_time(file: Path) -> None:
    load(file)
    file.with_name("max.md").write_text("Be thorough.")
    assert load(file).member("max").instruction_file_text == "Be thorough."
    file.with_name("notes.md").unlink()
    with pytest.raises(TeamFileError, match="no file or folder"):
        load(file)


def test_a_changed_file_is_checked_again(file: Path, checks: list[str]) -> None:
    load(file)
    file.write_text(FULL.replace("turns = 3", "turns = 4"))
    assert load(file).limits.turns == 4
    assert len(checks) == 2
    assert len(kept_files(file)) == 1


def test_a_mistake_is_found_each_time(file: Path) -> None:
    load(file)
    file.write_text(FULL.replace("turns = 3", "turns = 0"))
    for _ in range(2):
        with pytest.raises(TeamFileError, match="turns: expected at least 1, got 0"):
            load(file)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:0],
        lambda content: content[:-1],
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b'"edit"', b'"full"'),
        lambda content: content.partition(b"\n")[2],
        lambda content: b"\xff" * len(content),
        lambda content: b"\0" * len(content),
        lambda content: b"[" * len(content),
        lambda content: content.partition(b"\n")[0] + b"\n" + b"[" * 100_000,
    ],
)
def test_a_damaged_record_is_ignored_and_replaced(
    file: Path, checks: list[str], damage: Callable[[bytes], bytes]
) -> None:
    first = load(file)
    [kept] = kept_files(file)
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    assert load(file) == first
    assert len(checks) == 2
    assert kept.read_bytes() == whole


def test_the_record_of_another_version_is_not_used(
    file: Path, checks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    load(file)
    monkeypatch.setattr(checked, "VERSION", "0.0.1")
    load(file)
    assert len(checks) == 2


@pytest.mark.parametrize("is_checkout", [True, False])
def test_in_a_checkout_a_file_is_checked_again_when_a_source_was_edited(
    file: Path, checks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_checkout: bool
) -> None:
    source = tmp_path / "checkout" / "teamchat" / "core" / "schema.py"
    source.parent.mkdir(parents=True)
    source.write_text("")
    if is_checkout:
        (tmp_path / "checkout" / ".git").mkdir()
    monkeypatch.setattr(checked, "PROGRAM", tmp_path / "checkout" / "teamchat")
    load(file), load(file)
    assert len(checks) == 1
    os.utime(source, ns=(0, source.stat().st_mtime_ns + 1))
    load(file)
    assert len(checks) == 1 + is_checkout


def test_the_record_of_another_file_is_not_used(file: Path, checks: list[str]) -> None:
    load(file)
    other = file.with_name("other.toml")
    other.write_text(FULL.replace('"edit"', '"read"'))
    load(other)
    first, second = kept_files(file)
    texts = first.read_bytes(), second.read_bytes()
    first.write_bytes(texts[1])
    second.write_bytes(texts[0])
    assert (load(file).member("max").access, load(other).member("max").access) == ("edit", "read")
    assert len(checks) == 4


def test_a_pipe_in_place_of_the_record_stops_nobody(file: Path) -> None:
    first = load(file)
    [kept] = kept_files(file)
    kept.unlink()
    os.mkfifo(kept)
    assert load(file) == first


def test_without_a_state_folder_nothing_is_kept(file: Path) -> None:
    file.with_name("state").rmdir()
    load(file)
    assert not file.with_name("state").exists()


def test_a_state_folder_that_cannot_be_written_changes_nothing(file: Path) -> None:
    file.with_name("state").joinpath("checked").write_text("in the way")
    assert load(file) == load(file)
    assert kept_files(file) == []


def test_what_is_kept_makes_the_same_team(file: Path) -> None:
    load(file)
    again = load(file)
    assert again == checked_anew(file)
