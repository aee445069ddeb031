"""A prompt as sections, in all formats. They differ in headings, history lines and the system text's place.

`lay_out` makes the parts, `budget.fit` brings them into the budget, `render` joins them. A section is its heading, a
newline and its body. One without a body is left out, and one blank line separates two. With a fence, messages and
contents of files are between two lines of its own, which are never cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from teamchat.assemblers.parts import (
    DIFFERENCES,
    FRAMEWORK,
    KNOWLEDGE,
    LAYERS,
    LESSONS,
    RESULTS,
    SUMMARY,
    TODO,
    AssemblerInput,
    AssemblerOutput,
    Block,
    PromptContextMessage,
    Trimmed,
)
from teamchat.assemblers.truncation import Cut, TruncationPolicy, byte_length

BLANK_LINE = "\n\n"
BLOCKS = tuple(name for name in LAYERS if name != FRAMEWORK)
"""The layers with a section of their own. The framework is part of the system text."""
QUOTED = (KNOWLEDGE, TODO, SUMMARY, DIFFERENCES, RESULTS)
"""The layers that quote unchecked text. A lesson is not such a text: a person kept it."""
BRACKETED = {
    LESSONS: "[EXPERIENCE]",
    KNOWLEDGE: "[KNOWLEDGE]",
    TODO: "[TODO]",
    SUMMARY: "[SUMMARY]",
    DIFFERENCES: "[DIFFERENCES]",
    RESULTS: "[RESULTS]",
}
PLAIN = {
    LESSONS: "Experience:",
    KNOWLEDGE: "Knowledge:",
    TODO: "To do:",
    SUMMARY: "Summary so far:",
    DIFFERENCES: "Differences:",
    RESULTS: "Results:",
}


class PromptFormat(Struct, frozen=True):
    """The format of one CLI's prompt. A section without a heading is bare text. `layers` has the layers' headings.

    `speaker` writes the sender and the addressee of a history message, in front of its content.
    """

    speaker: Callable[[str, str | None], str]
    layers: Mapping[str, str]
    system: str = ""
    task: str = ""
    history: str = ""
    request: str = ""
    turn: str = ""
    message: str = ""
    system_apart: bool = False


class Section(Struct, frozen=True):
    """`ending` closes what `heading` opens, and begins with its own newline."""

    heading: str
    body: str
    ending: str = ""

    def __str__(self) -> str:
        return (f"{self.heading}\n{self.body}" if self.heading else self.body) + self.ending


class Parts(Struct, frozen=True):
    """The parts of a prompt in order, before they are joined."""

    system_flag: str | None
    """The system text that is not part of the prompt."""
    opening: tuple[Section, ...]
    """System text and task."""
    layers: Mapping[str, Section]
    """The layers that are not blank, by their names, in order."""
    history_heading: str
    history: tuple[str, ...]
    shortened: tuple[int, ...]
    """For each line of the history, the bytes that its message's middle has lost."""
    request: Section
    turn: Section
    message: Section


def lay_out(given: AssemblerInput, form: PromptFormat) -> Parts:
    system = system_body(given.system_instruction, given.instruction_file_text, given.contexts.get(FRAMEWORK))
    layers = {name: _layer(name, form, given) for name in BLOCKS}
    task = Section(form.task, _stripped(given.team_task))
    history, shortened = _history(given, form)
    return Parts(
        system_flag=(system or None) if form.system_apart else None,
        opening=(task,) if form.system_apart else (Section(form.system, system), task),
        layers={name: section for name, section in layers.items() if section.body},
        history_heading=form.history,
        history=history,
        shortened=shortened,
        request=_said(form.request, given.request, given.fence),
        turn=Section(form.turn, _stripped(given.turn_note)),
        message=_said(form.message, given.current_message, given.fence),
    )


def _history(given: AssemblerInput, form: PromptFormat) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Write a line for each message, and count the bytes that each message's middle has lost."""

    @cache  # most of a long history has few speakers
    def speaker(name: str, to: str | None) -> str:
        return form.speaker(name, to) if given.fence is None else form.speaker(_one_line(name), to and _one_line(to))

    begin, end = ("", "") if given.fence is None else (f"{opening(given.fence)}\n", f"\n{closing(given.fence)}")
    cuts = [_short(message, given.per_message) for message in given.context_messages]
    lines = [
        f"{speaker(message.from_, message.to)}{begin}{cut.text}{end}"
        for message, cut in zip(given.context_messages, cuts, strict=True)
    ]
    return tuple(lines), tuple([cut.removed_bytes for cut in cuts])


def _short(message: PromptContextMessage, policy: TruncationPolicy | None) -> Cut:
    """Cut the content of the message as its policy says."""
    return Cut(message.content) if policy is None or message.whole else policy(message.content)


def _layer(name: str, form: PromptFormat, given: AssemblerInput) -> Section:
    section = _said(form.layers[name], given.contexts.get(name), given.fence if name in QUOTED else None)
    if name != TODO or given.fence is None or "\n" not in section.body:
        return section
    items, how = section.body.rsplit("\n", 1)  # teamchat itself says how to change the list: that is no quotation
    return replace(section, body=items, ending=f"{section.ending}\n{how}")


def _said(heading: str, text: str | None, fence: str | None) -> Section:
    if fence is None:
        return Section(heading, _stripped(text))
    return Section(f"{heading}\n{opening(fence)}".lstrip(), _stripped(text), f"\n{closing(fence)}")


def opening(fence: str) -> str:
    return f"<said-{fence}>"


def closing(fence: str) -> str:
    return f"</said-{fence}>"


def _one_line(name: str) -> str:
    return " ".join(name.split())


def render(parts: Parts, trimmed: Trimmed) -> AssemblerOutput:
    rendered = {name: str(section) for name, section in _named(parts).items() if section.body}
    prompt = BLANK_LINE.join(rendered.values())
    system = {"system": parts.system_flag} if parts.system_flag else {}
    message = parts.message
    return AssemblerOutput(
        prompt=prompt,
        system_flag=parts.system_flag,
        message_at=len(prompt) - len(message.body + message.ending) if message.body else None,
        trimmed=trimmed,
        blocks=tuple(
            Block(name, byte_length(text), len(parts.history) if name == "history" else 0)
            for name, text in (system | rendered).items()
        ),
    )


def _named(parts: Parts) -> dict[str, Section]:
    """Return the sections of the prompt in order, by name."""
    opening = zip(("task", "system"), reversed(parts.opening), strict=False)  # some have the system text apart
    return {
        **dict(reversed(list(opening))),
        **parts.layers,
        "history": Section(parts.history_heading, "\n".join(parts.history)),
        "request": parts.request,
        "turn": parts.turn,
        "message": parts.message,
    }


def system_body(*texts: str | None) -> str:
    """Join the texts without the space around them, one blank line between two; blank ones are skipped."""
    return BLANK_LINE.join(filter(None, map(_stripped, texts)))


def _stripped(text: str | None) -> str:
    return (text or "").strip()


def addressed(name: str, to: str | None) -> str:
    """Write `- from -> to: `; a message to nobody in particular went to `all`."""
    return f"- {name} -> {to or 'all'}: "
