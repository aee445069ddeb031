"""`teamchat undo`, `redo` and `retry`: conversation and files together."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.helpers import notes, objects, refused
from tests.core.checkpoint.worktree import WorkTree, all_refs, remove_checkpoints
from tests.program import run_here
from tests.scripted_team import crew
from tests.shell_team import repository, shell

WORK = "rm -r tests; sed -i s/a/A/ app.py; printf '\\000\\377' > b.bin; chmod +x run.sh; ln -s app.py link"


@pytest.fixture
def tree(tmp_path: Path) -> WorkTree:
    return repository(tmp_path / "unused")


def log() -> list[object]:
    return [message["text"] for message in objects(run_here("log", "--json"))]


def test_files_and_words_go_and_come_again(tree: WorkTree) -> None:
    shell(max=WORK)
    before = tree.files()
    assert run_here("send", "Go").code == 0
    after = tree.files()
    ran = run_here("undo", "--yes")
    assert ran.code == 0
    assert ran.out == (
        "undoes msg-2 max: Done\n"
        "undoes app.py  +1 −1\n"
        "undoes b.bin  new\n"
        "undoes link  +1 −0  new\n"
        "undoes run.sh  +0 −0  x bit\n"
        "undoes tests/one.py  +0 −1  deleted\n"
        "undoes tests/two.py  +0 −1  deleted\n"
        "then on hold: max, called by kailai in msg-1\n"
    )
    assert ran.err == notes(
        "turn 1 is undone: 1 message, 6 files; teamchat redo restores it",
        "on hold: max; teamchat resume runs what is on hold, teamchat resume --drop drops it",
    )
    assert (tree.files(), log()) == (before, ["Go"])
    again = run_here("redo", "--yes")
    assert [line for line in again.out.splitlines() if "b.bin" in line or "/" in line or "run.sh" in line] == [
        "redoes b.bin  new",
        "redoes run.sh  +0 −0  x bit",
        "redoes tests/one.py  +0 −1  deleted",
        "redoes tests/two.py  +0 −1  deleted",
    ]
    assert again.err == notes("the undo of turn 1 is redone: the messages, 6 files")
    assert (tree.files(), log()) == (after, ["Go", "Done"])
    assert run_here("undo", "--yes").code == 0
    assert tree.files() == before


def test_git_sees_nothing_of_it(tree: WorkTree) -> None:
    shell(max=WORK)
    tree.git("add", "teamchat.toml")

    def seen() -> tuple[object, ...]:
        looks = ("status --porcelain=v2", "stash list", "reflog", "log --all --format=%H", "rev-parse HEAD")
        return (tree.top / ".git" / "index").read_bytes(), *(tree.git(*look.split()) for look in looks)

    before = seen()
    run_here("send", "Go")
    after = seen()
    run_here("undo", "--yes")
    assert seen() == before
    run_here("redo", "--yes")
    assert seen() == after
    tree.git("fsck", "--strict")


def test_a_file_that_became_a_folder_and_a_folder_that_became_a_file_go_back(tree: WorkTree) -> None:
    shell(max="rm app.py; mkdir app.py; echo x > app.py/y; rm -r tests; echo x > tests")
    before = tree.files()
    assert run_here("send", "Go").code == 0
    assert run_here("undo", "--yes").code == 0
    assert tree.files() == before


def test_what_somebody_put_into_a_new_folder_is_in_the_way(tree: WorkTree) -> None:
    shell(max="rm app.py; mkdir app.py; echo x > app.py/y")
    assert run_here("send", "Go").code == 0
    (tree.top / "app.py" / "mine").write_text("mine")
    after = tree.files()
    assert run_here("undo", "--yes").code == 1
    assert tree.files() == after


def test_several_turns_go_back_to_before_the_first(tree: WorkTree) -> None:
    shell(max="echo 1 >> app.py; echo x > new", eva="echo 2 >> app.py; rm new; rm run.sh")
    before = tree.files()
    run_here("send", "--to", "max", "Go")
    run_here("send", "--to", "eva", "Go on")
    assert run_here("undo", "1", "--yes").code == 0
    assert (tree.files(), log()) == (before, ["Go"])


def test_members_who_worked_at_once_are_undone_together(tree: WorkTree) -> None:
    shell(max="echo 1 >> app.py; sleep 0.3; echo 1 > max", eva="echo 2 >> run.sh; sleep 0.2; rm tests/one.py")
    before = tree.files()
    assert run_here("send", "--to", "max+eva", "Go").code == 0
    ran = run_here("undo", "--yes")
    assert ran.out.startswith("turns 1 and 2 are of one group, and are undone together\n")
    assert tree.files() == before


def test_what_somebody_else_changed_is_kept_unless_forced(tree: WorkTree) -> None:
    shell(max="echo 1 >> app.py; rm run.sh")
    before = tree.files()
    run_here("send", "Go")
    tree.write("app.py", b"mine\n")
    tree.write("own.txt", b"mine, too\n")
    mine = tree.files()
    ran = run_here("undo", "--yes")
    assert ran.code == 1
    assert "changed since, by somebody else: app.py\n" in ran.out
    told = "teamchat: nothing was done: app.py changed since, by somebody else\n"
    assert ran.err == f"{told}  try: teamchat undo 1 --force\n  try: teamchat undo 1 --conversation\n"
    assert (tree.files(), log()) == (mine, ["Go", "Done"])
    assert run_here("undo", "--yes", "--force").err == notes(
        "turn 1 is undone: 1 message, 1 file, 1 file of somebody else overwritten; teamchat redo restores it",
        "on hold: max; teamchat resume runs what is on hold, teamchat resume --drop drops it",
    )
    assert tree.files() == {**before, b"own.txt": mine[b"own.txt"]}
    assert run_here("redo", "--yes").code == 0
    assert tree.files() == mine


def test_what_git_ignores_and_is_in_the_way_is_not_overwritten(tree: WorkTree) -> None:
    shell(max="rm run.sh; echo run.sh >> .gitignore")
    run_here("send", "Go")
    tree.git("rm", "-q", "--cached", "run.sh")
    tree.write("run.sh", b"mine\n")
    assert run_here("undo", "--yes").code == 1
    assert (tree.top / "run.sh").read_bytes() == b"mine\n"


def test_a_redo_does_not_overwrite_what_somebody_changed_since(tree: WorkTree) -> None:
    shell(max="echo 1 >> app.py")
    run_here("send", "Go")
    run_here("undo", "--yes")
    tree.write("app.py", b"mine\n")
    ran = run_here("redo", "--yes")
    assert ran.code == 1
    assert "  try: teamchat redo --force\n" in ran.err
    assert ((tree.top / "app.py").read_bytes(), log()) == (b"mine\n", ["Go"])
    assert run_here("redo", "--yes", "--force").code == 0
    assert (tree.top / "app.py").read_bytes() == b"a = 1\nb = 2\n1\n"


def test_a_redo_after_something_was_said_is_refused_with_the_way_to_the_files(tree: WorkTree) -> None:
    shell(max="echo 1 >> app.py; echo new > 'new file'", eva=":")
    run_here("send", "--to", "max", "Go")
    after = tree.files()
    run_here("undo", "--yes")
    run_here("send", "--to", "eva", "Something else")
    ran = run_here("redo", "--yes")
    assert ran.code == 2
    assert ran.err.startswith("teamchat: turn 2 (eva) ran since turn 1 was undone, so that the undo stays")
    [command] = [line.removeprefix("  try: ") for line in ran.err.splitlines() if "git --git-dir" in line]
    subprocess.run(["bash", "-c", command], check=True)
    assert tree.files()[b"app.py"] == after[b"app.py"]
    assert tree.files()[b"new file"] == after[b"new file"]


def test_a_dry_run_says_what_would_be_refused(tree: WorkTree) -> None:
    shell(max="echo 1 >> app.py")
    run_here("send", "Go")
    tree.write("app.py", b"mine\n")
    ran = run_here("undo", "--dry-run")
    told = "teamchat: this would be refused: app.py changed since, by somebody else\n"
    assert ran.err == f"{told}  try: teamchat undo 1 --force\n  try: teamchat undo 1 --conversation\n"
    assert (ran.code, ran.out.startswith("undoes msg-2")) == (1, True)
    ran = run_here("undo", "--files", "--dry-run", "--json")
    assert (ran.code, objects(ran)[0]["conflicts"]) == (1, ["app.py"])
    assert ran.err == f"{told}  try: teamchat undo 1 --files --force\n"
    assert run_here("undo", "--dry-run", "--force").code == 0
    assert ((tree.top / "app.py").read_bytes(), log()) == (b"mine\n", ["Go", "Done"])
    run_here("undo", "--yes", "--force")
    tree.write("app.py", b"mine again\n")
    ran = run_here("redo", "--dry-run")
    assert (ran.code, ran.err) == (1, f"{told}  try: teamchat redo --force\n")


def test_with_force_the_files_that_it_overwrites_are_named(tree: WorkTree) -> None:
    shell(max="echo 1 >> app.py")
    run_here("send", "Go")
    tree.write("app.py", b"mine\n")
    assert "overwrites app.py, which somebody else changed since\n" in run_here("undo", "--force", "--dry-run").out


@pytest.mark.parametrize("command", ["undo", "redo", "retry", "resume", "diff"])
def test_a_folder_without_team_and_conversation_says_that_it_has_no_conversation(command: str) -> None:
    ran = run_here(command)
    assert (ran.code, ran.err) == (
        4,
        "teamchat: there is no conversation here yet\n  try: teamchat send 'Your message'\n",
    )


def test_files_or_conversation_alone(tree: WorkTree) -> None:
    shell(max="echo 1 >> app.py")
    before = tree.files()
    run_here("send", "Go")
    after = tree.files()
    assert run_here("undo", "--files", "--yes").code == 0
    assert (tree.files(), log()) == (before, ["Go", "Done"])
    assert run_here("redo", "--yes").code == 0
    assert (tree.files(), log()) == (after, ["Go", "Done"])
    assert run_here("undo", "--conversation", "--yes").code == 0
    assert (tree.files(), log()) == (after, ["Go"])


def test_without_a_terminal_it_wants_yes(tree: WorkTree) -> None:
    shell(max="echo 1 >> app.py")
    run_here("send", "Go")
    after = tree.files()
    ran = run_here("undo", "1")
    assert refused(ran) == "nothing was done: there is no terminal to ask on"
    assert (ran.code, ran.err.splitlines()[1]) == (2, "  try: teamchat undo --yes 1")
    assert run_here("undo", "--dry-run").out.startswith("undoes msg-2")
    assert (tree.files(), log()) == (after, ["Go", "Done"])


def test_json(tree: WorkTree) -> None:
    shell(max="echo 1 >> app.py")
    run_here("send", "Go")
    file = {"top": str(tree.top), "path": "app.py", "what": "changed", "added": 1, "removed": 0}
    assert objects(run_here("undo", "--yes", "--json")) == [
        {
            "v": 1, "type": "undo", "turn": 1, "scope": "both", "turns": [1], "checks": [],
            "messages": ["msg-2"],
            "on_hold": ["max"], "files": [file], "conflicts": [], "not_undone": [], "merged": [], "done": True,
            "kept": [],
        }
    ]  # fmt: skip
    [redone] = objects(run_here("redo", "--yes", "--json"))
    assert (redone["type"], redone["turn"], redone["done"]) == ("redo", 1, True)


def test_outside_git_the_conversation_alone_is_undone_and_that_is_said() -> None:
    shell(max="echo 1 > app.py")
    run_here("send", "Go")
    ran = run_here("undo", "--yes")
    assert ran.code == 0
    assert "the files of turn 1 stay as they are: no git repository\n" in ran.out
    assert (Path("app.py").read_text(), log()) == ("1\n", ["Go"])


def test_turns_whose_checkpoints_are_gone_keep_their_files(tree: WorkTree, world: Path) -> None:
    shell(max="echo 1 >> app.py")
    run_here("send", "Go")
    remove_checkpoints(world)
    ran = run_here("undo", "--yes")
    assert f"the files in {tree.top} stay as they are: checkpoints are no longer there (keep_checkpoints)\n" in ran.out
    assert ((tree.top / "app.py").read_bytes(), log()) == (b"a = 1\nb = 2\n1\n", ["Go"])


def test_checkpoints_whose_times_are_lost_are_as_good_as_gone(tree: WorkTree, world: Path) -> None:
    shell(max="echo 1 >> app.py")
    run_here("send", "Go")
    for times in (world / "state").glob("workspaces/*/checkpoints/*/times"):
        times.unlink()
    ran = run_here("undo", "--yes")
    assert f"the files in {tree.top} stay as they are: checkpoints are no longer there (keep_checkpoints)\n" in ran.out
    assert ((tree.top / "app.py").read_bytes(), log()) == (b"a = 1\nb = 2\n1\n", ["Go"])


def test_the_files_of_several_turns_outside_git_are_told_in_one_line() -> None:
    shell(max="echo 1 > app.py")
    run_here("send", "Go")
    run_here("send", "Go on")
    ran = run_here("undo", "1", "--yes")
    assert "the files of turns 1 and 2 stay as they are: no git repository\n" in ran.out


@pytest.mark.usefixtures("tree")
def test_an_undo_of_a_turn_without_a_reply_counts_no_messages() -> None:
    shell(max="echo 1 >> app.py; exit 1")
    run_here("send", "Go")
    assert "turn 1 is undone: 1 file; teamchat redo restores it" in run_here("undo", "--yes").err
    run_here("redo", "--yes")
    shell(max="exit 1")
    run_here("resume")
    assert "turn 2 is undone; teamchat redo restores it" in run_here("undo", "--yes").err


def test_an_undo_of_files_that_cannot_be_restored_says_why() -> None:
    shell(max="echo 1 > app.py")
    run_here("send", "Go")
    ran = run_here("undo", "--files", "--yes")
    assert refused(ran) == "no file was undone: the files of turn 1 stay as they are: no git repository"
    assert (ran.code, ran.err.splitlines()[1]) == (2, "  try: teamchat undo 1 --conversation")


def test_names_of_files_write_nothing_to_the_terminal(tree: WorkTree) -> None:
    name = b"a\x1b[31m\xff"
    shell(max="printf 1 > \"$(printf 'a\\033[31m\\377')\"")
    run_here("send", "Go")
    assert r"  changed   a\x1b[31m\xff  +1 −0  new  " in run_here("show").out
    tree.write(os.fsdecode(name), b"2")
    ran = run_here("undo", "--yes")
    told = r"teamchat: nothing was done: a\x1b[31m\xff changed since, by somebody else"
    assert ran.err.splitlines()[0] == told
    assert "\x1b" not in ran.out + ran.err


@pytest.mark.usefixtures("tree")
def test_what_checkpoints_leave_out_is_named() -> None:
    shell(max="echo 1 >> app.py; git init -q inner; echo x > inner/x")
    run_here("send", "Go")
    assert "not in checkpoints: inner\n" in run_here("undo", "--yes").out


def test_retry_runs_the_last_turn_again(tree: WorkTree) -> None:
    shell(max="test -e build/once && echo 2 >> app.py || { mkdir -p build; touch build/once; rm app.py; }")
    run_here("send", "Go")
    assert not (tree.top / "app.py").exists()
    ran = run_here("retry", "--yes")
    assert ran.code == 0
    assert ((tree.top / "app.py").read_bytes(), log()) == (b"a = 1\nb = 2\n2\n", ["Go", "Done"])
    lines = objects(run_here("retry", "--yes", "--json"))
    assert (lines[-1]["type"], lines[-1]["code"]) == ("result", 0)


@pytest.mark.usefixtures("tree")
def test_retry_with_another_member() -> None:
    shell(max="rm app.py", eva="echo e >> app.py")
    run_here("send", "--to", "max", "Go")
    assert refused(run_here("retry", "--with", "kailai")) == "kailai is a person; a turn is run by an agent"
    assert run_here("retry", "--with", "eva", "--yes").code == 0
    assert [message["from"] for message in objects(run_here("log", "--json"))] == ["kailai", "eva"]
    assert Path("app.py").read_text() == "a = 1\nb = 2\ne\n"


@pytest.mark.usefixtures("tree")
def test_retry_runs_what_it_undoes_and_the_rest_stays_on_hold(world: Path) -> None:
    team = crew(world, {"max": ["One.", "Two."], "eva": ["Three."]}, limits={"turns": 1})
    assert run_here("send", "[NEXT: max] [NEXT: eva] Go").code == 7
    ran = run_here("retry", "--yes")
    assert ran.code == 0
    calls = "runs again: max, called by kailai in msg-1\nstays on hold: eva, called by kailai in msg-1\n"
    assert ran.out.startswith(f"undoes msg-2 max: One.\n{calls}")
    assert (log(), team.prompts("eva")) == (["[NEXT: max] [NEXT: eva] Go", "Two."], [])
    assert run_here("resume").code == 0
    assert log()[2:] == ["Three."]


def test_retry_names_itself_where_somebody_changed_files(tree: WorkTree) -> None:
    shell(max="echo 1 >> app.py", eva=":")
    run_here("send", "--to", "max", "Go")
    tree.write("app.py", b"mine\n")
    ran = run_here("retry", "--with", "eva", "--yes")
    told = "teamchat: nothing was done: app.py changed since, by somebody else\n"
    assert (ran.code, ran.err) == (1, f"{told}  try: teamchat retry --force --with eva\n")


@pytest.mark.usefixtures("tree")
def test_retry_after_an_undo_names_the_commands_that_run_what_is_on_hold() -> None:
    shell(max="echo 1 >> app.py", eva="echo 2 >> app.py")
    run_here("send", "--to", "max", "Go")
    run_here("send", "--to", "max", "Go on")
    run_here("undo", "--yes")
    told = "teamchat: turn 2 is undone already, and its call is on hold\n  try: teamchat resume\n"
    assert run_here("retry", "--yes").err == f"{told}  try: teamchat redo\n"
    ran = run_here("retry", "--with", "eva", "--yes")
    assert (ran.code, ran.err) == (2, f"{told}  try: teamchat redo --yes && teamchat retry --with eva\n")
    assert run_here("undo", "--files", "--yes").code == 0
    assert run_here("resume").code == 0
    assert log() == ["Go", "Done", "Go on", "Done"]


@pytest.mark.usefixtures("tree")
def test_retry_with_another_member_refuses_a_group() -> None:
    shell(max=":", eva=":", carol=":")
    run_here("send", "--to", "max+eva", "Go")
    ran = run_here("retry", "--with", "carol", "--yes")
    assert (ran.code, log()) == (2, ["Go", "Done", "Done"])
    assert ran.err == (
        "teamchat: turns 1 and 2 are of one group, and are undone together: "
        "--with would replace one member of them only\n  try: teamchat retry\n"
    )


@pytest.mark.usefixtures("tree")
def test_retry_with_a_member_that_is_called_already_undoes_nothing(world: Path) -> None:
    crew(world, {"max": ["One."], "eva": ["Two."]}, limits={"turns": 1})
    run_here("send", "[NEXT: max] [NEXT: eva] Go")
    assert refused(run_here("retry", "--with", "eva", "--yes")) == "eva is called by msg-1 already"
    assert log()[1:] == ["One."]


def test_a_turn_that_failed_is_retried(world: Path) -> None:
    crew(world, {"max": [{"exit": 1}, "Hi."]})
    assert run_here("send", "Go").code == 1
    assert run_here("retry", "--yes", "-q").out == "Hi.\n"


@pytest.mark.usefixtures("tree")
def test_names_of_any_bytes_go_too() -> None:
    shell(max="""printf 1 > "$(printf '\\377 \\033[31m')"; printf 2 > "$(printf 'a\\nb')" """)
    names = set(Path.cwd().iterdir())
    run_here("send", "Go")
    assert len(set(Path.cwd().iterdir()) - names) == 2
    assert "\x1b" not in run_here("undo", "--yes").out
    assert set(Path.cwd().iterdir()) == names


def test_refs_that_an_agent_moves_change_no_file_of_the_user(tree: WorkTree, world: Path) -> None:
    (tree.top / "mine").write_text("mine\n")
    shell(max="echo 1 >> app.py")
    before = tree.files()
    run_here("send", "Go")
    (store,) = all_refs(world)
    kai = ("-c", "user.name=kai", "-c", "user.email=kai@example.org")
    tree.git(*kai, "commit", "-q", "--allow-empty", "-m", "empty")
    empty = tree.git(f"--git-dir={store}", "hash-object", "-t", "tree", "-w", "/dev/null").strip()
    for ref in all_refs(world)[store]:
        tree.git(f"--git-dir={store}", "update-ref", ref, empty)
        tree.git("update-ref", ref, "HEAD")
    assert run_here("undo", "--yes").code == 0
    assert tree.files() == before


def test_a_secret_that_a_turn_changes_is_named_and_not_recorded(tree: WorkTree, world: Path) -> None:
    tree.write(".env", b"KEY=secret\n", 0o600)
    shell(max="echo KEY=other > .env; echo 1 >> app.py")
    run_here("send", "Go")
    assert "· not in checkpoints: .env (changed)\n" in run_here("diff").err
    assert "unseen" in run_here("show").out
    ran = run_here("undo", "--yes")
    assert (ran.code, "not in checkpoints: .env\n" in ran.out) == (0, True)
    assert (tree.top / ".env").read_text() == "KEY=other\n"
    (store,) = all_refs(world)
    listed = tree.git(f"--git-dir={store}", "cat-file", "--batch-all-objects", "--batch")
    assert "KEY=" not in listed


def test_a_mode_comes_back_as_it_was(tree: WorkTree) -> None:
    tree.write("key", b"tracked\n", 0o600)
    tree.git("add", "key")
    shell(max="rm key; chmod 644 app.py")
    run_here("send", "Go")
    assert run_here("undo", "--yes").code == 0
    assert (tree.top / "key").stat().st_mode & 0o777 == 0o600


def refs(world: Path) -> list[str]:
    (found,) = all_refs(world).values()
    return [ref.split("/", 3)[3] for ref in found]


def test_old_checkpoints_go_when_a_run_ends(tree: WorkTree, world: Path) -> None:
    shell(max="echo 1 >> app.py")
    run_here("send", "Go")
    [times] = (world / "state").glob("workspaces/*/checkpoints/*/times")
    times.write_text(re.sub(r"(?m)^\d+", lambda at: str(int(at[0]) - 31 * 86_400), times.read_text()))
    run_here("send", "Go on")
    assert refs(world) == ["1/after", "1/before", "2/after", "2/before"]  # it was done within a day
    for _ in range(2):  # what was old a day ago, too
        (times.parent / "pruned").write_text("1000")
        run_here("send", "Go on")
    assert refs(world) == [f"{turn}/{when}" for turn in (2, 3, 4) for when in ("after", "before")]
    ran = run_here("undo", "1", "--yes")
    assert ran.code == 0
    assert "stay as they are: checkpoints are no longer there (keep_checkpoints)\n" in ran.out
    assert (tree.top / "app.py").read_bytes().endswith(b"1\n1\n1\n1\n")


@pytest.mark.usefixtures("tree")
def test_checkpoints_go_with_their_session(world: Path) -> None:
    shell(max="echo 1 >> app.py")
    run_here("send", "Go")
    run_here("send", "--new", "--session", "other", "Go")
    run_here("undo", "--yes")
    assert len(refs(world)) == 6
    assert run_here("sessions", "delete", "--yes", "other").code == 0
    assert refs(world) == ["1/after", "1/before"]


def test_invisible_characters_of_a_message_are_shown_by_their_codes(world: Path) -> None:
    crew(world, {"max": ["one\u200btwo\u202e"]})
    assert run_here("send", "Hi").code == 0
    ran = run_here("undo", "--dry-run")
    assert "one\\u200btwo" in ran.out
