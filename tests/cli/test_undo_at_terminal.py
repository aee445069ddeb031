"""`undo`, `redo`, `retry` and `diff` at a real terminal: the question, and the colours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.helpers import objects
from tests.cli.test_terminal import at_terminal, seen, terminal
from tests.core.checkpoint.worktree import WorkTree
from tests.program import run_here
from tests.shell_team import repository, shell

PREVIEW = (
    "undoes msg-2 max: Done\r\n"
    "undoes app.py  +1 −0\r\n"
    "undoes new  +1 −0  new\r\n"
    "then on hold: max, called by kailai in msg-1\r\n"
)
COLOURS = ("\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m")


@pytest.fixture
def tree(tmp_path: Path) -> WorkTree:
    """After one turn, which added a line to app.py and made the file new."""
    made = repository(tmp_path / "unused")
    shell(max="echo 1 >> app.py; echo x > new", eva="sed -i s/a/A/ app.py")
    assert run_here("send", "--to", "max", "Go").code == 0
    return made


def log() -> list[object]:
    return [message["text"] for message in objects(run_here("log", "--json"))]


def test_undo_shows_what_it_does_and_asks(tree: WorkTree) -> None:
    with terminal("undo") as child:
        child.expect_exact("Undo it? [y/N] ")
        assert child.before == PREVIEW
        assert (tree.top / "new").exists()
        child.sendline("y")
        rest = seen(child)
    assert (rest.code, "turn 1 is undone: 1 message, 2 files" in rest.out) == (0, True)
    assert (log(), (tree.top / "new").exists()) == (["Go"], False)


@pytest.mark.parametrize("answer", ["n", "", "no", "maybe"])
def test_anything_but_yes_does_nothing(answer: str, tree: WorkTree) -> None:
    before = tree.files()
    with terminal("undo") as child:
        child.expect_exact("Undo it? [y/N] ")
        child.sendline(answer)
        rest = seen(child)
    assert (rest.code, rest.out) == (0, "· nothing was done\n")
    assert (log(), tree.files()) == (["Go", "Done"], before)


def test_the_end_of_the_input_is_a_no_on_a_line_of_its_own(tree: WorkTree) -> None:
    before = tree.files()
    with terminal("undo") as child:
        child.expect_exact("Undo it? [y/N] ")
        child.sendeof()
        rest = seen(child)
    assert (rest.code, rest.out) == (0, "\n· nothing was done\n")
    assert (log(), tree.files()) == (["Go", "Done"], before)


def test_ctrl_c_at_the_question_does_nothing(tree: WorkTree) -> None:
    before = tree.files()
    with terminal("undo") as child:
        child.expect_exact("Undo it? [y/N] ")
        child.sendintr()
        rest = seen(child)
    assert (rest.code, rest.out) == (130, "")
    assert (log(), tree.files()) == (["Go", "Done"], before)
    assert run_here("undo", "--yes").code == 0


def test_files_that_change_while_the_question_waits_are_not_overwritten(tree: WorkTree) -> None:
    with terminal("undo") as child:
        child.expect_exact("Undo it? [y/N] ")
        tree.write("app.py", b"mine\n")
        child.sendline("y")
        rest = seen(child)
    assert (rest.code, log()) == (2, ["Go", "Done"])
    assert "teamchat: files changed while you were asked; nothing was done\n  try: teamchat undo\n" in rest.out
    assert (tree.top / "app.py").read_bytes() == b"mine\n"


def test_with_force_the_question_comes_after_the_files_that_are_overwritten(tree: WorkTree) -> None:
    tree.write("app.py", b"mine\n")
    with terminal("undo", "--force") as child:
        child.expect_exact("Undo it? [y/N] ")
        assert "overwrites app.py, which somebody else changed since\r\n" in child.before
        child.sendline("n")
        assert seen(child).out == "· nothing was done\n"
    assert (tree.top / "app.py").read_bytes() == b"mine\n"


def test_redo_and_retry_ask_too(tree: WorkTree) -> None:
    run_here("undo", "--yes")
    with terminal("redo") as child:
        child.expect_exact("Redo it? [y/N] ")
        assert "redoes new  +1 −0  new\r\n" in child.before
        child.sendline("yes")
        assert seen(child).code == 0
    assert (tree.top / "new").exists()
    with terminal("retry", "--with", "eva") as child:
        child.expect_exact("Undo it and run it again? [y/N] ")
        assert "runs again with eva: max, called by kailai in msg-1\r\n" in child.before
        child.sendline("y")
        assert seen(child).code == 0
    assert (log(), (tree.top / "new").exists()) == (["Go", "Done"], False)
    assert (tree.top / "app.py").read_text() == "A = 1\nb = 2\n"


@pytest.mark.usefixtures("tree")
def test_a_patch_has_colours_at_a_terminal_only() -> None:
    run_here("send", "--to", "eva", "Go on")
    shown = at_terminal("diff", kind="xterm-256color").out
    assert [colour in shown for colour in COLOURS] == [True] * 4
    assert "\x1b[31m-a = 1\x1b[m\n\x1b[32m+A = 1\x1b[m\n" in shown
    assert "\x1b" not in run_here("diff").out


@pytest.mark.usefixtures("tree")
def test_hashes_are_short_at_a_terminal_and_whole_behind_a_pipe() -> None:
    index, *_ = re.findall("^index .*$", run_here("diff").out, re.MULTILINE)
    old, new = re.findall("[0-9a-f]{40}", index)
    short = index.replace(old, old[:7]).replace(new, new[:7])
    assert f"{short}\n" in at_terminal("diff", kind="dumb").out.replace("\r", "")


@pytest.mark.usefixtures("tree")
def test_a_line_of_a_file_that_looks_like_a_head_stays_whole() -> None:
    text = f"index {'a' * 40}..{'b' * 40}"
    shell(eva=f"printf '{text}\\n' > new")
    run_here("send", "--to", "eva", "Go on")
    assert f"+{text}\n" in at_terminal("diff", kind="dumb").out.replace("\r", "")


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(("kind", "no_color"), [("dumb", ""), ("xterm-256color", "1")])
def test_a_terminal_without_colours_gets_none(kind: str, no_color: str) -> None:
    shown = at_terminal("diff", kind=kind, no_color=no_color).out
    assert ("\x1b" in shown, "+x\n" in shown) == (False, True)
