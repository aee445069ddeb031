"""What a member changes on a host: its worktree goes there as git objects, and comes back to be merged."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.program import ended
from tests.workers.hosts import Host, Lab, events, go, until, waits

WRITER = 'name = "max"\nagent = "writer"\nhost = "any"\naccess = "edit"'
CHANGES = "echo more >> read-me.txt; rm mine.txt; mkdir -p d; echo new > d/e"


def writing(lab: Lab, script: str, name: str = "alpha", *options: str) -> Host:
    host = lab.host(name)
    host.offers({"writer": [host.agent(script.replace("{waits}", waits(host)))]}, access="edit")
    host.worker(*options).ready()
    return host


def git(folder: Path, *args: str) -> str:
    return subprocess.run(("git", *args), cwd=folder, check=True, capture_output=True, text=True).stdout


def send_and_be_killed(lab: Lab, host: Host) -> None:
    """Have max work on the host, and end home while it does."""
    lab.team(WRITER)
    sent = lab.start("send", "[NEXT:max] Change it")
    until(lambda: host.starts == 1)
    sent.kill()
    ended(sent)


def worktree_of(host: Host, place: str = "max") -> Path:
    [folder] = (host.folder / "state" / "worker" / host.name / "worktrees").glob(f"*/{place}/clone")
    return folder


def test_what_a_member_changes_on_a_host_comes_back_and_waits_for_merge(lab: Lab) -> None:
    (lab.project / "mine.txt").write_text("not committed\n")
    (lab.project / "run.sh").write_text("#!/bin/sh\n")
    (lab.project / "run.sh").chmod(0o755)
    host = writing(lab, f"cat mine.txt read-me.txt; ls -l run.sh | cut -c4; {CHANGES}")
    lab.team(WRITER)
    sent = lab.cli("send", "[NEXT:max] Change it")

    assert (sent.code, sent.out) == (0, "max:\nnot committed\nhello\nx\n\n"), sent.err
    assert "not merged: 3 files in max's worktree" in sent.err
    assert (lab.project / "mine.txt").exists()
    assert "changed   d/e  +1 \u22120  new" in lab.cli("show", "1").out
    assert git(host.project, "status", "--porcelain") == ""
    assert lab.cli("merge", "max").code == 0
    assert (lab.project / "read-me.txt").read_text() == "hello\nmore\n"
    assert not (lab.project / "mine.txt").exists()
    assert (lab.project / "d" / "e").read_text() == "new\n"
    undone = lab.cli("undo", "1", "--yes")
    assert undone.code == 0, undone.err
    assert "merged from max's worktree" in undone.err + undone.out


def test_turns_go_on_with_what_is_there_and_git_ignores(lab: Lab) -> None:
    (lab.project / ".gitignore").write_text("build/\n")
    writing(lab, "mkdir -p build; date >> build/log; wc -l < build/log; cat read-me.txt; echo more >> read-me.txt")
    lab.team(WRITER)
    assert lab.cli("send", "[NEXT:max] One").out == "max:\n1\nhello\n\n"
    assert lab.cli("merge", "max").code == 0
    (lab.project / "read-me.txt").write_text("changed here\n")
    second = lab.cli("send", "[NEXT:max] Two")
    assert second.out == "max:\n2\nchanged here\n\n", second.err
    assert lab.cli("merge", "max").code == 0
    assert (lab.project / "read-me.txt").read_text() == "changed here\nmore\n"


def test_a_conflict_is_named_and_nothing_is_written(lab: Lab) -> None:
    writing(lab, "echo theirs > read-me.txt; echo done")
    lab.team(WRITER)
    assert lab.cli("send", "[NEXT:max] Change it").code == 0
    (lab.project / "read-me.txt").write_text("ours\n")
    merged = lab.cli("merge", "max")
    assert merged.code == 1
    assert "conflict: read-me.txt (the same lines)" in merged.err
    assert "try: teamchat merge --theirs max" in merged.err
    assert (lab.project / "read-me.txt").read_text() == "ours\n"


def test_more_than_travels_is_refused_by_name(lab: Lab) -> None:
    (lab.project / "large.bin").write_bytes(os.urandom(9 << 20))
    host = writing(lab, "echo done")
    lab.team(WRITER)
    sent = lab.cli("send", "[NEXT:max] Change it")
    assert sent.code == 11, sent.err
    assert "over 8 MB; the largest: large.bin (9.0 MB)" in sent.err
    assert host.starts == 0


@pytest.mark.long
def test_what_is_too_large_to_come_back_stays_on_the_host_and_is_named(lab: Lab) -> None:
    host = writing(lab, "head -c 9437184 /dev/urandom > large.bin; echo done")
    lab.team(WRITER)
    sent = lab.cli("send", "[NEXT:max] Change it")
    assert sent.code == 1, sent.err
    assert "failed: max has changed files that stay on alpha: " in sent.err
    assert f"large.bin (9.0 MB); it stays in {worktree_of(host)}" in sent.err
    again = lab.cli("resume")
    assert again.code == 11, again.err
    assert "has what an earlier turn made and could not send" in again.err
    assert (worktree_of(host) / "large.bin").exists()
    shutil.rmtree(worktree_of(host))
    host.agent("echo done")
    assert lab.cli("resume").code == 0


def test_new_files_that_are_private_come_back_and_what_does_not_is_named(lab: Lab) -> None:
    script = "umask 077; echo key > app.pem; echo a > .env; git init -q inner; touch inner/x; echo done"
    writing(lab, script)
    lab.team(WRITER)
    sent = lab.cli("send", "[NEXT:max] Change it")
    assert sent.code == 0, sent.err
    assert "stays on alpha: inner (repository)" in sent.err
    assert lab.cli("merge", "max").code == 0
    assert (lab.project / "app.pem").read_text() == "key\n"
    assert (lab.project / ".env").read_text() == "a\n"


def test_what_comes_back_to_files_that_were_changed_meanwhile_is_kept(lab: Lab) -> None:
    host = writing(lab, "echo begun; {waits}; echo theirs > theirs.txt; echo done")
    lab.team(WRITER)
    sent = lab.start("send", "[NEXT:max] Change it")
    until(lambda: host.starts == 1)
    [own] = (lab.folder / "state").glob("workspaces/*/worktrees/1/max/project")
    (own / "mine.txt").write_text("mine\n")
    go(host)
    done = ended(sent)
    assert done.code == 1, done.err
    assert "mine.txt was changed meanwhile; it is kept" in done.err
    assert not (own / "theirs.txt").exists()
    [command] = [
        line.partition("try: ")[2].partition(" && ")[0] for line in done.err.splitlines() if "try: git " in line
    ]
    shown = subprocess.run(("sh", "-c", command), cwd=own, check=True, capture_output=True, text=True).stdout
    assert "+theirs" in shown


def test_nothing_is_removed_while_a_turn_goes_on_at_a_host(lab: Lab) -> None:
    host = writing(lab, "echo begun; {waits}; echo theirs > theirs.txt; echo done")
    send_and_be_killed(lab, host)
    for command in (("worktrees", "remove", "--all"), ("sessions", "delete", "--yes", "s1")):
        refused = lab.cli(*command)
        assert refused.code != 0
        assert "goes on at alpha" in refused.err
    go(host)
    assert lab.cli("resume").code == 0
    assert lab.cli("merge", "max").code == 0
    assert (lab.project / "theirs.txt").exists()


@pytest.mark.long
def test_a_host_that_has_lost_what_it_had_is_sent_all_of_it_again(lab: Lab) -> None:
    host = writing(lab, "echo more >> read-me.txt; echo done")
    lab.team(WRITER)
    assert lab.cli("send", "[NEXT:max] One").code == 0
    shutil.rmtree(host.folder / "state" / "worker" / host.name / "checkpoints")
    lost = lab.cli("send", "[NEXT:max] Two")
    assert lost.code == 11, lost.err
    assert "no longer here" in lost.err
    again = lab.cli("resume")
    assert again.code == 0, again.err


def test_the_files_of_a_turn_that_went_on_without_home_come_back_with_resume(lab: Lab) -> None:
    host = writing(lab, "echo begun; {waits}; echo more >> read-me.txt; echo done")
    send_and_be_killed(lab, host)
    go(host)
    resumed = lab.cli("resume")
    assert resumed.code == 0, resumed.err
    assert host.starts == 1
    assert "changed   read-me.txt  +1 \u22120" in lab.cli("show", "1").out
    assert lab.cli("merge", "max").code == 0
    assert (lab.project / "read-me.txt").read_text() == "hello\nmore\n"


def test_a_reader_with_a_worktree_sees_the_files_of_home(lab: Lab) -> None:
    (lab.project / "read-me.txt").write_text("changed here\n")
    host = lab.host("alpha")
    host.offers({"writer": [host.agent("cat read-me.txt")]}).worker().ready()
    lab.team('name = "max"\nagent = "writer"\nhost = "any"\nworkspace = "worktree"')
    assert lab.cli("send", "[NEXT:max] Look").out == "max:\nchanged here\n\n"


@pytest.mark.long
@pytest.mark.parametrize("jobs", [2])
def test_the_places_of_a_worker_are_on_all_hosts_and_merge_all_brings_them_in(lab: Lab, jobs: int) -> None:
    plan = "[" + ", ".join(f'"write f{number}"' for number in range(1, 9)) + "]"
    number = "sed -n 's/.*write f\\([0-9]*\\).*/\\1/p' {prompt} | head -1"
    works = f'n=$({number}); sleep 0.3; echo "$n" > "f$n"; echo "wrote $n"'
    script = f"""case "$(cat {{prompt}})" in
