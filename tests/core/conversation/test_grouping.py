from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.conversation.grouping import colliding, in_lines, run_together
from teamchat.core.engine.state import Route
from teamchat.core.team.team import AgentSpec, Member, Team
from teamchat.core.turn.run_events import ConversationEvent, Warned
from teamchat.runners.base import Access


def team(tmp_path: Path, **members: tuple[str, Access]) -> Team:
    """Members by name, each with the folder it works in and its access."""
    for folder, _ in members.values():
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    who = (
        Member(name, "ai", tmp_path / folder, agent="hi", access=access) for name, (folder, access) in members.items()
    )
    return Team("t", tuple(who), tmp_path, agents={"hi": AgentSpec("hi", ("true",))})


def routes(given: Team) -> tuple[Route, ...]:
    return tuple(
        Route("msg-1", "kailai", "msg-1", number, member.name, group=0)
        for number, member in enumerate(given.members, 1)
    )


def lines(given: Team) -> list[list[str]]:
    return [[route.target for route in line] for line in in_lines(given, routes(given))]


def test_readers_run_side_by_side_in_one_folder(tmp_path: Path) -> None:
    assert lines(team(tmp_path, a=("x", "read"), b=("x", "read"), c=("x", "edit"))) == [["a"], ["b"], ["c"]]


def test_two_that_may_write_in_one_folder_or_one_inside_the_other_stand_in_line(tmp_path: Path) -> None:
    given = team(tmp_path, a=("x", "edit"), b=("y", "edit"), c=("x/deep", "full"), d=(".", "read"))
    assert lines(given) == [["a", "c"], ["b"], ["d"]]


def test_one_folder_above_two_lines_joins_them(tmp_path: Path) -> None:
    given = team(tmp_path, a=("x", "edit"), b=("y", "edit"), c=(".", "edit"))
    assert lines(given) == [["a", "b", "c"]]


def test_a_link_to_the_folder_is_the_folder(tmp_path: Path) -> None:
    given = team(tmp_path, a=("x", "edit"), b=("y", "edit"))
    (tmp_path / "link").symlink_to(tmp_path / "x")
    linked = replace(given.members[1], cwd=tmp_path / "link")
    assert lines(replace(given, members=(given.members[0], linked))) == [["a", "b"]]


def test_all_speak_and_those_that_failed_are_told(tmp_path: Path) -> None:
    given = team(tmp_path, a=("x", "edit"), b=("x", "edit"), c=("y", "edit"))
    events: list[ConversationEvent] = []
    spoke: list[str] = []

    async def speak(route: Route) -> bool:
        spoke.append(f"{route.target} begins")
        await asyncio.sleep(0.01 if route.target != "c" else 0)
        spoke.append(f"{route.target} ends")
        return route.target != "b"

    assert asyncio.run(run_together(in_lines(given, routes(given)), speak, events.append, lambda _: True)) == (2,)
    assert spoke.index("a ends") < spoke.index("b begins")
    assert spoke.index("c ends") < spoke.index("a ends")
    assert events == [Warned("a and b may write in the same folder, so they speak one after the other")]


def test_who_waits_for_another_does_not_begin_once_nobody_may(tmp_path: Path) -> None:
    given = team(tmp_path, a=("x", "edit"), b=("x", "edit"), c=("x", "edit"), d=("y", "edit"))
    spoke: list[str] = []

    async def speak(route: Route) -> bool:
        spoke.append(route.target)
        return route.target != "b"

    def may_begin(_: Route) -> bool:
        return spoke[-1] != "b"

    assert asyncio.run(run_together(in_lines(given, routes(given)), speak, lambda _: None, may_begin)) == (2,)
    assert sorted(spoke) == ["a", "b", "d"]


@pytest.mark.parametrize(("jobs", "expected"), [(None, 3), (3, 3), (2, 2), (1, 1), (9, 3)])
def test_so_many_turns_run_at_once_as_there_are_jobs_and_one_of_each_member(
    tmp_path: Path, jobs: int | None, expected: int
) -> None:
    given = team(tmp_path, a=("x", "read"), b=("x", "read"), c=("x", "read"))
    twelve = tuple(Route("msg-1", "kailai", "msg-1", number, "abc"[number % 3], group=0) for number in range(12))
    running: list[str] = []
    most: list[int] = []
    order: list[int] = []

    async def speak(route: Route) -> bool:
        assert route.target not in running
        running.append(route.target)
        most.append(len(running))
        order.append(route.number)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running.remove(route.target)
        return True

    def warn(event: ConversationEvent) -> None:
        raise AssertionError(event)

    lines = in_lines(given, twelve)
    assert asyncio.run(run_together(lines, speak, warn, lambda _: True, jobs)) == ()
    assert max(most) == expected
    assert order == list(range(12))


def test_who_waits_for_a_job_does_not_begin_once_nobody_may(tmp_path: Path) -> None:
    given = team(tmp_path, a=("x", "read"), b=("x", "read"), c=("x", "read"))
    spoke: list[str] = []

    async def speak(route: Route) -> bool:
        spoke.append(route.target)
        await asyncio.sleep(0)
        return False

    failed = asyncio.run(
        run_together(in_lines(given, routes(given)), speak, lambda _: None, lambda _: len(spoke) < 2, jobs=1)
    )
    assert (spoke, failed) == (["a", "b"], (1, 2))


def test_several_turns_of_a_writer_are_no_collision(tmp_path: Path) -> None:
    given = team(tmp_path, a=("x", "edit"), b=("x", "read"), c=("x", "edit"))
    assert colliding(given, ["a", "a", "b", "a"]) == frozenset()
    assert colliding(given, ["a", "a", "b", "c"]) == {"a", "c"}


def test_an_error_of_one_stops_the_others_and_is_raised(tmp_path: Path) -> None:
    given = team(tmp_path, a=("x", "read"), b=("x", "read"))
    ended: list[str] = []

    async def speak(route: Route) -> bool:
        if route.target == "a":
            raise ValueError("a broke")
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(route.target)
        return True

    with pytest.raises(ValueError, match="a broke"):
        asyncio.run(run_together(in_lines(given, routes(given)), speak, lambda _: None, lambda _: True))
    assert ended == ["b"]
