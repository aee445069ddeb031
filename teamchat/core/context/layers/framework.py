"""teamchat's own text for a member: who is in the team, how to hand over, and which message to answer.

Without it agents never learn the protocol, and forget the request once it has left the window. The texts for members of
a process (`teamchat run`) are beside its strategy.
"""

from __future__ import annotations

import json

from teamchat.assemblers.truncation import byte_length, truncate_end
from teamchat.core.engine.state import AlsoCalled, Route
from teamchat.core.engine.strategies import strategy_of
from teamchat.core.engine.workflow import LAST_REVIEW, PLAN, Part
from teamchat.core.errors import StoreError
from teamchat.core.messages import ConversationMessage, name_of
from teamchat.core.team import wording
from teamchat.core.team.team import Member, Team
from teamchat.runners.untrusted.json import first_of, listed

MAX_BYTES = 1024  # bytes of the part that goes with the system text
MAX_SHOWN = 64  # bytes of a title, and of the team's name; names of members are short (40 characters)

MOST_NAMED = 20  # files


def framework_text(team: Team, member: Member, part: Part | None = None) -> str:
    """Say who is in the team and how to hand over, in under 1 KB; it never varies, so that vendors can cache it.

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
    again: bool = False,
) -> str:
    """Write the note on the message to answer: its id and speaker, the request behind it, whose turn a fallback takes.

    It names the later request `asked_in` that the message was written for, says that the history `goes_on` after it or
    has messages `again` that the member's session has lost, and names who else calls the member. In a process it also
    says what the member is to do.
    """
    note = wording.REQUEST if current.id == request.id else wording.PART
    asked = wording.ASKED_IN if asked_in else ""
    later = f"{wording.GOES_ON if goes_on else ''}{wording.AGAIN if again else ''}"
    fallback = "" if member.name == route.target else wording.FALLBACK
    whole_note = f"{note}{asked}{later}{fallback}".format(
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
    whole_note += "".join(wording.CALLED.format(by=call.by, parent=call.parent) for call in calls)
    return f"{whole_note} {role_note(route, route.part)}" if route.part else whole_note


def role_note(route: Route, part: Part) -> str:
    """Write the sentences of the turn note on the part of a route. Raises `StoreError` for an unknown role."""
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
        "planned": ", by the plan above as far as it is right" if any(map(_is_plan, part.labels)) else "",
        "touched": wording.TOUCHED.format(paths=listed(*first_of(part.options, MOST_NAMED))) if part.options else "",
        "reviewed": f", {LAST_REVIEW} and what came of it" if LAST_REVIEW in part.labels else "",
    }


def _is_plan(label: str) -> bool:
    return label.endswith(PLAN)


def _verification(part: Part) -> str:
    """Say how a part's work is verified: `teamchat runs the checks tests and lint, and carol reviews the work`."""
    names = part.checked_by
    checks = f"teamchat runs the check{'s' * (len(names) > 1)} {listed(*names)}" if names else ""
    review = f"{listed(*part.options)} review{'s' * (len(part.options) == 1)} the work" if part.options else ""
    return ", and ".join(filter(None, (checks, review)))
