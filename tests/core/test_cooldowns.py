from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.core.cooldowns import COOL_S, Cooldowns


def test_a_cool_down_is_remembered_for_its_vendor_only(tmp_path: Path) -> None:
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


def test_a_folder_that_is_not_there_costs_no_turn(tmp_path: Path) -> None:
    cooldowns = Cooldowns(tmp_path / "nowhere" / "cooldowns.json")
    cooldowns.start("claude")
    assert cooldowns.left("claude") == 0
