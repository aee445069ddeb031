"""The module that Node loads before Gemini, in Node itself: which files exist for what looks as Gemini does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from teamchat.runners.base import Job
from teamchat.runners.gemini.project import NOWHERE, other_files

NODE = shutil.which("node")
LOOKS = """
import fs, { existsSync, readFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
const reads = (read, file) => { try { return read(file, "utf-8") } catch (error) { return error.code } };
const files = JSON.parse(process.argv[2]);
const seen = files.map((file) => [
  fs.existsSync(file), existsSync(file), reads(fs.readFileSync, file), reads(readFileSync, file),
]);
const looks = "require('fs').existsSync(process.argv[1])";
const child = spawnSync(process.execPath, ["-p", looks, files[0]], { encoding: "utf-8" });
console.log(JSON.stringify({ seen, options: process.env.NODE_OPTIONS ?? null, child: child.stdout.trim() }));
"""
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


def look(scratch: Path, env: Mapping[str, str], files: list[Path], defaults: str = "{}", **keys: Any) -> dict[str, Any]:
    """What a program that is started with the module sees of these files, and a program that it starts of the first."""
    scratch.mkdir()
    changed, modules = other_files(Job(("gemini",), files[0].parent, scratch, env=env, **keys), defaults)
    for path, content in modules.items():
        path.write_bytes(content)
    (scratch / "looks.mjs").write_text(LOOKS)
    assert NODE
    argv = [NODE, str(scratch / "looks.mjs"), json.dumps([str(file) for file in files])]
    done = subprocess.run(argv, env={**env, **changed}, capture_output=True, check=True, cwd=files[0].parent)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("A=1")
    return path


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), **more}


HIDDEN = [False, False, "ENOENT", "ENOENT"]
THERE = [True, True, "A=1", "A=1"]


def test_the_projects_files_are_not_there_and_its_others_are(tmp_path: Path) -> None:
    project = tmp_path / "home" / "a" / "b"
    names = (".env", ".gemini/.env", ".gemini/settings.json", "../.env", "../.gemini/.env", "sub/.env")
    files = [made(project / name) for name in names]
    others = [made(project / name) for name in (".env.example", "settings.json", ".gemini/commands/x.toml")]
    seen = look(tmp_path / "scratch", environment(tmp_path / "home"), [*files, *others])["seen"]
    assert seen == [HIDDEN] * len(files) + [THERE] * len(others)


@pytest.mark.parametrize("moved", [False, True], ids=["HOME", "GEMINI_CLI_HOME"])
def test_the_users_own_files_are_read(tmp_path: Path, *, moved: bool) -> None:
    home = tmp_path / "real home"
    names = (".env", ".gemini/.env", ".gemini/settings.json", ".gemini/extensions/x/.env")
    files = [made(home / name) for name in names]
    (tmp_path / "link").symlink_to(home)
    by_link = [tmp_path / "link" / name for name in names]
    env = environment(tmp_path, GEMINI_CLI_HOME=str(tmp_path / "link")) if moved else environment(tmp_path / "link")
    assert look(tmp_path / "scratch", env, [*files, *by_link])["seen"] == [THERE] * 8


def test_a_link_to_the_users_folder_in_a_project_gives_it_no_files(tmp_path: Path) -> None:
    made(tmp_path / "home" / ".gemini" / ".env")
    project = tmp_path / "project"
    project.mkdir()
    (project / ".gemini").symlink_to(tmp_path / "home" / ".gemini")
    (project / "plain").write_text("")
    files = [project / ".gemini" / ".env"]
    (project / ".gemini" / "other").write_text("")
    assert look(tmp_path / "scratch", environment(tmp_path / "home"), files)["seen"] == [HIDDEN]


@pytest.mark.parametrize("before", [None, "--no-warnings"])
def test_programs_that_gemini_starts_see_everything(tmp_path: Path, before: str | None) -> None:
    env = environment(tmp_path / "home", **({"NODE_OPTIONS": before} if before else {}))
    found = look(tmp_path / "a folder", env, [made(tmp_path / "project" / ".env")])
    assert found == {"seen": [HIDDEN], "options": before, "child": "true"}


@pytest.mark.parametrize("trusted", [False, True])
def test_settings_are_brought_that_are_in_no_file(tmp_path: Path, *, trusted: bool) -> None:
    files = [made(tmp_path / "project" / ".env"), Path(NOWHERE)]
    env = environment(tmp_path / "home")
    text = '{"a": "\u2028\\n\'"}'
    seen = look(tmp_path / "scratch", env, files, text, project_settings=trusted)["seen"]
    assert seen == [THERE if trusted else HIDDEN, [True, True, text, text]]
    assert not Path(NOWHERE).exists()


@pytest.mark.parametrize("name", ["undefined", "null"])
def test_what_is_no_name_is_refused_as_in_plain_node(tmp_path: Path, name: str) -> None:
    changed, modules = other_files(Job(("gemini",), tmp_path, tmp_path, env={}), "{}")
    for path, content in modules.items():
        path.write_bytes(content)
    looks = f"const fs = require('fs'); fs.existsSync({name}) || fs.readFileSync({name})"
    assert NODE
    done = subprocess.run(
        [NODE, "-e", looks], env={**environment(tmp_path), **changed}, capture_output=True, check=False
    )
    assert b"ERR_INVALID_ARG_TYPE" in done.stderr
