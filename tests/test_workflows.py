"""What `.github/` runs is there and pinned, and what an issue is asked for."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from generators.requirements import HASHED, PYTHONS, SYSTEMS, pins
from teamchat.core.agents import AGENT_TYPES
from teamchat.core.team.find import load
from teamchat.version import VERSION
from tests.program import ROOT
from tests.real.clis import PINNED

WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
JOBS = [*WORKFLOWS, *sorted(ROOT.glob("examples/ci/*.yml"))]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TEXT = "".join(file.read_text(encoding="utf-8") for file in HASHED)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def workflow(name: str) -> str:
    return (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_targets_of_make_that_are_there(path: Path) -> None:
    for run in re.findall(r"run: make (.*)", path.read_text(encoding="utf-8")):
        for target in run.split():
            assert "=" in target or f"\n{target}: " in MAKEFILE, target


def test_the_three_workflows_are_there() -> None:
    assert [path.stem for path in WORKFLOWS] == ["newest", "release", "tests"]


def test_the_tests_run_on_both_systems_from_the_oldest_python_on() -> None:
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    (pythons,) = re.findall(r"python: \[(.*)\]", workflow("tests"))
    assert tuple(re.findall(r'"(.+?)"', pythons)) == PYTHONS
    assert PYTHONS[0] == oldest
    assert "os: [ubuntu-latest, macos-latest]" in workflow("tests")


def test_no_workflow_names_an_address_or_a_stored_token() -> None:
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert "://" not in text
        assert "secrets." not in text
        assert set(re.findall(r"uses: ([\w-]+)/", text)) <= {"actions", "pypa"}


def test_every_action_is_pinned_by_its_commit() -> None:
    used = [line for path in JOBS for line in re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))]
    assert len(used) > 20
    assert [line for line in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []
    assert len({line.split("@")[0] for line in used}) == len(set(used)), "one commit for each action"


def test_the_job_that_reviews_installs_the_tested_version_before_it_checks_out() -> None:
    text = (ROOT / "examples" / "ci" / "review.yml").read_text(encoding="utf-8")
    package = AGENT_TYPES[load(ROOT / "examples" / "ci" / "review.toml").member("reviewer").agent or ""].package
    before, _, _ = text.partition("actions/checkout@")
    assert f"npm install -g {package}@{PINNED['claude']}\n" in before
    assert "pipx install git+" in before


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_no_checkout_leaves_credentials(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    behind = re.findall(r"uses: actions/checkout@.*\n +with:\n +(.*)", text)
    assert behind == ["persist-credentials: false"] * text.count("actions/checkout@")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_only_a_tag_gets_an_identity_token_and_only_the_job_that_publishes(path: Path) -> None:
    triggers, _, jobs = path.read_text(encoding="utf-8").partition("\npermissions:\n  contents: read\n")
    assert jobs, "nothing but reading where a job does not say more"
    granted = re.findall(r"^( *)([\w-]+): write", jobs, re.MULTILINE)
    if path.stem != "release":
        assert granted == []
        return
    assert triggers.partition("\non:\n")[2].strip() == 'push:\n    tags: ["v*"]'
    assert granted == [(" " * 6, "id-token")]
    publish = jobs.partition("\n  publish:\n")[2]
    assert "id-token: write" in publish
    assert "run:" not in publish
    assert "checkout" not in publish


@pytest.mark.parametrize(
    ("tag", "passes"), [(f"v{VERSION}", True), (VERSION, False), (f"v{VERSION}.1", False), ("v", False)]
)
def test_the_release_compares_its_tag_with_the_version(tag: str, passes: bool) -> None:
    (check,) = re.findall(r"name: The tag is the version of the package\n +run: (.*)", workflow("release"))
    done = subprocess.run(
        ["bash", "-e", "-c", check],
        cwd=ROOT,
        env={**os.environ, "GITHUB_REF_NAME": tag},
        capture_output=True,
        check=False,
    )
    assert (done.returncode == 0, done.stderr) == (passes, b"")


def hashed() -> dict[str, list[str]]:
    """The pins of both files, each with its hashes."""
    lines = [line for line in TEXT.split("\n") if not line.startswith("#")]
    entries = "\n".join(lines).replace(" \\\n", " ").splitlines()
    return {
        pin: re.findall(r"--hash=sha256:([0-9a-f]{64})(?= |$)", entry) for entry in entries for pin in entry.split()[:1]
    }


def test_every_pin_has_hashes_and_no_address() -> None:
    """`make requirements` writes them."""
    assert list(hashed()) == [pin for part in pins() for pin in part]
    assert all(hashed().values())
    assert TEXT.count("sha256:") == sum(map(len, hashed().values()))
    assert not re.search(r"://|@|--(?!hash=)", TEXT)


@pytest.mark.parametrize("compiled", ["msgspec", "pydantic_core", "cffi", "MarkupSafe"])
def test_a_package_with_a_wheel_for_each_python_and_system_has_all_their_hashes(compiled: str) -> None:
    (found,) = [hashes for pin, hashes in hashed().items() if pin.startswith(f"{compiled}==")]
    assert len(set(found)) >= len(PYTHONS) * len(SYSTEMS)


def named(asked: str) -> str:
    """The package that a requirement names, as the index compares names."""
    return re.split(r"[^\w-]", asked)[0].lower().replace("_", "-")


def test_what_the_project_asks_for_is_pinned_with_its_build_tools() -> None:
    project = PROJECT["project"]
    program, others = ({named(pin) for pin in part} for part in pins())
    extras = {named(asked) for extra in project["optional-dependencies"].values() for asked in extra}
    tools = {named(asked) for asked in PROJECT["dependency-groups"]["dev"]} | {"mkdocs-material"}
    built = {named(asked) for asked in PROJECT["build-system"]["requires"]} | {"editables"}
    assert {named(asked) for asked in project["dependencies"]} | built <= program
    assert extras | tools <= others, "`make demo` installs no extra"


def test_nothing_is_installed_but_wheels_with_hashes_and_the_project() -> None:
    """First the file with the hashes, then the project without its dependencies, built by what is there."""
    texts = [MAKEFILE, *(path.read_text(encoding="utf-8") for path in WORKFLOWS)]
    installs = [line.split("install ")[1] for text in texts for line in text.splitlines() if "pip install" in line]
    wheels = "--require-hashes --no-deps --only-binary :all:"
    assert f"WHEELS := --quiet --disable-pip-version-check {wheels}\n" in MAKEFILE
    assert [line.removeprefix("--quiet ").replace("$(WHEELS)", wheels) for line in installs] == [
        f"{wheels} --requirement requirements.txt",
        "--no-deps --no-build-isolation --editable .",
        f"{wheels} --requirement requirements-dev.txt",
        *(f"{wheels} --requirement requirements.txt", "--no-deps dist/*.whl"),
    ]
    assert not any("pipx" in text for text in texts)


@pytest.mark.parametrize(("by", "again"), [("Python 3.11.7", False), ("Python 3.13.0", True), ("", True)])
def test_make_makes_the_environment_anew_for_another_python(tmp_path: Path, by: str, *, again: bool) -> None:
    """With no `.venv` as with one that another Python made."""
    python, made = tmp_path / "python", tmp_path / "venv"
    python.write_text("#!/bin/sh\necho Python 3.11.7\n", encoding="utf-8")
    python.chmod(0o700)
    if by:
        made.mkdir()
        (made / "program").write_text(f"{by}\n", encoding="utf-8")
    words = ["make", "--dry-run", f"PYTHON={python}", f"VENV={made}", f"{made}/program"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (f"{python} -m venv --clear {made}\n" in done.stdout) == again
    assert (f"echo 'Python 3.11.7' >{made}/program\n" in done.stdout) == again
    assert ("up to date" in done.stdout) != again


@pytest.mark.parametrize("name", ["bug", "idea"])
def test_an_issue_is_asked_for_what_doctor_says(name: str) -> None:
    text = (ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text(encoding="utf-8")
    assert "Output of `teamchat doctor`" in text
