"""What a turn leaves in its private folder: it goes after the reply is stored, and never costs the reply."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.helpers import FILE, said, steady
from tests.program import Result, cli

DEEP = """
import os
print("Hello.", flush=True)
os.chdir(os.environ["TMPDIR"])
for _ in range(1010):
    os.mkdir("deep")
    os.chdir("deep")
"""
MOUNTS = 'mount -t tmpfs none "$TMPDIR" && echo Hello.'


def members(**commands: list[str]) -> None:
    rows = (f'[[members]]\nname = "{name}"\nagent = "{name}"' for name in commands)
    agents = (f"[agents.{name}]\ncommand = {json.dumps(command)}" for name, command in commands.items())
    FILE.write_text("\n".join((*rows, *agents)))


def test_folders_deeper_than_a_path_can_be_cost_no_reply(world: Path) -> None:
    members(max=[sys.executable, "-I", "-S", "-c", DEEP])
    ran = cli("send", "--trust", "go")
    assert (ran.code, ran.out) == (0, "max:\nHello.\n\n")
    assert [text for _, text in said()] == ["go", "Hello."]
    assert list((world / "tmp").iterdir()) == []
    assert list((world / "state").glob("workspaces/*/turns/*")) == []


def test_of_earlier_turns_only_folders_with_generated_names_are_removed(world: Path) -> None:
    members(max=["sh", "-c", "echo Hello."])
    assert cli("send", "--trust", "go").code == 0
    (workspace,) = (world / "state" / "workspaces").iterdir()
    left, others = "fedcba9876543210", ("notes", "fedcba987654321", "FEDCBA9876543210", "fedcba9876543210.old")
    for name in (left, *others):
        for folder in (workspace / "turns" / name, world / "tmp" / f"teamchat-{name}"):
            folder.mkdir(parents=True)
            (folder / "file").touch()
    (workspace / left).mkdir()
    assert cli("send", "again").code == 0
    assert {folder.name for folder in (workspace / "turns").iterdir()} == {*others}
    assert {folder.name for folder in (world / "tmp").iterdir()} == {f"teamchat-{name}" for name in others}
    assert (workspace / left).exists()


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_what_cannot_be_removed_is_said_and_tried_again_by_the_next_command(world: Path) -> None:
    """The agent's mount is gone with the namespace of the first command."""
    members(max=["sh", "-c", MOUNTS], sarah=["sh", "-c", "echo Bye."])
    script = f'exec {sys.executable} -m teamchat send --trust --to "$0" "$0"'
    ran = cli("send", "--trust", "--to", "sarah", "first")
    inside = in_namespace(script, "max")
    if "unshare failed" in inside.err or "mount" in inside.err:
        pytest.skip("this system lets no test mount anything")
    assert (inside.code, inside.out) == (0, "max:\nHello.\n\n")
    (left,) = (world / "tmp").iterdir()
    problem = f"· {steady(Result(0, '', str(left))).err} cannot be removed: Device or resource busy\n"
    assert steady(inside).err.endswith(problem)
    ran = cli("send", "--to", "sarah", "second")
    assert (ran.code, ran.out) == (0, "sarah:\nBye.\n\n")
    assert "cannot be removed" not in ran.err
    assert list((world / "tmp").iterdir()) == []
    assert list((world / "state").glob("workspaces/*/turns/*")) == []


def in_namespace(script: str, *words: str) -> Result:
    done = subprocess.run(
        ["unshare", "-r", "-m", "sh", "-c", script, *words], capture_output=True, text=True, check=False, timeout=120
    )
    return Result(done.returncode, done.stdout, done.stderr)
