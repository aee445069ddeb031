"""The log at a terminal: a message, rendered under its speaker's bar, and a check."""

from __future__ import annotations

from collections.abc import Collection

from teamchat.assemblers.truncation import byte_length
from teamchat.cli.output.long import LONGEST
from teamchat.cli.output.terminal.look import Look, colour_of
from teamchat.cli.output.terminal.voice import WIDEST, Voice, arrows
from teamchat.cli.output.terminal.wrap import cells, wrapped
from teamchat.core.messages import ConversationMessage, name_of
from teamchat.core.store.checks import CheckRecord
from teamchat.core.text.clean import printable

BETWEEN = " · "


def message_lines(
    message: ConversationMessage, notes: Collection[str], whole: str, names: Collection[str], width: int, look: Look
) -> list[str]:
    """Draw the lines of a message, without a line end. `whole` is the command that prints all of a long text.

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


def check_lines(
    check: CheckRecord, notes: Collection[str], width: int, look: Look, receipt: str = "", *, abandoned: bool = False
) -> list[str]:
    """Draw a check and its result. One that is not green has the command `receipt` at the right margin."""
    from teamchat.cli.output.checks import SIGNS, check_line, line_parts  # few conversations have checks

    width = min(width, WIDEST)
    style = look.dim if check.status == "green" else look.warn
    sign = SIGNS["not_run"] if abandoned else SIGNS.get(check.status, "")
    if receipt and check.result and check.status != "green" and cells(receipt) < width:
        line = f"{sign} {BETWEEN.join(line_parts(check))}"
        gap = width - cells(line) - cells(receipt)
        lines = [f"{line}{' ' * gap}{receipt}"] if gap >= 2 else [*wrapped(line, width), f"  {receipt}"]
        return [style(piece) for piece in lines]
    line = ", ".join((f"{sign} {check_line(check, abandoned=abandoned)}".lstrip(), *notes))
    return [style(piece) for piece in wrapped(line, width)]
