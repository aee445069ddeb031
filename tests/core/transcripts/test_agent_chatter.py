"""Team configurations of agent_chatter, whatever is in them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from teamchat.core.transcripts.agent_chatter import team_file
from teamchat.core.transcripts.reading import Configuration, read
from tests.core.transcripts.test_reading import places, values, with_damage

MEMBER = {
    "name": "max",
    "displayName": "Max",
    "displayRole": "Developer",
    "role": "developer",
    "type": "ai",
    "agentType": "local",
    "themeColor": "cyan",
    "baseDir": "./roles",
    "workDir": "./work",
    "instructionFile": "max.md",
    "env": {"DEBUG": "true"},
    "systemInstruction": ["One.", "Two."],
    "additionalArgs": ["-x"],
    "order": 1,
}
WHOLE = {
    "schemaVersion": "1.2",
    "agents": [{"name": "local", "command": "./local.sh", "args": ["-x"], "usePty": True}],
    "team": {"name": "crew", "description": "A crew", "members": [MEMBER], "instructionFile": "team.md"},
    "maxRounds": 5,
    "conversation": {"maxAgentResponseTime": 300_000, "allowEscCancel": True},
}
odd = values | st.sampled_from(["~nobody/x", "\0", "a\nb", '"', "\x7f", "]", "~", "/", 10**400, True])


def made(value: Any) -> str:
    """The team file for a configuration, or why it makes none."""
    try:
        found = read(json.dumps(value).encode())
        assert isinstance(found, Configuration)
        return team_file(found.value, Path.cwd(), Path.cwd())[0]
    except ValueError as error:
        return f"# {error}"


@given(data=st.data(), damage=odd)
@example(data=None, damage=None)
def test_any_configuration_becomes_toml_or_is_refused_in_one_line(data: st.DataObject | None, damage: Any) -> None:
    within = [place for place in places(WHOLE) if len(place) > 1]
    value = with_damage(WHOLE, data.draw(st.sampled_from(within)), damage) if data else WHOLE

    assert isinstance(tomllib.loads(made(value)), dict)


@pytest.mark.parametrize("key", ["baseDir", "workDir", "instructionFile"])
@pytest.mark.parametrize("path", ["x" * 5000, "~nobody/x", "a\0b", 10**400])
def test_a_path_that_no_file_can_have_is_left_out(key: str, path: object) -> None:
    text = made(with_damage(WHOLE, ("team", "members", 0, key), path))

    (member,) = tomllib.loads(text)["members"]
    assert {"cwd", "instruction_file"}.isdisjoint(member)
