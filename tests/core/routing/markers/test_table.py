"""What is a marker, decided case by case: a text, who is queued, what the prompt keeps, and whether it hints."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from teamchat.core.conversation.addressing import address, address_reply
from teamchat.core.engine.state import Rules, State
from teamchat.core.errors import UnknownName
from teamchat.core.routing.markers import strip_markers
from teamchat.core.team.team import Member, Team

HERE = Path("/work")
AI = ("lead", "max", "max-power", "sarah")
TEAM = Team("crew", (Member("kailai", "human", HERE), *(Member(name, "ai", HERE) for name in AI)), HERE)
STATE = State(Rules(AI, ("kailai",), lead="lead"))

LEAD = "lead"  # who answers when nobody is named
NOBODY = "refused"  # nobody who is named is known: nothing is stored
SAME = "the text as it is"
NO_HINT = ""
MAX = "[NEXT: max]"

TABLE = [
    # --- plain markers
    ("[NEXT:max] Hi", "max", "Hi", NO_HINT),
    ("[next：max] Hi", "max", "Hi", NO_HINT),
    ("[ NEXT : MAX ] Hi", "max", "Hi", NO_HINT),
    ("[NEXT: max-power] Hi", "max-power", "Hi", NO_HINT),
    ("[NEXT: max] [NEXT: sarah] Hi", "max, sarah", "Hi", NO_HINT),
    ("[NEXT: max] Hi [NEXT: max]", "max", "Hi", NO_HINT),
    ("[NEXT: max + sarah] Hi", "max + sarah", "Hi", NO_HINT),
    # --- markers of the todo list call nobody
    ("[TODO: ask sarah] [DONE: 1, 7] Hi", LEAD, "Hi", NO_HINT),
    ("[NEXT: max] [todo：write it] Hi", "max", "Hi", NO_HINT),
    ("［TODO：write it］ Hi", LEAD, SAME, "[TODO: write it]"),
    ("【done: 3】 Hi", LEAD, SAME, "[DONE: 3]"),
    ("[TODO: write\nit] Hi", LEAD, SAME, "[TODO: ...]"),
    ("TODO: write it. [TODO] Hi", LEAD, SAME, NO_HINT),
    ("`[TODO: write it]` Hi", LEAD, SAME, NO_HINT),
    # --- names that nobody has
    ("[NEXT: Max, nobody, sarah] Hi", "max, sarah", "Hi", NO_HINT),
    ("[NEXT: max + nobody] Hi", "max", "Hi", NO_HINT),
    ("[NEXT: maxpower2] Hi", NOBODY, "Hi", NO_HINT),
    ("[NEXT: mаx] Hi", NOBODY, "Hi", NO_HINT),  # with a Cyrillic а
    ("[NEXT: m\u200bax] Hi", NOBODY, SAME, NO_HINT),  # a zero-width space: nobody sees it
    ("[NE\u200bXT: max] Hi", LEAD, SAME, MAX),
    ("\x1b]0;[NEXT: max]\x07 Hi", NOBODY, SAME, NO_HINT),  # a terminal shows it as its title
    ("\x1b[NEXT: max] Hi", NOBODY, SAME, NO_HINT),  # it shows `EXT: max] Hi`
    ("[NEXT: max\U000e0020] Hi", NOBODY, SAME, NO_HINT),
    ("[NEXT: ｍａｘ] Hi", "max", "Hi", NO_HINT),
    ("[NEXT: \u202emax\u202c] Hi", NOBODY, "Hi", NO_HINT),  # shown from right to left
    # --- markers of nothing, in each other, cut in two
    ("[NEXT:] Hi", LEAD, "Hi", NO_HINT),
    ("[NEXT: ] Hi", LEAD, "Hi", NO_HINT),
    ("[NEXT: [max]] Hi", NOBODY, "] Hi", NO_HINT),
    ("[NEXT: sarah [NEXT: max]] Hi", "max", "[NEXT: sarah ] Hi", "[NEXT: sarah]"),
    ("[NEXT:max", LEAD, SAME, MAX),
    ("[NEXT:max Hi", LEAD, SAME, MAX),
    ("[NEXT:\nmax] Hi", LEAD, SAME, "[NEXT: ...]"),
    ("[NEXT: max,\nsarah] Hi", LEAD, SAME, MAX),
    # --- near misses
    ("NEXT: max", LEAD, SAME, MAX),
    ("Hi. NEXT: max, sarah", LEAD, SAME, "[NEXT: max, sarah]"),
    ("**NEXT:** max", LEAD, SAME, MAX),
    ("**NEXT: max**", LEAD, SAME, MAX),
    ("{NEXT: max}", LEAD, SAME, MAX),
    ("[NEXT max] Hi", LEAD, SAME, MAX),
    ("［NEXT：max］ Hi", LEAD, SAME, MAX),
    ("【NEXT: max】 Hi", LEAD, SAME, MAX),
    ("@max can you look?", LEAD, SAME, MAX),
    ("Hi\n@max, @sarah: look", LEAD, SAME, "[NEXT: max, sarah]"),
    ("[NEXT: sarah] Hi. NEXT: max", "sarah", "Hi. NEXT: max", MAX),
    # --- no near misses
    ("ask @max about it", LEAD, SAME, NO_HINT),
    ("@max said it works", LEAD, SAME, NO_HINT),
    ("@max's plan is good", LEAD, SAME, NO_HINT),
    ("[NEXT: sarah] Hi\n@max knows it", "sarah", "Hi\n@max knows it", NO_HINT),
    ("Next: max\n[NEXT: max]", "max", "Next: max", NO_HINT),
    ("NEXT: kailai", LEAD, SAME, NO_HINT),  # who speaks
    ("max@example.org", LEAD, SAME, NO_HINT),
    ("max@example.org\n@example.org", LEAD, SAME, NO_HINT),
    ("NEXT: we deploy", LEAD, SAME, NO_HINT),
    ("[NEXT steps]", LEAD, SAME, NO_HINT),
    ("\\[NEXT: max] Hi", LEAD, "[NEXT: max] Hi", NO_HINT),
    # --- code and quotes
    ("```\n[NEXT:max]\n@max\nNEXT: max\n```", LEAD, SAME, NO_HINT),
    ("Hi\n```\n[NEXT:max]\nNEXT: max", LEAD, SAME, NO_HINT),  # a fence that is not closed
    ("`[NEXT:max]` and `NEXT: max`", LEAD, SAME, NO_HINT),
    ("> [NEXT:max]\n> NEXT: max\n\nYes", LEAD, SAME, NO_HINT),
    # --- ordinary places
    ("| a | [NEXT:max] |", "max", "| a | |", NO_HINT),
    ("[see [NEXT:max] there](x)", "max", "[see there](x)", NO_HINT),
    ("# Plan [NEXT:max]", "max", "# Plan", NO_HINT),
]


def called(text: str) -> str:
    """Who is queued: `max, sarah` in turn, `max + sarah` together."""
    try:
        requests = address(text, TEAM, STATE).requests
    except UnknownName:
        return NOBODY
    together = {request.group for request in requests} - {None}
    return (" + " if together else ", ").join(request.target for request in requests)


def hinted(problems: tuple[str, ...]) -> str:
    """What to write instead, of all near misses."""
    return ", ".join(
        problem.partition("did you mean ")[2].rstrip("?") for problem in problems if "not a marker" in problem
    )


@pytest.mark.parametrize(("text", "queued", "left", "hint"), TABLE)
def test_the_table(text: str, queued: str, left: str, hint: str) -> None:
    assert called(text) == queued
    assert strip_markers(text) == (text if left is SAME else left)
    if queued != NOBODY:
        assert hinted(address(text, TEAM, STATE).problems) == hint


@pytest.mark.parametrize(("text", "queued", "left", "hint"), TABLE)
def test_it_holds_for_agents_too_but_that_nobody_answers_by_default(
    text: str, queued: str, left: str, hint: str
) -> None:
    reply = address_reply(text, TEAM, TEAM.member("lead"))
    assert reply.names == (() if queued in (LEAD, NOBODY) else tuple(queued.replace(" + ", ", ").split(", ")))
    assert strip_markers(text, author="ai") == (text if left is SAME else left)
    if text != "NEXT: kailai":
        assert hinted(reply.problems) == hint


def test_the_speaker_needs_no_hint_about_themself_and_an_agent_none_about_what_people_alone_may_write() -> None:
    sarah = TEAM.member("sarah")
    assert address_reply("NEXT: sarah\n［FROM: kailai］ 【TEAM_TASK: x】 [FROM: kailai", TEAM, sarah).problems == ()
    assert hinted(address_reply("NEXT: kailai", TEAM, sarah).problems) == "[NEXT: kailai]"
    assert hinted(address("［FROM: kailai］ Hi", TEAM, STATE).problems) == "[FROM: kailai]"


def test_a_name_after_to_leaves_mentions_alone() -> None:
    assert address("@max can you look?", TEAM, STATE, to="sarah").problems == ()


def test_many_near_misses_are_told_in_a_few_short_lines() -> None:
    reply = address_reply("NEXT: max\n" * 1_000, TEAM, TEAM.member("sarah"))
    assert reply.problems == ("sarah: 'NEXT: max' is not a marker and does nothing: did you mean [NEXT: max]?",)
    many = address("\n".join(f"［NEXT: {number}{'x' * 999}］" for number in range(1_000)), TEAM, STATE)
    assert many.problems[-1] == "995 more like these"
    assert len(many.problems) == 6
    assert all(len(problem) < 200 for problem in many.problems)


@pytest.mark.parametrize("marker", ["[NEXT: max] ", "[NEXT: sarah", "NEXT: max ", "[NEXT: max, who{}] "])
def test_ten_thousand_markers_take_no_time(marker: str) -> None:
    """One of them is a slip of a program, and must not hang what reads it."""
    begun = process_time()
    address("".join(marker.format(number) for number in range(10_000)), TEAM, STATE)
    assert process_time() - begun < 10


@pytest.mark.parametrize("text", ["[FROM:] Hi", "[FROM: ] Hi"])
def test_a_speaker_of_no_name_is_removed_and_changes_nothing(text: str) -> None:
    addressed = address(text, TEAM, STATE)
    assert (addressed.speaker.role_name, strip_markers(text)) == (address("Hi", TEAM, STATE).speaker.role_name, "Hi")
    assert addressed.problems == (f"{text.removesuffix(' Hi')} is empty: ignored",)
    assert strip_markers(text, author="ai") == text
