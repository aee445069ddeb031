"""How a run of a conversation ended, in words, with the exit code and the command that goes on."""

from __future__ import annotations

from dataclasses import dataclass, field

from teamchat.core.engine.actions import Action, Asked, GroupFailed, Paused, PauseKind, TurnFailed
from teamchat.core.engine.state import Route, State
from teamchat.core.errors import (
    AgentMissing,
    ExitCode,
    NoMessage,
    NotTrusted,
    StoreGone,
    TeamchatError,
    UsageError,
)
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
class Failed:
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
    failures: dict[int, Failed] = field(default_factory=dict)

    def said(self, reply: ConversationMessage) -> None:
        self.text = reply.content

    def fail(self, route: Route, error: TeamchatError) -> None:
        """A turn that could not even begin."""
        self.failures[route.number] = Failed(error.code, str(error), _mends(error), repeats=_repeats(error))

    def add(self, turn: Turn, outcome: Outcome) -> None:
        if outcome.failure and turn.route is not None:
            reason = f"{turn.member} {outcome.failure.reason}"
            self.failures[turn.route] = Failed(outcome.code, reason, outcome.failure.hint)
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


def conclude(tally: Tally, state: State, action: Action, humans: int) -> Conclusion:
    """How the run ends with the engine's last action; `humans` is how many people the team has."""
    match action:
        case TurnFailed(route=route):
            return conclude_failures(tally, state, (route,), alone=True)
        case GroupFailed(routes=routes, all_of_it=all_of_it):
            return conclude_failures(tally, state, routes, alone=False, all_of_it=all_of_it)
        case Asked(route=route):
            return conclude_waiting(tally, state, route, humans)
        case Paused(kind=kind, reason=reason):
            return conclude_pause(tally, state, kind, reason)
        case _:
            return tally.conclusion(state, ExitCode.DONE)


def conclude_waiting(tally: Tally, state: State, route: Route, humans: int) -> Conclusion:
    """A person is asked; `humans` is how many the team has (with one, the answer needs no `--as`)."""
    speaker = f" --as {route.target}" if humans > 1 else ""
    return tally.conclusion(
        state,
        ExitCode.HUMAN_ASKED,
        f"{route.by} asks {route.target}",
        f"teamchat send{speaker} 'Your answer'",
        waiting_for=route.target,
    )


def conclude_pause(tally: Tally, state: State, kind: PauseKind, reason: str) -> Conclusion:
    return tally.conclusion(state, PAUSE_CODES[kind], reason, RESUME if state.held else None, paused=kind)


def conclude_failures(
    tally: Tally, state: State, routes: tuple[Route, ...], *, alone: bool, all_of_it: bool = True
) -> Conclusion:
    """Members failed; they and what waited behind them are held. `all_of_it`: nobody of the group has a reply."""
    failures = [tally.failures[route.number] for route in routes if route.number in tally.failures]
    reason = "; ".join(failure.reason for failure in failures)
    if any(failure.code is ExitCode.INTERRUPTED for failure in failures):
        return conclude_pause(tally, state, PauseKind.INTERRUPTED, reason)
    untrusted = any(failure.code is ExitCode.NOT_TRUSTED for failure in failures)
    of_group = ExitCode.MEMBER_FAILED if all_of_it else ExitCode.GROUP_PARTLY_FAILED
    code = ExitCode.NOT_TRUSTED if untrusted else failures[0].code if alone else of_group
    hints = dict.fromkeys(failure.hint for failure in failures if failure.hint)
    repeats = bool(failures) and all(failure.repeats for failure in failures)
    return tally.conclusion(state, code, reason, None if repeats else _advice(*hints))


def conclude_error(tally: Tally, state: State, error: TeamchatError) -> Conclusion:
    """It could not go on; what ran and what waited is held."""
    hint = error.hint if isinstance(error, StoreGone) else _advice(*filter(None, (_mends(error),)))
    return tally.conclusion(state, error.code, str(error), hint)


def _mends(error: TeamchatError) -> str | None:
    """What to type about it; nobody can answer a message that was taken back."""
    return SKIP if isinstance(error, NoMessage) else error.hint


def _repeats(error: TeamchatError) -> bool:
    """Whether to go on would end the same: no command mends the program, the team file or the environment."""
    return isinstance(error, AgentMissing | NotTrusted | UsageError) and error.hint is None


def _advice(*hints: str) -> str:
    """What mends the failures, then to go on, in one line; what goes on by itself stands alone."""
    if going := [hint for hint in hints if hint.startswith(RESUME)]:
        return "\n".join(going)
    return " && ".join([*(hint.splitlines()[0] for hint in hints), RESUME])
