"""Whether a program can be run: installed, executable, with the interpreter that it names."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from teamchat.core.team.programs import BINARY, OTHERWISE, Unusable, find_program


def program(folder: Path, name: str = "tool", text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
    path = folder / name
    path.write_text(text, newline="")
    path.chmod(mode)
    return path


def test_one_that_can_be_run_is_found_by_its_path_and_on_the_path(tmp_path: Path) -> None:
    path = program(tmp_path)
    assert find_program(str(path), {}) == str(path)
    assert find_program("tool", {"PATH": str(tmp_path)}) == str(path)


def test_one_that_is_not_there_is_not_installed(tmp_path: Path) -> None:
    assert find_program(str(tmp_path / "tool"), {}) == Unusable(f"is not installed; {OTHERWISE}")
    assert find_program("codex", {"PATH": str(tmp_path)}) == Unusable(
        "is not installed", "npm install -g @openai/codex"
    )


@pytest.mark.parametrize("by_path", [True, False])
def test_one_without_its_x_bit_comes_with_chmod(tmp_path: Path, by_path: bool) -> None:
    path = program(tmp_path, "my tool", mode=0o644)
    found = find_program(str(path) if by_path else "my tool", {"PATH": f"/nowhere:{tmp_path}"})
    assert found == Unusable("is not executable", f"chmod +x {shlex.quote(str(path))}")


def test_a_folder_is_none(tmp_path: Path) -> None:
    (tmp_path / "tool").mkdir()
    assert find_program(str(tmp_path / "tool"), {}) == Unusable(f"is a folder; {OTHERWISE}")
    assert find_program("tool", {"PATH": str(tmp_path)}) == Unusable(f"is not installed; {OTHERWISE}")


def test_a_link_to_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "tool").symlink_to("gone")
    assert find_program("tool", {"PATH": str(tmp_path)}) == Unusable(
        f"is a link to nothing: {tmp_path}/tool; {OTHERWISE}"
    )


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("#!/no/such/sh", "'/no/such/sh'"),
        ("#! /no/such/sh -e", "'/no/such/sh'"),
        ("#!/bin/sh\r", r"'/bin/sh\r'"),
        ("#!/usr/bin/env no-such-node", "'no-such-node'"),
        ("#!/usr/bin/env -S A=1 no-such-node --flag", "'no-such-node'"),
    ],
)
def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path, line: str, missing: str) -> None:
    path = program(tmp_path, text=f"{line}\n")
    assert find_program(str(path), {"PATH": "/bin"}) == Unusable(
        f"cannot run: its first line names {missing}, which is not there; install that, or change the line"
    )


@pytest.mark.parametrize("text", ["", "\n", "echo hi\n", "#comment\n", " #!/bin/sh\n", "\ufeff#!/bin/sh\n", "x" * 500])
def test_a_text_without_an_interpreter_is_told_what_to_begin_with(tmp_path: Path, text: str) -> None:
    path = program(tmp_path, text=text)
    assert find_program(str(path), {}) == Unusable("has no #! line; begin the file with one, such as #!/bin/sh")
    with pytest.raises(OSError, match="Exec format error"):
        subprocess.run([path], check=False)


def test_a_binary_program_needs_none(tmp_path: Path) -> None:
    path = program(tmp_path)
    path.write_bytes(Path(sys.executable).read_bytes()[:4096])
    assert find_program(str(path), {}) == str(path)


@pytest.mark.parametrize("begins", [*BINARY, b"\x7fELF" + bytes(14) + b"\xff\xff", b"MZ\0"], ids=repr)
@pytest.mark.parametrize("taught", [True, False])
@pytest.mark.skipif(sys.platform != "linux", reason="another system may run several kinds")
def test_a_program_for_another_machine_is_one_unless_the_system_was_taught_to_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: bytes, *, taught: bool
) -> None:
    formats = tmp_path / "formats"
    formats.mkdir()
    for name in ("register", "status", *(["qemu-arm"] if taught else [])):
        (formats / name).touch()
    monkeypatch.setattr("teamchat.core.team.programs.FORMATS", formats)
    path = program(tmp_path)
    path.write_bytes(begins)
    wrong = Unusable(f"is for another kind of machine; {OTHERWISE}")
    assert find_program(str(path), {}) == (str(path) if taught else wrong)


@pytest.mark.parametrize("text", ["#!\n", "#!/bin/sh -e\n", "#!/usr/bin/env sh\n", "#!/usr/bin/env\n"])
def test_any_other_first_line_is_let_be(tmp_path: Path, text: str) -> None:
    path = program(tmp_path, text=text)
    assert find_program(str(path), {"PATH": "/bin:/usr/bin"}) == str(path)
