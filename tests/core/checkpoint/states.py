"""Every state that a repository can be in while an agent works there: a function each, by its name."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.core.checkpoint.worktree import WorkTree

State = Callable[[WorkTree], None]


def committed(tree: WorkTree) -> None:
    tree.git("add", "--all")
    tree.git("commit", "-q", "--allow-empty", "-m", "Begin")


def untracked(tree: WorkTree) -> None:
    """Nothing is committed, nothing is staged."""


def staged(tree: WorkTree) -> None:
    tree.git("add", "--all")


def intended(tree: WorkTree) -> None:
    tree.git("add", "--all", "--intent-to-add")


def detached(tree: WorkTree) -> None:
    committed(tree)
    tree.git("checkout", "-q", "--detach")


def stashed(tree: WorkTree) -> None:
    committed(tree)
    tree.write("stashed", b"x")
    tree.git("add", "--", "stashed")
    tree.git("stash", "--quiet")


def _two_sides(tree: WorkTree) -> None:
    tree.write("both", b"base\n")
    committed(tree)
    for side, start in (("one", "HEAD"), ("two", "HEAD~")):
        tree.git("checkout", "-q", "-b", side, start)
        tree.write("both", f"{side}\n".encode())
        tree.write(side, b"x")
        tree.git("add", "--", "both", side)
        tree.git("commit", "-qm", side)


def merging(tree: WorkTree) -> None:
    _two_sides(tree)
    tree.git("merge", "one", fails=True)
    assert "u UU" in tree.git("status", "--porcelain=v2")


def rebasing(tree: WorkTree) -> None:
    _two_sides(tree)
    tree.git("rebase", "one", fails=True)
    assert (tree.top / ".git" / "rebase-merge").exists()


def with_submodule(tree: WorkTree) -> None:
    form = f"--object-format={tree.repository.object_format}"
    inner = WorkTree.make(tree.top.with_name(f"{tree.top.name}.inner"), tree.state, form)
    inner.write("part", b"part\n")
    committed(inner)
    tree.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.top), "sub")
    committed(tree)
    (tree.top / "sub" / "part").write_bytes(b"changed\n")


def with_nested(tree: WorkTree) -> None:
    committed(tree)
    inner = WorkTree.make(tree.top / "nested", tree.state)
    inner.write("part", b"part\n")
    WorkTree.make(tree.top / "empty", tree.state)


def sparse(tree: WorkTree) -> None:
    tree.write("left/out", b"x")
    tree.write("out/of/it", b"x")
    committed(tree)
    tree.git("sparse-checkout", "set", "--cone", "--sparse-index", "--skip-checks", "a", "d")
    assert not (tree.top / "left").exists()


def split(tree: WorkTree) -> None:
    committed(tree)
    tree.git("update-index", "--split-index")
    tree.write("later", b"x")
    tree.git("add", "--", "later")


def flagged(tree: WorkTree) -> None:
    tree.write("assumed", b"x")
    tree.write("skipped", b"x")
    committed(tree)
    tree.git("update-index", "--untracked-cache", "--assume-unchanged", "assumed")
    tree.git("update-index", "--skip-worktree", "skipped")
    tree.write("assumed", b"changed")
    tree.write("skipped", b"changed")


def filtered(tree: WorkTree) -> None:
    """As Git LFS is configured: what is in the repository is a pointer of another size."""
    tree.git("config", "filter.lfs.clean", "wc -c | sed 's/^/oid /'")
    tree.git("config", "filter.lfs.smudge", "cat")
    tree.git("config", "filter.lfs.required", "true")
    tree.write(".gitattributes", b"* filter=lfs\n.gitattributes !filter\n")
    committed(tree)


def converted(tree: WorkTree) -> None:
    tree.git("config", "core.autocrlf", "true")
    tree.git("config", "core.safecrlf", "false")
    committed(tree)


def by_attributes(tree: WorkTree) -> None:
    tree.write(".gitattributes", b"* text=auto eol=crlf ident\n*16 text working-tree-encoding=UTF-16\n")
    tree.write("wide16", "wide\n".encode("utf-16"))
    committed(tree)


def without_x_bits(tree: WorkTree) -> None:
    tree.git("config", "core.fileMode", "false")
    tree.git("config", "core.symlinks", "false")
    committed(tree)


def further(tree: WorkTree) -> None:
    """A further work tree of a repository."""
    committed(tree)
    main = tree.top.with_name(f"{tree.top.name}.main")
    shutil.move(tree.top, main)
    WorkTree(main, tree.state).git("worktree", "add", "-q", "--detach", str(tree.top))


def ignoring(tree: WorkTree) -> None:
    tree.write(".gitignore", b"*.o\nlogs/\n")
    tree.write("ignored.o", b"x")
    tree.write("logs/tracked", b"x")
    tree.git("add", "--force", "--", "logs/tracked")
    committed(tree)
    tree.write("logs/untracked", b"x")
    Path(tree.repository.common_dir, "info", "exclude").write_text("*.tmp\n")
    tree.write("ignored.tmp", b"x")


STATES: dict[str, State] = {
    state.__name__: state
    for state in (
        committed,
        untracked,
        staged,
        intended,
        detached,
        stashed,
        merging,
        rebasing,
        with_submodule,
        with_nested,
        sparse,
        split,
        flagged,
        filtered,
        converted,
        by_attributes,
        without_x_bits,
        further,
        ignoring,
    )
}
