"""Files and lessons of a recorded turn: kept as they were told, and told again without the files and lessons."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

from teamchat.assemblers.parts import FRAMEWORK, KNOWLEDGE, LESSONS, TODO
from teamchat.core.cassette.format import parse_cassette
from teamchat.core.cassette.replay import recorded_team
from teamchat.core.context.layers.collector import ContextCollector, LayerContext, LayerText, texts_of
from teamchat.core.context.layers.recorded import Listening, Telling
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
    told = [
        ("max", "msg-1", {KNOWLEDGE: "first"}),
        ("max", "msg-1", {KNOWLEDGE: "second"}),  # another try
        ("max", "msg-3", {LESSONS: "a lesson"}),
    ]
    telling = Telling(LIVE, told)
    other = {FRAMEWORK: "how", TODO: "what"}
    assert texts_of(telling.gather(context("max", "msg-3"))) == other | {LESSONS: "a lesson"}
    assert texts_of(telling.gather(context("max", "msg-1"))) == other | {KNOWLEDGE: "first"}
    assert texts_of(telling.gather(context("max", "msg-1"))) == other | {KNOWLEDGE: "second"}
    assert texts_of(telling.gather(context("sarah", "msg-1"))) == other


def test_the_paths_of_a_cassette_are_nobodys_knowledge(tmp_path: Path) -> None:
    header, *rest = files("teamchat.cli").joinpath("demo.cassette").read_text(encoding="utf-8").splitlines()
    values = json.loads(header)
    for member in values["team"]["members"]:
        member["knowledge"] = {"secrets": "/etc"}
    team = recorded_team(parse_cassette("\n".join([json.dumps(values), *rest]), "a stranger's"), tmp_path)
    assert [member.knowledge for member in team.members] == [{}] * len(team.members)
