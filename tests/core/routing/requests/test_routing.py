from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.routing import markers, requests
from teamchat.core.routing.markers import scan, strip_markers
from teamchat.core.routing.requests import (
    Problem,
    ProblemKind,
    Resolution,
    RouteRequest,
    few,
    parse_to,
    resolve,
    shortened,
)
from teamchat.core.routing.targets import Target
from teamchat.core.routing.todos import Add, Finish


@dataclass(frozen=True)
class Somebody:
    name: str
    title: str | None = None


TEAM = (
    Somebody("max", "Architect"),
    Somebody("max-power"),
    Somebody("sarah", "Developer"),
    Somebody("carol", "developer"),
    Somebody("kailai"),
)


def resolved(text: str, speaker: str | None = None, author: Literal["human", "ai"] = "human") -> Resolution:
    return resolve(scan(text, author), TEAM, speaker, author)


def asked(text: str) -> list[tuple[str, int, int | None]]:
    return [(request.target, request.priority, request.group) for request in resolved(text).requests]


@pytest.mark.parametrize(
    ("text", "requests"),
    [
        ("Hi", []),
        ("[NEXT:max] [NEXT:sarah] [NEXT:carol] Hi", [("max", 2, None), ("sarah", 2, None), ("carol", 2, None)]),
        ("[NEXT: MAX, Sa-rah]", [("max", 2, None), ("sarah", 2, None)]),
        ("[NEXT: max-power]", [("max-power", 2, None)]),
        ("[NEXT: architect !P1, carol #p3]", [("max", 1, None), ("carol", 3, None)]),
        ("[NEXT: max + sarah !P1]", [("max", 1, 0), ("sarah", 1, 0)]),
        (
            "[NEXT: max + sarah, kailai] [NEXT: carol + max-power]",
            [("max", 2, 0), ("sarah", 2, 0), ("kailai", 2, None), ("carol", 2, 1), ("max-power", 2, 1)],
        ),
        ("`[NEXT: max]` \\[NEXT: sarah]", []),
    ],
)
def test_next_asks_members_to_speak_in_order(text: str, requests: list[tuple[str, int, int | None]]) -> None:
    assert asked(text) == requests
    assert resolved(text).problems == ()


@pytest.mark.parametrize(
    ("text", "requests"),
    [
        ("[NEXT: max, sarah, MAX]", [("max", 2, None), ("sarah", 2, None)]),
        ("[NEXT: max, max, sarah]", [("max", 2, None), ("sarah", 2, None)]),
        ("[NEXT: max, architect]", [("max", 2, None)]),
        ("[NEXT: max, sarah] and [NEXT: max !P1]", [("max", 1, None), ("sarah", 2, None)]),
        ("[NEXT: max !P1, max !P3]", [("max", 1, None)]),
        ("[NEXT: max + sarah] [NEXT: sarah !P1]", [("max", 1, 0), ("sarah", 1, 0)]),
        ("[NEXT: max, max + sarah]", [("max", 2, None), ("sarah", 2, None)]),
        ("[NEXT: max + max]", [("max", 2, None)]),
    ],
)
def test_a_member_named_twice_speaks_once_at_its_first_place_and_most_urgent_priority(
    text: str, requests: list[tuple[str, int, int | None]]
) -> None:
    assert asked(text) == requests


def test_an_unknown_name_is_reported_and_the_known_ones_run() -> None:
    found = resolved("[NEXT: Max, nobody, sarha] [NEXT: NOBODY]")
    assert [request.target for request in found.requests] == ["max"]
    assert [(problem.kind, problem.name, problem.closest) for problem in found.problems] == [
        (ProblemKind.UNKNOWN, "nobody", None),
        (ProblemKind.UNKNOWN, "sarha", "sarah"),
    ]
    assert found.problems[1].message == "nobody is called 'sarha': did you mean sarah?"
    assert not any(problem.is_error for problem in found.problems)


def test_what_is_left_of_a_group_speaks_alone() -> None:
    assert asked("[NEXT: max + nobody !P1]") == [("max", 1, None)]


def test_a_look_alike_of_another_script_is_unknown_and_what_is_invisible_is_spelt_out() -> None:
    assert [problem.name for problem in resolved("[NEXT: mаx]").problems] == ["mаx"]
    said = resolved("[NEXT: m\u0430x]").problems[0].message
    assert said == "nobody is called 'm\u0430x', whose '\u0430' is cyrillic small letter a: did you mean max?"
    assert resolved("[NEXT: \u202emax]").problems[0].message == "nobody is called '\\u202emax': did you mean max?"


