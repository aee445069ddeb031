"""What a receipt tells of the checkpoints of a turn."""

from __future__ import annotations

import pytest

from teamchat.core.checkpoint.values import Checkpoint
from teamchat.core.turn.turn_tree import slowness


def taken(seconds: float, *largest: tuple[str, int]) -> Checkpoint:
    return Checkpoint("tree", (), seconds, largest)


def test_a_checkpoint_of_240_seconds_warns_of_large_files() -> None:
    told = slowness(taken(240.0, ("video.mp4", 3 << 30), ("a.bin", 5 << 20)))
    assert told == "recording the files took 240 s; the largest: video.mp4 (3072 MB), a.bin (5 MB)"
    assert slowness(taken(300.4)) == "recording the files took 300 s; the largest: none is new"


@pytest.mark.parametrize("seconds", [0.0, 10.0, 239.9])
def test_a_quicker_one_warns_of_nothing(seconds: float) -> None:
    assert slowness(taken(seconds, ("video.mp4", 3 << 30))) is None
