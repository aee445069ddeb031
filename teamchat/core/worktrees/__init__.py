"""Worktrees of members: each has the files of a work tree to itself, on a branch of its own, until it is merged."""
