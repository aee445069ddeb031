"""A message of the log at a terminal: rendered, under its speaker's bar."""

from __future__ import annotations

from collections.abc import Collection

from teamchat.assemblers.truncation import byte_length
from teamchat.cli.output.long import LONGEST
from teamchat.cli.output.terminal.look import Look, colour_of
from teamchat.cli.output.terminal.voice import Voice, arrows
from teamchat.core.messages import ConversationMessage, name_of
from teamchat.core.text.clean import printable


def message_lines(
    message: ConversationMessage, notes: Collection[str], whole: str, names: Collection[str], width: int, look: Look
) -> list[str]:
    """The lines of a message, without a line end. `whole` is the command that prints all of a long text.

    `names` are the members of the team, from whose names the colours follow.
    """
    lines: list[str] = []
    name = message.speaker.role_name
    voice = Voice(printable(name_of(message)), colour_of(name, names), "", look, lines.extend, lambda: width)
    voice.head(" · ".join([message.id, *notes]))
    voice.whole(message.content[:LONGEST])
    if len(message.content) > LONGEST:
        voice.plain([f"… ({byte_length(message.content):,} bytes in all: {whole})"])
    voice.plain(arrows(map(printable, message.routing.resolved_addressees)))
    return lines
