"""The records of worktrees: a small file for each in the state folder, written before the worktree is made."""

from __future__ import annotations

import contextlib
import json
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.linked import linked_at
from teamchat.core.checkpoint.refs import tree_of
from teamchat.core.checkpoint.values import GitRepository, NoRepository
from teamchat.core.errors import CheckpointFailed, StoreError
from teamchat.core.files.folders import WRITABLE
from teamchat.core.files.whole_files import locked_beside, put_in_place, write_private
from teamchat.core.routing.names import fold
from teamchat.core.worktrees import FOLDER
from teamchat.patterns import regex
from teamchat.runners.untrusted.regular_files import read_regular

_LARGEST = 1 << 16
_DIGITS = regex("([0-9]+)")
_UNFIT = regex(r"[^\w.-]+|\.(?=\.)")


class Owner(Struct, frozen=True):
    """The session whose members have the worktrees. `refs` is where it keeps its checkpoints."""

    session: int
    name: str
    refs: str


class Worktree(Struct, frozen=True):
    """A worktree of a member; for one of its places, the `member` is the name of that: `sarah#3`."""

    session: int
    session_name: str
    member: str
    branch: str
    """The branch that it is on."""
    top: Path
    """The user's work tree that it is made of."""
    folder: Path
    """The worktree itself."""
    refs: str
    """The beginning of the refs of its trees: `base` is the common tree when it was made or merged last."""
    start: str | None = None
    """The commit at which its `branch` began; None before the first commit."""
    made: bool = False
    """False until its files are there."""

    def ref(self, name: str) -> str:
        """Return the full name of one of its refs."""
        return f"{self.refs}/{name}"


class Opened(Struct, frozen=True):
    """A worktree in order. `home` is the user's work tree, `own` its own, `base` a tree."""

    tree: Worktree
    home: GitRepository
    own: GitRepository
    base: str


def member_key(member: str) -> str:
    """Return the member's key in names of files and refs, which ignores the case of its name."""
    return sha256(fold(member).encode()).hexdigest()[:12]


def branch_name(session: str, member: str) -> str:
    """Name the branch of a member's worktree, in characters that git takes."""
    return f"teamchat/{_fit(session)}/{_fit(member)}"


def _fit(name: str) -> str:
    fit = _UNFIT.sub("-", name).strip("-.").removesuffix(".lock")
    return fit[:60].rstrip("-.") or "session"


def find(state: Path, session: int, member: str) -> Worktree | None:
    """Find the worktree of that member in that session."""
    return _read(_file(state, session, member))


def all_of(state: Path, session: int | None = None) -> list[Worktree]:
    """List the worktrees of a session, or of all, half-made ones included."""
    trees = (_read(file) for file in sorted((state / FOLDER).glob("*.json")))
    wanted = (tree for tree in trees if tree and session in (None, tree.session))
    return sorted(wanted, key=lambda tree: (tree.session, _in_order(tree.member)))


def _in_order(name: str) -> list[str | int]:
    """Build a sort key that puts `sarah#10` behind `sarah#9`."""
    return [int(part) if place % 2 else part for place, part in enumerate(_DIGITS.split(name))]


def keep(state: Path, tree: Worktree) -> Worktree:
    """Write the record of a worktree. Raises `StoreError`."""
    file = _file(state, tree.session, tree.member)
    fields = {name: getattr(tree, name) for name in Worktree.__struct_fields__}
    fields |= {"top": str(tree.top), "folder": str(tree.folder)}
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked_beside(file) as new:
            write_private(new, json.dumps(fields).encode("utf-8", "surrogatepass"))
            put_in_place(new, file)
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}; {WRITABLE}") from error
    return tree


def forget(state: Path, tree: Worktree) -> None:
    """Remove the record of a worktree, and the folders that were only for it."""
    file = _file(state, tree.session, tree.member)
    for path in (file, file.with_name(f"{file.name}.lock")):
        path.unlink(missing_ok=True)
    for folder in (tree.folder.parent, tree.folder.parent.parent):
        with contextlib.suppress(OSError):
            folder.rmdir()


def opened(state: Path, tree: Worktree) -> Opened | str:
    """Open the worktree with its repository; return why it cannot be used otherwise, as the rest of a sentence."""
    if not tree.made:
        return "its making was interrupted"
    home = find_repository(tree.top, state)
    if isinstance(home, NoRepository) or home.top != tree.top:
        return f"{tree.top} is no longer the work tree that it was made of"
    if (own := linked_at(home, state, tree.folder)) is None:
        return f"{tree.folder} is no longer a worktree of {tree.top}"
    try:
        base = tree_of(home, state, tree.ref("base"))
    except CheckpointFailed as failed:
        return str(failed)
    return Opened(tree, home, own, base) if base else "what it was made from is no longer known"


def folder_for(state: Path, session: int, member: str, top: Path) -> Path:
    """Return the folder of a worktree. Its last part is the name of the user's folder.

    Tools may take that for the project's name.
    """
    return state.resolve() / FOLDER / str(session) / member / (top.name or "root")


def _file(state: Path, session: int, member: str) -> Path:
    return state / FOLDER / f"{session}-{member_key(member)}.json"


def _read(file: Path) -> Worktree | None:
    try:
        fields = json.loads(read_regular(file, _LARGEST))
        tree = Worktree(**fields)
        return replace(tree, top=Path(tree.top), folder=Path(tree.folder))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
