"""The usage of a turn of Claude (2.1.197, 2.1.260, 2.1.330): by its `result`, or else by its requests.

The `result` of a turn that was interrupted or refused tells zeros, and a turn that was killed has none. The stream has
the usage of each request, where the request begins (`message_start`) and goes on (`message_delta`).
"""

from __future__ import annotations

from collections.abc import Iterable

from teamchat.runners.agent_events import Usage
from teamchat.runners.untrusted.json import amount, count, total

_NAMES = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_MODEL_NAMES = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens")


class Requests:
    """The usage of a turn's requests so far, including those of subagents."""

    def __init__(self) -> None:
        self._known: set[object] = set()  # the ids of the messages
        self._sums: dict[str, int] = {}  # over all requests
        self._open: dict[object, dict[str, int]] = {}  # the last request of the member, and of each subagent

    def begins(self, name: object, usage: object, of: object) -> None:
        """Begin a request of the member (`of` is None) or a subagent. A known name changes nothing."""
        name = name if isinstance(name, str) else len(self._known)
        if name not in self._known:
            self._known.add(name)
            self._open[str(of)] = {}
            self.goes_on(usage, of)

    def goes_on(self, usage: object, of: object) -> None:
        """Update the usage of the open request: each number replaces the one before."""
        if isinstance(usage, dict) and (known := self._open.get(str(of))) is not None:
            for name in _NAMES:
                if (number := count(usage.get(name))) is not None:
                    self._sums[name] = self._sums.get(name, 0) + number - known.get(name, 0)
                    known[name] = number

    def usage(self) -> Usage | None:
        """Return the sum over all requests, without the cost; None when nothing is known."""
        spent = _sum([self._sums], _NAMES)
        return None if spent.is_nothing else spent


def usage_of(result: dict[str, object], models: list[object] | None, requests: Requests, *, failed: bool) -> Usage:
    """Return the usage of the whole turn and its subagents; unknown if nothing is reported.

    `usage` of a `result` lacks the subagents. `modelUsage` and `total_cost_usd` add up over a process (2.1.260) or a
    session (2.1.330). `models` is the value of `model_usage_since_last_result` in the turn's results, which 2.1.330
    reports; None if they lack it (2.1.260).
    """
    own, asked = _sum([result.get("usage")], _NAMES), requests.usage() or Usage()
    exact, cost = _sum(models or (), _MODEL_NAMES), cost_since(models)
    whole = _sum(models_in(result, "modelUsage") or (), _MODEL_NAMES) if models is None else Usage()
    if cost is None and models != []:  # with an empty one, all that `total_cost_usd` has is older than the turn
        cost = amount(result.get("total_cost_usd"))
    if failed:
        spent = _largest(own, exact, asked, whole if result.get("subtype") == "error_max_budget_usd" else Usage())
    elif own.is_nothing:  # after a repeated request
        spent = next((usage for usage in (exact, whole) if not usage.is_nothing), asked)
    else:
        spent = _largest(own, asked) if exact.is_nothing else exact
    if spent.is_nothing:
        return Usage(cost_usd=cost or None)
    return Usage(spent.input_tokens, spent.cached_tokens, spent.output_tokens, cost or None if failed else cost)


def cost_since(models: list[object] | None) -> float | None:
    """Add up the cost of a turn over its models; None if one of them does not have it."""
    costs = [amount(model.get("costUSD")) for model in models or () if isinstance(model, dict)]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def models_in(result: dict[str, object], name: str) -> list[object] | None:
    models = result.get(name)
    return list(models.values()) if isinstance(models, dict) else None


def _largest(*usages: Usage) -> Usage:
    return max(usages, key=lambda usage: (usage.input_tokens or 0) + (usage.output_tokens or 0))


def _sum(tables: Iterable[object], names: tuple[str, str, str, str]) -> Usage:
    known = [table for table in tables if isinstance(table, dict)]
    fresh, written, cached, output = (total(*(count(table.get(name)) for table in known)) for name in names)
    return Usage(total(fresh, written, cached), cached, output)
