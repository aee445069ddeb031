"""Layers that are not made of the conversation, recorded with a turn and given again by a replay."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping

from teamchat.assemblers.parts import DIFFERENCES, KNOWLEDGE, LESSONS
from teamchat.core.context.layers.collector import ContextCollector, LayerContext, LayerText, texts_of

BESIDE = (LESSONS, KNOWLEDGE, DIFFERENCES)
"""A replay has neither the files nor the lessons nor the worktrees of the recorded machine."""
Texts = Mapping[str, str]
Recorded = tuple[str, str, tuple[str, int] | None]
"""A recorded turn: its member, the message that it answers, and the role and number of its part in a process."""


class Listening(ContextCollector):
    """Passes the texts of these layers from another collector to `keep`."""

    def __init__(self, inner: ContextCollector, keep: Callable[[LayerContext, Texts], object]) -> None:
        self._inner, self._keep = inner, keep

    def gather(self, context: LayerContext) -> dict[str, LayerText]:
        gathered = self._inner.gather(context)
        self._keep(context, {name: text for name, text in texts_of(gathered).items() if name in BESIDE})
        return gathered


class Telling(ContextCollector):
    """Another collector, with these layers as recorded: `told` has the texts of each turn.

    Attempts that answer the same message get their own texts, in order.
    """

    def __init__(self, inner: ContextCollector, told: Iterable[tuple[Recorded, Texts]]) -> None:
        self._inner = inner
        self._told: defaultdict[Recorded, deque[Texts]] = defaultdict(deque)
        for turn, texts in told:
            self._told[turn].append(texts)

    def gather(self, context: LayerContext) -> dict[str, LayerText]:
        gathered = {name: told for name, told in self._inner.gather(context).items() if name not in BESIDE}
        part = (context.part.role, context.part.number) if context.part else None
        left = self._told[context.member.name, context.message.id, part]
        texts = left.popleft() if len(left) > 1 else left[0] if left else {}
        return gathered | {name: LayerText(text) for name, text in texts.items()}
