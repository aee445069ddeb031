"""Worktrees of members: each has the files of a work tree to itself, on a branch of its own, until it is merged."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

FOLDER = "worktrees"


class PlaceTurn(Struct, frozen=True):
    """A turn in a place of its own: its number, its route, and its outcome. A judge picks one of those `judged`."""

    number: int
    route: int
    done: bool
    undone: bool = False
    judged: bool = False

    @property
    def unfit(self) -> str | None:
        """Why its changes are not to be merged, in words that follow its name; None if they are."""
        if self.undone:
            return "was undone"
        return None if self.done else "has not done its part"


def first_try(place: str) -> str:
    """Find the place of the first try of a process's part: `sarah#3` for `sarah#3.2`."""
    member, _, number = place.rpartition("#")
    return f"{member}#{number.partition('.')[0]}"


def any_made(state: Path) -> bool:
    """Whether a member ever had a worktree in this state folder. If none had, nothing here has to be loaded."""
    return (state / FOLDER).is_dir()
