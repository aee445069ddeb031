"""Recordings from before a sentence of teamchat in prompts changed: they replay, and `teamchat test` shows the change.

`first_wording.cassette` was recorded by a version that had the first sentences only: a message and its answers, a
group, a fallback, a session that is continued, two summaries, with fences.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import asdict

from teamchat.core.cassette.format import read_cassette
from teamchat.core.team.wording import NEWEST, TODAY, WORDINGS
from tests.cli.helpers import refused
from tests.program import ROOT, run_here

RECORDED = ROOT / "tests" / "cassettes" / "first_wording.cassette"
LESSONS = {"ask_lessons", "known_lessons", "same_lessons"}  # no recording has the turn of `learn`


@pytest.fixture
def cassette(world: Path) -> Path:
    path = world / "first.cassette"
    shutil.copy(RECORDED, path)
    return path


def test_a_recording_of_the_first_wording_replays(cassette: Path) -> None:
    ran = run_here("replay", "--speed", "0", "--verify", cassette)
    assert (ran.code, "is not as recorded" in ran.err) == (0, False), ran.err


def test_the_recording_has_every_sentence_of_that_wording(cassette: Path) -> None:
    text = cassette.read_text().replace("\\n", "\n")
    sentences = {name: value for name, value in asdict(WORDINGS[1]).items() if name != "no_hand_over"}
    for name, sentence in sentences.items():
        parts = (part.partition("}")[2] or part for part in sentence.split("{"))
        assert (name in LESSONS) or all(part in text for part in parts), name


def test_its_prompts_are_compared_with_the_sentences_of_today_and_updated_to_them(cassette: Path) -> None:
    ran = run_here("test", cassette)
    assert ran.code == 1
    assert "-You are max, a member of the team 'crew'; teamchat passes its messages on." in ran.out
    assert f"+{TODAY.member.format(member='max', team=repr('crew'))}" in ran.out
    assert run_here("test", cassette, "--update").code == 0
    assert cassette.read_text().count(f'"wording": {NEWEST}') == 4
    prompts = [turn.stdin for turn in read_cassette(cassette).turns]
    assert ["This turn serves" in prompt for prompt in prompts] == [False] * len(prompts)
    assert run_here("replay", "--speed", "0", "--verify", cassette).code == 0


def test_a_wording_that_nobody_knows_is_refused(cassette: Path) -> None:
    cassette.write_text(cassette.read_text().replace('"cooling": {}', f'"cooling": {{}}, "wording": {NEWEST + 1}', 1))
    ran = run_here("replay", cassette)
    assert ran.code == 2
    assert "line 2: human.wording" in refused(ran)
