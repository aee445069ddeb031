"""What the prompt of a part of a process quotes: the messages of earlier parts, and perhaps the conversation before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from teamchat.assemblers.parts import PromptContextMessage
from teamchat.core.context.context_manager import ContextManager
from teamchat.core.context.history import Context, Quote, in_prompt
from teamchat.core.engine.part import Part
from teamchat.core.messages import ConversationMessage
from teamchat.core.routing.quoted import quoted_text


def part_context(manager: ContextManager, part: Part, answers: ConversationMessage, quote: Quote) -> Context:
    """What a turn that does this part is shown, for which no vendor session is continued.

    The messages of earlier parts come last and keep their middle.
    """
    if part.history:
        before = manager.get_history(up_to=answers.id, quote=quote)
    else:
        before = Context(quote(answers, quoted_text(answers)), (), answers, (answers.id,))
    shown = tuple(_shown(manager, part, quote))
    return replace(
        before,
        current=quote(answers, text_of(part, answers)),
        history=(*before.history, *shown),
        shown=(*before.shown[:-1], *part.shows, answers.id),
        unbroken=len(before.history) if shown else before.unbroken,
    )


def text_of(part: Part | None, answers: ConversationMessage) -> str:
    """The text that the turn answers, without markers: the message's own, or what the part has instead of it."""
    return quoted_text(replace(answers, content=part.instead) if part and part.instead else answers)


def left_out(part: Part, shown: Sequence[str], dropped: int) -> tuple[str, ...]:
    """The messages that the part shows and the prompt has no room for: the first `dropped` of `shown` are left out."""
    gone = frozenset(shown[:dropped])
    names = part.labels or part.shows
    return tuple(name for name, message in zip(names, part.shows, strict=True) if message in gone)


def _shown(manager: ContextManager, part: Part, quote: Quote) -> Iterator[PromptContextMessage]:
    labels: Sequence[str | None] = part.labels or (None,) * len(part.shows)
    for label, name in zip(labels, part.shows, strict=True):
        message = manager.get_message(name)
        quoted = replace(in_prompt(message, quote(message, quoted_text(message))), whole=True)
        yield replace(quoted, from_=label, to=None) if label else quoted
