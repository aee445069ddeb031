from __future__ import annotations

from typing import get_args

from teamchat.core.check import NotRun
from teamchat.core.engine.events import PauseKind
from teamchat.core.engine.workflow import OpenKind, StuckKind
from teamchat.core.errors import CODES
from teamchat.runners.agent_events import FailureKind


def test_the_table_has_every_way_to_fail_to_pause_and_to_leave_something_open() -> None:
    others = {*get_args(NotRun), *get_args(StuckKind), *get_args(OpenKind)}
    assert CODES.keys() == {*FailureKind, *PauseKind, *others}
