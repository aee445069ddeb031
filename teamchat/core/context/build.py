"""Builds the exact bytes that a member gets for a route: gathered, composed, formatted, budgeted, prepared."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from teamchat.assemblers.parts import (
    DIFFERENCES,
    FRAMEWORK,
    RESULTS,
    SUMMARY,
    AssemblerOutput,
    BudgetExceeded,
    PromptContextMessage,
    Trimmed,
)
from teamchat.assemblers.truncation import byte_length
from teamchat.core.agents import AgentType
from teamchat.core.context.conversation_view import ContextManager
from teamchat.core.context.history import Context, Crossing, Quote, in_prompt
from teamchat.core.context.layers.collector import ContextCollector, LayerContext, LayerText, framework_only, texts_of
from teamchat.core.context.layers.framework import turn_note
from teamchat.core.context.vendor_session import (
    NOTHING_BEFORE,
    AdoptedSession,
    ContinuedSession,
    Past,
    session_for,
    session_key,
)
from teamchat.core.engine.state import Route
from teamchat.core.engine.workflow import Part
from teamchat.core.errors import PromptTooLarge, UsageError
from teamchat.core.messages import ConversationMessage
from teamchat.core.routing.markers import quoted_text, read_markers, strip_markers
from teamchat.core.store.images import Image, ImagesOf, image_files, no_images
from teamchat.core.team.programs import SCRATCH
from teamchat.core.team.team import Member, Team
from teamchat.core.text.commands import reading
from teamchat.runners.base import Limit, Prepared, Runner, Slash

Exists = Callable[[Member, Runner], Callable[[str], bool]]
"""Makes the test for whether a mention (`@path` without the `@`, a skill) has a target, for a member and its runner."""
FindSlash = Callable[[str], Slash | None]
"""Finds the custom command at the beginning of a typed text, by the files of the turn's CLI."""
RequestOf = Callable[[int], str | None]
"""Gives the id of the person's message that the turn of an id served."""


class BuiltPrompt(Struct, frozen=True):
    """A member's prompt, as assembled and as prepared for its CLI, and the message that it answers."""

    assembled: AssemblerOutput
    prepared: Prepared
    answers: ConversationMessage
    vendor_session: ContinuedSession | AdoptedSession | str
    """The session that it continues or adopts, or why it begins a fresh one."""
    key: str
    """A fresh vendor session is bound to it."""
    shown_from: str
    """From this message to `shown_through`, the session has seen every one."""
    shown_through: str
    fresh_bytes: int
    """The size of a fresh prompt."""
    redacted: int
    """The number of secrets taken out of the prompt."""
    gathered: Mapping[str, LayerText]
    """The sources of the layers, including layers that did not fit."""
    asked_in: str | None = None
    """The later request that the message was written for, if it counts for the turn's own request, too."""
    beside: tuple[str, ...] = ()
    """Messages that the session has seen besides."""
    images: tuple[Image, ...] = ()
    """The images that it shows."""
    unseen: tuple[str, ...] = ()
    """The names of images that its CLI or its host does not get."""
    slash: Slash | None = None
    """The custom command that the person typed."""
    left_out: tuple[str, ...] = ()
    """The parts of a process that it should show and has no room for."""

    @property
    def system_text(self) -> str | None:
        return self.assembled.system_flag

    @property
    def not_compared(self) -> str | None:
        """The parts of diffs that it should compare and has no room for."""
        layer = self.gathered.get(DIFFERENCES)
        return layer.note if layer and DIFFERENCES not in self.assembled.trimmed.layers else None

    @property
    def sources(self) -> dict[str, tuple[str, ...]]:
        """The sources of the layers in it, by the layer's name."""
        shown = {name: layer for name, layer in self.gathered.items() if name not in self.assembled.trimmed.layers}
        return {name: tuple(part.name for part in layer.excerpts) for name, layer in shown.items() if layer.excerpts}


class _Asked(Struct, frozen=True):
    """A route and everything that its prompt is built from."""

    team: Team
    member: Member
    kind: AgentType
    route: Route
    manager: ContextManager
    answers: ConversationMessage
    request: ConversationMessage
    asked_in: ConversationMessage | None
    gathered: Mapping[str, LayerText]
    contexts: Mapping[str, str]
    quote: Crossing

    @property
    def request_text(self) -> str:
        return self.quote(self.request, quoted_text(self.request))


