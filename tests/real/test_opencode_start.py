"""opencode is a program of Bun, which obeys a `tsconfig.json` where it starts: whatever starts it, none runs code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pexpect
import pytest

from teamchat.core.errors import ExitCode
from teamchat.runners.base import Access
from tests.images import png
from tests.program import ROOT
from tests.real.model.replies import Reply, ToolUse
from tests.real.model.server import messages, tool_results
from tests.real.test_real_open import Screen
from tests.real.world import TIMEOUT_S, World

pytestmark = pytest.mark.real
PATHS: Mapping[str, object] = {"compilerOptions": {"baseUrl": ".", "paths": {"*": ["./p.js"]}}}
COMMENTED = '// of the editor\n{/* all */"compilerOptions": {"paths": {"*": ["./p.js"],},},}\n'


def in_folder(name: str, text: str = json.dumps(PATHS)) -> Callable[[Path], None]:
    return lambda folder: write(folder / name, text)


def extended(folder: Path) -> None:
    write(folder / "base.json", json.dumps(PATHS))
    write(folder / "tsconfig.json", json.dumps({"extends": "./base.json"}))


WAYS: Mapping[str, Callable[[Path], None]] = {
    "tsconfig": in_folder("tsconfig.json"),
    "jsconfig": in_folder("jsconfig.json"),
    "commented": in_folder("tsconfig.json", COMMENTED),
    "extended": extended,
}


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def plant(folder: Path, way: str = "tsconfig") -> Path:
    """Plant it in `folder`; the returned file is there once its code has run."""
    sprung = folder.parent / "sprung"
    WAYS[way](folder)
    write(folder / "p.js", f"require('node:child_process').execSync({json.dumps(f'touch {sprung}')})\n")
    return sprung


@pytest.fixture
def repository(user: World) -> World:
    """A repository with a folder `sub`, which a member of opencode may work in."""
    (user.cwd / "sub").mkdir()
    (user.cwd / "sub" / "note.txt").write_text("XYLOPHONE\n")
    subprocess.run(["git", "init", "-q"], cwd=user.cwd, check=True)
    return user


def plain(user: World, *arguments: str, cwd: Path) -> None:
    program = shutil.which("opencode", path=user.env["PATH"])
    assert program
    subprocess.run(
        [program, *arguments], cwd=cwd, env={**user.env, "PWD": str(cwd)}, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S,
        check=True, capture_output=True,
    )  # fmt: skip


@pytest.mark.parametrize("place", ["cwd", "parent"])
@pytest.mark.parametrize("way", WAYS)
def test_what_runs_in_the_plain_program_runs_in_no_turn(repository: World, way: str, place: str) -> None:
    top = repository.cwd
    sprung = plant(top / "sub" if place == "cwd" else top, way)
    plain(repository, "--version", cwd=top / "sub")
    assert sprung.exists()
    sprung.unlink()
    repository.member("opencode", 'cwd = "sub"')
    repository.server.script(
        "opencode", [Reply("Hm.", tools=(ToolUse("read", {"filePath": "note.txt"}),)), Reply("Hi.")]
    )
    ran = repository.json("send", "Hi")
    assert (ran.code, ran.result["text"]) == (0, "Hi."), ran.err
    assert "XYLOPHONE" in tool_results(repository.last("opencode"))[0]
    assert f"Working directory: {top / 'sub'}\n" in repository.system("opencode")
    assert f"Workspace root folder: {top}\n" in repository.system("opencode")
    assert not sprung.exists()


@pytest.mark.core
@pytest.mark.parametrize("access", ["read", "edit", "full"])
def test_a_member_of_any_access_works_in_its_folder_as_before(repository: World, access: Access) -> None:
    """It reads and edits by relative paths, obeys AGENTS.md, is shown an image, and goes on with its session."""
    top = repository.cwd
    folder = top / "sub"
    sprung = plant(folder)
    (folder / "AGENTS.md").write_text("Say MARIMBA.\n")
    (top / "AGENTS.md").write_text("Say CELESTA.\n")
    (top / "shot.png").write_bytes(png())
    repository.member("opencode", f'cwd = "sub"\naccess = "{access}"\nmemory = "resume"')
    edit = ToolUse("edit", {"filePath": "note.txt", "oldString": "XYLOPHONE", "newString": "GLOCKENSPIEL"})
    tries = (ToolUse("read", {"filePath": "note.txt"}),)
    rest = (edit, ToolUse("bash", {"command": "pwd", "description": "Where"}))
    repository.server.script("opencode", [Reply("Hm.", tools=tries), Reply("So.", tools=rest), Reply("Done.")])
    ran = repository.json("send", "--trust", "--file", "shot.png", "Hi")
    assert (ran.code, ran.result["text"]) == (0, "Done."), ran.err
    assert not sprung.exists()
    assert ("GLOCKENSPIEL" in (folder / "note.txt").read_text()) == (access != "read")
    results = tool_results(repository.last("opencode"))
    assert "XYLOPHONE" in results[0]
    assert (str(folder) in results[2]) == (access == "full")
    assert b"image/png" in repository.last("opencode").raw
    system = repository.system("opencode")
    assert "Say MARIMBA." in system
    assert "Say CELESTA." in system
    receipt = repository.receipt(1)
    assert receipt["setup"]["cwd"] == str(folder)
    assert receipt["outcome"]["files"] == ([] if access == "read" else ["note.txt"])
    repository.server.script("opencode", [Reply("I remember.")])
    assert repository.json("send", "--trust", "And now?").result["text"] == "I remember."
    assert any("Hi" in message.text for message in messages(repository.last("opencode"))[:-1])
    assert not sprung.exists()


def test_a_member_that_plants_one_is_marked_and_its_next_turn_runs_nothing(repository: World) -> None:
    folder = repository.cwd / "sub"
    sprung = repository.cwd / "sprung"
    code = f"require('node:child_process').execSync('touch {sprung}')\n"
    files = {"tsconfig.json": json.dumps(PATHS), "jsconfig.json": json.dumps(PATHS), "p.js": code}
    repository.member("opencode", 'cwd = "sub"\naccess = "edit"')
    tries = tuple(ToolUse("write", {"filePath": str(folder / name), "content": text}) for name, text in files.items())
    repository.server.script("opencode", [Reply("Hm.", tools=tries), Reply("Done.")])
    ran = repository.json("send", "--trust", "Hi")
    assert ran.code == 0, ran.err
    assert sorted(repository.receipt(1)["outcome"]["files_that_run"]) == ["jsconfig.json", "tsconfig.json"]
    repository.server.script("opencode", [Reply("Hi.")])
    assert repository("send", "--trust", "Go on").code == 0
    assert not sprung.exists()
    plain(repository, "--version", cwd=folder)
    assert sprung.exists()


@pytest.mark.parametrize("order", [("doctor",), ("doctor", "--live"), ("team",)])
def test_no_command_runs_it_where_it_is_run_and_in_the_temporary_folder(
    repository: World, order: tuple[str, ...]
) -> None:
    """`TMPDIR` stands for a folder that others may write."""
    repository.member("opencode", 'args = ["--variant", "high"]' if order == ("doctor",) else "")
    places = [plant(repository.cwd), plant(Path(repository.env["TMPDIR"]))]
    repository.server.script("opencode", [Reply("OK")])
    ran = repository(*order)
    assert {"team": "opencode", "doctor": "version", "--live": "'OK'"}[order[-1]] in ran.out
    assert [place for place in places if place.exists()] == []


def test_opening_a_session_runs_nothing_and_goes_on_with_it(repository: World) -> None:
    folder = repository.cwd / "sub"
    repository.member("opencode", 'cwd = "sub"\nmemory = "resume"')
    repository.server.script("opencode", [Reply("First answer.")])
    assert repository("send", "First question.").code == 0
    sprung = plant(folder)
    repository.server.script("opencode", [Reply("By hand.")])
    child = pexpect.spawn(
        sys.executable, ["-m", "teamchat", "open", "max"], cwd=str(repository.cwd), dimensions=(40, 120),
        env={**repository.env, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}, encoding="utf-8",
    )  # fmt: skip
    try:
        screen = Screen(child)
        screen.until(lambda: screen.shows("First answer.") and screen.shows("ctrl+p"))
        asked = len(repository.server.turns("opencode"))
        child.send("What is asked by hand.")
        screen.press_until("\r", lambda: len(repository.server.turns("opencode")) > asked)
        screen.until(lambda: screen.shows("By hand."))
    finally:
        child.close(force=True)
    assert f"Working directory: {folder}\n" in repository.system("opencode")
    assert "First question." in messages(repository.last("opencode"))[0].text
    assert not sprung.exists()
    write(folder / ".opencode" / "plugins" / "evil.js", f"require('node:fs').writeFileSync('{sprung}', '')")
    child = pexpect.spawn(
        sys.executable, ["-m", "teamchat", "open", "max"], cwd=str(repository.cwd),
        env={**os.environ, **repository.env}, encoding="utf-8",
    )  # fmt: skip
    child.expect("opencode runs the plugins that")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == ExitCode.NOT_TRUSTED
    assert not sprung.exists()