def test_an_alphabet_that_somebody_here_has_is_not_strange() -> None:
    team = [Somebody("макс"), Somebody("max")]
    said = resolve(scan("[NEXT: мakc]", "human"), team, "kailai").problems[0].message
    assert said.startswith("nobody is called 'мakc'")
    assert "cyrillic" not in said


@pytest.mark.parametrize(
    "written",
    ["max and sarah", "max sarah", "max; sarah", "max/sarah", "max & sarah", "Max AND Sarah", " max | sarah "],
)
def test_several_members_written_as_one_name_are_nobody_and_the_note_says_how_to_call_them(written: str) -> None:
    found = resolved(f"[NEXT: {written}]")
    assert found.requests == ()
    assert found.problems[0].message == f"nobody is called {written.strip()!r}: did you mean max, sarah?"


@pytest.mark.parametrize("written", ["max or nobody", "max and", "and", "ask max"])
def test_what_is_not_members_only_is_not_taken_apart(written: str) -> None:
    assert "max, " not in resolved(f"[NEXT: {written}]").problems[0].message
    assert resolved("[NEXT: sarah or nobody]").problems[0].message == "nobody is called 'sarah or nobody'"


def test_a_message_about_a_very_long_name_is_short() -> None:
    assert len(resolved(f"[NEXT: {'x' * 9_000}]").problems[0].message) < 100


def test_an_ambiguous_title_is_an_error_and_asks_nobody() -> None:
    found = resolved("[NEXT: developer, max]")
    assert [request.target for request in found.requests] == ["max"]
    (problem,) = found.problems
    assert (problem.kind, problem.name, problem.is_error) == (ProblemKind.AMBIGUOUS, "developer", True)
    assert problem.message == "'developer' is the title of several members: sarah or carol?"


def test_an_agent_that_names_itself_is_ignored_with_a_warning() -> None:
    found = resolved("[NEXT: Max + architect + sarah]", "max", "ai")
    assert found.requests == (RouteRequest("sarah"),)
    (problem,) = found.problems
    assert (problem.kind, problem.name, problem.is_error) == (ProblemKind.SELF, "max", False)


def test_a_human_may_name_themselves() -> None:
    assert resolved("[NEXT: kailai]", "kailai").requests == (RouteRequest("kailai"),)


def test_drop_takes_members_out() -> None:
    found = resolved("[DROP: max, developers, MAX] [DROP: kailai] [NEXT: max]")
    assert found.drops == ("max", "kailai")
    assert found.requests == (RouteRequest("max"),)
    assert [problem.name for problem in found.problems] == ["developers"]


@pytest.mark.parametrize("text", ["[DROP: ALL]", "[drop: all]", "[DROP: max, All]", "[DROP: ALL] [DROP: max]"])
def test_drop_all_is_none(text: str) -> None:
    assert resolved(text).drops is None


def test_without_drop_nothing_is_dropped() -> None:
    assert resolved("[NEXT: max]").drops == ()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Hi", None),
        ("[FROM: Kai-Lai]", "kailai"),
        ("[FROM: max] [FROM: kailai]", "kailai"),
        ("[FROM: zoe]", None),
        ("[FROM: kailai] [FROM: zoe]", "kailai"),
    ],
)
def test_the_last_from_that_names_a_member_says_who_speaks(text: str, name: str | None) -> None:
    assert resolved(text).from_name == name


def test_the_last_task_counts_and_an_empty_one_does_not() -> None:
    assert resolved("[TEAM_TASK: one] [TEAM_TASK: two] [TEAM_TASK:]").task == "two"
    assert resolved("Hi").task is None


@pytest.mark.parametrize(
    "text", ["[NEXT:]", "[NEXT: ,]", "[DROP: ]", "[FROM:]", "[TEAM_TASK: ]", "[TEAM_TASK]\n", "[TODO: ...]", "[DONE:]"]
)
def test_an_empty_marker_asks_for_nothing_and_is_reported(text: str) -> None:
    found = resolved(text)
    assert (found.requests, found.drops, found.from_name, found.task) == ((), (), None, None)
    assert found.problems == (Problem(ProblemKind.EMPTY, f"{text.strip()} is empty: ignored"),)


def test_todos_are_noted_in_the_order_of_the_text_by_people_and_agents() -> None:
    wishes = (Add("a"), Finish(3), Add("b"), Finish(1), Finish(12))
    text = "[TODO: a] [DONE: 3] [TODO: b] [DONE: 1, #１２]"
    assert resolved(text).todos == resolved(text, "max", "ai").todos == wishes
    assert resolved(text).problems == ()


