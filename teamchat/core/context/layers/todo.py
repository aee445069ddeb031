"""The todo layer: the list as it is when the prompt is built, the same for everybody who is told it."""

from __future__ import annotations

from dataclasses import dataclass

from teamchat.core.context.layers.collector import LayerContext
from teamchat.core.routing.todos import rendered
from teamchat.core.store.database import Database
from teamchat.core.store.todos import todos_of
from teamchat.core.text.redact import redact_shapes


@dataclass(frozen=True, slots=True)
class TodoLayer:
    """With `redact` well-known keys in an item are told to nobody: anybody may have written it."""

    db: Database
    session: int
    redact: bool

    def __call__(self, context: LayerContext) -> str | None:
        del context
        text = rendered(todos_of(self.db, self.session))
        return redact_shapes(text)[0] if text and self.redact else text