*"a JSON list of"*) echo '{plan}' ;;
*"of a larger task"*) {works} ;;
*) echo merged ;;
esac"""
    hosts = []
    for name in ("alpha", "beta"):
        host = lab.host(name)
        own = host.folder / "prompt.$$"
        agent = host.folder / "agent"
        agent.write_text(f"#!/bin/sh\ncat > {own}\n{script.replace('{prompt}', str(own))}\n")
        agent.chmod(0o755)
        host.offers({"writer": [agent]}, access="edit").worker("--jobs", str(jobs)).ready()
        hosts.append(host)
    lab.team('name = "lead"\nagent = "writer"\nhost = "any"', WRITER)
    ran = lab.cli("run", "mapreduce", "--planner", "lead", "--reducer", "lead", "--jobs", "4", "--json", "Write them")

    assert ran.code == 0, ran.err
    finished = [line for line in events(ran, "turn_finished") if line["place"]]
    assert {line["place"] for line in finished} == {f"max#{number}" for number in range(1, 9)}
    assert {line["host"] for line in finished} == {"alpha", "beta"}
    merged = lab.cli("merge", "--all")
    assert merged.code == 0, merged.err
    assert [(lab.project / f"f{number}").read_text() for number in range(1, 9)] == [f"{n}\n" for n in range(1, 9)]


@pytest.mark.long
def test_a_limit_that_one_host_meets_does_not_eat_the_plan(lab: Lab) -> None:
    plan = "[" + ", ".join(f'"part {number}"' for number in range(1, 25)) + "]"
    asks = f"""case "$(cat {{prompt}})" in *"a JSON list of"*) echo '{plan}' ;; *) sleep 0.2; echo done ;; esac"""
    limited = "sleep 0.2; echo 'API Error: 429 Too Many Requests' >&2; exit 1"
    hosts = {}
    for name in ("alpha", "beta"):
        host = hosts[name] = lab.host(name)
        own = host.folder / "prompt.$$"
        agent = host.folder / "agent"
        script = asks.replace("{prompt}", str(own)) if name == "alpha" else limited
        agent.write_text(f"#!/bin/sh\ncat > {own}; echo $$ >> {host.folder}/starts\n{script}\n")
        agent.chmod(0o755)
        host.offers({"writer": [agent]}).worker("--jobs", "2").ready()
    lab.team(
        'name = "lead"\nagent = "writer"\nhost = "alpha"',
        'name = "max"\nagent = "writer"\nhost = "any"',
        more="[team.limits]\nturns = 100",
    )
    run = ("run", "mapreduce", "--planner", "lead", "--reducer", "lead", "--workers", "max", "--jobs", "4", "--json")
    ran = lab.cli(*run, "Look")

    assert hosts["beta"].starts <= 2
    process = events(ran, "result")[0]["process"]
    assert isinstance(process, dict)
    left = [task for task in process["subtasks"] if task["status"] not in ("done", "answered")]
    assert (ran.code, len(left)) == (6, hosts["beta"].starts), ran.err
    resumed = lab.cli("resume")
    assert resumed.code == 0, resumed.err
    assert hosts["beta"].starts <= 2


def test_a_member_works_in_a_folder_that_only_home_has(lab: Lab) -> None:
    (lab.project / "new").mkdir()
    (lab.project / "new" / "one.txt").write_text("one\n")
    writing(lab, "cat one.txt; echo two > two.txt")
    lab.team(f'{WRITER}\ncwd = "new"')
    sent = lab.cli("send", "[NEXT:max] Change it")
    assert (sent.code, sent.out) == (0, "max:\none\n\n"), sent.err
    assert lab.cli("merge", "max").code == 0
    assert (lab.project / "new" / "two.txt").read_text() == "two\n"
