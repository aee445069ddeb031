"""Gathers the layers of a prompt, each from its own source. Nothing is rendered or written here."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from teamchat.assemblers.parts import DIFFERENCES, FRAMEWORK, KNOWLEDGE, LAYERS, LESSONS, RESULTS
from teamchat.assemblers.truncation import byte_length, truncate_end
from teamchat.core.engine.process import Part
from teamchat.core.engine.state import AlsoCalled, Route
from teamchat.core.errors import StoreError
from teamchat.core.knowledge.files import Excerpt
from teamchat.core.messages import ConversationMessage, name_of
from teamchat.core.team import wording
from teamchat.core.team.team import Member, Team
from teamchat.runners.untrusted.json import listed

# What teamchat itself tells a member: who is in the team, how to hand over, and which message to answer.
#
# Without it agents never learn the protocol, and forget the request once it has left the window. What a kind of
# process (`teamchat run`) tells its members stands with its strategy.

MAX_BYTES = 1024  # of the part that goes with the system text
MAX_SHOWN = 64  # bytes of a title, and of the team's name; names of members are short (40 characters)


def framework_text(team: Team, member: Member, part: Part | None = None) -> str:
    """Who is in the team and how to hand over; the same from turn to turn, so that vendors can cache it. Under 1 KB.

    In a `part` of a process that hands over to nobody, it says so instead.
    """
    others = [other for other in team.members if other.name != member.name]
    example = next((other.name for other in others if other.type == "ai"), others[0].name if others else "NAME")
    team_name = repr(_cut(team.name))
    head = wording.MEMBER.format(member=_described(member), team=team_name)
    protocol = wording.PROTOCOL if part is None or part.handover else wording.NO_HAND_OVER
    tail = protocol.format(example=example) + (wording.FENCE if team.fence else "")
    listed = wording.OTHERS.format(names=f"and {len(others)} more")
    room = MAX_BYTES - byte_length(f"{head}\n\n{tail}{listed}")
    return f"{head}\n{wording.OTHERS.format(names=_listed(others, room))}\n{tail}" if others else f"{head}\n{tail}"


def _described(member: Member) -> str:
    kind = "person" if member.type == "human" else None
    details = ", ".join(filter(None, (kind, _cut(member.title or ""))))
    return f"{member.name} ({details})" if details else member.name


def _cut(text: str) -> str:
    return text if byte_length(text) <= MAX_SHOWN else f"{truncate_end(text, MAX_SHOWN - byte_length('…'))}…"


def _listed(others: list[Member], room: int) -> str:
    names = [_described(other) for other in others]
    fitting = 0
    for name in names:
        room -= len(f"{name}, ".encode())
        fitting += room >= 0
    more = [f"and {len(names) - fitting} more"] if fitting < len(names) else []
    return ", ".join(names[:fitting] + more)


def turn_note(
    route: Route,
    member: Member,
    request: ConversationMessage,
    current: ConversationMessage,
    *,
    asked_in: ConversationMessage | None = None,
    goes_on: bool = False,
) -> str:
    """The note on the message to answer: its id and speaker, the request behind it, whose turn a fallback takes.

    It names the later request `asked_in` that the message was written for, says that the history `goes_on` after it,
    and names who else calls the member. In a process it also says what the member is to do.
    """
    note = wording.REQUEST if current.id == request.id else wording.PART
    asked = wording.ASKED_IN if asked_in else ""
    later = wording.GOES_ON if goes_on else ""
    fallback = "" if member.name == route.target else wording.FALLBACK
    told = f"{note}{asked}{later}{fallback}".format(
        current=current.id,
        speaker=name_of(current),
        request=request.id,
        person=request.speaker.role_name,
        asked_in=asked_in and asked_in.id,
        asker=asked_in and asked_in.speaker.role_name,
        target=route.target,
    )
    calls = route.also
    if calls and current.id not in (route.parent, request.id):
        told_of = {call.parent for call in calls}
        calls = calls if route.parent in told_of else (AlsoCalled(route.by, route.parent), *calls)
    told += "".join(wording.CALLED.format(by=call.by, parent=call.parent) for call in calls)
    if route.part is None:
        return told

    return f"{told} {role_note(route, route.part)}"


def role_note(route: Route, part: Part) -> str:
    """What the turn note says of the part of a route."""
    from teamchat.core.engine.processes.table import strategy_of  # only `teamchat run` has parts

    notes = strategy_of(part.kind).notes
    if part.role not in notes:
        raise StoreError(
            f"the conversation has a {part.kind}.{part.role}, which this teamchat does not know; use a later one"
        )
    again = notes.get(f"{part.role}.again") if part.number > 1 else None
    repair = notes[f"{part.role}.repair"] if part.fault else None
    sentences = [again or notes[part.role], repair]
    filled = [sentence.format(**_values(route, part)) for sentence in sentences if sentence]
    return " ".join([*filled, *filter(None, (part.prompt,))])


def _values(route: Route, part: Part) -> dict[str, object]:
    return {
        "by": route.by,
        "parent": route.parent,
        "number": part.number,
        "total": part.total,
        "options": ", ".join(json.dumps(option, ensure_ascii=False) for option in part.options),
        "letters": ", ".join(part.options),
        "fault": part.fault,
        "labels": ", ".join(part.labels),
        "verified": _verification(part),
        "reviewed": ", your last review and what came of it" if "your last review" in part.labels else "",
    }


def _verification(part: Part) -> str:
    """How the work of a part is verified: `teamchat runs the checks tests and lint, and carol reviews the work`."""
    checks = f"teamchat runs the check{'s' * (len(part.labels) > 1)} {listed(*part.labels)}" if part.labels else ""
    review = f"{listed(*part.options)} review{'s' * (len(part.options) == 1)} the work" if part.options else ""
    return ", and ".join(filter(None, (checks, review)))


class LayerContext(Struct, frozen=True):
    """What a source knows of the turn. `text` is the current message without its markers.

    `request` is the human message that the turn serves, also without markers. Both may be the same message. `part` is
    what the turn does in a process.
    """

    member: Member
    message: ConversationMessage
    text: str
    task: str | None
    request: str = ""
    part: Part | None = None


class LayerText(Struct, frozen=True):
    """A layer's text and the excerpts in it. `note` says what was left out, or why there is no text."""

    text: str
    excerpts: tuple[Excerpt, ...] = ()
    note: str | None = None


