"""A worker with several subtasks at the same time: places, their worktrees, what fails in one, and `merge --all`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.cli.helpers import objects, refused
from tests.cli.test_merge import standing
from tests.cli.test_run_best import best, result
from tests.cli.test_run_best import team as team_of_best
from tests.cli.test_run_mapreduce import crew, places, ran_by, report
from tests.cli.test_worktrees import folder_of, own_files
from tests.cli.test_worktrees import tree as tree  # noqa: PLC0414 (a fixture)
from tests.core.checkpoint.worktree import WorkTree
from tests.program import ended, run_here, start
from tests.runners.processes import eventually

SARAH = ("sarah",)
RUN = ("run", "mapreduce", "--jobs", "4")
FOUR_AT_ONCE = 'until [ $(grep -c "^begin sarah" "$here/ran") -ge 4 ]; do sleep 0.01; done'
OWN_FILE = 'echo "$line" > "$line.txt"; pwd >> "$here/places-sarah"'
SAME_LINE = 'case "$line" in subtask-[23]) echo "$line" > app.txt ;; *) echo "$line" > "$line.txt" ;; esac'


def listed() -> list[str]:
    return [str(line["member"]) for line in objects(run_here("worktrees", "--json"))]


def test_one_worker_does_as_many_subtasks_at_the_same_time_as_there_are_jobs(tmp_path: Path) -> None:
    log = crew(tmp_path, 6, FOUR_AT_ONCE, SARAH)
    ran = run_here(*RUN, "--json", "Test it")

    assert ran.code == 0, ran.err
    assert len(ran_by(log)) == 1 + 6 + 1
    told = {str(line["place"]) for line in objects(ran) if line["type"] == "turn_finished" and line["part"]}
    assert told == {"None", *(f"sarah#{number}" for number in range(1, 7))}
    assert [line.split(" · ")[1] for line in run_here("show", "3").out.splitlines()[:1]] == ["sarah#2 (sarah)"]


def test_without_jobs_a_worker_does_one_subtask_after_the_other(tmp_path: Path) -> None:
    log = crew(tmp_path, 3, ":", SARAH)
    ran = run_here("run", "mapreduce", "--json", "Test it")

    assert ran.code == 0, ran.err
    begun = [line.split()[0] for line in log.read_text().splitlines()]
    assert begun == ["begin", "end"] * 5
    assert all(line["place"] is None for line in objects(ran) if line["type"] == "turn_started")


def test_each_subtask_has_a_worktree_and_merge_all_brings_them_in(tree: WorkTree, tmp_path: Path) -> None:
    log = crew(tmp_path, 8, f"{FOUR_AT_ONCE}; {OWN_FILE}", SARAH, top=tree.top)
    files, before = own_files(tree), standing(tree)
    ran = run_here(*RUN, "--json", "Change it")

    assert ran.code == 0, ran.err
    names = [f"sarah#{number}" for number in range(1, 9)]
    assert places(log, "sarah") == {str(folder_of(tree, name)) for name in names}
    assert (own_files(tree), listed()) == (files, names)
    assert [line["text"] for line in objects(ran) if line["type"] == "warning"][-1] == (
        "to be merged: teamchat merge --all"
    )

    merged = run_here("merge", "--all", "--json")
    assert merged.code == 0, merged.err
    assert [line["member"] for line in objects(merged)] == names
    assert [(tree.top / f"subtask-{number}.txt").read_text() for number in (1, 8)] == ["subtask-1\n", "subtask-8\n"]
    assert standing(tree) == before
    assert run_here("merge", "--all").err == "· nothing is to be merged in session s1\n"
    assert run_here("worktrees", "remove", "--all").code == 0
    assert listed() == []


def test_what_conflicts_is_left_and_named_and_the_rest_is_merged(tree: WorkTree, tmp_path: Path) -> None:
    crew(tmp_path, 4, SAME_LINE, SARAH, top=tree.top)
    assert run_here(*RUN, "--quiet", "Change it").code == 0
    ran = run_here("merge", "--all")

    assert ran.code == 1
    assert (tree.top / "app.txt").read_text() == "subtask-2\n"
    assert (tree.top / "subtask-4.txt").exists()
    assert "· conflict: app.txt (the same lines)\n" in ran.err
    assert "· try: teamchat merge --theirs 'sarah#3'\n" in ran.err
    assert ran.err.endswith("· 3 worktrees merged, 1 not\n")
    assert run_here("merge", "--theirs", "sarah#3").code == 0
    assert (tree.top / "app.txt").read_text() == "subtask-3\n"
    assert run_here("merge", "--undo", "sarah#3").code == 0
    assert (tree.top / "app.txt").read_text() == "subtask-2\n"


@pytest.mark.long
def test_a_second_try_begins_anew_and_what_the_first_one_changed_is_never_merged(
    tree: WorkTree, tmp_path: Path
) -> None:
    fails = '[ "$line" != subtask-2 ] || [ -e "$here/works" ] || { echo bad > bad.txt; exit 1; }'
    crew(tmp_path, 3, f"{fails}; ls > seen-$line; {OWN_FILE}", SARAH, top=tree.top)
    assert run_here(*RUN, "--quiet", "Change it").code == 6
    (tmp_path / "works").touch()
    assert run_here("resume", "--quiet").code == 0

    assert listed() == ["sarah#1", "sarah#2", "sarah#2.2", "sarah#3"]
    assert "bad.txt" not in (folder_of(tree, "sarah#2.2") / "seen-subtask-2").read_text()
    assert "not to be merged: it has not done its part" in run_here("worktrees").out
    assert refused(run_here("merge", "sarah#2")) == "sarah#2 has not done its part, so what it changed is not merged"
    ran = run_here("merge", "--all")
    assert (ran.code, (tree.top / "bad.txt").exists()) == (0, False)
    assert (tree.top / "subtask-2.txt").read_text() == "subtask-2\n"
    assert ran.err.endswith("· 3 worktrees merged\n")
    kept = run_here("worktrees", "remove", "sarah#2")
    assert kept.code == 2
    assert "teamchat worktrees remove --force 'sarah#2'" in kept.err
    assert run_here("worktrees", "remove", "--force", "sarah#2").code == 0
    assert run_here("merge", "--all").code == 0


@pytest.mark.parametrize("how", ["shared", "no repository"])
def test_who_may_write_where_there_are_no_worktrees_does_one_after_the_other(
    world: Path, tmp_path: Path, request: pytest.FixtureRequest, how: str
) -> None:
    top = request.getfixturevalue("tree").top if how == "shared" else world
    log = crew(tmp_path, 3, 'echo "$line" >> done.txt', SARAH, top=top)
    if how == "shared":
        team = top / "teamchat.toml"
        team.write_text(team.read_text().replace('access = "edit"', 'access = "edit"\nworkspace = "shared"'))
    ran = run_here(*RUN, "--trust", "--quiet", "Change it")

    assert ran.code == 0, ran.err
    assert [line.split()[0] for line in log.read_text().splitlines()] == ["begin", "end"] * 5
    assert (top / "done.txt").read_text() == "subtask-1\nsubtask-2\nsubtask-3\n"


@pytest.mark.parametrize("writes", [False, True])
def test_a_recording_of_several_at_a_time_replays_the_same(tree: WorkTree, tmp_path: Path, *, writes: bool) -> None:
    takes = "sleep 0.$((${line#subtask-} * 37 % 19))"  # so that who begins next depends on who ends first
    fails = '[ "$line" != subtask-5 ] || [ -e "$here/failed" ] || { touch "$here/failed"; exit 1; }'
    crew(tmp_path, 9, f"{takes}; {fails}; {OWN_FILE if writes else ':'}", SARAH, top=tree.top if writes else None)
    file = tmp_path / "run.cassette"
    assert run_here(*RUN, "--record", str(file), "Test it").code == 6
    assert run_here("resume", "--record", str(file)).code == 0
    for _ in range(3):
        ran = run_here("replay", str(file), "--speed", "0", "--verify")
        assert ran.code == 0, ran.err


@pytest.mark.long
def test_a_killed_run_goes_on_and_nothing_that_was_done_runs_again(tree: WorkTree, tmp_path: Path) -> None:
    waits = 'case "$line" in subtask-[5-8]) [ -e "$here/go" ] || { echo cut > cut.txt; sleep 600; } ;; esac'
    log = crew(tmp_path, 10, f"{waits}; {OWN_FILE}", SARAH, top=tree.top)
    process = start(*RUN, "Change it")
    cut = [folder_of(tree, f"sarah#{number}") / "cut.txt" for number in range(5, 9)]
    assert eventually(lambda: all(file.exists() for file in cut))
    os.kill(process.pid, signal.SIGKILL)
    ended(process)
    early = run_here("merge", "--all")
    assert early.code == 1
    assert early.err.count("has not done its part, so what it changed is not merged") == 4
    (tmp_path / "go").touch()
    assert run_here("resume", "--quiet").code == 0

    tasks = [task for name, task in ran_by(log) if name == "sarah"]
    assert {task: tasks.count(task) for task in tasks} == {
        f"subtask-{number}": 2 if number in range(5, 9) else 1 for number in range(1, 11)
    }
    assert run_here("merge", "--all").code == 0
    assert sorted(file.name for file in tree.top.glob("subtask-*")) == sorted(f"{task}.txt" for task in set(tasks))
    assert not (tree.top / "cut.txt").exists()


def test_an_undo_takes_back_what_the_places_changed(tree: WorkTree, tmp_path: Path) -> None:
    crew(tmp_path, 3, OWN_FILE, SARAH, top=tree.top)
    assert run_here(*RUN, "--quiet", "Change it").code == 0
    assert run_here("undo", "2", "--yes").code == 0
    assert run_here("merge", "--all").err == "· nothing is to be merged in session s1\n"

    ran = run_here("resume", "--json")
    assert [task["status"] for task in report(ran)["subtasks"]] == ["done"] * 3  # type: ignore[attr-defined]
    assert run_here("merge", "--all").code == 0
    assert len([*tree.top.glob("subtask-*")]) == 3


@pytest.mark.long
def test_what_was_merged_before_its_turn_was_undone_stays_merged(tree: WorkTree, tmp_path: Path) -> None:
    crew(tmp_path, 3, OWN_FILE, SARAH, top=tree.top)
    assert run_here(*RUN, "--quiet", "Change it").code == 0
    assert run_here("merge", "--all").code == 0
    assert run_here("undo", "2", "--yes").code == 0
    assert run_here("resume", "--quiet").code == 0
    assert run_here("merge", "--all").code == 0
    assert len([*tree.top.glob("subtask-*")]) == 3
    assert refused(run_here("merge", "sarah#1")) == "sarah#1 was undone, so what it changed is not merged"
    assert run_here("merge", "--undo", "sarah#1").code == 0


def test_the_best_of_one_member_several_times(tree: WorkTree) -> None:
    counted = 'n=$(ls {prompts} | grep -c "^max"); echo "try $n" > try.txt; echo "Done $n."'
    judge = """echo '{"winner": "B", "reasons": "It is the shortest."}'"""
    team_of_best(tree.top, {"max": counted.replace("{prompts}", str(tree.top / "prompts")), "kim": judge})
    ran = run_here("run", "best", "--members", "max,max,max", "--judge", "kim", "--json", "Make it faster")

    assert ran.code == 0, ran.err
    found = best(ran)
    candidates = [candidate["member"] for candidate in found["candidates"]]  # type: ignore[attr-defined]
    assert candidates == ["max#1", "max#2", "max#3"]
    winner = found["winner"]
    assert winner in candidates
    assert result(ran)["text"] == f"{winner}: It is the shortest."
    assert listed() == candidates
    assert run_here("merge", "--all").err == "· nothing is to be merged in session s1\n"
    assert [line for line in run_here("merge").err.splitlines() if "--all" in line] == []
    assert run_here("merge", str(winner)).code == 0
    assert (tree.top / "try.txt").read_bytes() == (folder_of(tree, str(winner)) / "try.txt").read_bytes()


def test_what_several_at_a_time_may_need_is_said_before_they_begin(tmp_path: Path) -> None:
    crew(tmp_path, 2, ":", SARAH)
    ran = run_here(*RUN, "Test it")
    assert ran.err.splitlines()[1] == (
        "· a plan of 47 subtasks takes up to 50 turns, and limits.turns is 50; "
        "4 run at a time, so as many may go over a limit of tokens, cost or minutes"
    )
