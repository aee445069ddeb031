from __future__ import annotations

import pytest

from teamchat.core.engine.strategies import part_in_short, part_in_words
from teamchat.core.engine.workflow import Part


@pytest.mark.parametrize(
    ("part", "words", "short"),
    [
        (Part("sequential", "member", 1, 1), "member of a sequential process", ""),
        (Part("sequential", "member", 2, 3), "member of a sequential process, round 2 of 3", "round 2 of 3"),
        (Part("hierarchical", "lead", 2), "lead of a hierarchical process", "lead"),
        (Part("hierarchical", "worker", 2), "worker of a hierarchical process", "worker"),
        (Part("mapreduce", "planner", total=9), "planner of a map-reduce", "planner"),
        (Part("mapreduce", "planner", total=9, fault="x"), "planner of a map-reduce, asked again", "planner"),
        (Part("mapreduce", "worker", 3, 12), "worker of a map-reduce, subtask 3 of 12", "subtask 3 of 12"),
        (Part("mapreduce", "worker", 1, 1), "worker of a map-reduce, subtask 1 of 1", "subtask 1 of 1"),
        (Part("mapreduce", "reducer", total=12, fault="3, 4"), "reducer of a map-reduce", "reducer"),
        (Part("debate", "blind", 0, 1), "blind answer of a debate", "blind answer"),
        (Part("debate", "round", 1, 1), "answer of a debate", "answer"),
        (Part("debate", "round", 1, 2), "answer of a debate, round 1 of 2", "round 1 of 2"),
        (Part("debate", "synthesis"), "synthesis of a debate", "synthesis"),
        (Part("vote", "member", 2, 3), "member of a vote", ""),
        (Part("best", "member", 2, 3), "member of a best-of", ""),
        (Part("best", "judge", fault="x"), "judge of a best-of, asked again", "judge"),
    ],
)
def test_a_part_is_named_by_its_role_and_what_its_number_counts(part: Part, words: str, short: str) -> None:
    assert (part_in_words(part), part_in_short(part)) == (words, short)
