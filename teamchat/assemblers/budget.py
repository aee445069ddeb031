"""Fits a prompt into its byte budget, by one rule for all formats.

Every UTF-8 byte that is sent counts: headings, fences, separators and the system text outside the prompt. System text,
task and turn note are never cut. The room that they leave goes first to the current message, then to the request, then
to the newest history. So the oldest history is lost first, and the message to be answered last. Layers give way before
any history does: knowledge first, then experience, then the todo list. The summary replaces older history, so it is
kept longer than the history, and a process's own layers (results and differences) longest of all. Each text is measured
only a few times: the cost is linear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from teamchat.assemblers.parts import DIFFERENCES, KNOWLEDGE, LESSONS, RESULTS, SUMMARY, TODO, BudgetExceeded, Trimmed
from teamchat.assemblers.sections import BLANK_LINE, Parts, Section
from teamchat.assemblers.truncation import byte_length, least_bytes, truncate_middle


def fit(parts: Parts, max_bytes: int, target_bytes: int | None = None) -> tuple[Parts, Trimmed]:
    """Bring `parts` within `max_bytes`, and say what they lost; history keeps within `target_bytes`, too.

    Raises `BudgetExceeded` when there is no room for the parts that are never cut and a trace of the message and the
    request: a prompt without its message would be no prompt.
    """
    spare = _spare(parts, max_bytes)
    message, message_cut, spare = _cut(parts.message, spare)
    request, request_cut, spare = _cut(parts.request, spare)
    shown, spare = _fitting((RESULTS, DIFFERENCES), parts, spare)
    summary, spare = _fitting((SUMMARY,), parts, spare)
    over = max(max_bytes - target_bytes, 0) if target_bytes is not None else 0
    around = _around(Section(parts.history_heading, ""))
    history, room = _newest(parts.history, spare - over - around)
    if SUMMARY not in summary or len(history) < len(parts.history):
        room = 0
    elif not parts.history:
        room = spare - over
    others, _ = _fitting((TODO, LESSONS, KNOWLEDGE), parts, room)
    layers = {name: section for name, section in parts.layers.items() if name in shown | summary | others}
    return (
        replace(parts, request=request, message=message, history=history, layers=layers),
        _trimmed(parts, history, layers, message_cut, request_cut, "max_prompt_tokens" if over else "max_bytes"),
    )


def _trimmed(
    parts: Parts,
    history: tuple[str, ...],
    layers: Mapping[str, Section],
    message_cut: int,
    request_cut: int,
    limit: str,
) -> Trimmed:
    """Describe what `parts` lost to become this `history`, the newest of theirs, and these `layers`."""
    gone = len(parts.history) - len(history)
    dropped = tuple(name for name in parts.layers if name not in layers)
    left_out = [*parts.history[:gone], *(parts.layers[name].body for name in dropped)]
    shortened = parts.shortened[gone:]
    return Trimmed(
        history_messages=gone,
        message_bytes=message_cut,
        request_bytes=request_cut,
        layers=dropped,
        long_messages=sum(map(bool, shortened)),
        bytes=sum(map(byte_length, left_out)) + sum(shortened),
        limit=limit if left_out else None,
    )


def _fitting(names: Iterable[str], parts: Parts, room: int) -> tuple[set[str], int]:
    """Take the first layers that the room holds, whole, up to one that does not fit; return them and the room left."""
    fitting: set[str] = set()
    for name in names:
        if section := parts.layers.get(name):
            needed = _around(section) + byte_length(section.body)
            if needed > room:
                break
            room -= needed
        fitting.add(name)
    return fitting, room


def _spare(parts: Parts, max_bytes: int) -> int:
    """Count the bytes left after the parts that must stay. Raises `BudgetExceeded`.

    Each section is counted with a separator; the last needs none.
    """
    whole = sum(_around(s) + byte_length(s.body) for s in (*parts.opening, parts.turn) if s.body)
    traces = sum(_around(s) + least_bytes(s.body) for s in (parts.request, parts.message) if s.body)
    beside = byte_length(parts.system_flag or "")
    unneeded = len(BLANK_LINE)
    needed = beside + max(whole + traces - unneeded, 0)
    if needed > max_bytes:
        raise BudgetExceeded(beside + max(whole - unneeded, 0), needed, max_bytes)
    return max_bytes + unneeded - beside - whole - traces


def _around(section: Section) -> int:
    """Count the bytes of a section and its separator without its body."""
    heading = byte_length(section.heading) + len("\n") if section.heading else 0
    return len(BLANK_LINE) + heading + byte_length(section.ending)


def _cut(section: Section, spare: int) -> tuple[Section, int, int]:
    """Cut the section to its trace's room and `spare`; return it, the bytes cut out, and the room left."""
    allowed = least_bytes(section.body) + spare
    cut = truncate_middle(section.body, allowed)
    left = 0 if cut.removed_bytes else allowed - byte_length(section.body)
    return replace(section, body=cut.text), cut.removed_bytes, left


def _newest(lines: tuple[str, ...], room: int) -> tuple[tuple[str, ...], int]:
    """Take the newest lines that fit into the room; return them and the room left."""
    room += len("\n")  # none after the last line
    for number, line in enumerate(reversed(lines)):
        left = room - byte_length(line) - len("\n")
        if left < 0:
            return lines[len(lines) - number :], room
        room = left
    return lines, room
