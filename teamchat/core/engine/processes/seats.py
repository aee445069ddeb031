"""What the processes share in which every member answers for itself, blind at first."""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_uppercase

from teamchat.assemblers.parts import FRAMEWORK, KNOWLEDGE, LESSONS, SUMMARY
from teamchat.core.engine.process import Done, Process
from teamchat.core.routing.names import fold

BLIND_LAYERS = (FRAMEWORK, LESSONS, KNOWLEDGE, SUMMARY)
"""All layers but the todo list, to which an answer that others may not see yet can add."""


def seats(done: Iterable[Done]) -> dict[str, Done]:
    """The parts that are over by the members for whom they were done. The last one of a member counts."""
    return {one.part.seat: one for one in done}


def stand_in(done: Done, member: str) -> str | None:
    """Who answered in the place of that member; None if it did itself, perhaps under another spelling of its name."""
    return None if fold(done.member) == fold(member) else done.member


def wrong_members(process: Process, least: int) -> str | None:
    """What is wrong with the members, of whom there must be `least` different ones."""
    twice = next((name for name in process.members if process.members.count(name) > 1), None)
    if twice is not None:
        return f"{twice} is named twice"
    if len(process.members) >= least:
        return None
    return "it needs a member" if least == 1 else f"it needs at least {least} members"


def letters(index: int) -> str:
    """A to Z, then AA, AB and so on."""
    before, last = divmod(index, len(ascii_uppercase))
    return (letters(before - 1) if before else "") + ascii_uppercase[last]
