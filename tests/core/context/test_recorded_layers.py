"""Files and lessons of a recorded turn: kept as they were told, and told again without the files and lessons."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

from msgspec.structs import replace

from teamchat.assemblers.parts import DIFFERENCES, FRAMEWORK, KNOWLEDGE, LESSONS, TODO
from teamchat.core.cassette.format import parse_cassette
from teamchat.core.cassette.replay import recorded_team
from teamchat.core.context.layers.collector import (
    ContextCollector,
    LayerContext,
    LayerText,
    Listening,
    Recorded,
    Telling,
    Texts,
    texts_of,
)
from teamchat.core.engine.workflow import Part
from teamchat.core.messages import NewMessage, Speaker
from tests.core.fake_conversation import team_of

TEAM = team_of(Path("/work"), {"max": "claude", "sarah": "codex"})
LIVE = ContextCollector(
    {
        FRAMEWORK: lambda _: "how",
        KNOWLEDGE: lambda context: LayerText(f"{context.member.name}'s files"),
        LESSONS: lambda _: None,
        TODO: lambda _: "what",
    }
)


def context(member: str, message: str) -> LayerContext:
    said = NewMessage("Hi", Speaker("kailai", "kailai", type="human")).stored_as(message)
    return LayerContext(TEAM.member(member), said, "Hi", None)


def test_only_what_the_conversation_does_not_have_is_kept() -> None:
    kept: list[tuple[str, object]] = []
    listening = Listening(LIVE, lambda context, layers: kept.append((context.member.name, layers)))
    assert texts_of(listening.gather(context("max", "msg-1"))) == texts_of(LIVE.gather(context("max", "msg-1")))
    assert kept == [("max", {KNOWLEDGE: "max's files"})]


def test_each_turn_is_told_its_own_again_and_nothing_of_this_machine() -> None:
    told: list[tuple[Recorded, Texts]] = [
        (("max", "msg-1", None, 1), {KNOWLEDGE: "first"}),
        (("max", "msg-1", None, 1), {KNOWLEDGE: "second"}),  # another try
        (("max", "msg-3", None, 1), {LESSONS: "a lesson"}),
    ]
    telling = Telling(LIVE, told)
    other = {FRAMEWORK: "how", TODO: "what"}
    assert texts_of(telling.gather(context("max", "msg-3"))) == other | {LESSONS: "a lesson"}
    assert texts_of(telling.gather(context("max", "msg-1"))) == other | {KNOWLEDGE: "first"}
    assert texts_of(telling.gather(context("max", "msg-1"))) == other | {KNOWLEDGE: "second"}
    assert texts_of(telling.gather(context("sarah", "msg-1"))) == other


def test_a_member_that_answers_a_message_in_two_parts_of_a_process_is_told_each_ones_own() -> None:
    told: list[tuple[Recorded, Texts]] = [(("max", "msg-1", ("judge", 0), 1), {DIFFERENCES: "what they changed"})]
    telling = Telling(LIVE, told)
    asked = context("max", "msg-1")
    member, judge = (replace(asked, part=Part("best", role)) for role in ("member", "judge"))
    assert DIFFERENCES not in telling.gather(member)
    assert texts_of(telling.gather(judge))[DIFFERENCES] == "what they changed"


def test_a_reviewer_that_is_asked_again_in_the_same_round_is_told_what_it_was_told_then() -> None:
    told: list[tuple[Recorded, Texts]] = [
        (("max", "msg-1", ("reviewer", 1), 1), {}),
        (("max", "msg-1", ("reviewer", 1), 1), {DIFFERENCES: "one line"}),  # another try, after a file has changed
        (("max", "msg-1", ("reviewer", 1), 2), {DIFFERENCES: "two lines"}),
        (("max", "msg-1", ("reviewer", 2), 1), {DIFFERENCES: "three lines"}),
    ]
    telling = Telling(LIVE, told)
    asked = context("max", "msg-1")

    def again(number: int, go: int) -> str | None:
        turn = replace(asked, part=Part("until", "reviewer", number, go=go))
        return texts_of(telling.gather(turn)).get(DIFFERENCES)

    asked_in_turn = [again(2, 1), again(1, 2), again(1, 1), again(1, 1)]
    assert asked_in_turn == ["three lines", "two lines", None, "one line"]


def test_the_paths_of_a_cassette_are_nobodys_knowledge(tmp_path: Path) -> None:
    header, *rest = files("teamchat.cli").joinpath("demo.cassette").read_text(encoding="utf-8").splitlines()
    values = json.loads(header)
    for member in values["team"]["members"]:
        member["knowledge"] = {"secrets": "/etc"}
    team = recorded_team(parse_cassette("\n".join([json.dumps(values), *rest]), "a stranger's"), tmp_path)
    assert [member.knowledge for member in team.members] == [{}] * len(team.members)