class _Assembled(Struct, frozen=True):
    """A prompt, and what its vendor session has been shown with it: all messages from `shown_from` to `shown_through`.

    `redacted` counts the removed secrets. `beside` are messages in the prompt that are older than `shown_from`,
    `left_out` names parts of a process that it should show and has no room for.
    """

    output: AssemblerOutput
    shown_from: str
    shown_through: str
    redacted: int
    beside: tuple[str, ...]
    left_out: tuple[str, ...]


def build_prompt(
    team: Team,
    member: Member,
    route: Route,
    manager: ContextManager,
    exists: Exists,
    past: Past = NOTHING_BEFORE,
    collector: ContextCollector | None = None,
    images: ImagesOf = no_images,
    scratch: Path = SCRATCH,
    find_slash: FindSlash = lambda _typed: None,
    request_of: RequestOf = lambda _turn: None,
) -> BuiltPrompt:
    """Build the prompt of `route`, which answers its `as_of` message (the newest with text, if it has none).

    `exists` tells whether a mention names something that a member's CLI would read; `past` is the member's past in the
    session; `collector` gathers its layers, by default the framework's alone; `images` has those of a message, which
    the turn finds below its `scratch`; `find_slash` knows the custom commands of the member's CLI; `request_of` the
    requests of turns.

    Raises `PromptTooLarge` if the parts that may not be cut are over the budget, or the whole is over the CLI's own
    limit.
    """
    asked = _ask(team, member, route, manager, collector or framework_only(team), request_of)
    # the member, what runs it, and everything it is told about itself
    own_text = (member.system_instruction, member.instruction_file_text, asked.contexts.get(FRAMEWORK))
    key = session_key(member, team.agent_of(member), "\0".join(text or "" for text in own_text))
    continued = session_for(member, route, past, key, manager, asked.answers)
    # the receipt of a continued session tells what a fresh prompt takes; only a history that is read, quoted and
    # formatted shows what the budget leaves out of it, so nothing shorter gives the exact number
    fresh = _assemble(asked, None)
    built = _assemble(asked, continued) if isinstance(continued, ContinuedSession) else fresh
    part = route.part  # one with a text of its own gets nothing of the message that it serves
    had = bool(part and part.instead) or (isinstance(continued, ContinuedSession) and _had(asked, continued))
    of_messages = [asked.answers.id] if had else dict.fromkeys((asked.request.id, asked.answers.id))
    shown = tuple(image for message in of_messages for image in images(message))
    typed = _typed_text(asked.answers)
    slash = find_slash(typed) if typed.startswith("/") and not _begins_pasted(asked.answers) else None
    if slash and shown and not slash.refused:  # Claude would not look for them in front of a command
        slash = replace(slash, refused="images go with it")
    runner = asked.kind.runner
    takes = runner.images and not member.host  # no image goes to a host
    paths = [path for path, _ in image_files(shown, scratch)] if takes else []
    prepared = _prepared(asked, built.output, exists(member, runner), paths, slash)
    check_limit(member, runner.limit, prepared.stdin)
    return BuiltPrompt(
        built.output,
        prepared,
        asked.answers,
        continued,
        key,
        shown_from=built.shown_from,
        shown_through=built.shown_through,
        fresh_bytes=byte_length(fresh.output.prompt) + byte_length(fresh.output.system_flag or ""),
        redacted=built.redacted,
        gathered=asked.gathered,
        asked_in=asked.asked_in.id if asked.asked_in else None,
        beside=built.beside,
        images=shown if takes else (),
        unseen=() if takes else tuple(image.name for image in shown),
        slash=slash,
        left_out=built.left_out,
    )


