"""Checkpoints of a work tree: taken, compared, put back.

A checkpoint is a tree object in the repository: every file on disk that git tracks, and every other that it does not
ignore, byte for byte as it lies there. The user's HEAD, index, stash, reflogs and configuration stay as they are.

Settings that make git run a program of the repository's choice are in its configuration: hooks, a file system monitor,
filters, external diffs. git gets a folder of teamchat's own as its GIT_DIR (`shadow.py`) and reads none of it.
"""
