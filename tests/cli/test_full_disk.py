"""An agent that fills the disk of the state folder, on a small file system of its own."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.helpers import actors
from tests.program import TIMEOUT_S, Result

FILLS = 'import os, sys\nwhile True:\n    os.write(1, b"x" * 65536)\n'
HIDES = 'import os, sys\ntry:\n    while True: os.write(1, b"x" * 65536)\nexcept OSError:\n    pass\n'

# a reply that does not compress, and on the disk no room for it in the store
ANSWERS_AND_FILLS = """import base64, os
with open("runs", "a") as file:
    file.write("x")
os.write(1, b"Abc " + base64.b64encode(os.urandom(250_000)))
disk = os.statvfs(os.environ["TEAMCHAT_HOME"])
with open(os.environ["TEAMCHAT_HOME"] + "/filler", "wb", 0) as file:
    file.write(bytes(disk.f_bfree * disk.f_frsize - 90_000))
"""

FILL = 'dd if=/dev/zero of="$TEAMCHAT_HOME/filler" bs=4096 2> /dev/null'


@functools.cache
def unshares() -> bool:
    """Whether this system lets its user mount a file system of his own."""
    if not shutil.which("unshare"):
        return False
    mount = ["unshare", *_user(), "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(mount, capture_output=True, check=False).returncode == 0


def _user() -> list[str]:
    return ["--map-root-user"] if os.geteuid() else []


own_mounts = pytest.mark.skipif(not unshares(), reason="this system lets nobody mount a file system of his own")


def on_a_small_disk(world: Path, *lines: str, size: str = "4m") -> Result:
    """Run lines of a shell, in which `teamchat` is the program, with a state folder of that size."""
    script = [
        f"mount -t tmpfs -o size={size} tmpfs '{world}/state' || exit 99",
        f'teamchat() {{ \'{sys.executable}\' -m teamchat "$@"; echo "= $?" >&2; }}',
        *lines,
    ]
    done = subprocess.run(
        ["unshare", *_user(), "--mount", "sh", "-c", "\n".join(script)],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    return Result(done.returncode, done.stdout, done.stderr)


def team(fills: str) -> None:
    Path("fills.py").write_text(fills)
    actors({"max": ["say", "never"], "sarah": ["say", "Hi."]})
    file = Path("teamchat.toml")
    lines = file.read_text().split("\n")
    at = lines.index("[agents.max-agent]") + 1
    lines[at] = f'command = ["{sys.executable}", "fills.py"]'
    file.write_text("\n".join(lines))


@own_mounts
@pytest.mark.parametrize(
    ("fills", "fails"), [(FILLS, "ended with exit code 1"), (HIDES, "may have lost some of its answer")]
)
def test_an_agent_that_fills_the_disk_fails_and_gives_its_space_back(world: Path, fills: str, fails: str) -> None:
    team(fills)
    ran = on_a_small_disk(
        world,
        "teamchat send --trust --to max Begin",
        "teamchat send --to sarah 'And you?'",
        "teamchat resume --skip",
        "teamchat log",
        f"find '{world}/state' -name stdout",
    )
    first, second, third, fourth, fifth = ran.err.split("= ")
    assert f"failed: max {fails}" in first
    assert f"output has filled the disk of {world}/state/workspaces/" in first
    assert "; make room there; held: max\n· try: teamchat resume\n" in first
    assert "Traceback" not in ran.err
    assert [part[0] for part in (second, third, fourth, fifth)] == ["1", "0", "0", "0"], ran.err
    log = "msg-1 kailai -> max:\nBegin\n\nmsg-2 kailai -> sarah:\nAnd you?\n\nmsg-3 sarah (turn 2):\nHi.\n\n"
    assert ran.out == f"sarah:\nHi.\n\n{log}"


@own_mounts
def test_a_reply_that_the_full_disk_kept_out_of_the_store_is_stored_by_resume(world: Path) -> None:
    team(ANSWERS_AND_FILLS)
    ran = on_a_small_disk(
        world,
        "teamchat send --trust --to sarah Begin",
        "teamchat send --to max Begin",
        "teamchat status",
        "teamchat show",
        "teamchat stop",
        f"rm '{world}/state/filler'",
        "teamchat resume",
        "teamchat log -n 1",
    )
    assert "Traceback" not in ran.err
    _, sent, status, show, stop, resume, log, _ = ran.err.split("= ")
    assert "; the end of turn 2 (max) is kept, and the next command stores it; held: max\n" in sent
    assert "· has finished and is not stored yet: max, called by kailai in msg-3\n· try: teamchat resume\n" in status
    assert "\nturn 2 · max (max-agent) · has finished and is not stored yet\n" in ran.out
    assert "· turn 2 (max) has finished and is not stored yet; teamchat resume continues\n" in stop
    assert "· turn 2 (max) had finished and is stored now\n" in resume
    assert "begins" not in resume
    assert (Path("runs").read_text(), ran.out.count("\nmsg-4 max (turn 2):\nAbc")) == ("x", 1)
    assert [part[0] for part in (sent, status, show, stop, resume, log)] == ["0", "1", "0", "0", "0", "0"]


@own_mounts
def test_on_a_full_disk_what_was_said_can_be_read(world: Path) -> None:
    actors({"max": ["reply", "Blue."]})
    reads = ["status", "log", "show", "sessions", "search Blue", "usage", "todo", "export --format md"]
    ran = on_a_small_disk(
        world,
        "teamchat send --trust Begin",
        FILL,
        *(f"teamchat {typed}" for typed in reads),
        f"test -s '{world}/state/filler' && df '{world}/state' | grep -q 100% && echo full",
    )
    assert re.findall(r"^= (\d+)$", ran.err, re.MULTILINE) == ["0"] * (1 + len(reads)), ran.err
    assert ran.out.endswith("full\n")
    assert ran.out.count("msg-2 max (turn 1):\nBlue.\n") == 2  # status and log
    assert "teamchat log --full msg-2" in ran.out  # search
    assert "\n> Blue.\n" in ran.out  # export


@own_mounts
def test_on_a_full_disk_what_writes_says_so(world: Path) -> None:
    actors({"max": ["reply", "Blue."]})
    ran = on_a_small_disk(
        world,
        "teamchat send --trust Begin",
        FILL,
        "teamchat sessions delete --yes s1",
        "teamchat send Again",
        "teamchat todo add Tests",
        f"rm '{world}/state/filler'",
        "teamchat sessions delete --yes s1",
    )
    _, *refused, deleted, _ = ran.err.split("= ")
    for said in refused:
        assert "cannot be written: its disk is full; free some space there\n" in said
        assert "TEAMCHAT_HOME" not in said
    assert "session s1 is deleted" in deleted
    assert re.findall(r"^= (\d+)$", ran.err, re.MULTILINE) == ["0", "13", "13", "13", "0"]


@own_mounts
def test_a_backup_for_which_the_disk_has_no_room_leaves_no_file(world: Path) -> None:
    actors({"max": ["reply", "Blue."]})
    ran = on_a_small_disk(
        world, "teamchat send --trust Begin", FILL, "teamchat doctor --store", f"find '{world}/state' -name '*.backup*'"
    )
    assert "✗  backup" in ran.out
    assert ran.out.endswith("No space left on device\n"), ran.out


@own_mounts
def test_many_may_read_at_once_on_a_full_disk(world: Path) -> None:
    actors({"max": ["reply", "Blue."]})
    ran = on_a_small_disk(world, "teamchat send --trust Begin", FILL, *["teamchat log &"] * 4, "wait")
    assert ran.out.count("max (turn 1):\nBlue.") == 4, ran.err
