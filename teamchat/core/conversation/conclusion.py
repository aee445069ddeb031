"""How a run of a conversation ended, in words, with the exit code and the command that goes on."""

from __future__ import annotations

from teamchat.core.engine.actions import Action, GroupFailed, HumanAsked, Paused, PauseKind, TurnFailed
from teamchat.core.engine.state import Route, State
from teamchat.core.errors import (
    ExitCode,
    StoreGone,
    TeamchatError,
)
from teamchat.core.turn.events import Conclusion
from teamchat.core.turn.tally import PAUSE_CODES, RESUME, Tally, mends


def conclude(tally: Tally, state: State, action: Action, humans: int) -> Conclusion:
    """How the run ends with the engine's last action; `humans` is how many people the team has."""
    match action:
        case TurnFailed(route=route):
            return conclude_failures(tally, state, (route,), alone=True)
        case GroupFailed(routes=routes, all_of_it=all_of_it):
            return conclude_failures(tally, state, routes, alone=False, all_of_it=all_of_it)
        case HumanAsked(route=route):
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
    hint = error.hint if isinstance(error, StoreGone) else _advice(*filter(None, (mends(error),)))
    return tally.conclusion(state, error.code, str(error), hint)


def _advice(*hints: str) -> str:
    """What mends the failures, then to go on, in one line; what goes on by itself stands alone."""
    if going := [hint for hint in hints if hint.startswith(RESUME)]:
        return "\n".join(going)
    return " && ".join([*(hint.splitlines()[0] for hint in hints), RESUME])
