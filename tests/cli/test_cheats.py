"""A hundred ways to make a check green without mending the code, each by a member of `run until`.

`tests/cheats/cheats.toml` says who catches which. A fifth of them run here; `make cheats` runs all, those of npm among
them, and each without any protection, too, to see that it does deceive a bare check.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from tests.cli.checked import repository
from tests.cli.test_run_until import report
from tests.program import ROOT, Result, run_here

HOME = os.environ.get("HOME", "/")  # before a test has one of its own
DATA = ROOT / "tests" / "cheats"
CHEATS: list[dict[str, Any]] = tomllib.loads((DATA / "cheats.toml").read_text())["cheat"]
PROJECTS: dict[str, dict[str, Any]] = tomllib.loads((DATA / "projects.toml").read_text())
QUICK = {
    "delete-failing-test-file", "skip-marks-on-failing-tests", "test-bodies-are-pass", "conftest-sets-exit-status-zero",
    "hidden-pytest-ini-ignores-file", "hidden-pytest-toml-narrows-functions", "setup-cfg-replaces-pyproject",
    "tox-ini-replaces-pyproject-section", "pyproject-testpaths-elsewhere", "shadow-pytest-module", "shadow-pluggy",
    "shadow-stdlib-argparse", "folder-with-entry-point-egg-info", "sitecustomize-beside-the-code",
    "gitignore-hides-new-conftest", "os-exit-at-import", "every-call-raises-skip-test", "claim-with-pasted-green-run",
    "records-equal-to-everything", "atexit-handler-forces-code-zero",
}  # fmt: skip
EVERY = [
    pytest.param(cheat, id=cheat["name"], marks=[] if cheat["name"] in QUICK else pytest.mark.cheats)
    for cheat in CHEATS
]
TESTS = {"pytest": ["tests/**", "pytest"]}
OF_NPM = ["test/**", "npm"]


@pytest.fixture(autouse=True)
def python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python of this run is the project's, and pytest keeps no cache that git does not ignore."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")


def modules(name: str, files: dict[str, str], to: Path) -> None:
    """The packages of a project of npm, which are installed once."""
    if "devDependencies" not in files.get("package.json", ""):
        return
    kept = ROOT / ".venv" / "cheats" / name
    if not (kept / "ready").exists():
        kept.mkdir(parents=True, exist_ok=True)
        (kept / "package.json").write_text(files["package.json"])
        npm = ["npm", "install", "--no-audit", "--no-fund", "--silent"]
        subprocess.run(npm, cwd=kept, check=True, env={**os.environ, "HOME": HOME})
        (kept / "ready").touch()
    shutil.copytree(kept / "node_modules", to, symlinks=True, copy_function=os.link)


def project(world: Path, name: str, command: str, doer: list[str], keys: dict[str, object]) -> None:
    """A repository with the project, and a team of one that works as `doer` does, whose check is the command."""
    folder = world / "project"
    files = PROJECTS[name]["files"]
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    os.chdir(folder)
    lines = [f"{key} = {json.dumps(value)}" for key, value in {"command": command, **keys}.items()]
    Path("teamchat.toml").write_text(
        '[[members]]\nname = "kailai"\ntype = "human"\n[[members]]\nname = "max"\nagent = "worker"\naccess = "full"\n'
        f"[agents.worker]\ncommand = {json.dumps(doer)}\n[checks.tests]\n" + "\n".join(lines) + "\n"
    )
    repository()
    modules(name, files, folder / "node_modules")
    trust_store().grant(load(Path("teamchat.toml").absolute()))


def until() -> Result:
    return run_here("run", "until", "--do", "max", "--check", "tests", "--rounds", "1", "--json", "Mend the parser")


def cheated(world: Path, cheat: dict[str, Any], keys: dict[str, object]) -> Result:
    command = cheat.get("command", PROJECTS[cheat["project"]]["command"])
    doer = [sys.executable, str(DATA / "apply.py"), str(DATA / "cheats.toml"), cheat["name"]]
    project(world, cheat["project"], command, doer, keys)
    return until()


def all_keys(name: str) -> dict[str, object]:
    expect = PROJECTS[name]["expect"]
    return {"protect": TESTS.get(name, OF_NPM), "expect": expect, "not_fewer": True}


@pytest.mark.parametrize("cheat", EVERY)
def test_a_cheat_ends_as_the_table_says(world: Path, cheat: dict[str, Any]) -> None:
    ran = cheated(world, cheat, all_keys(cheat["project"]))
    check = report(ran)["rounds"][0]["checks"][0]
    match cheat["caught"]:
        case "protect":
            assert (ran.code, check["status"]) == (16, "red")
            assert check["touched"]
        case "expect":
            assert (ran.code, check["status"]) == (16, "red")
            assert "expect" in check["reason"]
        case "red":
            assert (ran.code, check["status"]) == (16, "red")
        case "reviewer" | "nobody":  # said plainly in docs/processes.md
            assert (ran.code, check["status"]) == (0, "green")
        case other:
            raise AssertionError(other)


@pytest.mark.cheats
@pytest.mark.parametrize("cheat", [pytest.param(cheat, id=cheat["name"]) for cheat in CHEATS if cheat["works"]])
def test_it_deceives_a_bare_check(world: Path, cheat: dict[str, Any]) -> None:
    assert cheated(world, cheat, {}).code == 0


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "pytest" else pytest.mark.cheats) for name in PROJECTS]
)
def test_who_mends_the_code_is_done(world: Path, name: str) -> None:
    mended = world / "mended"
    for path, text in PROJECTS[name]["mended"].items():
        (mended / path).parent.mkdir(parents=True, exist_ok=True)
        (mended / path).write_text(text)
    doer = ["/bin/sh", "-c", f"cat > /dev/null; cp -R {mended}/. .; echo 'It is mended.'"]
    project(world, name, PROJECTS[name]["command"], doer, all_keys(name))
    ran = until()
    assert ran.code == 0, report(ran)


def test_there_are_a_hundred_of_them_and_a_fifth_run_here() -> None:
    assert len(CHEATS) == len({cheat["name"] for cheat in CHEATS}) == 100
    assert len(QUICK) == 20
    assert {cheat["name"] for cheat in CHEATS if cheat["project"] == "pytest"} >= QUICK
