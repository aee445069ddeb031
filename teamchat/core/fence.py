"""The code of a prompt's fences: what marks the texts that somebody said, and that none of them can have in it.

A text is quoted in prompts that are built after it was said, and every message brings a new code. So whoever wrote it
knew only older codes; and a code that stands in any of the texts, by whatever luck, is passed over for the next one.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator
from itertools import count

from teamchat.assemblers.base import AssemblerInput

LENGTH = 8  # hexadecimal digits


def fence_code(key: str, message_id: str, texts: Iterable[str]) -> str:
    """The code of a prompt whose newest message is `message_id`, the same each time that it is built.

    `key` is the conversation's own. The code stands in none of the `texts`, in letters of no case.
    """
    lowered = [text.lower() for text in texts]
    codes = (_code(key, f"{message_id} {number}") for number in count())
    return next(code for code in codes if not any(code in text for text in lowered))


def _code(key: str, what: str) -> str:
    return hmac.new(key.encode(), what.encode(), "sha256").hexdigest()[:LENGTH]


def texts_of(given: AssemblerInput) -> Iterator[str]:
    """Everything in a prompt that a fence has to differ from."""
    for message in given.context_messages:
        yield from (message.from_, message.to or "", message.content)
    others = (given.current_message, given.request, given.team_task, given.turn_note)
    system = (given.system_instruction, given.instruction_file_text, *given.contexts.values())
    yield from (text for text in (*others, *system) if text)
