"""What `send` refuses before anything is stored: a message that no prompt of those it calls has room for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.agents import ProtocolName
from teamchat.core.conversation.entry import check_message
from teamchat.core.conversation.inputs import Message
from teamchat.core.errors import ExitCode, NoRoom, PromptTooLarge
from tests.core.fake_conversation import Stage, team_of

PROTOCOLS: tuple[ProtocolName, ...] = ("plain", "claude", "codex", "gemini")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, team_of(tmp_path, {"max": "codex", "sarah": "plain"}))


def assert_fits(stage: Stage, text: str, to: str | None = "max", *, cut: bool = False) -> None:
    check_message(stage.team, stage.db, None, Message(text=text, speaker="kailai", to=to), cut=cut)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("fence", [False, True])
@pytest.mark.parametrize("text", ["x" * 20_000, "  水 \n" * 5000 + "end\n\n"])
def test_the_size_that_is_named_is_the_one_it_takes(
    tmp_path: Path, protocol: ProtocolName, text: str, *, fence: bool
) -> None:
    stage = Stage(
        tmp_path, replace(team_of(tmp_path, {"max": protocol}), max_bytes=10_000, fence=fence, task="Build it")
    )
    with pytest.raises(NoRoom) as refusal:
        assert_fits(stage, text)
    assert refusal.value.code is ExitCode.TOO_LARGE
    size, needed = re.findall(r"[\d,]{5,}", str(refusal.value))[:2]
    assert int(size.replace(",", "")) == len(text.encode())
    enough = int(needed.replace(",", ""))
    stage.team = replace(stage.team, max_bytes=enough)
    assert_fits(stage, text)
    stage.says = {"max": ["Fine."]}
    stage.send(text, to="max")
    (turn,) = stage.turns
    assert turn.setup.stdin_bytes + turn.setup.system_bytes == enough
    assert not turn.setup.trimmed
    stage.team = replace(stage.team, max_bytes=enough - 1)
    with pytest.raises(NoRoom):
        assert_fits(stage, text)


def test_it_is_one_line_that_says_what_to_do(stage: Stage) -> None:
    stage.team = replace(stage.team, max_bytes=10_000)
    with pytest.raises(NoRoom) as refusal:
        assert_fits(stage, "x" * 20_000)
    assert re.sub(r"20,\d{3}:", "N:", str(refusal.value)) == (
        "the message has 20,000 bytes, and max's prompt with it N: over max_bytes (10,000). Raise it in the team file,"
        " or leave the middle of the message out (--cut)"
    )


def test_with_cut_it_needs_no_room(stage: Stage) -> None:
    stage.team = replace(stage.team, max_bytes=10_000)
    assert_fits(stage, "x" * 20_000, cut=True)


def test_everybody_that_is_called_needs_room_for_it(stage: Stage) -> None:
    stage.team = replace(stage.team, max_bytes=10_000)
    stage.member("sarah", system_instruction="y" * 5000)
    assert_fits(stage, "x" * 6000)
    with pytest.raises(NoRoom, match="and sarah's prompt with it"):
        assert_fits(stage, "x" * 6000, to="max, sarah")
    assert_fits(stage, "x" * 6000, to="max")


@pytest.mark.parametrize(("text", "fits"), [("水" * 1_000_000, True), ("x" * 1_100_000, False)])
def test_what_its_cli_takes_is_counted_in_the_clis_own_unit(stage: Stage, text: str, *, fits: bool) -> None:
    stage.team = replace(stage.team, max_bytes=20_000_000)
    if fits:
        assert_fits(stage, text)
        return
    with pytest.raises(PromptTooLarge, match=r"^max: the prompt has 1,10\d,\d{3} characters, its CLI takes 1,048,576:"):
        assert_fits(stage, text)
    assert_fits(stage, text, to="sarah")


def test_a_message_of_markers_or_to_a_person_needs_no_room(tmp_path: Path) -> None:
    stage = Stage(tmp_path, replace(team_of(tmp_path, {"max": "plain"}, ["kailai", "mia"]), max_bytes=10))
    assert_fits(stage, "x" * 20_000, to="mia")
    assert_fits(stage, "[TEAM_TASK: Build it]", to=None)
