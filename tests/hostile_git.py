"""A git repository whose configuration, attributes and hooks run a command in every way that git has for it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

Trap = Callable[[str], str]
"""The shell command that makes the canary of that name."""

ATTRIBUTES = "*.txt diff=evil filter=evil\n*.bin diff=text filter=stream\n"


def git(folder: Path, *arguments: str) -> str:
    """What plain git says, with no settings of the machine."""
    who = ("-c", "user.name=kai", "-c", "user.email=kai@example.org", "-c", "protocol.file.allow=always")
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *who, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make(folder: Path) -> Path:
    """An ordinary repository of two commits and a change that is in none; there is a submodule in it."""
    folder.mkdir(parents=True, exist_ok=True)
    inner = folder.with_name(f"{folder.name}.inner")
    inner.mkdir()
    for one in (inner, folder):
        git(one, "init", "-q", "-b", "main")
    (inner / "part.txt").write_text("part\n")
    git(inner, "add", "part.txt")
    git(inner, "commit", "-qm", "A part")
    (folder / "notes.txt").write_text("first\nsecond\n")
    (folder / "blob.bin").write_bytes(b"\0\1\2")
    git(folder, "add", "notes.txt", "blob.bin")
    git(folder, "commit", "-qm", "Begin")
    git(folder, "submodule", "--quiet", "add", str(inner), "part")
    (folder / "notes.txt").write_text("first\nchanged\n")
    git(folder, "add", "notes.txt")
    git(folder, "commit", "-qm", "Change a line")
    (folder / "notes.txt").write_text("first\nnot committed\n")
    (folder / "blob.bin").write_bytes(b"\0\1\3")
    (folder / "part" / "part.txt").write_text("another\n")
    return folder


def arm(folder: Path, trap: Trap) -> None:
    """Set every trap that a repository can have, in the repository and in its submodule."""
    (folder / ".gitattributes").write_text(ATTRIBUTES)
    (folder / "part" / ".gitattributes").write_text(ATTRIBUTES)
    for name, where in (("top", folder / ".git"), ("part", folder / ".git" / "modules" / "part")):
        _settings(where, name, trap)
        _hooks(where, name, trap)


def _settings(where: Path, of: str, trap: Trap) -> None:
    evil = where / "evil"
    evil.mkdir(exist_ok=True)

    def program(kind: str) -> str:
        script = evil / f"{kind}.sh"
        script.write_text(f"#!/bin/sh\n{trap(f'git-{of}-{kind}')}\ncat\n")
        script.chmod(0o755)
        return str(script)

    (where / "included").write_text(f"[core]\n\teditor = {program('editor')}\n[gpg]\n\tprogram = {program('gpg')}\n")
    (where / "config").write_text(
        (where / "config").read_text()
        + f"[core]\n\tfsmonitor = {program('fsmonitor')}\n\tpager = {program('pager')}\n"
        + f"\talternateRefsCommand = {program('alternates')}\n"
        + f"\tsshCommand = {program('ssh')}\n\taskPass = {program('askpass')}\n\tworktree = {where.parent}\n"
        + f"[diff]\n\texternal = {program('external')}\n"
        + f'[diff "evil"]\n\tcommand = {program("command")}\n\ttextconv = {program("textconv")}\n'
        + f'[diff "text"]\n\ttextconv = {program("textconv2")}\n'
        + f'[filter "evil"]\n\tclean = {program("clean")}\n\tsmudge = {program("smudge")}\n\trequired = true\n'
        + f'[filter "stream"]\n\tprocess = {program("process")}\n'
        + f'[credential]\n\thelper = "!{program("credential")}"\n'
        + f'[alias]\n\tstatus = "!{program("alias")}"\n'
        + "[log]\n\tshowSignature = true\n[interactive]\n\tdiffFilter = cat\n"
        + f"[pager]\n\tlog = {program('pagerlog')}\n\tdiff = {program('pagerdiff')}\n"
        + f'[remote "origin"]\n\turl = "ext::{program("remote")}"\n\tpromisor = true\n'
        + f"\tuploadpack = {program('uploadpack')}\n[protocol]\n\tallow = always\n"
        + "[extensions]\n\tpartialClone = origin\n[include]\n\tpath = included\n"
    )


def _hooks(where: Path, of: str, trap: Trap) -> None:
    for name in ("post-index-change", "post-checkout", "fsmonitor-watchman", "pre-commit", "reference-transaction"):
        hook = where / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{trap(f'git-{of}-hook-{name}')}\n")
        hook.chmod(0o755)
