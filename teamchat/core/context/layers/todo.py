"""The todo layer: the list at the time the prompt is built. It is the same for every member."""

from __future__ import annotations

from msgspec import Struct

from teamchat.core.context.layers.collector import LayerContext
from teamchat.core.routing.todos import rendered
from teamchat.core.store.database import Database
from teamchat.core.store.todos import todos_of
from teamchat.core.text.redact import redact_shapes


class TodoLayer(Struct, frozen=True):
    """A source. `redact` removes well-known keys from the items: anybody may have written them."""

    db: Database
    session: int
    redact: bool

    def __call__(self, context: LayerContext) -> str | None:
        del context
        text = rendered(todos_of(self.db, self.session))
        return redact_shapes(text)[0] if text and self.redact else text
