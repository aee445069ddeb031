"""Files that are read wherever another member could have put a pipe in their place: nobody waits for its other end."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import teamchat
from teamchat.core.errors import UsageError
from teamchat.core.team.find import FILE_NAME
from teamchat.core.team.init import check_free, plan
from teamchat.core.team.programs import OTHERWISE as INSTALL_IT
from teamchat.core.team.programs import Unusable, find_program
from teamchat.runners.base import Job
from teamchat.runners.claude.project import shows
from teamchat.runners.codex.skills import skill_names
from teamchat.runners.codex.usage import used_in
from teamchat.runners.gemini.folder_trust import trusts
from teamchat.runners.untrusted.regular_files import read_regular
from teamchat.runners.untrusted.settings_json import table_in

READS = re.compile(r"""\.read_text\(|\.read_bytes\(|(?<!def )(?<!os\.)\bopen\((?:encoding|file,|path,|"r)""")
OTHERWISE = {
    "cli/chatting/keys.py": (1, "a file that it has made for the editor"),
    "cli/demo.py": (1, "a file of the package"),
    "cli/exporting/html.py": (3, "files of the package"),
    "cli/help.py": (2, "a page of the package"),
    "cli/import_.py": (1, "a file that the user names, which may be a pipe"),
    "cli/startup/piped.py": (1, "a file that the user names for this message, which may be a pipe"),
    "core/checkpoint/linked.py": (1, "a file of the state folder"),
    "core/checkpoint/refs.py": (1, "a file of the state folder"),
    "core/checkpoint/shadow.py": (1, "files of the state folder"),
    "core/checkpoint/private.py": (1, "a file of /proc"),
    "core/checkpoint/memory.py": (1, "a file of the state folder"),
    "core/checkpoint/take.py": (4, "files of the state folder"),
    "core/team/init.py": (1, "a file of the package"),
    "core/doctor/versions.py": (1, "a file of the package"),
    "core/doctor/parity.py": (1, "a file of the package"),
    "core/team/programs.py": (1, "the interpreter that runs this"),
    "runners/child/command.py": (2, "files of /proc"),
    "runners/child/guardian.py": (1, "a file of /proc"),
    "runners/child/process.py": (2, "a file that it has just made"),
    "runners/untrusted/regular_files.py": (1, "the function itself"),
}


@pytest.mark.parametrize("what", ["a folder", "a pipe"])
def test_only_a_file_is_read_and_nobody_is_waited_for(tmp_path: Path, what: str) -> None:
    (tmp_path / "it").mkdir() if what == "a folder" else os.mkfifo(tmp_path / "it")
    with pytest.raises(OSError, match="Is a directory" if what == "a folder" else "it is not a file"):
        read_regular(tmp_path / "it", 10)


def test_a_file_is_read_up_to_a_size(tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(b"0123456789")
    assert read_regular(tmp_path / "it", 10) == b"0123456789"
    with pytest.raises(ValueError, match="is larger than 9 bytes"):
        read_regular(tmp_path / "it", 9)


def of_claudes_settings(folder: Path) -> object:
    (folder / ".claude.json").write_text(f'{{"projects": {{"{folder}/work": {{"hasTrustDialogAccepted": true}}}}}}')
    package = folder / "claude"
    (package / "bin").mkdir(parents=True)
    (package / "package.json").write_text('{"name": "@anthropic-ai/claude-code", "version": "2.1.330"}')
    (package / "bin" / "claude").touch(0o755)
    (folder / "work").mkdir()
    env = {"HOME": str(folder), "PATH": str(package / "bin")}
    return shows(Job(("claude",), folder / "work", folder / "scratch", env=env))


def of_a_program(folder: Path) -> object:
    (folder / "tool").chmod(0o755)
    return find_program(str(folder / "tool"), {})


@pytest.mark.parametrize(
    ("place", "look", "found"),
    [
        (".codex/skills/a/SKILL.md", lambda folder: skill_names(folder, {"HOME": str(folder)}), {"a"}),
        (".codex/sessions/1/2/3/rollout-1-s.jsonl", lambda folder: used_in({"HOME": str(folder)}, "s"), None),
        (".gemini/trustedFolders.json", lambda folder: trusts(folder, {"HOME": str(folder)}), False),
        (".claude/settings.json", of_claudes_settings, False),
        ("settings.json", lambda folder: table_in(folder / "settings.json"), {}),
        ("tool", of_a_program, Unusable(f"is not a file; {INSTALL_IT}")),
    ],
)
def test_a_pipe_in_the_place_of_a_file_of_a_cli_says_nothing(
    tmp_path: Path, place: str, look: Callable[[Path], object], found: object
) -> None:
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / place)
    assert look(tmp_path) == found


def test_init_asks_before_it_replaces_a_pipe(tmp_path: Path) -> None:
    new = plan("offline", "phoenix", "kailai", ())
    name = next(name for name in new.files if name != FILE_NAME)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(UsageError, match="already exists"):
        check_free(tmp_path / FILE_NAME, "offline")


def test_nothing_else_reads_a_file_that_may_be_a_pipe() -> None:
    package = Path(teamchat.__file__).parent
    sources = {str(file.relative_to(package)): file.read_text() for file in package.rglob("*.py")}
    found = {name: len(READS.findall(text)) for name, text in sources.items() if READS.search(text)}
    assert found == {name: count for name, (count, _why) in OTHERWISE.items()}
