"""Secrets on their way from one vendor to another."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.context.snapshot import to_json
from teamchat.core.errors import AgentMissing
from teamchat.core.messages import NewMessage, Routing, Speaker
from teamchat.core.turn.machine import ReadyTurn
from tests.core.fake_conversation import Stage, team_of

KEY = "sk-ant-api03-" + "k3Y9" * 10
STARS = "*" * len(KEY)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """max and twin are of one vendor, sarah is of another."""
    team = team_of(tmp_path, {"max": "claude", "sarah": "codex", "twin": "claude"})
    twin = replace(team.member("twin"), agent="max-agent")
    return Stage(tmp_path, replace(team, members=(*team.members[:-1], twin)))


def redacted(stage: Stage) -> list[int]:
    return [turn.setup.redacted for turn in stage.turns]


def test_what_an_agent_said_reaches_another_vendor_without_its_secrets(stage: Stage) -> None:
    stage.says = {"max": [f"It is {KEY}, and {KEY}\n[NEXT: sarah]"], "sarah": ["I see no key."]}
    stage.send("[NEXT: max] Find the key")
    assert f"It is {STARS}, and {STARS}" in stage.prompts[1]
    assert KEY not in stage.prompts[1]
    assert redacted(stage) == [0, 2]
    assert f"max: It is {KEY}, and {KEY}\n[NEXT: sarah]" in stage.said


def test_within_a_vendor_everything_stays(stage: Stage) -> None:
    stage.says = {"max": [f"It is {KEY}\n[NEXT: twin]"]}
    stage.send("[NEXT: max] Find the key")
    assert KEY in stage.prompts[1]
    assert redacted(stage) == [0, 0]


def test_a_person_gives_a_secret_to_whom_they_address_and_to_nobody_else(stage: Stage) -> None:
    stage.says = {"max": ["Thanks.\n[NEXT: sarah]", "Still there."], "sarah": ["Me too."]}
    stage.send(f"[NEXT: max] The key is {KEY}")
    stage.send("[NEXT: max, twin] Do you still have it?")
    told = dict(zip(stage.spoke, stage.prompts, strict=True))
    assert [KEY in prompt for prompt in stage.prompts] == [True, False, True, True]  # max, sarah, max, twin
    assert STARS in told["sarah"]
    assert redacted(stage) == [0, 1, 0, 0]


def only_max_is_missing(turn: ReadyTurn) -> None:
    if turn.member.name == "max":
        raise AgentMissing("max's program is not installed")


def test_who_was_not_addressed_gets_it_redacted_as_the_message_to_answer_too(stage: Stage) -> None:
    """A stand-in of another vendor, for one."""
    stage.member("max", fallback=("sarah",))
    stage.check = only_max_is_missing
    stage.send(f"[NEXT: max] The key is {KEY}")
    assert stage.spoke == ["sarah"]
    assert KEY not in stage.prompts[0]
    assert redacted(stage) == [1]


def test_a_request_that_has_left_the_window_is_redacted_and_counted_once(stage: Stage) -> None:
    stage.team = replace(stage.team, context_window=0)
    stage.says = {"max": ["Hm.\n[NEXT: sarah]"]}
    stage.send(f"[NEXT: max] The key is {KEY}")
    assert f"[REQUEST]\nThe key is {STARS}" in stage.prompts[1]
    assert redacted(stage) == [0, 1]


def test_what_the_budget_left_out_is_not_counted(stage: Stage) -> None:
    stage.team = replace(stage.team, max_prompt_tokens=1)
    stage.says = {"max": [f"It is {KEY}\n[NEXT: twin]"], "twin": ["Hm.\n[NEXT: sarah]"]}
    stage.send("[NEXT: max] Find the key")
    assert stage.turns[2].setup.trimmed.history_messages
    assert redacted(stage) == [0, 0, 0]


@pytest.mark.parametrize(("asked", "taken"), [("twin", 0), ("sarah", 1)])
def test_the_words_of_who_has_left_the_team_stay_those_of_its_vendor(stage: Stage, asked: str, taken: int) -> None:
    stage.says = {"max": [f"It is {KEY}"]}
    stage.send("[NEXT: max] Find the key")
    stage.team = replace(stage.team, members=tuple(m for m in stage.team.members if m.name != "max"))
    stage.send(f"[NEXT: {asked}] And you?")
    assert redacted(stage) == [0, taken]


def test_the_words_of_who_has_another_vendor_now_stay_those_of_the_one_it_had(stage: Stage) -> None:
    stage.says = {"max": [f"It is {KEY}", "Hm.", "Hm."]}
    stage.send("[NEXT: max] Find the key")
    stage.member("max", agent="sarah-agent")
    stage.send("[NEXT: max, sarah, twin] And now?")
    assert stage.spoke == ["max", "max", "sarah", "twin"]
    assert [KEY in prompt for prompt in stage.prompts[1:]] == [False, False, True]
    assert redacted(stage) == [0, 1, 1, 0]


def test_it_can_be_switched_off(stage: Stage) -> None:
    stage.team = replace(stage.team, redact=False)
    stage.says = {"max": [f"It is {KEY}\n[NEXT: sarah]"]}
    stage.send("[NEXT: max] Find the key")
    assert KEY in stage.prompts[1]
    assert redacted(stage) == [0, 0]


def test_what_was_imported_is_redacted_for_everybody_whomever_the_file_says_it_was_said_to(stage: Stage) -> None:
    kailai = Speaker("kailai", "kailai", type="human")
    said = NewMessage(f"[NEXT: max, sarah] The key is {KEY}", kailai, Routing(("max", "sarah")))
    stage.open().manager.import_snapshot(to_json([said.stored_as("msg-1")], None))
    stage.send("[NEXT: max, sarah] Do you have it?")
    assert stage.spoke == ["max", "sarah"]
    assert [KEY in prompt for prompt in stage.prompts] == [False, False]
    assert [STARS in prompt for prompt in stage.prompts] == [True, True]
    assert redacted(stage) == [1, 1]
