from __future__ import annotations

from teamchat.core.engine.events import PauseKind
from teamchat.core.errors import CODES
from teamchat.runners.events import FailureKind


def test_the_table_has_every_way_a_turn_fails_and_a_conversation_is_paused() -> None:
    assert CODES.keys() == {*FailureKind, *PauseKind}
