"""What the manual and the examples have for CI, run as it is written: no gate passes on nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.program import ROOT, TIMEOUT_S, cli
from tests.test_examples import committed, step

DOCS = ROOT / "docs"
MEMBER = """
[[members]]
name = "{name}"
agent = "{name}-agent"

[agents.{name}-agent]
command = ["sh", "-c", {command}]
"""
NEEDS_JQ = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")


def snippets(page: str, heading: str) -> list[str]:
    """The shell commands below a heading of a page."""
    below = (DOCS / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```$", below, re.MULTILINE | re.DOTALL)


BY_HAND = snippets("howto/review-in-ci.md", "By hand first")[0]
IN_A_SCRIPT, WITH_A_VERDICT = snippets("howto/review-in-ci.md", "In a script")
(VOTE,) = [one for one in snippets("processes.md", "Vote") if "make release" in one]
JOB = step("ci/review.yml", "Review")


def team(**commands: str) -> str:
    return "".join(MEMBER.format(name=name, command=json.dumps(does)) for name, does in commands.items())


def repository(world: Path, **commands: str) -> Path:
    """A repository whose branch has a change that `main` has not, and a team of these programs."""
    folder = world / "repository"
    folder.mkdir()
    (folder / "teamchat.toml").write_text(team(**commands))
    committed(folder, "first")
    for argv in (["branch", "-qM", "main"], ["switch", "-qc", "topic"]):
        subprocess.run(["git", *argv], cwd=folder, check=True)
    (folder / "app.py").write_text("a = 1\n")
    committed(folder, "change")
    assert cli("trust", cwd=folder).code == 0
    return folder


def run(script: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_the_snippets_pass_on_a_review(world: Path) -> None:
    folder = repository(world, reviewer="cat > seen; echo PASS")
    for script in (BY_HAND, WITH_A_VERDICT, *([IN_A_SCRIPT] if shutil.which("jq") else [])):
        (folder / "seen").unlink(missing_ok=True)
        done = run(script, folder)
        assert (done.returncode, done.stdout) == (0, "PASS\n"), done.stderr
        assert "+a = 1" in (folder / "seen").read_text()


@pytest.mark.parametrize("script", [BY_HAND, pytest.param(IN_A_SCRIPT, marks=NEEDS_JQ), WITH_A_VERDICT])
@pytest.mark.parametrize("wrong", ["no change", "no base", "no file", "died", "silent", "stranger"])
def test_no_snippet_passes_without_a_review(world: Path, script: str, wrong: str) -> None:
    does = {"died": "echo PASS; exit 3", "silent": "true"}.get(wrong, "echo PASS")
    folder = repository(world, **{"somebody" if wrong == "stranger" else "reviewer": f"cat > /dev/null; {does}"})
    if wrong == "no change":
        subprocess.run(["git", "switch", "-q", "main"], cwd=folder, check=True)
    elif wrong == "no base":
        subprocess.run(["git", "branch", "-qm", "main", "trunk"], cwd=folder, check=True)
    elif wrong == "no file":
        script = script.replace("git diff main...", "cat changes.diff")
        assert "cat changes.diff" in script
    done = run(script, folder)
    assert done.returncode != 0, done.stderr
    if wrong.startswith("no "):
        assert "standard input was empty" in done.stderr
        assert done.returncode == 2


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ("FAIL", 14),
        ("Who knows?", 15),
        ("Verdict: FAIL", 14),
        ("It is FAIL or PASS", 15),
        ("It is no PASS", 15),
        ("> PASS", 15),
    ],
)
def test_the_snippet_with_a_verdict_passes_on_the_first_word_alone(world: Path, says: str, code: int) -> None:
    folder = repository(world, reviewer=f"cat > /dev/null; echo '{says}'")
    assert run(WITH_A_VERDICT, folder).returncode == code


def votes(option: str | None) -> str:
    return f"cat > /dev/null; echo '{json.dumps({'option': option, 'reason': 'So.'})}'"


@pytest.mark.parametrize(
    ("max_", "sarah", "code"),
    [
        (votes("yes"), votes("yes"), 0),
        (votes("yes"), votes("no"), 15),
        (votes(None), votes(None), 15),
        (votes(None), "cat > /dev/null; echo 'Yes.'", 15),
        (votes("no"), votes("no"), 14),
        (votes("yes"), "exit 3", 6),
        ("exit 3", "exit 3", 1),
    ],
    ids=["yes", "tie", "all abstain", "nobody votes", "no", "one died", "all died"],
)
@pytest.mark.parametrize("verdict", [True, False])
def test_a_vote_goes_on_only_with_a_winner(world: Path, max_: str, sarah: str, code: int, *, verdict: bool) -> None:
    folder = repository(world, max=max_, sarah=sarah)
    script = VOTE.replace("make release", "touch released")
    if not verdict:
        script, code = script.replace(" --verdict yes,no", ""), 0 if code == 14 else code  # "no" has won
    done = run(script, folder)
    assert done.returncode == code, done.stderr
    assert (folder / "released").exists() is (code == 0)


@NEEDS_JQ
@pytest.mark.parametrize("wrong", ["no change", "no head", "died"])
def test_the_job_passes_no_pull_request_without_a_review(world: Path, wrong: str) -> None:
    does = "exit 3" if wrong == "died" else "echo 'No bugs.'"
    folder = repository(world, reviewer=f"cat > /dev/null; {does}")
    shutil.copy(folder / "teamchat.toml", folder / "review.toml")
    assert cli("trust", "--team", "./review.toml", cwd=folder).code == 0
    head = {"no change": "main", "no head": "gone"}.get(wrong, "topic")
    done = run(JOB, folder, BASE="main", HEAD=head, GITHUB_STEP_SUMMARY=str(world / "summary"))
    assert done.returncode != 0, done.stderr
