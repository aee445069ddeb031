"""Which assembler makes the prompt of an agent, by its type."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.assemblers.formats import CLAUDE, CODEX, GEMINI, PLAIN_TEXT
from teamchat.assemblers.parts import Assembler
from teamchat.core.errors import TeamFileError
from teamchat.core.team.find import load


def assembler_of(folder: Path, agent: str, more: str = "") -> Assembler:
    file = folder / "teamchat.toml"
    file.write_text(f'[[members]]\nname = "max"\nagent = "{agent}"\n{more}')
    team = load(file)
    return team.agent_of(team.member("max")).type.assembler


@pytest.mark.parametrize("agent", ["claude-code", "claude"])
def test_uses_claude_context_assembler_for_claude_code(agent: str, tmp_path: Path) -> None:
    assert assembler_of(tmp_path, agent) is CLAUDE


@pytest.mark.parametrize("agent", ["openai-codex", "codex"])
def test_uses_codex_context_assembler_for_openai_codex(agent: str, tmp_path: Path) -> None:
    assert assembler_of(tmp_path, agent) is CODEX


@pytest.mark.parametrize("agent", ["google-gemini", "gemini"])
def test_uses_gemini_context_assembler_for_google_gemini(agent: str, tmp_path: Path) -> None:
    assert assembler_of(tmp_path, agent) is GEMINI


def test_a_program_without_a_type_falls_back_to_plain_text_assembler(tmp_path: Path) -> None:
    assert assembler_of(tmp_path, "own", '[agents.own]\ncommand = ["cat"]\n') is PLAIN_TEXT


@pytest.mark.parametrize("agent", ["unknown", "claude-2"])
def test_an_unknown_agent_type_is_refused_and_not_guessed(agent: str, tmp_path: Path) -> None:
    with pytest.raises(TeamFileError, match=f"unknown agent '{agent}'"):
        assembler_of(tmp_path, agent)
