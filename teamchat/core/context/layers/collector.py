"""Gathers the layers of a prompt, each from its own source. Nothing is rendered or written here."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from teamchat.assemblers.parts import DIFFERENCES, FRAMEWORK, KNOWLEDGE, LAYERS, LESSONS, RESULTS
from teamchat.core.context.layers.framework import framework_text
from teamchat.core.engine.workflow import Part
from teamchat.core.knowledge.files import Excerpt
from teamchat.core.messages import ConversationMessage
from teamchat.core.team.team import Member, Team


class LayerContext(Struct, frozen=True):
    """The facts about a turn that a source gets. `text` is the current message without its markers.

    `request` is the human message that the turn serves, also without markers. Both may be one message. `part` is the
    turn's part in a process.
    """

    member: Member
    message: ConversationMessage
    text: str
    task: str | None
    request: str = ""
    part: Part | None = None


class LayerText(Struct, frozen=True):
    """A layer's text and the excerpts in it. `note` names the omitted parts, or says why there is no text."""

    text: str
    excerpts: tuple[Excerpt, ...] = ()
    note: str | None = None


Source = Callable[[LayerContext], LayerText | str | None]


class ContextCollector:
    """Gathers layers by `sources`, which has a function for each layer.

    Without `share` only the framework and a process's texts are gathered.
    """

    def __init__(self, sources: Mapping[str, Source], *, share: bool = True) -> None:
        unknown = sorted(set(sources) - set(LAYERS))
        if unknown:
            raise ValueError(f"no layer is called {unknown[0]!r}")
        names = LAYERS if share else (FRAMEWORK, DIFFERENCES, RESULTS)
        self._sources = {name: sources[name] for name in names if name in sources}

    def gather(self, context: LayerContext) -> dict[str, LayerText]:
        """Gather the layers whose sources return something, in the order of `LAYERS`."""
        allowed = context.part.layers if context.part else None
        gathered = {
            name: source(context) for name, source in self._sources.items() if allowed is None or name in allowed
        }
        return {
            name: LayerText(layer) if isinstance(layer, str) else layer for name, layer in gathered.items() if layer
        }


def texts_of(gathered: Mapping[str, LayerText]) -> dict[str, str]:
    """Return the texts of the layers that have one."""
    return {name: layer.text for name, layer in gathered.items() if layer.text.strip()}


def framework_only(team: Team) -> ContextCollector:
    """Make a collector for the only layer that needs no store: who is in the team and how to hand over."""
    return ContextCollector({FRAMEWORK: lambda context: framework_text(team, context.member, context.part)})


BESIDE = (LESSONS, KNOWLEDGE, DIFFERENCES)
"""A replay has neither the files nor the lessons nor the worktrees of the recorded machine."""
Texts = Mapping[str, str]
Recorded = tuple[str, str, tuple[str, int] | None, int]
"""A recorded turn: its member, the message that it answers, and the role, number and `go` of its part in a process."""


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
        gathered = {name: layer for name, layer in self._inner.gather(context).items() if name not in BESIDE}
        part = (context.part.role, context.part.number) if context.part else None
        go = context.part.go if context.part else 1
        left = self._told[context.member.name, context.message.id, part, go]
        texts = left.popleft() if len(left) > 1 else left[0] if left else {}
        return gathered | {name: LayerText(text) for name, text in texts.items()}
