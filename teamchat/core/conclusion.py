"""How a run of a conversation ended, in words, with the exit code and the command that goes on."""

from __future__ import annotations

from dataclasses import dataclass, field

from teamchat.core.actions import PauseKind
from teamchat.core.engine import State
from teamchat.core.errors import ExitCode
from teamchat.core.events import Conclusion
from teamchat.core.messages import ConversationMessage
from teamchat.core.receipt import Outcome
from teamchat.core.route import Route
from teamchat.runners.base import Usage

RESUME = "teamchat resume"


@dataclass(slots=True)
class Tally:
    """What the turns of one run add up to. A sum with an unknown part is unknown."""

    turns: int = 0
    text: str = ""
    denied: int | None = 0
    usage: Usage = field(default_factory=lambda: Usage(0, 0, 0, 0.0))
    last: Outcome | None = None

    def add(self, outcome: Outcome, reply: ConversationMessage | None) -> None:
        self.last = outcome
        self.turns += 1
        self.text = reply.content if reply else self.text
        self.denied = _plus(self.denied, None if outcome.denied is None else len(outcome.denied))
        used, more = self.usage, outcome.usage or Usage()
        self.usage = Usage(
            input_tokens=_plus(used.input_tokens, more.input_tokens),
            cached_tokens=_plus(used.cached_tokens, more.cached_tokens),
            output_tokens=_plus(used.output_tokens, more.output_tokens),
            cost_usd=None if used.cost_usd is None or more.cost_usd is None else used.cost_usd + more.cost_usd,
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


def conclude_waiting(tally: Tally, state: State, route: Route, humans: int) -> Conclusion:
    """A person is asked; `humans` is how many the team has (with one, the answer needs no `--as`)."""
    speaker = f" --as {route.target}" if humans > 1 else ""
    return tally.conclusion(
        state,
        ExitCode.HUMAN_ASKED,
        f"{route.by} asks {route.target}",
        f'teamchat send{speaker} "..."',
        waiting_for=route.target,
    )


def conclude_pause(tally: Tally, state: State, kind: PauseKind, reason: str) -> Conclusion:
    code = ExitCode.INTERRUPTED if kind is PauseKind.INTERRUPTED else ExitCode.GUARD
    return tally.conclusion(state, code, reason, RESUME if state.held else None, paused=kind)


def conclude_failure(tally: Tally, state: State, code: ExitCode, reason: str, hint: str | None) -> Conclusion:
    """A member failed; it and what waited behind it are held."""
    advice = [hint] if hint else []
    advice.append(f"then {RESUME}" if hint else RESUME)
    return tally.conclusion(state, code, reason, ", ".join(advice))