def test_what_is_no_number_is_told_once_and_the_others_are_closed() -> None:
    found = resolved(f"[DONE: max, 2, MAX, -1, {'9' * 5000}]")
    assert found.todos == (Finish(2),)
    assert [(problem.kind, problem.name) for problem in found.problems] == [
        (ProblemKind.NO_NUMBER, name) for name in ("max", "-1", "9" * 5000)
    ]
    assert found.problems[0].message == "'max' is not a todo number"


def test_an_agents_from_and_task_are_text() -> None:
    found = resolved("[FROM: kailai] [TEAM_TASK: x]", "max", "ai")
    assert found == Resolution()


@pytest.mark.parametrize(
    ("value", "targets"),
    [
        ("a,b", (Target(("a",)), Target(("b",)))),
        ("a+b", (Target(("a", "b")),)),
        ("a + b #P1, c", (Target(("a", "b"), 1), Target(("c",)))),
        ("", ()),
        (" , ", ()),
    ],
)
def test_the_option_to_says_the_same_as_a_marker(value: str, targets: tuple[Target, ...]) -> None:
    assert parse_to(value) == targets


def test_what_the_option_to_names_comes_first() -> None:
    found = resolve(scan("[NEXT: sarah !P1, max]", "human"), TEAM, None, to=parse_to("max+carol"))
    assert [(request.target, request.priority, request.group) for request in found.requests] == [
        ("max", 2, 0),
        ("carol", 2, 0),
        ("sarah", 1, None),
    ]


def test_a_message_has_so_many_markers_and_what_follows_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (markers, requests):
        monkeypatch.setattr(module, "MOST_MARKERS", 3)
    text = "[NEXT: max] [NEXT: sarah] [DROP: zoe] [NEXT: carol]"
    found = resolved(text)
    assert [request.target for request in found.requests] == ["max", "sarah"]
    assert [(problem.kind, problem.message) for problem in found.problems] == [
        (ProblemKind.TOO_MANY, "only the first 3 markers were read"),
        (ProblemKind.UNKNOWN, "nobody is called 'zoe'"),
    ]
    assert strip_markers(text) == "[NEXT: carol]"


def test_a_marker_with_too_many_names_is_text_and_is_told() -> None:
    text = f"[NEXT: max] [NEXT: {', '.join(['sarah'] * 2_000)}] [TODO: {'x' * 20_000}]"
    found = resolved(text)
    assert [request.target for request in found.requests] == ["max"]
    shown = "'[NEXT: sarah, sarah, sarah, sarah, sarah, sarah, sarah, sara…'"
    assert found.problems == (Problem(ProblemKind.TOO_LONG, f"{shown} has more than 10,000 characters: ignored"),)
    assert strip_markers(text) == text[text.index("[NEXT: sarah") : text.index(" [TODO")]


def test_who_was_perhaps_meant_is_said_of_the_first_names_alone() -> None:
    found = resolved("".join(f"[NEXT: sarah{number}]" for number in range(100)) + "[NEXT: max and sarah]").problems
    assert [problem.closest for problem in found] == ["sarah"] * 20 + [None] * 81
    assert found[-1].message == "nobody is called 'max and sarah'"


def test_five_lines_are_told_and_how_many_more_there_are() -> None:
    assert few("abcdea") == [*"abcde"]
    assert few("abcdef") == [*"abcde", "1 more like these"]


def test_sixty_characters_are_shown_whole() -> None:
    assert shortened("x" * 60) == "x" * 60
    assert shortened("x" * 61) == f"{'x' * 60}…"


def test_all_unknown_names_are_each_reported() -> None:
    assert len(resolved("".join(f"[NEXT: nobody{number}]" for number in range(9_000))).problems) == 9_000


@given(
    st.lists(st.sampled_from(["max", "MAX", "architect", "sarah", "developer", "zoe", "kailai", "", ",", "+", "!P1"]))
)
def test_nobody_is_asked_twice_and_groups_have_one_priority_and_several_members(words: list[str]) -> None:
    requests = resolved(f"[NEXT: {' , '.join(words)}] [NEXT: {' + '.join(words)}]", "max", "ai").requests
    targets = [request.target for request in requests]
    assert len(set(targets)) == len(targets)
    assert "max" not in targets
    for group in {request.group for request in requests} - {None}:
        members = [request for request in requests if request.group == group]
        assert len(members) > 1
        assert len({request.priority for request in members}) == 1
