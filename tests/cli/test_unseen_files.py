"""Files that a checkpoint does not have, as git ignores them or nobody may read them: undo deletes none of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.helpers import objects
from tests.cli.test_undo import tree as tree  # noqa: PLC0414 (a fixture)
from tests.core.checkpoint.worktree import WorkTree
from tests.program import Result, run_here
from tests.shell_team import shell

LARGE = 51 << 20  # bytes
DROP = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")  # root, too, may then read only what it may

RUN = """\
import json, sys
from tests.program import run_here
ran = [run_here(*command.split()) for command in sys.argv[1:]]
print(json.dumps([(one.code, one.out, one.err) for one in ran]))
"""


def changed() -> dict[str, str]:
    """What the receipt of the last turn says."""
    outcome = objects(run_here("show", "--json"))[0]["outcome"]
    return {file["path"]: file["what"] for file in outcome["changes"]["files"]}  # type: ignore[index]


def test_what_git_ignored_before_the_turn_stays_when_the_turn_changed_the_rules(tree: WorkTree) -> None:
    tree.write(":env", b"mine\n")
    tree.write("deep/.gitignore", b"*.log\n")
    for path in ("build/mine", "deep/er/x.log"):
        tree.write(path, b"mine\n")
    with (tree.top / ".gitignore").open("a") as file:
        file.write(":env\n")
    shell(max="echo scripts/ > .gitignore; rm deep/.gitignore; echo x > made; echo max >> build/mine; echo x > x.log")
    before = tree.files()
    assert run_here("send", "Go").code == 0
    rules = {".gitignore": "changed", "deep/.gitignore": "deleted"}
    assert changed() == {**rules, "made": "added", "x.log": "added"}
    ran = run_here("undo", "--yes")
    assert ran.code == 0
    assert tree.files() == {**before, b"build/mine": ("file", b"mine\nmax\n")}
    assert run_here("redo", "--yes").code == 0
    assert (tree.top / "made").exists()
    assert not (tree.top / "deep/.gitignore").exists()
    assert tree.files().keys() >= {b":env", b"build/mine", b"deep/er/x.log"}


@pytest.mark.parametrize(
    "does",
    [
        "echo scripts/ > .gitignore",
        "rm .gitignore",
        "printf '!build/\\n!build/**\\n' >> .gitignore",
        "mv build built",
        "mv build built; rm .gitignore",
    ],
)
@pytest.mark.parametrize("command", [("undo",), ("undo", "--dry-run"), ("retry",)])
def test_an_undo_stores_nothing_that_git_ignored_when_the_turn_began(
    tree: WorkTree, does: str, command: tuple[str, ...], world: Path
) -> None:
    tree.write("build/mine", b"an ignored file of the user")
    if command == ("retry",) and does.startswith("mv"):
        pytest.skip("it begins a turn, and nothing ignores the file where it is then")
    shell(max=f"test -e ../ran || {{ {does}; echo made > made; }}; touch ../ran")
    assert run_here("send", "Go").code == 0
    ran = run_here(*command, *([] if "--dry-run" in command else ["--yes"]))
    assert ran.code == 0, ran.err
    assert "build/mine" not in ran.out
    assert b"an ignored file" not in stored(world)
    assert b"made" in stored(world)


def stored(world: Path) -> bytes:
    """Every object of the checkpoints."""
    (head,) = (world / "state").glob("workspaces/*/checkpoints/*/HEAD")
    argv = ["git", f"--git-dir={head.parent}", "cat-file", "--batch-all-objects", "--batch"]
    return subprocess.run(argv, capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout


def test_what_was_too_large_or_a_repository_of_its_own_before_the_turn_stays(tree: WorkTree) -> None:
    with (tree.top / "large").open("wb") as file:
        file.truncate(LARGE)
    tree.write("inner/mine", b"mine\n")
    tree.git("init", "-q", "inner")
    shell(max=f"echo small > large; rm -rf inner/.git; truncate -s {LARGE} app.py; echo x > made")
    assert run_here("send", "Go").code == 0
    assert changed() == {"app.py": "changed", "large": "changed", "made": "added"}
    ran = run_here("undo", "--yes", "--force")  # app.py would be overwritten, with what no checkpoint has
    assert ran.code == 0
    assert "not in checkpoints: app.py, inner, large\n" in ran.out
    assert (tree.top / "large").read_text() == "small\n"
    assert (tree.top / "inner" / "mine").read_text() == "mine\n"
    assert (tree.top / "app.py").read_text() == "a = 1\nb = 2\n"
    assert not (tree.top / "made").exists()


@pytest.fixture
def bound() -> None:
    """Skips where even mode 000 keeps nobody from reading a file."""
    drops = shutil.which("setpriv") and subprocess.run([*DROP, "true"], check=False).returncode == 0
    if os.getuid() == 0 and not drops:
        pytest.skip("needs setpriv, which takes from root the right to read everything")


def unprivileged(*commands: str) -> list[Result]:
    """Run commands of the program as somebody whom the modes of files bind."""
    argv = [*(DROP if os.getuid() == 0 else ()), sys.executable, "-c", RUN, *commands]
    done = subprocess.run(argv, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    return [Result(*ended) for ended in json.loads(done.stdout)]


@pytest.mark.usefixtures("bound")
def test_what_nobody_may_read_is_left_alone_and_named(tree: WorkTree) -> None:
    for path in ("secret", "closed/mine", "opened"):
        tree.write(path, b"mine\n")
    before = tree.files()
    shell(max="chmod 644 opened; chmod 000 app.py; echo x > made; rm run.sh")
    before = tree.files()
    for path in ("secret", "closed", "tests", "opened"):
        (tree.top / path).chmod(0)
    try:
        sent, undone = unprivileged("send Go", "undo --yes")
        assert sent.code == 0, sent.err
        assert changed() == {"app.py": "changed", "made": "added", "opened": "changed", "run.sh": "deleted"}
        assert "unseen" in run_here("show").out
        assert undone.code == 0, undone.err
        assert "not in checkpoints: app.py, closed, opened, secret, tests\n" in undone.out
        assert "app.py" in undone.err
        assert Path("app.py").stat().st_mode & 0o600 == 0o600
    finally:
        for path in ("secret", "closed", "tests", "opened"):
            (tree.top / path).chmod(0o755 if (tree.top / path).is_dir() else 0o644)
    assert tree.files() == before


@pytest.mark.usefixtures("bound")
def test_a_worktree_is_made_and_merged_beside_what_nobody_may_read(tree: WorkTree) -> None:
    for path in ("secret", "closed/mine"):
        tree.write(path, b"mine\n")
    shell(max="echo x > made; ls > seen")
    team = tree.top / "teamchat.toml"
    team.write_text(team.read_text().replace('access = "edit"', 'access = "edit"\nworkspace = "worktree"'))
    before = tree.files()
    for path in ("secret", "closed"):
        (tree.top / path).chmod(0)
    try:
        sent, merged, undone = unprivileged("send --trust Go", "merge max", "merge --undo max")
        assert sent.code == 0, sent.err
        assert (merged.code, merged.out) == (0, "added    made\nadded    seen\n"), merged.err
        assert undone.code == 0, undone.err
    finally:
        (tree.top / "secret").chmod(0o644)
        (tree.top / "closed").chmod(0o755)
    assert tree.files() == before


@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize("does", ["rm one", "echo max >> one", "echo made > made"])
def test_a_read_only_folder_in_the_way_of_an_undo_is_named_with_the_way_out(tree: WorkTree, does: str) -> None:
    tree.write("a folder/in/one", b"1\n")
    tree.write("a folder/in/two", b"1\n")
    shell(max=f"cd 'a folder/in'; {does}; rm ../../run.sh")
    before = tree.files()
    assert run_here("send", "Go").code == 0
    folder = tree.top / "a folder/in"
    folder.chmod(0o555)
    (ran,) = unprivileged("undo --yes")
    assert ran.code == 1
    told, hint, *more = ran.err.splitlines()
    assert told.startswith("teamchat: not put back: a folder/in/")
    assert (hint, more) == (f"  try: chmod u+rwx '{folder}'", [])
    assert (tree.top / "run.sh").exists()
    subprocess.run(["/bin/sh", "-c", hint.removeprefix("  try: ")], check=True)
    (ran,) = unprivileged("undo --yes")
    assert ran.code == 0, ran.err
    assert tree.files() == before
