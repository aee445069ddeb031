"""A machine whose parts are a test's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from teamchat.core.team.team import Member
from teamchat.core.turn.machine import Machine, ReadyTurn
from teamchat.runners.base import Runner
from teamchat.runners.child.running import Launch, Running


class FakeMachine(Machine):
    """Mentions name no file. What is not given is the machine's own; `moment` is by default at once."""

    def __init__(
        self,
        start: Callable[[Launch], Running] | None = None,
        check: Callable[[ReadyTurn], None] | None = None,
        env: Mapping[str, str] | None = None,
        moment: Callable[[str], float] = lambda _vendor: 0.0,
        *,
        live: bool = True,
    ) -> None:
        super().__init__({"PATH": "/bin"} if env is None else env)
        self.live, self._start, self._check, self._moment = live, start, check, moment

    def start(self, what: Launch) -> Running:
        return self._start(what) if self._start else super().start(what)

    def check(self, turn: ReadyTurn) -> None:
        if self._check:
            self._check(turn)
        else:
            super().check(turn)

    def exists(self, _member: Member, _runner: Runner, _part: object = None) -> Callable[[str], bool]:
        return lambda _name: False

    def moment(self, vendor: str) -> float:
        return self._moment(vendor)
