"""What the turns of one run add up to, and why some of them have no reply."""

from __future__ import annotations

from dataclasses import dataclass, field

from teamchat.core.engine.actions import PauseKind
from teamchat.core.engine.state import Route, State
from teamchat.core.errors import AgentMissing, ExitCode, NoMessage, NotTrusted, TeamchatError, UsageError
from teamchat.core.messages import ConversationMessage
from teamchat.core.receipt import Outcome
from teamchat.core.store.turns import Turn
from teamchat.core.turn.events import Conclusion
from teamchat.runners.events import Usage

RESUME = "teamchat resume"
SKIP = f"{RESUME} --skip"
PAUSE_CODES = {
    PauseKind.TURNS: ExitCode.GUARD,
    PauseKind.TIME: ExitCode.GUARD,
    PauseKind.LOOP: ExitCode.GUARD,
    PauseKind.TOKENS: ExitCode.BUDGET,
    PauseKind.COST: ExitCode.BUDGET,
    PauseKind.INTERRUPTED: ExitCode.INTERRUPTED,
}


@dataclass(frozen=True, slots=True)
class TurnFailure:
    """Why a route has no reply. `repeats`: it has none again until a person has mended what the reason says."""

    code: ExitCode
    reason: str
    hint: str | None
    repeats: bool = False


@dataclass(slots=True)
class Tally:
    """What the turns of one run add up to. A sum with an unknown part is unknown; `turns` are those with a route."""

    turns: int = 0
    text: str = ""
    denied: int | None = 0
    usage: Usage = field(default_factory=lambda: Usage(0, 0, 0, 0.0))
    failures: dict[int, TurnFailure] = field(default_factory=dict)

    def said(self, reply: ConversationMessage) -> None:
        self.text = reply.content

    def fail(self, route: Route, error: TeamchatError) -> None:
        """A turn that could not even begin."""
        self.failures[route.number] = TurnFailure(error.code, str(error), mends(error), repeats=_repeats(error))

    def add(self, turn: Turn, outcome: Outcome) -> None:
        if outcome.failure and turn.route is not None:
            reason = f"{turn.member} {outcome.failure.reason}"
            self.failures[turn.route] = TurnFailure(outcome.code, reason, outcome.failure.hint)
        self.turns += turn.route is not None
        self.denied = _plus(self.denied, None if outcome.denied is None else len(outcome.denied))
        used, more = self.usage, outcome.usage or Usage()
        self.usage = Usage(
            input_tokens=_plus(used.input_tokens, more.input_tokens),
            cached_tokens=_plus(used.cached_tokens, more.cached_tokens),
            output_tokens=_plus(used.output_tokens, more.output_tokens),
            cost_usd=None
            if used.cost_usd is None or more.cost_usd is None
            else round(used.cost_usd + more.cost_usd, 9),  # the same in whichever order a group's turns end
        )

    def conclusion(
        self,
        state: State,
        code: ExitCode,
        reason: str | None = None,
        hint: str | None = None,
        *,
        waiting_for: str | None = None,
        paused: PauseKind | None = None,
    ) -> Conclusion:
        return Conclusion(
            code=code,
            text=self.text,
            reason=reason,
            hint=hint,
            waiting_for=waiting_for,
            paused=paused,
            held=state.held,
            turns=self.turns,
            denied=self.denied,
            usage=self.usage,
        )


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def mends(error: TeamchatError) -> str | None:
    """What to type about it; nobody can answer a message that was taken back."""
    return SKIP if isinstance(error, NoMessage) else error.hint


def _repeats(error: TeamchatError) -> bool:
    """Whether to go on would end the same: no command mends the program, the team file or the environment."""
    return isinstance(error, AgentMissing | NotTrusted | UsageError) and error.hint is None
