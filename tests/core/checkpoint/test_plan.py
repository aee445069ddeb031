"""The plan is a pure function: a model of the files stands in for the disk."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.checkpoint.plan import plan_restore
from teamchat.core.checkpoint.values import Conflict, PathChange, TreeEntry, TurnChanges, What

PATHS = ("a", "a/b", "a/b/c", "a.b", "d/e", "d/f", "g")
Files = dict[str, TreeEntry]


def file(blob: str, mode: str = "100644") -> TreeEntry:
    return TreeEntry(mode, blob)


def fits(files: Mapping[str, TreeEntry]) -> bool:
    """Whether a disk can have these paths: no file is also a folder."""
    return not any(other.startswith(f"{path}/") for path in files for other in files)


contents = st.builds(file, st.sampled_from("xyz"), st.sampled_from(("100644", "100755", "120000")))
trees = st.dictionaries(st.sampled_from(PATHS), contents, max_size=5).filter(fits)


def step(old: Files, new: Files) -> TurnChanges:
    """What turned these files into those."""
    differ = [path for path in sorted({*old, *new}) if old.get(path) != new.get(path)]
    return TurnChanges(tuple(PathChange(path, _what(path, old, new), old.get(path), new.get(path)) for path in differ))


def _what(path: str, old: Files, new: Files) -> What:
    return "added" if path not in old else "deleted" if path not in new else "changed"


def after(files: Files, restored: Mapping[str, TreeEntry | None]) -> Files:
    both = {**files, **restored}
    return {path: entry for path, entry in both.items() if entry is not None}


def touched(steps: list[TurnChanges]) -> set[str]:
    return {change.path for step in steps for change in step.changes}


@given(st.lists(trees, min_size=1, max_size=5))
def test_undoing_all_steps_without_a_foreign_change_gives_the_first_files(states: list[Files]) -> None:
    steps = [step(old, new) for old, new in pairwise(states)]
    plan = plan_restore(steps, states[-1])
    assert plan.conflicts == ()
    assert after(states[-1], plan.restore) == states[0]


@given(st.lists(st.tuples(trees, trees), min_size=1, max_size=4), trees)
def test_only_what_a_step_touched_is_put_back_and_never_what_somebody_else_changed(
    turns: list[tuple[Files, Files]], current: Files
) -> None:
    """Between one turn and the next, and after the last, anybody may have changed anything."""
    steps = [step(*turn) for turn in turns]
    plan = plan_restore(steps, current)
    conflicts = {conflict.path for conflict in plan.conflicts}
    assert {*plan.restore, *conflicts} <= touched(steps)
    assert conflicts.isdisjoint(plan.restore)
    assert fits(after(current, plan.restore))
    for path in touched(steps):
        of_path = [change for one in steps for change in one.changes if change.path == path]
        told = [*(change.old for change in of_path[1:]), current.get(path)]
        foreign = [change.new for change in of_path] != told
        if current.get(path) == of_path[0].old:
            assert path not in plan.restore
            assert path not in conflicts
        elif foreign:
            assert path in conflicts
        else:
            assert path in conflicts or plan.restore[path] == of_path[0].old


@given(trees, trees, trees)
def test_a_conflict_without_a_change_of_its_own_has_something_in_its_way(
    old: Files, new: Files, current: Files
) -> None:
    made = step(old, new)
    plan = plan_restore([made], current)
    for conflict in plan.conflicts:
        if conflict.found == conflict.expected:
            assert conflict.target is not None
            assert not fits({**after(current, plan.restore), conflict.path: conflict.target})


def test_a_path_that_a_step_did_not_touch_may_have_changed() -> None:
    plan = plan_restore([step({"a": file("x")}, {"a": file("y")})], {"a": file("y"), "mine": file("z")})
    assert (plan.restore, plan.conflicts) == ({"a": file("x")}, ())


def test_what_somebody_else_changed_afterwards_is_a_conflict() -> None:
    plan = plan_restore([step({"a": file("x")}, {"a": file("y")})], {"a": file("mine")})
    assert plan.restore == {}
    assert plan.conflicts == (Conflict("a", file("y"), file("mine"), file("x")),)


def test_what_somebody_else_changed_between_two_steps_is_a_conflict() -> None:
    steps = [step({"a": file("x")}, {"a": file("y")}), step({"a": file("mine")}, {"a": file("z")})]
    assert [conflict.path for conflict in plan_restore(steps, {"a": file("z")}).conflicts] == ["a"]


def test_what_is_already_as_it_was_needs_nothing() -> None:
    plan = plan_restore([step({"a": file("x")}, {})], {"a": file("x")})
    assert (plan.restore, plan.conflicts) == ({}, ())


def test_a_file_of_somebody_else_where_a_folder_has_to_be_is_a_conflict() -> None:
    plan = plan_restore([step({"a/b": file("x"), "c": file("x")}, {})], {"a": file("mine")})
    assert plan.restore == {"c": file("x")}
    assert [conflict.path for conflict in plan.conflicts] == ["a/b"]


def test_a_path_that_stays_because_of_a_conflict_is_in_the_way_of_others() -> None:
    plan = plan_restore([step({"a/b": file("x")}, {"a": file("y")})], {"a": file("mine")})
    assert plan.restore == {}
    assert [conflict.path for conflict in plan.conflicts] == ["a", "a/b"]


def test_two_paths_that_were_never_there_at_once_are_both_left_to_the_user() -> None:
    steps = [step({"a": file("x")}, {}), step({"a/b": file("x")}, {})]
    plan = plan_restore(steps, {})
    assert plan.restore == {}
    assert [conflict.path for conflict in plan.conflicts] == ["a", "a/b"]


def test_a_submodule_stays_and_is_named() -> None:
    made = step({"sub": file("x", "160000")}, {"sub": file("y", "160000"), "a": file("z")})
    plan = plan_restore([made], {"sub": file("y", "160000"), "a": file("z")})
    assert (plan.restore, plan.conflicts, plan.submodules) == ({"a": None}, (), ("sub",))
