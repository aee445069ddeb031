"""The version of an installed CLI, from its npm package."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from teamchat.runners.homes.versions import LARGEST, installed_version

PACKAGE = "@google/gemini-cli"


def npm(folder: Path, description: str) -> str:
    """A program as npm installs it: a link into a package that has this description."""
    package = folder / "lib" / "node_modules" / PACKAGE
    (package / "bundle").mkdir(parents=True)
    (package / "bundle" / "gemini.js").touch()
    (package / "package.json").write_text(description)
    (folder / "bin").mkdir()
    (folder / "bin" / "gemini").symlink_to("../lib/node_modules/@google/gemini-cli/bundle/gemini.js")
    return str(folder / "bin" / "gemini")


def test_it_is_that_of_the_package_that_the_link_leads_into(tmp_path: Path) -> None:
    program = npm(tmp_path, json.dumps({"name": PACKAGE, "version": "0.61.0"}))
    assert installed_version(program, PACKAGE) == "0.61.0"
    assert installed_version(program, "@openai/codex") is None
    assert installed_version(program, None) is None


def test_a_description_inside_of_the_package_is_passed_over(tmp_path: Path) -> None:
    program = npm(tmp_path, json.dumps({"name": PACKAGE, "version": "0.61.0"}))
    (Path(os.path.realpath(program)).parent / "package.json").write_text('{"type": "module"}')
    assert installed_version(program, PACKAGE) == "0.61.0"


@pytest.mark.parametrize(
    "description",
    [
        "",
        "no JSON",
        "[]",
        '{"name": "@google/gemini-cli"}',
        '{"name": "@google/gemini-cli", "version": 1}',
        "[" * 100_000,
    ],
)
def test_one_that_says_nothing_is_unknown(tmp_path: Path, description: str) -> None:
    assert installed_version(npm(tmp_path, description), PACKAGE) is None


def test_what_is_no_file_or_too_large_is_not_read(tmp_path: Path) -> None:
    text = json.dumps({"name": PACKAGE, "version": "0.61.0"})
    program = npm(tmp_path, text + " " * LARGEST)
    assert installed_version(program, PACKAGE) is None
    description = Path(os.path.realpath(program)).parent.parent / "package.json"
    description.unlink()
    os.mkfifo(description)
    assert installed_version(program, PACKAGE) is None


def test_a_program_of_no_package_has_none(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for program in ("/bin/sh", str(tmp_path / "nobody"), str(tmp_path / "loop"), "gemini"):
        assert installed_version(program, PACKAGE) is None


def test_what_it_says_is_shown_on_one_line(tmp_path: Path) -> None:
    assert installed_version(npm(tmp_path, json.dumps({"name": PACKAGE, "version": "1\n\x1b[2J2"})), PACKAGE) == "1 2"
