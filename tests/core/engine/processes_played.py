"""Plays a process to its end with a strategy alone: no engine, no store, each reply as soon as it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from teamchat.core.engine.processes.table import STRATEGIES
from teamchat.core.engine.workflow import Call, Done, Process, Step

Says = Callable[[Call], str | None]
MOST_STEPS = 200


@dataclass
class Played:
    """`says` are the replies by their message ids. None of a member's was skipped."""

    process: Process
    steps: list[Step] = field(default_factory=list)
    says: dict[str, str] = field(default_factory=dict)

    @property
    def calls(self) -> list[Call]:
        return [call for step in self.steps for call in step.calls]

    @property
    def text(self) -> str:
        last = next(reversed(self.says.values()), "")
        return STRATEGIES[self.process.kind].text(self.process, last)


def play(process: Process, says: Says, by: Callable[[Call], str] = lambda call: call.target) -> Played:
    """The process with these replies; None skips the part. `by` is who answers."""
    strategy = STRATEGIES[process.kind]
    assert strategy.check(process) is None
    played = Played(replace(process, request="msg-1", speaker="kailai"))
    while (step := strategy.step(played.process)) is not None:
        assert strategy.step(played.process) == step
        assert len(played.steps) < MOST_STEPS
        played.steps.append(step)
        for call in step.calls:
            reply, message = says(call), None
            finding = None
            if reply is not None:
                message = f"msg-{len(played.says) + 2}"
                played.says[message] = reply
                finding = strategy.read(played.process, call.part, reply, ())
            done = Done(call.part, by(call), message, finding)
            played.process = replace(played.process, done=(*played.process.done, done))
    return played
