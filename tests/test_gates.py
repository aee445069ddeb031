"""What the manual and the examples have for CI, run as it is written: no gate passes on nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.fakes.scripted import spoken
from tests.installed import install, program
from tests.program import ROOT, TIMEOUT_S, cli
from tests.real.clis import PINNED
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


class PullRequest:
    """A repository that has the files of the job in its base, a pull request that changes them, and a Claude."""

    def __init__(self, world: Path) -> None:
        self.world, self.folder = world, world / "repository"
        self.folder.mkdir()
        self.write(("app.py", "a = 1\n"))
        self.first = committed(self.folder, "first")
        team = (ROOT / "examples" / "ci" / "review.toml").read_text(encoding="utf-8")
        assert 'access = "read"\n' in team
        # what needs trust is trusted because it stands in the base
        self.write(("review.toml", team.replace('access = "read"\n', 'access = "read"\nweb = true\n')))
        self.write(("AGENTS.md", "Instructions of the base.\n"))
        self.base = committed(self.folder, "base")
        self.write(*((name, "# Of the pull request.\n") for name in ("review.toml", "AGENTS.md", "CLAUDE.md")))
        self.head = committed(self.folder, "change")

    def write(self, *files: tuple[str, str]) -> None:
        for name, text in files:
            (self.folder / name).write_text(text)

    def answered(self, text: str, before: str = "cat > /dev/null") -> None:
        """From now on Claude runs a command and answers with that text."""
        (self.world / "answer").write_text(spoken("claude", text))
        version = f'[ "$1" != --version ] || {{ echo "{PINNED["claude"]} (Claude Code)"; exit; }}'
        program(self.world / "bin" / "claude", f"{version}\n{before}\ncat '{self.world}/answer'")

    def job(self, **env: str) -> tuple[int, list[tuple[str, str]], str]:
        """How the job ends, the commands in its log, and its summary. It waits a second for an answer."""
        script, summary = self.world / "script", self.world / "summary"
        assert "--timeout 10m" in JOB
        script.write_text(JOB.replace("--timeout 10m", "--timeout 20s" if "PATIENT" in env else "--timeout 1s"))
        summary.write_text("")
        subprocess.run(["git", "checkout", "-q", self.head], cwd=self.folder, check=True)
        runner = {"GITHUB_STEP_SUMMARY": str(summary), "RUNNER_TEMP": str(self.world), "OUTAGE": "red"}
        done = run(f"bash '{script}' 2>&1", self.folder, **{**runner, "BASE": self.base, "HEAD": self.head, **env})
        return done.returncode, commands_in(done.stdout), summary.read_bytes().decode()


def commands_in(log: str) -> list[tuple[str, str]]:
    """The commands that the runner of GitHub Actions finds in a job's log, each with its text."""
    found, stopped = list[tuple[str, str]](), ""
    for line in re.split(r"\r\n|\r|\n", log):
        if stopped:
            stopped = "" if line.strip() == f"::{stopped}::" else stopped
        elif match := re.match(r"\s*::([^ :]+)[^:]*::(.*)|.*##\[(.*?)\](.*)", line):
            name, text = match[1] or match[3], match[2] or match[4] or ""
            stopped = text if name == "stop-commands" else ""
            found += [] if stopped else [(name, text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%"))]
    assert not stopped
    return found


HOSTILE = "::add-mask::e\n100%0A is\r::error::x\n ::stop-commands::y\n##[error]z\n"


@NEEDS_JQ
def test_the_job_ends_as_the_review_does(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(world, monkeypatch)
    pull = PullRequest(world)
    pull.answered("No bugs.\nPASS", f"cat > '{world}/prompt'; cat *.md > '{world}/instructions'")
    assert pull.job(PATIENT="1") == (0, [], "No bugs.\nPASS\n")
    assert (world / "instructions").read_text() == "Instructions of the base.\n"
    assert (world / "prompt").read_text().count("+# Of the pull request.") == 3
    for says, code, why in (
        (f"{HOSTILE}FAIL", 14, "the verdict is FAIL"),
        ("Which? [NEXT: author]", 9, "reviewer asks author"),
        ("Who knows?", 15, "the last line gives none of PASS, FAIL"),
    ):
        pull.answered(says)
        text = f"{why}\n\n{says}"
        assert pull.job(PATIENT="1", OUTAGE="warn") == (code, [("error", text)], f"{text}\n")


@NEEDS_JQ
def test_the_job_is_red_and_says_why_where_there_is_no_review(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(world, monkeypatch)
    pull = PullRequest(world)
    for before, code, why in (
        ("exit 1", 1, "no review: reviewer ended with exit code 1 before it had finished its answer"),
        ("exec sleep 1000", 3, "no review: reviewer was still running after 1 s (its timeout)"),
    ):
        pull.answered("PASS", before)
        assert pull.job(**({"PATIENT": "1"} if code == 1 else {})) == (code, [("error", why)], f"{why}\n")
    (world / "bin" / "claude").unlink()
    why = "no review: reviewer's program 'claude' is not installed"
    assert pull.job() == (11, [("error", why)], f"{why}\n")
    assert pull.job(OUTAGE="warn") == (0, [("warning", why)], f"{why}\n")
    for wrong, why, code in (
        ({"HEAD": pull.base}, "nothing to review: the pull request changes no file", 2),
        ({"HEAD": "gone"}, "no review: git cannot compare the pull request with its base", 2),
        ({"BASE": pull.first}, "/repository/review.toml: no such file", 2),
        ({"PATH": "/usr/bin:/bin"}, ": teamchat: command not found", 127),
    ):
        ended, commands, _ = pull.job(OUTAGE="warn", **wrong)
        assert (ended, [name for name, _ in commands]) == (code, ["error"]), commands
        assert commands[0][1].endswith(why)


def test_the_sdist_has_all_that_the_repository_has() -> None:
    listed = subprocess.run(("git", "ls-files"), cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no clone")
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"]
    assert {path.partition("/")[0] for path in listed.stdout.splitlines()} - {"pyproject.toml"} == set(built["include"])