def _ask(
    team: Team,
    member: Member,
    route: Route,
    manager: ContextManager,
    collector: ContextCollector,
    request_of: RequestOf,
) -> _Asked:
    """Collect everything that the prompt is built from. Raises `UsageError` if there is no message to answer."""
    answers = manager.get_current_message(up_to=route.as_of)
    if answers is None:
        raise UsageError("no message has text that a member could answer", reading(route.target))
    request = manager.get_message(route.request)
    part = route.part
    text = text_of(part, answers)
    task = manager.get_team_task() if part is None or part.task else None
    served = "" if part and part.instead else quoted_text(request)
    gathered = collector.gather(LayerContext(member, answers, text, task, served, part))
    asked_in = request_of(answers.turn_id) if answers.turn_id is not None else None
    later = asked_in is not None and manager.is_after(asked_in, route.request)
    return _Asked(
        team=team,
        member=member,
        kind=team.agent_of(member).type,
        route=route,
        manager=manager,
        answers=answers,
        request=request,
        asked_in=manager.get_message(asked_in) if asked_in and later else None,
        gathered=gathered,
        contexts=texts_of(gathered),
        quote=Crossing(team, member, manager.is_imported),
    )


def _prepared(
    asked: _Asked,
    assembled: AssemblerOutput,
    exists: Callable[[str], bool],
    images: Sequence[Path],
    slash: Slash | None,
) -> Prepared:
    """Prepare the prompt for the CLI, with harmless mentions, then add its images and its custom command."""
    runner = asked.kind.runner
    prepared = runner.prepare(assembled.prompt, typed=_typed(assembled, asked.answers), exists=exists)
    if images and runner.images and runner.images.mention:
        mentions = " ".join(map(runner.images.mention, map(str, images)))
        prepared = replace(prepared, stdin=f"Images of the message: {mentions}\n\n".encode() + prepared.stdin)
    if slash and not slash.refused and (rule := runner.slash):
        prepared = replace(prepared, stdin=rule.add(prepared.stdin, slash))
    return prepared


def _had(asked: _Asked, continued: ContinuedSession) -> bool:
    """Whether the session has been shown the request."""
    request = asked.request.id
    return not asked.manager.is_after(continued.shown_from, request) or continued.turns.had(request)


def _assemble(asked: _Asked, continued: ContinuedSession | None) -> _Assembled:
    """Assemble the prompt for a continued vendor session, or for a fresh one. Raises `PromptTooLarge`."""
    history = _history(asked, continued)
    part = asked.route.part
    apart = part is not None and not part.continues  # it sees of the request what the process shows it
    known = apart or asked.request.id in history.shown or (continued is not None and _had(asked, continued))
    output = _formatted(asked, continued, history, with_request=not known)
    if not apart and asked.request.id in history.shown[: output.trimmed.history_messages]:  # the budget left it out
        known, output = False, _formatted(asked, continued, history, with_request=True)
    *said, answers = history.shown
    gap = output.trimmed.history_messages
    begin = max(gap, history.unbroken)
    request = () if known or not asked.request_text else (asked.request.id,)
    before = (answers,) if len(said) - history.later <= begin < len(said) else ()  # it is older than the history
    return _Assembled(
        output,
        continued.shown_from if continued and not gap else history.shown[begin],
        answers if gap == len(said) else history.newest or answers,
        redacted=asked.quote.count((*history.shown[gap:], *request)),
        beside=(*history.shown[gap:begin], *before, *request),
        left_out=_left_out(part, history, output.trimmed) if part else (),
    )


def _left_out(part: Part, history: Context, trimmed: Trimmed) -> tuple[str, ...]:
    shown = {DIFFERENCES: "the differences", RESULTS: "the results"}
    layers = (words for name, words in shown.items() if name in trimmed.layers)
    messages = () if part.continues else left_out(part, history.shown, trimmed.history_messages)
    return (*messages, *layers)


def _history(asked: _Asked, continued: ContinuedSession | None) -> Context:
    """Read what the prompt quotes. The message that the turn serves keeps its middle."""
    since = continued.since if continued else None
    part = asked.route.part
    if part and not part.continues:
        return part_context(asked.manager, part, asked.answers, asked.quote)
    context = asked.manager.get_history(answers=asked.answers.id, since=since, quote=asked.quote)
    # The same history, but the message of that id keeps its middle.
    if asked.request.id not in context.shown[:-1]:  # the current message is shown last, and is no history
        return context
    pairs = zip(context.history, context.shown, strict=False)
    return replace(
        context,
        history=tuple(
            [replace(message, whole=True) if shown == asked.request.id else message for message, shown in pairs]
        ),
    )


