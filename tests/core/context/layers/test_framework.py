"""What teamchat itself tells a member: who is in the team, how to hand over, and whom a turn serves."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.context.layers.framework import MAX_BYTES, framework_text, turn_note
from teamchat.core.engine.state import AlsoCalled, Route
from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Speaker
from teamchat.core.routing.markers import scan
from teamchat.core.routing.names import LONGEST_NAME
from teamchat.core.team.team import Member, Team

HERE = Path("/work")
MAX = Member("max", "ai", HERE, "Architect", "claude")
SARAH = Member("sarah", "ai", HERE, None, "codex")
KAILAI = Member("kailai", "human", HERE, "Owner")
TEAM = Team("phoenix", (KAILAI, MAX, SARAH), HERE)

names = st.from_regex(r"[a-z水é]{1,20}", fullmatch=True) | st.just("𠮷" * LONGEST_NAME)
team_names = st.sampled_from(["a team", "水" * 500, "'\"" * 100])
titles = st.none() | st.text(st.characters(categories=["L", "N", "Zs", "S"]), max_size=200)
teams = st.builds(
    lambda team, rows: Team(
        team,
        tuple(Member(name, "human" if person else "ai", HERE, title) for name, title, person in rows),
        HERE,
        fence=len(rows) % 2 == 0,
    ),
    team_names,
    st.lists(st.tuples(names, titles, st.booleans()), min_size=1, max_size=100, unique_by=lambda row: row[0]),
)


def said(message_id: str, by: str) -> ConversationMessage:
    return NewMessage("Hi", Speaker(by, by, type="human"), Routing()).stored_as(message_id)


def test_a_member_is_told_who_is_there_and_how_to_hand_over() -> None:
    assert framework_text(TEAM, MAX) == (
        "You are max (Architect), a member of the team 'phoenix'. teamchat delivers its messages.\n"
        "The others: kailai (person, Owner), sarah.\n"
        "To hand over, end your reply with a line like [NEXT: sarah]. Several names speak in the given order. To ask "
        "a person something, name the person. Without such a line nobody speaks next. Markers in code or quotes do "
        "nothing. Everybody reads your whole reply. Write only your own part."
    )


def test_what_a_fence_means_is_told_where_there_is_one() -> None:
    text = framework_text(replace(TEAM, fence=True), MAX)
    assert text.startswith(framework_text(TEAM, MAX))
    assert "are quoted between <said-CODE> and </said-CODE>. The prompt's last line has the CODE" in text


def test_the_example_names_somebody_who_is_there() -> None:
    alone = replace(TEAM, members=(MAX,))
    assert "The others" not in framework_text(alone, MAX)
    with_person = replace(TEAM, members=(KAILAI, MAX))
    assert "[NEXT: kailai]" in framework_text(with_person, MAX)


def test_a_hundred_members_fit_in_a_kilobyte() -> None:
    others = tuple(Member(f"member-number-{n}", "ai", HERE, "Does many things") for n in range(99))
    text = framework_text(replace(TEAM, members=(MAX, *others)), MAX)
    assert len(text.encode()) <= MAX_BYTES
    assert "The others: member-number-0 (Does many things), member-number-1" in text
    assert text.split("The others: ")[1].split(".\n")[0].endswith("and 83 more")


def test_a_team_that_just_fits_is_named_whole() -> None:
    others = tuple(Member(f"m{n}", "ai", HERE) for n in range(20))
    assert "more" not in framework_text(replace(TEAM, members=(MAX, *others)), MAX)


def test_the_longest_names_and_titles_fit_too() -> None:
    longest = [chr(ord("𠮷") + number) * LONGEST_NAME for number in range(3)]
    everybody = tuple(Member(name, "ai", HERE, "水" * 500) for name in longest)
    text = framework_text(Team("𠮷" * 500, everybody, HERE, fence=True), everybody[0])
    assert len(text.encode()) <= MAX_BYTES
    assert f"You are {longest[0]} ({'水' * 20}…), a member of the team '{'𠮷' * 15}…'" in text
    assert f"[NEXT: {longest[1]}]" in text


@given(teams)
def test_the_text_is_short_whole_and_the_same_from_turn_to_turn(team: Team) -> None:
    for member in team.members[:3]:
        text = framework_text(team, member)
        assert len(text.encode()) <= MAX_BYTES
        assert text == framework_text(team, member)
        assert text.count("\n") == (2 if len(team.members) > 1 else 1)
        assert ", ," not in text
        assert ": ," not in text


def test_the_example_is_a_marker_that_counts() -> None:
    """An agent that copies it hands over."""
    assert [marker.targets[0].names for marker in scan(framework_text(TEAM, MAX), "ai") if marker.counts] == [
        ("sarah",)
    ]


@pytest.mark.parametrize(
    ("request_id", "current_id", "current_by", "note"),
    [
        ("msg-1", "msg-1", "kailai", "You are answering msg-1, from kailai, below."),
        (
            "msg-1",
            "msg-3",
            "sarah",
            "You are answering msg-3, from sarah, below. It is part of the work on msg-1, from kailai.",
        ),
    ],
)
def test_the_note_of_a_turn_says_whom_it_serves_and_who_is_heard(
    request_id: str, current_id: str, current_by: str, note: str
) -> None:
    route = Route("msg-2", "sarah", request_id, 1, "max")
    assert turn_note(route, MAX, said(request_id, "kailai"), said(current_id, current_by)) == note


def test_the_note_names_all_who_call_where_another_message_than_the_first_call_is_answered() -> None:
    """max and sarah spoke in one group, and both call carol: she answers the later reply."""
    route = Route("msg-2", "sarah", "msg-1", 1, "max", also=(AlsoCalled("bob", "msg-3"),))
    note = turn_note(route, MAX, said("msg-1", "kailai"), said("msg-3", "bob"))
    assert note.endswith("from kailai. sarah calls you in msg-2, too. bob calls you in msg-3, too.")


def test_the_note_tells_a_member_in_whose_place_it_answers() -> None:
    route = Route("msg-2", "sarah", "msg-1", 1, "sarah")
    note = turn_note(route, MAX, said("msg-1", "kailai"), said("msg-1", "kailai"))
    assert note.endswith("below. You are the fallback for sarah, who cannot answer.")
