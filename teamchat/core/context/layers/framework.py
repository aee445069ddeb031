"""What teamchat itself tells a member: who is in the team, how to hand over, and which message to answer.

Without it agents never learn the protocol, and forget the request once it has left the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from teamchat.assemblers.truncation import byte_length, truncate_end
from teamchat.core.engine.part import Part
from teamchat.core.engine.state import Route
from teamchat.core.messages import ConversationMessage, name_of
from teamchat.core.team.team import Member, Team
from teamchat.core.team.wording import Wording

if TYPE_CHECKING:
    from teamchat.core.context.role_wording import RoleWording

MAX_BYTES = 1024  # of the part that goes with the system text
MAX_SHOWN = 64  # bytes of a title, and of the team's name; names of members are short (40 characters)


def framework_text(team: Team, member: Member, part: Part | None = None) -> str:
    """Who is in the team and how to hand over; the same from turn to turn, so that vendors can cache it. Under 1 KB.

    In a `part` of a process that hands over to nobody, it says so instead.
    """
    others = [other for other in team.members if other.name != member.name]
    example = next((other.name for other in others if other.type == "ai"), others[0].name if others else "NAME")
    team_name = repr(_cut(team.name))
    wording = team.wording
    head = wording.member.format(member=_described(member), team=team_name)
    protocol = wording.protocol if part is None or part.handover else _role_words(wording).protocol
    tail = protocol.format(example=example) + (wording.fence if team.fence else "")
    listed = wording.others.format(names=f"and {len(others)} more")
    room = MAX_BYTES - byte_length(f"{head}\n\n{tail}{listed}")
    return f"{head}\n{wording.others.format(names=_listed(others, room))}\n{tail}" if others else f"{head}\n{tail}"


def _role_words(wording: Wording) -> RoleWording:
    from teamchat.core.context.role_wording import ROLE_WORDINGS  # only `teamchat run` needs it

    return ROLE_WORDINGS[wording.roles]


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
    route: Route, member: Member, request: ConversationMessage, current: ConversationMessage, wording: Wording
) -> str:
    """The note on the message to answer: its id and speaker, the request behind it, and whose turn a fallback takes.

    In a process it also says what the member is to do.
    """
    note = wording.request if current.id == request.id else wording.part
    fallback = "" if member.name == route.target else wording.fallback
    told = f"{note}{fallback}".format(
        current=current.id,
        speaker=name_of(current),
        request=request.id,
        person=request.speaker.role_name,
        target=route.target,
    )
    if route.part is None:
        return told
    from teamchat.core.context.role_wording import role_note

    return f"{told} {role_note(route, route.part, _role_words(wording))}"
