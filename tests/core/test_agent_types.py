from __future__ import annotations

import pytest

from teamchat.core.agent_types import normalize_agent_type


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