def _formatted(
    asked: _Asked, continued: ContinuedSession | None, history: Context, *, with_request: bool
) -> AssemblerOutput:
    """Compose the prompt in the member's format and within the budget. Raises `PromptTooLarge`."""
    member, sessions = asked.member, asked.kind.runner.sessions
    has_system = continued is not None and sessions is not None and not sessions.system_each_time
    had_before = (SUMMARY, *((FRAMEWORK,) if has_system else ())) if continued else ()
    given = asked.manager.get_context_for_agent(
        history,
        system_instruction=None if has_system else member.system_instruction,
        instruction_file_text=None if has_system else member.instruction_file_text,
        contexts={name: text for name, text in asked.contexts.items() if name not in had_before},
        turn_note=turn_note(
            asked.route,
            member,
            asked.request,
            asked.answers,
            asked_in=asked.asked_in,
            goes_on=history.later > 0,
            again=continued is not None and bool(continued.lost),
        ),
        request=asked.request_text if with_request else None,
        with_task=asked.route.part is None or asked.route.part.task,
    )
    try:
        return asked.kind.assembler.assemble(given)
    except BudgetExceeded as error:
        raise PromptTooLarge(
            f"{member.name}: {error}; shorten the task or the instructions, or raise it in the team file"
        ) from error


def _typed(assembled: AssemblerOutput, answers: ConversationMessage) -> range:
    """Return the range of the prompt's characters that a person typed for this turn."""
    begin = assembled.message_at
    if begin is None or answers.speaker.type != "human":
        return range(0)
    typed = _typed_text(answers)
    whole = assembled.prompt.startswith(typed, begin)  # else the budget has cut it
    return range(begin, begin + len(typed)) if whole else range(0)


def _begins_pasted(message: ConversationMessage) -> bool:
    """Whether the text begins with a pasted part, which holds no commands."""
    return bool(message.pasted) and not strip_markers(message.content[: message.pasted[0][0]]).strip()


def _typed_text(message: ConversationMessage) -> str:
    """Return the part of the message that a person typed, without markers and without piped text."""
    return read_markers(message.content[: message.typed], "human", message.pasted).stripped.strip()


def exists(member: Member, runner: Runner) -> Callable[[str], bool]:
    """Return a function that tells whether the member's CLI reads an `@path` of a prompt, or a mention of a skill."""
    is_skill = runner.skills(member.cwd, {**os.environ, **member.env}) if runner.skills else lambda _mention: False

    def there(name: str) -> bool:
        # without `Path`, which costs more than to look: a hostile prompt has many thousands of names
        try:
            path = os.path.join(member.cwd, os.path.expanduser(name))  # noqa: PTH111, PTH118
            on_disk = any(map(os.path.exists, {path, os.path.normpath(path)}))  # some CLIs resolve `..` first
        except (OSError, ValueError):  # too long, or a NUL in it: nothing a CLI could open either
            on_disk = False
        return on_disk or is_skill(name)

    return there


def check_limit(member: Member, limit: Limit | None, stdin: bytes) -> None:
    if limit is None:
        return
    size = len(stdin) if limit.unit == "bytes" else len(stdin.decode())
    if size > limit.size:
        raise PromptTooLarge(
            f"{member.name}: the prompt has {size:,} {limit.unit}, its CLI takes {limit.size:,}:"
            " send less, or lower max_bytes in the team file"
        )


def part_context(manager: ContextManager, part: Part, answers: ConversationMessage, quote: Quote) -> Context:
    """Collect the context of a turn for this part, which continues no vendor session.

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
    """Return the text that the turn answers, without markers: the message's own, or the part's own instead."""
    return quoted_text(replace(answers, content=part.instead) if part and part.instead else answers)


def left_out(part: Part, shown: Sequence[str], dropped: int) -> tuple[str, ...]:
    """Name the messages of the part that the prompt has no room for: the first `dropped` of `shown` are left out."""
    gone = frozenset(shown[:dropped])
    names = part.labels or part.shows
    return tuple(name for name, message in zip(names, part.shows, strict=True) if message in gone)


def _shown(manager: ContextManager, part: Part, quote: Quote) -> Iterator[PromptContextMessage]:
    labels: Sequence[str | None] = part.labels or (None,) * len(part.shows)
    for label, name in zip(labels, part.shows, strict=True):
        message = manager.get_message(name)
        quoted = replace(in_prompt(message, quote(message, quoted_text(message))), whole=True)
        yield replace(quoted, from_=label, to=None) if label else quoted
