"""What the real CLIs of teamchat's own rows printed in recorded turns, played through their rows.

`make agents` makes the recordings. The model behind them said the same in each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from teamchat.core.agents import ROWS, agent_type
from teamchat.core.team.agent_rows import find_row, shipped
from teamchat.runners.agent_events import FailureKind, ToolCall, Usage
from teamchat.runners.agent_row import AgentRow
from teamchat.runners.base import NOT_PROVEN, Job, Runner
from tests.runners.captures import play

CAPTURES = Path(__file__).parent.parent / "captures" / "agents"
PROVEN = [name for name, row in shipped() if row.proven]
ANSWER = "It is fine."
Scene = dict[str, Any]


def row_of(name: str) -> AgentRow:
    row = find_row(name)
    assert row is not None
    return row


def runner_of(name: str) -> Runner:
    return agent_type("plain", row_of(name)).runner


def recorded(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((CAPTURES / f"{name}.json").read_text())
    return content


def scenes() -> Iterator[tuple[str, str]]:
    for name in PROVEN:
        for scene in recorded(name)["scenes"]:
            yield name, scene


def scene_of(name: str, scene: str) -> Scene:
    found: Scene = recorded(name)["scenes"][scene]
    return found


@pytest.mark.parametrize("path", sorted(ROWS.glob("*.toml")), ids=lambda path: path.stem)
def test_a_row_is_short_and_says_what_it_is_worth(path: Path) -> None:
    row = row_of(path.stem)
    assert len(path.read_text().splitlines()) <= 60
    assert bool(row.proven) != bool(row.observed)
    assert row.install_command
    assert row.lost
    notes = runner_of(path.stem).access_notes
    for access, bounds in row.access.items():
        assert bounds.note
        assert (NOT_PROVEN in notes[access]) == (not row.proven)


@pytest.mark.parametrize("name", PROVEN)
def test_a_proven_row_has_recorded_turns_of_that_version(name: str) -> None:
    assert recorded(name)["version"] in row_of(name).proven


@pytest.mark.parametrize(("name", "scene"), list(scenes()))
def test_the_row_starts_its_program_as_in_the_recorded_turn(name: str, scene: str, tmp_path: Path) -> None:
    turn = scene_of(name, scene)
    command = runner_of(name).command(Job(row_of(name).command, tmp_path, tmp_path, access=turn["access"]))
    assert list(command.argv) == turn["argv"]
    assert command.env == turn["env"]


def _played(name: str, scene: str) -> tuple[list[Any], Any]:
    turn = scene_of(name, scene)
    parser = runner_of(name).parser()
    out = turn["stdout"].encode()
    lines = out.splitlines() if parser.by_lines else [out]
    events, verdict = play(parser, lines, turn["stderr"].encode().splitlines(), turn["exit_code"])
    return list(events), verdict


@pytest.mark.parametrize("name", PROVEN)
def test_its_reply_is_what_the_model_said(name: str) -> None:
    for scene in ("reply", "tool"):
        events, verdict = _played(name, scene)
        assert (verdict.text.strip(), verdict.failure) == (ANSWER, None)
        if row_of(name).stream in ("claude", "opencode"):
            calls = [event for event in events if isinstance(event, ToolCall)]
            assert len(calls) == (scene == "tool")
            usage = [event for event in events if isinstance(event, Usage)][-1:] or [verdict.usage]
            assert usage[0].output_tokens in (7, 14)  # of each of its requests to the model


@pytest.mark.parametrize("name", PROVEN)
def test_what_a_reader_was_refused_is_no_failure(name: str) -> None:
    for scene, text in (("write", "It was not written."), ("edit", "Written.")):
        _, verdict = _played(name, scene)
        assert (verdict.text.strip(), verdict.failure) == (text, None)


@pytest.mark.parametrize("name", PROVEN)
def test_a_refused_login_is_told_as_one(name: str) -> None:
    _, verdict = _played(name, "login")
    assert verdict.failure.kind is FailureKind.LOGIN
    assert verdict.failure.hint == row_of(name).login


@pytest.mark.parametrize("name", PROVEN)
def test_an_empty_reply_is_a_failure(name: str) -> None:
    _, verdict = _played(name, "empty")
    assert verdict.failure is not None
