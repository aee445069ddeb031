"""`teamchat run mapreduce` over real processes: who runs at the same time, where, and again after an undo."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from tests.cli.helpers import objects, queue, said, select
from tests.cli.test_worktrees import folder_of, own_files
from tests.cli.test_worktrees import tree as tree  # noqa: PLC0414 (a fixture)
from tests.core.checkpoint.worktree import WorkTree
from tests.program import Result, ended, run_here, start
from tests.runners.processes import eventually

WORKERS = ("w1", "w2", "w3", "w4")
AGENT = """\
while IFS= read -r line; do :; done
here="{here}"
echo "begin $1 $line" >> "$here/ran"
case "$1 $line" in
"lead "*) if [ -e "$here/planned" ]; then echo merged; else touch "$here/planned"; cat "$here/plan"; fi ;;
*) {work}
echo "$1 did $line" ;;
esac
echo "end $1 $line" >> "$here/ran"
"""
TOGETHER = 'until [ $(grep -c "^begin w" "$here/ran") -ge {number} ]; do sleep 0.01; done'


def subtasks(number: int) -> list[str]:
    return [f"subtask-{index}" for index in range(1, number + 1)]


def crew(
    here: Path, number: int, work: str = ":", workers: tuple[str, ...] = WORKERS, *, top: Path | None = None
) -> Path:
    """A team of a lead that plans and merges, and of workers that do some `work` in a shell.

    In the work tree `top` the workers may write. Returns the file to which all log.
    """
    (here / "plan").write_text(json.dumps(subtasks(number)))
    script = here / "agent.sh"
    script.write_text(AGENT.format(here=here, work=work))
    parts = ["[team.limits]\nturns = 50", '[[members]]\nname = "kailai"\ntype = "human"']
    for name in ("lead", *workers):
        access = "edit" if top and name != "lead" else "read"
        parts.append(f'[[members]]\nname = "{name}"\nagent = "{name}"\naccess = "{access}"')
        parts.append(f'[agents.{name}]\ncommand = ["/bin/sh", "{script}", "{name}"]')
    file = (top or Path.cwd()) / "teamchat.toml"
    file.write_text("\n".join(parts))
    trust_store().grant(load(file))
    return here / "ran"


def ran_by(log: Path) -> list[tuple[str, str]]:
    """Who began with what, in order."""
    lines = (line.split() for line in log.read_text().splitlines())
    return [(name, rest[0]) for what, name, *rest in lines if what == "begin"]


def most_at_once(log: Path) -> int:
    running: Counter[str] = Counter()
    most = 0
    for line in log.read_text().splitlines():
        what, name, *_ = line.split()
        if name != "lead":
            running[name] += 1 if what == "begin" else -1
            most = max(most, running.total())
    return most


def report(ran: Result) -> dict[str, object]:
    process = objects(ran)[-1]["process"]
    assert isinstance(process, dict)
    return process


@pytest.mark.parametrize(("jobs", "expected"), [((), 4), (("--jobs", "2"), 2)])
def test_workers_run_at_the_same_time_but_no_more_than_the_jobs(
    tmp_path: Path, jobs: tuple[str, ...], expected: int
) -> None:
    log = crew(tmp_path, 12, TOGETHER.format(number=expected))
    ran = run_here("run", "mapreduce", *jobs, "--quiet", "Test it")

    assert (ran.code, ran.out) == (0, "merged\n")
    assert most_at_once(log) == expected
    assert sorted(ran_by(log)[1:-1]) == sorted((WORKERS[index % 4], task) for index, task in enumerate(subtasks(12)))
    assert [text for name, text in said() if name in WORKERS] == [
        f"{WORKERS[index % 4]} did {task}" for index, task in enumerate(subtasks(12))
    ]


@pytest.mark.parametrize("jobs", [(), ("--jobs", "2")])
def test_a_recorded_map_reduce_replays_the_same(tmp_path: Path, jobs: tuple[str, ...]) -> None:
    takes = "sleep 0.$((${line#subtask-} * 37 % 19))"  # so that who begins next depends on who ends first
    crew(tmp_path, 9, f'{takes}; [ "$1" != w1 ] || exit 1')
    file = tmp_path / "run.cassette"
    assert run_here("run", "mapreduce", *jobs, "--record", str(file), "Test it").code == 0
    for _ in range(3):
        ran = run_here("replay", str(file), "--speed", "0", "--verify")
        assert ran.code == 0, ran.err


def test_ctrl_c_gives_nothing_to_others_and_is_recorded_with_the_rest(tmp_path: Path) -> None:
    waits = 'case "$line" in subtask-[56]) [ -e "$here/go" ] || { touch "$here/$line"; sleep 600; } ;; esac'
    log, file = crew(tmp_path, 12, waits), tmp_path / "run.cassette"
    process = start("run", "mapreduce", "--record", file, "Test it")
    assert eventually((tmp_path / "subtask-5").exists)
    assert eventually((tmp_path / "subtask-6").exists)
    answered = "SELECT number FROM turns WHERE member IN ('w3', 'w4') AND status = 'answered'"
    assert eventually(lambda: len(select(answered)) == 6)
    os.kill(process.pid, signal.SIGINT)
    stopped = ended(process)

    assert stopped.code == 130, stopped.err
    assert "does it" not in stopped.err
    before = ran_by(log)
    assert ("w1", "subtask-9") not in before
    replayed = run_here("replay", str(file), "--speed", "0", "--verify")
    assert replayed.code == 0, replayed.err
    (tmp_path / "go").touch()
    assert run_here("resume", "--record", file, "--quiet").code == 0
    assert sorted(task for _, task in ran_by(log)[len(before) : -1]) == [
        f"subtask-{number}" for number in (10, 5, 6, 9)
    ]
    replayed = run_here("replay", str(file), "--speed", "0", "--verify")
    assert replayed.code == 0, replayed.err


def test_a_subtask_that_all_fail_at_ends_with_6_and_can_be_skipped(tmp_path: Path) -> None:
    log = crew(tmp_path, 5, '[ "$line" != subtask-2 ] || exit 1')
    ran = run_here("run", "mapreduce", "--quiet", "Test it")

    assert (ran.code, ran.out) == (6, "")
    assert [name for name, task in ran_by(log) if task == "subtask-2"] == ["w2", "w3", "w4", "w1"]
    assert queue() == [("w1", "held")]
    skipped = run_here("resume", "--skip", "--json")
    assert skipped.code == 0
    assert [task["status"] for task in report(skipped)["subtasks"]] == ["done", "skipped", "done", "done", "done"]  # type: ignore[attr-defined]
    assert ran_by(log)[-1][0] == "lead"
    assert len(ran_by(log)) == 1 + 4 + 4 + 1


def test_after_an_undo_of_the_result_only_the_reducer_runs_again(tmp_path: Path) -> None:
    log = crew(tmp_path, 4)
    run_here("run", "mapreduce", "--quiet", "Test it")
    before = ran_by(log)

    assert run_here("undo", "--yes").code == 0
    assert queue() == [("lead", "held")]
    assert run_here("resume", "--quiet").code == 0
    assert [name for name, _ in ran_by(log)[len(before) :]] == ["lead"]
    assert said()[-1] == ("lead", "merged")


def test_after_an_undo_of_a_workers_turn_the_workers_run_again_and_the_planner_does_not(tmp_path: Path) -> None:
    log = crew(tmp_path, 4)
    run_here("run", "mapreduce", "--quiet", "Test it")
    before = ran_by(log)

    assert run_here("undo", "3", "--yes").code == 0
    ran = run_here("resume", "--json")
    assert ran.code == 0
    again = [name for name, _ in ran_by(log)[len(before) :]]
    assert sorted(again) == sorted([*WORKERS, "lead"])
    assert [task["status"] for task in report(ran)["subtasks"]] == ["done"] * 4  # type: ignore[attr-defined]
    assert [name for name, _ in said()] == ["kailai", "lead", *WORKERS, "lead"]


WRITES = 'echo "$line by $1" >> done.txt; pwd >> "$here/places-$1"'


def places(log: Path, name: str) -> set[str]:
    return set((log.parent / f"places-{name}").read_text().split())


def test_workers_that_write_have_a_worktree_each_for_all_their_subtasks(tree: WorkTree, tmp_path: Path) -> None:
    log = crew(tmp_path, 5, WRITES, ("w1", "w2"), top=tree.top)
    files = own_files(tree)
    ran = run_here("run", "mapreduce", "--json", "Change it")

    assert ran.code == 0, ran.err
    assert own_files(tree) == files
    for name in ("w1", "w2"):
        assert places(log, name) == {str(folder_of(tree, name))}
    assert (folder_of(tree, "w1") / "done.txt").read_text().split("\n")[:3] == [
        "subtask-1 by w1",
        "subtask-3 by w1",
        "subtask-5 by w1",
    ]
    [compared] = [line for line in objects(ran) if line["type"] == "group_compared"]
    assert [difference["member"] for difference in compared["members"]] == ["w1", "w2"]  # type: ignore[attr-defined]
    *_, told, end = objects(ran)  # the merges are told at the end, and only there
    assert (told["type"], told["text"], end["type"]) == (
        "warning",
        "to be merged: teamchat merge w1, teamchat merge w2",
        "result",
    )
    assert ran.out.count("teamchat merge") == 2
    assert "1. → w1: subtask-1\n2. → w2: subtask-2\n" in run_here("log").out
    written = run_here("export").out
    assert "> 1. → w1: subtask-1\n> 2. → w2: subtask-2\n" in written
    assert "\nTo be merged:\n\n    teamchat merge w1\n    teamchat merge w2\n" in written


def test_a_worker_that_writes_alone_works_in_the_users_files(tree: WorkTree, tmp_path: Path) -> None:
    log = crew(tmp_path, 3, WRITES, ("w1",), top=tree.top)
    ran = run_here("run", "mapreduce", "--quiet", "Change it")

    assert ran.code == 0, ran.err
    assert places(log, "w1") == {str(tree.top)}
    assert (tree.top / "done.txt").read_text().count("by w1") == 3


def test_who_takes_over_a_subtask_works_in_its_own_worktree(tree: WorkTree, tmp_path: Path) -> None:
    log = crew(tmp_path, 2, f'[ "$1" != w1 ] || exit 1; {WRITES}', ("w1", "w2"), top=tree.top)
    ran = run_here("run", "mapreduce", "--quiet", "Change it")

    assert ran.code == 0, ran.err
    assert places(log, "w2") == {str(folder_of(tree, "w2"))}
    assert not (tree.top / "done.txt").exists()


def test_who_does_the_last_subtask_after_a_resume_works_in_its_worktree(tree: WorkTree, tmp_path: Path) -> None:
    fails = '[ "$line" != subtask-3 ] || [ -e "$here/works" ] || exit 1'
    log = crew(tmp_path, 3, f"{fails}; {WRITES}", ("w1", "w2"), top=tree.top)
    assert run_here("run", "mapreduce", "--quiet", "Change it").code == 6
    (log.parent / "works").touch()

    assert run_here("resume", "--quiet").code == 0
    assert places(log, "w2") == {str(folder_of(tree, "w2"))}
    assert not (tree.top / "done.txt").exists()
