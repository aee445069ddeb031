"""Every command of the README and of docs/routing.md is run, and what it prints is what stands there."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest

from tests.installed import kills_in_time
from tests.program import ROOT, TIMEOUT_S

VOLATILE = (  # what no two runs have in common
    (re.compile(r"\b\d+(\.\d+)?s\b"), "Ns"),
    (re.compile(r"\b[0-9a-f]{8}\b"), "CODE"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "WHEN"),
)
ANYTHING = "..."


def steps(text: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of the console blocks, each with the lines that follow it."""
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *expected = step.rstrip("\n").split("\n")
            yield command, expected


def plain(line: str) -> str:
    for pattern, name in VOLATILE:
        line = pattern.sub(name, line)
    return line.rstrip()


def matches(expected: list[str], printed: list[str]) -> bool:
    """Line for line; a line of three dots stands for any lines."""
    pattern = "".join(".*" if line == ANYTHING else re.escape(plain(line)) + "\n" for line in expected)
    return re.fullmatch(pattern, "".join(f"{plain(line)}\n" for line in printed), re.DOTALL) is not None


def assert_runs_as_written(document: str) -> None:
    """Run a document's commands, each in a shell of its own that begins where the one before has ended."""
    code, folder = 0, Path.cwd()
    with NamedTemporaryFile() as ended:
        for command, expected in steps((ROOT / document).read_text(encoding="utf-8")):
            done = subprocess.run(
                ["bash", "-c", f"trap 'pwd > {ended.name}' EXIT; (exit {code}); {command}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
                cwd=folder,
            )
            code, folder = done.returncode, Path(Path(ended.name).read_text(encoding="utf-8").rstrip("\n"))
            printed = done.stdout.rstrip("\n").split("\n") if done.stdout else []
            assert matches(expected, printed), (command, done.stdout)


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_readme_is_true(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "kai")
    kills_in_time(world, monkeypatch)
    shutil.copy(ROOT / "examples" / "slow" / "teamchat.toml", "slow.toml")
    subprocess.run(["git", "init", "-q"], check=True)
    Path("a.txt").write_text("one\n")
    subprocess.run(["git", "add", "a.txt"], check=True)
    Path("a.txt").write_text("two\n")
    Path("examples").symlink_to(ROOT / "examples")
    assert_runs_as_written("README.md")
    assert Path("teamchat.toml").exists()


def test_the_page_on_routing_is_true() -> None:
    shutil.copy(ROOT / "examples" / "pingpong" / "teamchat.toml", "teamchat.toml")
    assert_runs_as_written("docs/routing.md")


def test_what_the_readme_names_is_there() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:docs|examples)/[\w./-]*|[A-Z]+\.md)`", text):
        assert (ROOT / path).exists(), path
    for target in re.findall(r"^make (\w+)", text, re.MULTILINE):
        assert f"\n{target}:" in (ROOT / "Makefile").read_text(), target
