"""Random work trees, random edits: what is put back is byte for byte what was there, and git sees no difference."""

# names are bytes of any kind, which Path does not take
# ruff: noqa: PTH101, PTH102, PTH104, PTH108, PTH112, PTH113, PTH114, PTH116, PTH118, PTH123, PTH211

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teamchat.core.checkpoint.compare import texts
from tests.core.checkpoint.states import STATES, State, converted, merging, untracked, with_submodule
from tests.core.checkpoint.worktree import WorkTree
from tests.trials import TIMES, trials

NAMES = (
    *(b"a", b"a/b", b"a/b/c", b"d/e", b"d/E", b"D", b"d/x/y/z", b"-dash", b"new\nline", b'quo"te', b"\xff\xfe/\x80"),
    *(
        "ünï/ßß".encode(),
        b" space ",
        b"tab\t\x01",
        b"*glob?[x]",
        b":(top)x",
        b"#x",
        b"!x",
        b"back\\slash",
        b"x.gitignore",
    ),
)
CONTENTS = (
    *(
        b"",
        b"line\n",
        b"line\r\nother\r\n",
        b"mixed\r\nlines\n",
        b"\0binary\xff",
        b"$Id$\n",
        b"$Id: 1234 $\n",
        b"x" * 9000,
    ),
    b"version https://git-lfs.github.com/spec/v1\noid sha256:1234\nsize 5\n",
    "wide\r\n".encode("utf-16"),
)
TARGETS = (b"a", b"d", b"..", b"/", b"nowhere", b"\xff")
Edit = Callable[[bytes], None]


def _clear(top: bytes, name: bytes) -> bytes:
    """Make room for a file, whatever is there or where its folders are."""
    parts = name.split(b"/")
    for depth in range(1, len(parts)):
        folder = os.path.join(top, *parts[:depth])
        if os.path.islink(folder) or not os.path.isdir(folder):
            _remove(folder)
            os.mkdir(folder)
    place = os.path.join(top, name)
    _remove(place)
    return place


def _remove(place: bytes) -> None:
    if os.path.isdir(place) and not os.path.islink(place):
        shutil.rmtree(place)
    elif os.path.lexists(place):
        os.unlink(place)


def write(name: bytes, content: bytes, *, executable: bool) -> Edit:
    def edit(top: bytes) -> None:
        place = _clear(top, name)
        with open(place, "wb") as file:
            file.write(content)
        os.chmod(place, 0o755 if executable else 0o644)

    return edit


def link(name: bytes, target: bytes) -> Edit:
    return lambda top: os.symlink(target, _clear(top, name))


def delete(name: bytes) -> Edit:
    return lambda top: _remove(os.path.join(top, name.split(b"/")[0]) if len(name) % 2 else os.path.join(top, name))


def move(name: bytes, to: bytes) -> Edit:
    def edit(top: bytes) -> None:
        place = os.path.join(top, name)
        if os.path.lexists(place) and not (name + b"/").startswith(to + b"/") and not to.startswith(name + b"/"):
            aside = os.path.join(top, b"aside")
            os.rename(place, aside)
            os.rename(aside, _clear(top, to))

    return edit


def turn_x(name: bytes) -> Edit:
    def edit(top: bytes) -> None:
        place = os.path.join(top, name)
        if os.path.isfile(place) and not os.path.islink(place):
            os.chmod(place, os.stat(place).st_mode ^ 0o111)

    return edit


# `make fuzz` tries every kind of repository
TRIED = STATES.values() if TIMES > 1 else (untracked, merging, with_submodule, converted)
names, contents = st.sampled_from(NAMES), st.sampled_from(CONTENTS)
writes = st.builds(write, names, contents, executable=st.booleans())
links = st.builds(link, names, st.sampled_from(TARGETS))
made = st.lists(writes | links, max_size=8)
edited = st.lists(
    writes | links | st.builds(delete, names) | st.builds(move, names, names) | st.builds(turn_x, names), max_size=5
)


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    return (tmp_path / str(number) for number in count())


@pytest.mark.parametrize("state", TRIED, ids=lambda state: state.__name__)
@given(first=made, turns=st.lists(edited, min_size=1, max_size=3), form=st.sampled_from(("sha1", "sha256")))
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_undo_puts_every_byte_back_and_redo_does_so_again(
    state: State, folders: Iterator[Path], first: list[Edit], turns: list[list[Edit]], form: str
) -> None:
    folder = next(folders)
    tree = WorkTree.make(folder / "work", folder / "state", f"--object-format={form}")
    top = os.fsencode(tree.top)
    for edit in first:
        edit(top)
    state(tree)
    for name in tree.files():
        os.utime(os.path.join(top, name), (1e9, 1e9), follow_symlinks=False)  # git has to read what it is asked about
    standing, files = tree.standing(), [tree.files()]
    taken = [tree.take("0/before")]
    for number, turn in enumerate(turns):
        for edit in turn:
            edit(top)
        files.append(tree.files())
        taken.append(tree.take(f"{number}/after"))
    tree.undo(*taken)
    assert tree.files() == files[0]
    assert tree.standing() == standing
    assert tree.take("undone").tree == taken[0].tree
    again = {change.path: change.old for change in tree.changes(taken[-1], taken[0])}
    tree.restore(taken[0], again)
    assert tree.files() == files[-1]
    assert tree.git("fsck", "--full", "--no-dangling") == ""


@given(first=made, turns=st.lists(edited, min_size=2, max_size=6))
@settings(max_examples=trials(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_checkpoint_after_others_has_what_a_first_one_has(
    folders: Iterator[Path], first: list[Edit], turns: list[list[Edit]]
) -> None:
    folder = next(folders)
    tree = WorkTree.make(folder / "work", folder / "state")
    top = os.fsencode(tree.top)
    for edit in first:
        edit(top)
    tree.take()
    for number, turn in enumerate(turns):
        for edit in turn:
            edit(top)
        assert tree.take().tree == WorkTree(tree.top, folder / f"state-{number}").take().tree


@given(first=made, turn=edited)
@settings(max_examples=trials(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_reader_gets_one_diff_of_each_path_that_changed(
    folders: Iterator[Path], first: list[Edit], turn: list[Edit]
) -> None:
    folder = next(folders)
    tree = WorkTree.make(folder / "work", folder / "state")
    for edit in first:
        edit(os.fsencode(tree.top))
    before = tree.take()
    for edit in turn:
        edit(os.fsencode(tree.top))
    after = tree.take("1/after")
    diffs = list(texts(tree.repository, before.tree, after.tree))
    for change, diff in zip(tree.changes(before, after), diffs, strict=True):
        head = diff.split(b"\n")[0]
        assert head.startswith(b"diff --git ")
        assert re.fullmatch(r"[\w /.-]+", change.path) is None or f"b/{change.path}" in os.fsdecode(head)
        assert diff.count(b"\ndiff --git ") == (change.what == "type")
