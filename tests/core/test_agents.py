from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest

from teamchat.core.agents import AGENT_TYPES, CLIS, AgentType, ProtocolName, foreign_keys, normalize_agent_type
from teamchat.core.doctor.parity import parity
from teamchat.core.doctor.versions import ledger
from tests.real.model.table import SELF_TESTS


@pytest.mark.parametrize(
    ("written", "normalized"),
    [
        ("claude", "claude-code"),
        ("claude-code", "claude-code"),
        ("codex", "openai-codex"),
        ("openai-codex", "openai-codex"),
        ("gemini", "google-gemini"),
        ("google-gemini", "google-gemini"),
        ("Claude", "claude-code"),
        ("CODEX", "openai-codex"),
        ("Google-Gemini", "google-gemini"),
        ("My-Agent", "My-Agent"),
        ("claude ", "claude "),
        ("", ""),
    ],
)
def test_known_types_get_their_full_name_and_others_stay_as_typed(written: str, normalized: str) -> None:
    assert normalize_agent_type(written) == normalized


@pytest.mark.parametrize("row", CLIS, ids=lambda row: row.name)
def test_the_row_of_a_vendor_names_its_program_its_runner_and_its_folder(row: AgentType) -> None:
    assert row.runner.vendor == row.name
    assert type(row.runner).__module__ == f"teamchat.runners.{row.name}.runner"
    assert row.row.install_command == f"npm install -g {row.package}"
    assert row.keys


def test_what_is_listed_by_vendor_has_every_row() -> None:
    names = [row.name for row in CLIS]
    assert [*ledger()] == [*parity()] == [*SELF_TESTS] == names
    assert get_args(ProtocolName) == ("plain", *names, "terminal") == tuple(AGENT_TYPES)


def test_a_row_without_a_vendor_is_no_cli() -> None:
    assert not AGENT_TYPES["plain"].keys
    assert AGENT_TYPES["plain"] not in CLIS
    assert AGENT_TYPES["terminal"] not in CLIS


def test_a_key_that_two_vendors_take_is_foreign_to_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    both = AgentType(
        "other", AGENT_TYPES["plain"].assembler, AGENT_TYPES["claude"].load, keys=frozenset({"OPENAI_API_KEY"})
    )
    monkeypatch.setattr("teamchat.core.agents.AGENT_TYPES", {**AGENT_TYPES, "other": both})
    monkeypatch.setattr("teamchat.core.agents.CLIS", (*CLIS, both))
    assert "OPENAI_API_KEY" not in foreign_keys("other") | foreign_keys("codex")
    assert "OPENAI_API_KEY" in foreign_keys("claude")
    assert "CODEX_API_KEY" in foreign_keys("other")
    assert foreign_keys(None) == frozenset()


LIGHT = [f"teamchat.runners.{name}" for name in ("agent_events", "agent_row", "base", "edits")]


def test_the_table_loads_no_runner() -> None:
    script = "import sys, teamchat.core.agents; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "teamchat.core.agents" in loaded
    assert sorted(name for name in loaded if name.startswith("teamchat.runners.")) == LIGHT
