"""The process that a person asks for, with the team file's settings and the defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from teamchat.core.conversation.processes import process_of
from teamchat.core.engine.processes.table import STRATEGIES, TAKES
from teamchat.core.engine.workflow import MOST_ROUNDS, Kind, NamedProcess, Process, ProcessSettings
from teamchat.core.errors import ExitCode, TeamchatError, UnknownName, UsageError
from teamchat.core.team.team import Limits, Member, Team

HERE = Path("/work")
TEAM = Team(
    "crew",
    (
        Member("kailai", "human", HERE),
        Member("max", "ai", HERE, "Architect", "claude"),
        Member("Sarah-Lee", "ai", HERE, "Tester", "codex"),
        Member("carol", "ai", HERE, "Tester", "gemini"),
    ),
    HERE,
    lead="carol",
)
ALL = ("max", "Sarah-Lee", "carol")
REVIEW = NamedProcess("review", "sequential", ProcessSettings(members=("carol", "max"), rounds=2), "Be strict.")
NAMING = replace(TEAM, processes={"review": REVIEW})


def begins(name: str, team: Team = TEAM, **settings: Any) -> Process:
    return process_of(team, name, ProcessSettings(**settings))


def refused(name: str, team: Team = TEAM, **settings: Any) -> TeamchatError:
    with pytest.raises(TeamchatError) as caught:
        begins(name, team, **settings)
    return caught.value


def test_every_kind_has_its_settings() -> None:
    assert tuple(TAKES) == tuple(Kind)
    taken = {setting for takes in TAKES.values() for setting in takes}
    assert taken | {"do", "check", "review"} == set(ProcessSettings.__struct_fields__)


def test_rounds_are_bounded_everywhere() -> None:
    assert begins("sequential", rounds=MOST_ROUNDS).rounds == MOST_ROUNDS
    assert str(refused("sequential", rounds=MOST_ROUNDS + 1)) == "--rounds: expected at most 100, got 101"


def test_all_ai_members_take_part_in_the_order_of_the_team() -> None:
    assert begins("sequential") == Process(Kind.SEQUENTIAL, ALL, "carol")


def test_the_first_ai_member_leads_a_team_without_a_lead() -> None:
    assert begins("sequential", replace(TEAM, lead=None)).lead == "max"


@pytest.mark.parametrize("name", ["sequential", "Sequential", "SEQUENTIAL ", "sequen-tial"])
def test_a_process_is_found_in_any_spelling_of_its_name(name: str) -> None:
    assert begins(name).kind is Kind.SEQUENTIAL


def test_members_are_found_as_to_finds_them() -> None:
    assert begins("sequential", members=("CAROL", "sarah lee", "Architect")).members == ("carol", "Sarah-Lee", "max")


def test_a_member_that_is_named_twice_takes_part_once() -> None:
    assert begins("sequential", members=("max", "carol", "Max")).members == ("max", "carol")


def test_a_process_of_the_team_file_has_its_settings_and_prompt() -> None:
    expected = Process(
        Kind.SEQUENTIAL,
        ("carol", "max"),
        "carol",
        excluded=("Sarah-Lee",),
        name="review",
        prompt="Be strict.",
        rounds=2,
    )
    assert begins("Review", NAMING) == expected


def test_what_is_given_replaces_what_the_team_file_says() -> None:
    process = begins("review", NAMING, members=("max",))
    assert (process.members, process.rounds, process.prompt) == (("max",), 2, "Be strict.")


def test_an_unknown_process_is_refused_with_the_nearest_one() -> None:
    error = refused("reviw", NAMING)
    assert (type(error), error.code) == (UnknownName, ExitCode.UNKNOWN_NAME)
    assert str(error) == "there is no process 'reviw': did you mean 'review'?"


def test_an_unknown_process_is_refused_with_all_there_are() -> None:
    assert str(refused("xyz", NAMING)) == f"there is no process 'xyz': expected one of {', '.join(STRATEGIES)}, review"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"judge": "max"}, "sequential does not take --judge; it takes --members and --rounds"),
        (
            {"planner": "max", "options": ("a", "b")},
            "sequential does not take --planner and --options; it takes --members and --rounds",
        ),
    ],
)
def test_a_setting_that_the_kind_does_not_take_is_refused(settings: dict[str, Any], said: str) -> None:
    error = refused("sequential", **settings)
    assert (type(error), str(error)) == (UsageError, said)


def test_a_setting_that_the_kind_of_a_named_process_does_not_take_is_refused() -> None:
    said = "review (sequential) does not take --judge; it takes --members and --rounds"
    assert str(refused("review", NAMING, judge="max")) == said


@pytest.mark.parametrize(
    ("members", "said", "kind"),
    [
        (("mx",), "--members: nobody is called 'mx': did you mean max?", UnknownName),
        (("zzz", "max"), "--members: nobody is called 'zzz'", UnknownName),
        (("Tester",), "--members: 'Tester' is the title of several members: Sarah-Lee or carol?", UnknownName),
        (("max", "KaiLai"), "--members: kailai is a person; only AI members take part", UsageError),
    ],
)
def test_only_ai_members_that_are_there_take_part(members: tuple[str, ...], said: str, kind: type) -> None:
    error = refused("sequential", members=members)
    assert (type(error), str(error), error.hint) == (kind, said, "teamchat team")


def test_a_vote_without_options_says_how_to_give_them() -> None:
    assert str(refused("vote")) == "vote needs options to choose from, such as --options yes,no"
    assert begins("vote", options=("yes", "no")).options == ("yes", "no")


def test_a_team_of_people_runs_no_process() -> None:
    assert str(refused("sequential", replace(TEAM, members=TEAM.members[:1]))) == "the team 'crew' has no AI member"


@pytest.mark.parametrize(
    ("process", "turns"),
    [
        (Process(Kind.SEQUENTIAL, ALL, "max", rounds=2), 6),
        (Process(Kind.DEBATE, ALL, "max", rounds=2), 10),
        (Process(Kind.VOTE, ALL, "max"), 3),
        (Process(Kind.BEST, ALL, "max"), 4),
        (Process(Kind.MAPREDUCE, ALL, "max"), None),
        (Process(Kind.HIERARCHICAL, ALL, "max"), None),
    ],
)
def test_the_number_of_turns_where_it_is_known(process: Process, turns: int | None) -> None:
    assert STRATEGIES[process.kind].turns(process) == turns


class TestMapreduce:
    """The defaults of a map-reduce."""

    def test_all_but_the_planner_are_workers(self) -> None:
        process = begins("mapreduce")
        assert (process.planner, process.members, process.reducer) == ("carol", ("max", "Sarah-Lee"), "carol")

    def test_another_planner_leaves_its_work_to_the_lead(self) -> None:
        process = begins("mapreduce", planner="max")
        assert (process.planner, process.members, process.reducer) == ("max", ("Sarah-Lee", "carol"), "carol")

    def test_a_single_member_does_everything(self) -> None:
        alone = replace(TEAM, members=TEAM.members[:2], lead=None)
        process = begins("mapreduce", alone)
        assert (process.planner, process.members, process.reducer) == ("max", ("max",), "max")

    @pytest.mark.parametrize(("limit", "most"), [(12, 9), (4, 1), (3, 1), (1, 1), (1000, 500)])
    def test_the_limit_of_turns_bounds_the_subtasks(self, limit: int, most: int) -> None:
        assert begins("mapreduce", replace(TEAM, limits=Limits(turns=limit))).most == most
