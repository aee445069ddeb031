from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from teamchat.core.turn.machine import COOL_S, Cooldowns


def test_a_cool_down_is_remembered_for_its_agent_only(tmp_path: Path) -> None:
    Cooldowns(tmp_path / "cooldowns.json").start("claude")
    later = Cooldowns(tmp_path / "cooldowns.json")
    assert COOL_S - 5 < later.left("claude") <= COOL_S
    assert later.left("codex") == 0


@pytest.mark.parametrize("content", ["", "[]", '{"claude": "soon"}', "\0", '{"claude": 1}'])
def test_a_file_that_says_nothing_useful_is_no_cool_down(tmp_path: Path, content: str) -> None:
    (tmp_path / "cooldowns.json").write_text(content)
    cooldowns = Cooldowns(tmp_path / "cooldowns.json")
    assert cooldowns.left("claude") == 0
    cooldowns.start("claude")
    assert cooldowns.left("claude") > 0


def test_a_cool_down_by_a_clock_that_was_ahead_does_not_last(tmp_path: Path) -> None:
    file = tmp_path / "cooldowns.json"
    Cooldowns(file, lambda: 1e9).start("claude")
    assert Cooldowns(file, lambda: 1e9 - 86_400).left("claude") == 0
    Cooldowns(file, lambda: 1e9 - 86_400).start("codex")
    assert file.read_text() == '{"codex": 999913660.0}'
    file.write_text('{"claude": Infinity, "codex": NaN}')
    assert Cooldowns(file).left("claude") == Cooldowns(file).left("codex") == 0


@pytest.mark.parametrize("what", ["a folder", "a pipe", "huge", "deep", "without permissions"])
def test_anything_in_the_files_place_costs_no_turn(tmp_path: Path, what: str) -> None:
    file = tmp_path / "cooldowns.json"
    match what:
        case "a folder":
            file.mkdir()
        case "a pipe":
            os.mkfifo(file)
        case "huge":
            file.write_bytes(b"1" * 10_000_000)
        case "deep":
            file.write_bytes(b"[" * 60_000)
        case _:
            file.touch(0)
    cooldowns = Cooldowns(file)
    assert cooldowns.left("claude") == 0
    cooldowns.start("claude")
    assert cooldowns.left("claude") == 0 or what != "a folder"


def test_nothing_is_left_of_a_write_that_failed_or_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cooldowns.json"
    (tmp_path / "cooldowns.json.new").write_text("half")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full_disk)
        Cooldowns(file).start("claude")
    assert [path.name for path in tmp_path.iterdir()] == ["cooldowns.json.lock"]


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_folder_that_is_not_there_costs_no_turn(tmp_path: Path) -> None:
    cooldowns = Cooldowns(tmp_path / "nowhere" / "cooldowns.json")
    cooldowns.start("claude")
    assert cooldowns.left("claude") == 0
