"""A structured answer of a process in words; what lacks the form stays as it is."""

from __future__ import annotations

import pytest

from teamchat.core.engine.processes.words import in_words
from teamchat.core.engine.workflow import Part

VOTE = Part("vote", "member", options=("800", "1200"))
BLIND, ROUND = Part("debate", "blind"), Part("debate", "round", 1, 2)
SYNTHESIS = Part("debate", "synthesis", labels=("max", "sarah", "carol"))
PLANNER = Part("mapreduce", "planner", total=9)
JUDGE = Part("best", "judge", options=("A", "B"), compares=("carol", "sarah"))


@pytest.mark.parametrize(
    ("part", "reply", "words"),
    [
        (VOTE, '{"option": "1200", "reason": "fits most screens"}', "max votes 1200: fits most screens"),
        (VOTE, 'So wide.\n\n```json\n{"option": 800, "reason": ""}\n```', "So wide.\n\nmax votes 800"),
        (VOTE, '{"option": null, "reason": "I cannot know."}', "max abstains: I cannot know."),
        (BLIND, 'No.\n{"position": "Never"}\nThat is it.', "No.\n\nmax holds: Never\n\nThat is it."),
        (ROUND, '{"position": "Never", "changed": true}', "max now holds: Never"),
        (ROUND, '{"position": "Never", "changed": false}', "max still holds: Never"),
        (SYNTHESIS, '{"agree": ["max"], "dissent": {"carol": "too slow"}}', "max agrees\n\ncarol dissents: too slow"),
        (SYNTHESIS, '{"agree": [], "dissent": {}}', "nobody agrees"),
        (PLANNER, '["Review a", "Review b\\nwith care"]', "1. → sarah: Review a\n2. → kim: Review b\n   with care"),
        (JUDGE, '{"winner": "B", "reasons": "B is short."}', "max picks sarah (answer B): B is short."),
    ],
)
def test_json_is_told_in_words(part: Part, reply: str, words: str) -> None:
    assert in_words(part, "max", reply, ("sarah", "kim")) == words


@pytest.mark.parametrize(
    ("part", "reply"),
    [
        (None, '{"option": "1200", "reason": "fits"}'),
        (Part("mapreduce", "worker"), '["a"]'),
        (VOTE, '{"option": "1600", "reason": "sharp"}'),
        (VOTE, '{"option": "1200", "reason": ["a", "b"]}'),
        (VOTE, '{"option": "1200", "reason": "fits", "but": "not on phones"}'),
        (VOTE, '{"option": "1200", "rea'),
        (ROUND, '{"position": "Never", "changed": "a little"}'),
        (SYNTHESIS, '{"agree": ["zoe"], "dissent": {}}'),
        (PLANNER, '["Review a", {"task": "Review b"}]'),
        (JUDGE, '{"winner": "neither A nor B", "reasons": "Both fail."}'),
        (JUDGE, '{"winner": "A"}'),
    ],
)
def test_what_lacks_the_form_is_shown_as_it_is(part: Part | None, reply: str) -> None:
    assert in_words(part, "max", reply) == reply
