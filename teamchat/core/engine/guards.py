"""The limits of a conversation: turns, time, tokens and money. Each of them pauses it.

A new guard has `guard`, `granted` and `LIMIT_NAMES` here, a `PauseKind` in `events.py`, its code in `CODES` of
`core/errors.py`, a key in `team/schema.py`, `Limits` of `team/team.py` and `rules_of` of `turn/run.py`. Its counter in
`state.py` is counted by `decide.py`, from what `conversation/posting.py` reads in a reply or `turn/execution.py` in the
events of a turn. `RESET_BY_SPEAKING` of `conversation/typed_ahead.py` resets it. It has a column in `store/schema.py`,
which `store/routes.py` and, for undo, `Before` of `store/turns.py` store. `cli/running/dry_run.py` shows it.
"""

from __future__ import annotations

import math

from msgspec.structs import replace

from teamchat.core.engine.events import Paused, PauseKind
from teamchat.core.engine.state import Rules, State

LIMIT_NAMES = {
    PauseKind.TIME: "limits.minutes",
    PauseKind.TOKENS: "limits.tokens",
    PauseKind.COST: "limits.cost_usd",
    PauseKind.LOOP: "limits.rounds",
}


Limit = tuple[bool, PauseKind, str]


def guard(state: State, now: float) -> Paused | None:
    """Return the limit that is reached, if any: then no turn may begin."""
    rules = state.rules
    return _first(
        rules,
        (_reached(state.turns, rules.max_turns), PauseKind.TURNS, _turns(state)),
        _time(state, now),
        *_budgets(state),
        (_reached(state.stale, rules.max_stale), PauseKind.LOOP, f"the last {state.stale} replies said nothing new"),
    )


def time_guard(state: State, now: float) -> Paused | None:
    """Return the time limit if it is reached: then no check may begin."""
    return _first(state.rules, _time(state, now))


def budget_guard(state: State) -> Paused | None:
    """Return the budget that is used up, if any."""
    return _first(state.rules, *_budgets(state))


def _budgets(state: State) -> tuple[Limit, Limit]:
    rules = state.rules
    return (
        (_reached(state.tokens, rules.max_tokens), PauseKind.TOKENS, f"{state.tokens:,} tokens are spent"),
        (_reached(state.cost_usd, rules.max_cost_usd), PauseKind.COST, f"${state.cost_usd:.2f} are spent"),
    )


def _first(rules: Rules, *limits: Limit) -> Paused | None:
    names = {**LIMIT_NAMES, PauseKind.TURNS: rules.turns_limit}
    return next((Paused(kind, f"{reason} ({names[kind]})") for over, kind, reason in limits if over), None)


def granted(state: State, now: float) -> State:
    """Return the state after a resume: turns and time count from zero, and a used-up budget is granted once more."""
    return replace(
        state,
        turns=0,
        since=now,
        stale=0,
        tokens=0 if _reached(state.tokens, state.rules.max_tokens) else state.tokens,
        cost_usd=0.0 if _reached(state.cost_usd, state.rules.max_cost_usd) else state.cost_usd,
    )


def _turns(state: State) -> str:
    return f"{state.turns} turn{'s' if state.turns != 1 else ''} since the last human message"


def _time(state: State, now: float) -> Limit:
    most = math.inf if state.rules.max_seconds is None else state.rules.max_seconds
    return now - state.since > most, PauseKind.TIME, f"{most / 60:g} minutes since the last human message"


def _reached(value: float, limit: float | None) -> bool:
    return limit is not None and value >= limit
