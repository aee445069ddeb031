from __future__ import annotations

import pytest

from teamchat.cli.output.process_report import described
from teamchat.core.engine.workflow import Kind, Process

ALL = ("max", "sarah", "carol")


@pytest.mark.parametrize(
    ("process", "words"),
    [
        (Process(Kind.SEQUENTIAL, ALL, "max"), "max, then sarah, then carol"),
        (Process(Kind.SEQUENTIAL, ("max",), "max", rounds=3), "max in 3 rounds"),
        (Process(Kind.HIERARCHICAL, ALL, "max"), "max hands out work to sarah and carol"),
        (
            Process(Kind.MAPREDUCE, ("sarah",), "max", planner="max", reducer="carol", most=9, jobs=2),
            "max plans at most 9 subtasks, sarah does them, and carol merges the results, 2 at a time",
        ),
        (
            Process(Kind.MAPREDUCE, ALL[1:], "max", planner="max", reducer="max", most=9),
            "max plans at most 9 subtasks, sarah and carol do them, and max merges the results",
        ),
        (
            Process(Kind.DEBATE, ALL, "max", rounds=2),
            "max, sarah and carol answer blind, then in 2 more rounds, and max sums up",
        ),
        (Process(Kind.VOTE, ("max",), "max", options=("yes", "no")), "max chooses from yes, no"),
        (Process(Kind.VOTE, ALL, "max", options=("yes", "no")), "max, sarah and carol choose from yes, no"),
        (
            Process(Kind.BEST, ("max", "sarah"), "max", judge="carol"),
            "max and sarah do the whole task, and carol picks the best",
        ),
    ],
)
def test_a_process_is_described_by_what_its_members_do(process: Process, words: str) -> None:
    assert described(process) == words
