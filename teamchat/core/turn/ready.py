"""What a turn is when it only has to be started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from teamchat.core.context.build import BuiltPrompt
from teamchat.core.receipt import Purpose, Setup
from teamchat.core.team.team import AgentSpec, Member
from teamchat.runners.base import Command, Runner
from teamchat.runners.process.supervisor import Clocks


@dataclass(frozen=True, slots=True)
class ReadyTurn:
    """A turn that only has to be started. `env` is the whole environment of the agent."""

    member: Member
    agent: AgentSpec
    runner: Runner
    prompt: BuiltPrompt
    command: Command
    env: Mapping[str, str]
    setup: Setup
    scratch: Path
    clocks: Clocks


@dataclass(frozen=True, slots=True)
class TurnReason:
    """What a turn is for, as its receipt says it: why it runs, the message it serves, which try it is.

    `first`: the member has had no turn in this conversation.
    """

    why: str
    request: str
    attempt: int = 1
    edits: int = 0
    first: bool = False
    purpose: Purpose = "reply"
