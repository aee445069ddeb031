"""What a turn of Claude has used (2.1.197, 2.1.260, 2.1.330): by its `result`, or by its requests when that is nothing.

The `result` of a turn that was interrupted or refused tells zeros, and a turn that was killed has none. What each
request used stands in the stream, where a request begins (`message_start`) and goes on (`message_delta`).
"""

from __future__ import annotations

from collections.abc import Iterable

from teamchat.runners.events import Usage
from teamchat.runners.untrusted_json import amount, count, total

_NAMES = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_MODEL_NAMES = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens")


class Requests:
    """The usage of a turn's requests so far, including those of subagents."""

    def __init__(self) -> None:
        self._known: set[object] = set()  # the ids of the messages
        self._sums: dict[str, int] = {}  # over all requests
        self._open: dict[object, dict[str, int]] = {}  # the last request of the member, and of each subagent

    def begins(self, name: object, usage: object, of: object) -> None:
        """A request of the member (`of` is None) or a subagent begins. A known name changes nothing."""
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
        """The sum over all requests, without the cost; None when nothing is known."""
        found = _sum([self._sums], _NAMES)
        return None if found.is_nothing else found


def usage_of(result: dict[str, object], requests: Requests, *, failed: bool) -> Usage:
    """The usage of the whole turn, as a `result` and the requests before it report it; unknown if they report none."""
    cost = amount(result.get("total_cost_usd"))
    own, asked = _sum([result.get("usage")], _NAMES), requests.usage() or Usage()
    models = _models(result, "model_usage_since_last_result")  # from 2.1.260 on
    if failed:
        whole = _models(result, "modelUsage") if result.get("subtype") == "error_max_budget_usd" else Usage()
        found = max(own, models, whole, asked, key=lambda usage: (usage.input_tokens or 0) + (usage.output_tokens or 0))
    else:
        several = (own, models, _models(result, "modelUsage"), asked)  # the first is zero after a repeated request
        found = next((usage for usage in several if not usage.is_nothing), own)
    if found.is_nothing:
        return Usage(cost_usd=cost or None)
    return Usage(found.input_tokens, found.cached_tokens, found.output_tokens, cost or None if failed else cost)


def _models(result: dict[str, object], name: str) -> Usage:
    models = result.get(name)
    return _sum(models.values() if isinstance(models, dict) else (), _MODEL_NAMES)


def _sum(tables: Iterable[object], names: tuple[str, str, str, str]) -> Usage:
    known = [table for table in tables if isinstance(table, dict)]
    fresh, written, cached, output = (total(*(count(table.get(name)) for table in known)) for name in names)
    return Usage(total(fresh, written, cached), cached, output)
