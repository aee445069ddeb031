"""Teams with checks, and runs in which teamchat runs them between turns."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from tests.program import Result, run_here
from tests.scripted_team import Crew, Reply, Table, crew


def checked_crew(
    world: Path,
    checks: Mapping[str, str | Table],
    replies: Mapping[str, Sequence[Reply]] | None = None,
    members: Mapping[str, Table] | None = None,
) -> Crew:
    """A team with these checks, each a shell command or the keys of its table; max says Done in every turn."""
    made = crew(world, replies or {"max": ["Done."] * 9}, members=members or {"max": {"access": "edit"}})
    tables = [made.file.read_text()]
    for name, check in checks.items():
        keys = {"command": check} if isinstance(check, str) else check
        tables += [f"[checks.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items()), ""]
    made.file.write_text("\n".join(tables))
    trust_store().grant(load(made.file))
    return made


def until(*checks: str, rounds: int = 1, options: Sequence[str] = ()) -> Result:
    """Have max work until these checks are green."""
    named = [word for check in checks for word in ("--check", check)]
    return run_here("run", "until", "--do", "max", *named, "--rounds", str(rounds), *options, "Build it")


def repository() -> None:
    """Make the working folder a git repository with one commit."""
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", "-A"], check=True)
    who = ["-c", "user.name=k", "-c", "user.email=k@localhost"]
    subprocess.run(["git", *who, "commit", "-q", "-m", "begun", "--allow-empty"], check=True)
