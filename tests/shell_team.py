"""A repository in the working folder, and teams of programs that change its files by a shell."""

from __future__ import annotations

import json
from pathlib import Path

from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from tests.core.checkpoint.worktree import WorkTree

FILES = {"app.py": b"a = 1\nb = 2\n", "tests/one.py": b"1\n", "tests/two.py": b"2\n", "run.sh": b"#!/bin/sh\n"}


def repository(unused: Path) -> WorkTree:
    """The working folder as a repository with one commit."""
    return WorkTree.committed(Path.cwd(), unused, {**FILES, ".gitignore": b"build/\nscripts/\nhome/\n"})


def shell(**commands: str) -> None:
    """A team of programs that read their prompt, and then run a shell. A "reader" has read access."""
    scripts = Path.cwd().parent / "scripts"
    scripts.mkdir(exist_ok=True)
    parts = ['[[members]]\nname = "kailai"\ntype = "human"']
    for name, command in commands.items():
        script = scripts / f"{name}.sh"
        script.write_text(f"cat > /dev/null; {command}\necho Done\n")
        argv = ["/bin/sh", str(script)]  # trust is in every file that a command line names
        access = "read" if name.startswith("reader") else "edit"
        parts.append(f'[[members]]\nname = "{name}"\nagent = "{name}-agent"\naccess = "{access}"')
        parts.append(f"[agents.{name}-agent]\ncommand = {json.dumps(argv)}")
    (file := Path("teamchat.toml")).write_text("\n".join(parts))
    trust_store().grant(load(file.absolute()))
