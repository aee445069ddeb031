"""A planned turn, and what it is for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from teamchat.core.context.build import BuiltPrompt
from teamchat.core.receipt import Purpose, Setup
from teamchat.core.team.programs import Unusable
from teamchat.core.team.team import AgentSpec, Member
from teamchat.runners.base import Command, Runner
from teamchat.runners.process.supervisor import Clocks


class ReadyTurn(Struct, frozen=True):
    """A planned turn. `env` is the whole environment of the agent.

    `program` is where the program of `command` is, or why it cannot be run. A replay looks for none, and has its name.
    """

    member: Member
    agent: AgentSpec
    runner: Runner
    prompt: BuiltPrompt
    command: Command
    program: str | Unusable
    env: Mapping[str, str]
    setup: Setup
    scratch: Path
    clocks: Clocks


class TurnReason(Struct, frozen=True):
    """What a turn is for, as its receipt says: why it runs, the message that it serves, the number of the attempt.

    `first`: the member has had no turn in this conversation yet.
    """

    why: str
    request: str
    attempt: int = 1
    edits: int = 0
    first: bool = False
    purpose: Purpose = "reply"
