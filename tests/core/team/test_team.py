from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from teamchat.core.errors import UnknownName
from teamchat.core.team.team import BUILTIN_AGENTS, INSTALL, Member, Team, default_human, login_name

ROOT = Path("/work")
MAX = Member("Max-1", "ai", ROOT, title="Architect", agent="Claude-Code")
ANN = Member("ann", "human", ROOT)
TEAM = Team("phoenix", (MAX, ANN), ROOT)


def test_members_are_told_apart_by_type() -> None:
    assert TEAM.ai_members == (MAX,)
    assert TEAM.humans == (ANN,)


@pytest.mark.parametrize("name", ["Max-1", "max-1", "MAX_1", "max1"])
def test_a_member_is_found_by_its_name_however_it_is_written(name: str) -> None:
    assert TEAM.member(name) is MAX


def test_an_unknown_member_is_reported_with_those_there_are() -> None:
    with pytest.raises(UnknownName) as unknown:
        TEAM.member("Architect")
    assert str(unknown.value) == "no member 'Architect' in team 'phoenix' (there are: Max-1, ann)"
    assert unknown.value.hint == "teamchat team"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("claude", "claude"),
        ("claude-code", "claude"),
        ("CLAUDE", "claude"),
        ("openai-codex", "codex"),
        ("Codex", "codex"),
        ("Google-Gemini", "gemini"),
        ("gemini", "gemini"),
    ],
)
def test_a_built_in_agent_is_known_by_its_short_and_long_name_in_any_case(written: str, name: str) -> None:
    spec = TEAM.agent_of(Member("max", "ai", ROOT, agent=written))
    assert (spec.name, spec.command, spec.protocol) == (name, (name,), name)


def test_no_agent_runs_a_human() -> None:
    with pytest.raises(ValueError, match="'ann' is a human: no agent runs it"):
        TEAM.agent_of(ANN)


def test_every_built_in_agent_has_its_install_line() -> None:
    assert set(INSTALL) == {spec.name for spec in BUILTIN_AGENTS.values()}


def test_the_person_at_the_keyboard_has_the_login_name_and_no_title() -> None:
    assert default_human("kai", [MAX], ROOT) == Member("kai", "human", ROOT)


@pytest.mark.parametrize("login", ["max-1", "MAX_1", "architect", "all", "corp\\kai", ""])
def test_the_person_is_called_you_when_the_login_name_is_taken_or_no_name(login: str) -> None:
    assert default_human(login, [MAX], ROOT).name == "you"


def test_the_person_gets_a_number_when_even_you_is_taken() -> None:
    members = [Member("You", "ai", ROOT), Member("you-2", "ai", ROOT)]
    assert default_human("you", members, ROOT).name == "you-3"


def test_the_login_name_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "kai")
    assert login_name() == "kai"


def test_a_user_without_a_login_name_is_you(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> str:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert login_name() == "you"


def test_what_needs_no_team_file_loads_no_parser() -> None:
    program = (
        "import sys, teamchat.core.team.find, teamchat.core.team.trust, teamchat.core.files.folders\n"
        "print(sorted({'pydantic', 'tomllib'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