Source = Callable[[LayerContext], LayerText | str | None]


class ContextCollector:
    """`sources` has a function for each layer.

    Without `share` only the framework is gathered, and what a process shows.
    """

    def __init__(self, sources: Mapping[str, Source], *, share: bool = True) -> None:
        unknown = sorted(set(sources) - set(LAYERS))
        if unknown:
            raise ValueError(f"no layer is called {unknown[0]!r}")
        names = LAYERS if share else (FRAMEWORK, DIFFERENCES, RESULTS)
        self._sources = {name: sources[name] for name in names if name in sources}

    def gather(self, context: LayerContext) -> dict[str, LayerText]:
        """The layers whose source returned something, in the order of `LAYERS`."""
        allowed = context.part.layers if context.part else None
        found = {name: source(context) for name, source in self._sources.items() if allowed is None or name in allowed}
        return {name: LayerText(told) if isinstance(told, str) else told for name, told in found.items() if told}


def texts_of(gathered: Mapping[str, LayerText]) -> dict[str, str]:
    """The texts of the layers that have one."""
    return {name: told.text for name, told in gathered.items() if told.text.strip()}


def framework_only(team: Team) -> ContextCollector:
    """A collector for the one layer that needs no store: who is in the team and how to hand over."""
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
        gathered = {name: told for name, told in self._inner.gather(context).items() if name not in BESIDE}
        part = (context.part.role, context.part.number) if context.part else None
        go = context.part.go if context.part else 1
        left = self._told[context.member.name, context.message.id, part, go]
        texts = left.popleft() if len(left) > 1 else left[0] if left else {}
        return gathered | {name: LayerText(text) for name, text in texts.items()}
