"""What stands in `examples/` runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from teamchat.core.team.find import load
from teamchat.core.text.redact import redact_shapes
from tests.installed import kills_in_time
from tests.program import ROOT, cli

EXAMPLES = ROOT / "examples"
SHIP = EXAMPLES / "ship"
PROCESSES = [*sorted((EXAMPLES / "processes").glob("*.cassette")), SHIP / "ship.cassette"]
TEAMS = sorted(EXAMPLES.glob("*/teamchat.toml"))
REVIEWER = """
[[members]]
name = "{name}"
agent = "reviewer"

[agents.reviewer]
command = ["sh", "-c", "cat > /dev/null; echo '{says}'"]
"""


@pytest.mark.parametrize("file", TEAMS, ids=lambda file: file.parent.name)
def test_every_team_file_loads_and_can_be_looked_at(file: Path) -> None:
    team = load(file)
    shown = cli("team", cwd=file.parent)
    assert shown.code == 0, shown.err
    for member in team.members:
        assert member.name in shown.out


def test_the_recording_is_of_the_demo_and_asciinema_plays_it() -> None:
    played = subprocess.run(
        [sys.executable, "-m", "asciinema", "cat", "demo.cast"],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        check=True,
    )
    demo = cli("demo", "--speed", "0", "--json")
    replies = [line["text"] for line in map(json.loads, demo.out.splitlines()) if line["type"] == "message"]
    assert len(replies) == 6
    for word in {word for reply in replies for word in re.findall(r"[a-z]{5,}", reply)}:
        assert word in played.stdout, "make picture"


@pytest.mark.parametrize("cassette", PROCESSES, ids=lambda file: file.stem)
def test_a_recorded_process_replays_byte_for_byte(cassette: Path) -> None:
    ran = cli("replay", str(cassette), "--speed", "0", "--verify")
    assert ran.code == 0, ran.err
    assert ran.out.startswith(f"$ teamchat run {cassette.stem} ")


@pytest.mark.parametrize("cassette", PROCESSES, ids=lambda file: file.stem)
def test_a_recorded_process_names_nothing_of_a_machine_and_has_no_secret(cassette: Path) -> None:
    text = cassette.read_text(encoding="utf-8")
    assert not re.search(r"/(?:root|Users|private|dev/shm|var)/|127\.0\.0\.1|localhost", text)
    assert redact_shapes(text) == (text, 0)


def test_the_recorded_until_is_red_then_refused_then_done_and_runs_no_check(world: Path) -> None:
    programs = world / "programs"
    programs.mkdir()
    (programs / "python3").write_text(f"#!/bin/sh\n/bin/touch '{world}/ran'\n")
    (programs / "python3").chmod(0o755)
    ran = cli("replay", "--json", str(SHIP / "ship.cassette"), "--speed", "0", env={"PATH": str(programs)})
    assert ran.code == 0, ran.err
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [line["status"] for line in lines if line["type"] == "check_finished"] == ["red", "green", "green"]
    process = lines[-1]["process"]
    passed = [[review["passed"] for review in one["reviews"]] for one in process["rounds"]]
    assert (passed, process["result"]) == ([[], [True, False], [True, True]], "done")
    assert not (world / "ran").exists()


def test_the_test_of_the_package_that_is_shipped_is_red(world: Path) -> None:
    folder = world / "ship"
    shutil.copytree(SHIP, folder)
    ran = subprocess.run(
        [sys.executable, "-m", "unittest", "-q"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert "FAILED (failures=1)" in ran.stderr


def played(cast: str) -> str:
    """What asciinema's player writes to a terminal."""
    asciinema = [sys.executable, "-m", "asciinema", "play", "--speed", "1000", cast]
    done = subprocess.run(asciinema, cwd=EXAMPLES, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return done.stdout.decode()


def test_the_recorded_chat_plays_and_has_a_marker_for_each_turn() -> None:
    head, *events = map(json.loads, (EXAMPLES / "chat.cast").read_text(encoding="utf-8").splitlines())

    written = "".join(text for _, kind, text in events if kind == "o")
    assert played("chat.cast") == written
    times = [at for at, _, _ in events]
    assert times == sorted(times)
    assert 15 < times[-1] < 90
    assert [text for _, kind, text in events if kind == "m"] == [
        *("turn 1: max", "turn 2: sarah", "turn 3: max", "turn 4: carol", "turn 5: sarah", "turn 6: sarah")
    ]
    assert (head["version"], head["width"]) == (2, 100)


def test_the_recorded_chat_names_nothing_of_a_machine_and_has_no_secret() -> None:
    text = (EXAMPLES / "chat.cast").read_text(encoding="utf-8")

    assert not re.search(r"/(?:home|root|tmp|Users|private|dev/shm|var)/|127\.0\.0\.1|localhost", text)
    assert redact_shapes(text) == (text, 0)


def test_the_slow_member_can_be_killed_and_resumed(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kills_in_time(world, monkeypatch)
    shutil.copy(EXAMPLES / "slow" / "teamchat.toml", world / "work")
    killed = subprocess.run(
        ["timeout", "-s", "KILL", "5", "python", "-m", "teamchat", "send", "--trust", "[NEXT:sleeper] Hi"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert killed.returncode in {-9, 137}
    ran = cli("resume")
    assert ran.code == 0, ran.err
    assert ran.out == "sleeper:\nHalf of the answer,\nand the other half.\n\n"
    assert "| Half of the answer," in cli("show", "1").out


def committed(folder: Path, message: str) -> str:
    """The commit of all files of the folder, which becomes a repository."""
    git = ["git", "-c", "user.name=kai", "-c", "user.email=kai@example.org"]
    for argv in (["init", "-q"], ["add", "."], ["commit", "-qm", message]):
        subprocess.run([*git, *argv], cwd=folder, check=True)
    head = ["git", "rev-parse", "HEAD"]
    return subprocess.run(head, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def repository(world: Path, says: str, name: str = "max") -> Path:
    """A repository with a change, and a team whose reviewer always says the same."""
    folder = world / "repository"
    folder.mkdir()
    (folder / "teamchat.toml").write_text(REVIEWER.format(name=name, says=says))
    committed(folder, "first")
    (folder / "teamchat.toml").write_text(REVIEWER.format(name=name, says=says) + "# changed\n")
    assert cli("trust", cwd=folder).code == 0
    return folder


def script(path: str, folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(EXAMPLES / path), *args],
        cwd=folder,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_review_script_prints_the_review(world: Path) -> None:
    folder = repository(world, "No bugs.")
    done = script("scripts/review.sh", folder, "max")
    assert (done.returncode, done.stdout) == (0, "## max\n\nNo bugs.\n\n"), done.stderr
    assert script("scripts/review.sh", folder, "nobody").returncode == 1
    subprocess.run(["git", "checkout", "-q", "."], cwd=folder, check=True)
    assert script("scripts/review.sh", folder, "max").returncode == 2


NOT_PUSHED = "pre-push: {}; to push without a review: git push --no-verify\n"


class Clone:
    """A clone with the hook, of a bare remote that has its branch `main`; the reviewer notes what it is asked."""

    def __init__(self, world: Path, says: str = "PASS", name: str = "reviewer", after: str = "") -> None:
        self.asked, self.remote, self.folder = world / "asked", world / "remote.git", world / "clone"
        subprocess.run(["git", "init", "-q", "--bare", self.remote], check=True)
        subprocess.run(["git", "init", "-q", "-b", "main", self.folder], check=True)
        for key, value in (("user.name", "kai"), ("user.email", "kai@example.org"), ("color.ui", "always")):
            self.git("config", key, value)
        self.git("remote", "add", "origin", str(self.remote))
        team = REVIEWER.format(name=name, says=says).replace(
            "cat > /dev/null", f"env > {self.asked}.env; cat >> {self.asked}"
        )
        (self.folder / "teamchat.toml").write_text(team + after)
        assert cli("trust", cwd=self.folder).code == 0
        self.commit("old.txt", "What the remote has.\n")
        self.git("push", "-q", "origin", "main")
        shutil.copy(EXAMPLES / "hooks" / "pre-push", self.folder / ".git" / "hooks")

    def git(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *args], cwd=self.folder, env={**os.environ, **env}, capture_output=True, text=True, check=False
        )

    def commit(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        self.git("add", "-A")
        assert self.git("commit", "-qm", name).returncode == 0
        return self.git("rev-parse", "HEAD").stdout.strip()

    def push(self, *args: str, **env: str) -> list[str]:
        """The lines with new text that the reviewer got; the push goes through."""
        self.asked.unlink(missing_ok=True)
        pushed = self.git("push", *args, **env)
        assert pushed.returncode == 0, pushed.stderr
        text = self.asked.read_text() if self.asked.exists() else ""
        return re.findall(r"^[+](?![+][+]).*$", text, re.MULTILINE)

    def stopped(self, why: str, *args: str, **env: str) -> str:
        """What a push says that the hook stops for that reason; the remote stays as it was."""
        before = self.git("ls-remote", "origin").stdout
        pushed = self.git("push", *(args or ("origin", "HEAD")), **env)
        assert pushed.returncode == 1, pushed.stderr
        assert NOT_PUSHED.format(why) in pushed.stderr
        assert self.git("ls-remote", "origin").stdout == before
        return pushed.stderr


def test_the_hook_sends_what_the_remote_does_not_have(world: Path) -> None:
    clone = Clone(world)
    clone.git("switch", "-qc", "topic")
    clone.commit("one.txt", "one\n")
    assert clone.push("origin", "topic") == ["+one"], "the first push of a branch"
    clone.commit("two.txt", "two\n")
    assert clone.push("origin", "topic") == ["+two"], "its second push"
    assert clone.push("origin", "topic:other") == [], "commits that the remote has"
    clone.git("reset", "-q", "--hard", "HEAD~2")
    clone.commit("three.txt", "three\n")
    assert clone.push("--force", "origin", "topic") == ["+three"], "a branch that was rewritten"
    clone.commit("four.txt", "four\n")
    clone.git("tag", "-am", "four", "v4")
    assert clone.push("origin", "topic", "v4") == ["+four"], "a branch and its tag, once"
    clone.git("tag", "v4.1")
    assert clone.push("origin", "v4.1") == [], "a tag of what the remote has"
    clone.commit("five.txt", "five\n")
    clone.git("tag", "-am", "five", "v5")
    assert clone.push("origin", "v5") == ["+five"], "a tag of what it does not have"
    assert clone.push("origin", "--delete", "topic", "v5") == [], "a deletion"


def test_the_hook_sends_everything_to_a_remote_that_has_nothing(world: Path) -> None:
    clone = Clone(world)
    for remote in ("empty", "other"):
        subprocess.run(["git", "init", "-q", "--bare", world / remote], check=True)
    assert clone.push(str(world / "other"), "main") == [], "what a remote branch has, by another address"
    clone.git("remote", "remove", "origin")
    clone.git("branch", "second")
    sent = clone.push(str(world / "empty"), "main", "second")
    assert sent.count("+What the remote has.") == 1


def test_the_hook_sends_nothing_where_it_cannot_know_what_is_new(world: Path) -> None:
    clone = Clone(world)
    clone.git("switch", "-q", "--orphan", "pages")
    clone.commit("page.txt", "page\n")
    clone.stopped(
        "refs/heads/pages has no commit in common with what is known of the remote (git fetch)", "origin", "pages"
    )
    blob = clone.git("hash-object", "-w", "page.txt").stdout.strip()
    clone.git("tag", "page", blob)
    clone.stopped("refs/tags/page is no commit, so nobody can review it", "origin", "page")
    assert not clone.asked.exists()
    assert clone.git("push", "-q", "--no-verify", "origin", "pages", "page").returncode == 0


def test_the_agents_of_the_hook_get_no_variables_of_git(world: Path) -> None:
    clone = Clone(world)
    clone.commit("one.txt", "one\n")
    assert clone.push("origin", "main", GIT_DIR=str(clone.folder / ".git"), GIT_WORK_TREE=str(clone.folder)) == ["+one"]
    assert not re.findall(
        "^GIT_(?:DIR|WORK_TREE|INDEX_FILE|PREFIX)=.*", Path(f"{clone.asked}.env").read_text(), re.MULTILINE
    )


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("There is a bug. FAIL", "the verdict is FAIL"),
        ("> PASS", "the review has no verdict"),
        ("Is that meant? [NEXT: kai]", "you are asked; answer with teamchat send, then push again"),
        ("PASS'; exit 3; '", "there is no review (teamchat exit code 1)"),
    ],
)
def test_the_hook_stops_a_push_without_a_pass_and_says_why(world: Path, says: str, why: str) -> None:
    clone = Clone(world, says, after='[[members]]\nname = "kai"\ntype = "human"\n')
    clone.commit("one.txt", "one\n")
    said = clone.stopped(why)
    assert ("'" in says) or says in said, "the review is shown"


def test_the_hook_stops_a_push_without_teamchat_and_one_that_is_too_large(world: Path) -> None:
    clone = Clone(world)
    clone.commit("large.txt", "A line of text.\n" * 1_200_000)
    said = clone.stopped("the changes are too large for one review; push fewer commits at once")
    assert "standard input has 20,400,131 bytes" in said
    git = Path(shutil.which("git") or "").parent
    clone.stopped("there is no review (teamchat exit code 127)", PATH=f"{git}:/bin")


def test_the_hook_needs_the_pass_of_every_reviewer(world: Path) -> None:
    clone = Clone(world, "PASS", "max", REVIEWER.format(name="sarah", says="FAIL").replace("reviewer", "another"))
    clone.commit("one.txt", "one\n")
    clone.stopped("the verdict is FAIL", TEAMCHAT_REVIEWERS="max+sarah")
    assert clone.push("origin", "main", TEAMCHAT_REVIEWERS="max") == ["+one"]


def test_a_limit_during_the_review_stops_the_push(world: Path) -> None:
    another = REVIEWER.format(name="sarah", says="PASS").replace("reviewer", "another")
    clone = Clone(world, "PASS", "max", f"{another}[team.limits]\nturns = 1\n")
    clone.commit("one.txt", "one\n")
    said = clone.stopped("a limit of the team file ended the review", TEAMCHAT_REVIEWERS="max,sarah")
    assert "limits.turns" in said


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_nobody_but_the_reviewer_is_called_by_the_script(world: Path) -> None:
    folder = repository(world, "There is a bug. [NEXT: sarah]", "reviewer")
    with (folder / "teamchat.toml").open("a") as file:
        file.write(REVIEWER.format(name="sarah", says="OK").replace("reviewer", "another"))
    assert cli("trust", cwd=folder).code == 0
    done = script("scripts/review.sh", folder, "reviewer")
    printed = done.stdout + done.stderr
    assert "There is a bug." in printed
    assert "OK" not in printed
    assert (done.returncode, cli("log", cwd=folder).out.count("msg-")) == (0, 2), printed


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_a_question_of_the_reviewer_is_no_review(world: Path) -> None:
    folder = repository(world, "Which bug? [NEXT: kai]", "reviewer")
    with (folder / "teamchat.toml").open("a") as file:
        file.write('\n[[members]]\nname = "kai"\ntype = "human"\n')
    assert cli("trust", cwd=folder).code == 0
    done = script("scripts/review.sh", folder, "reviewer")
    assert (done.returncode, "Which bug?" in done.stdout) == (9, True), done.stderr
    assert "a person is asked, so the review is not complete" in done.stderr


def test_nobody_but_the_reviewer_is_called_by_the_hook(world: Path) -> None:
    another = REVIEWER.format(name="sarah", says="PASS").replace("reviewer", "another")
    clone = Clone(world, "FAIL, I think. [NEXT: sarah] FAIL", after=another)
    clone.commit("one.txt", "one\n")
    clone.stopped("the verdict is FAIL")
    assert cli("log", cwd=clone.folder).out.count("msg-") == 2


def step(path: str, name: str) -> str:
    """The script of a step of a CI job."""
    text = (EXAMPLES / path).read_text().partition(f"- name: {name}\n")[2].partition("run: |\n")[2]
    lines = [line for line in text.splitlines() if line.startswith(" " * 10)]
    return textwrap.dedent("\n".join(lines))


def test_the_job_that_watches_prompts_fails_when_one_has_changed(world: Path) -> None:
    folder = repository(world, "No bugs.")
    (folder / "recordings").mkdir()
    recording = folder / "recordings" / "one.cassette"
    assert cli("send", "--record", recording, "[NEXT:max] Look", cwd=folder).code == 0
    summary = world / "summary"

    def job() -> int:
        script = step("ci/prompts.yml", "Compare")
        env = {**os.environ, "GITHUB_STEP_SUMMARY": str(summary)}
        return subprocess.run(["bash", "-c", script], cwd=folder, env=env, capture_output=True, check=False).returncode

    assert job() == 0
    team = folder / "teamchat.toml"
    team.write_text(
        team.read_text().replace('agent = "reviewer"', 'agent = "reviewer"\nsystem_instruction = "Be kind."')
    )
    assert job() == 1
    assert "+Be kind." in summary.read_text()
    assert cli("test", "recordings", "--team", "./teamchat.toml", "--update", cwd=folder).code == 0
    assert job() == 0


@pytest.mark.parametrize("path", ["scripts/review.sh", "hooks/pre-push", "ci/review.yml"])
def test_the_options_that_examples_use_are_there(path: str) -> None:
    known = set(re.findall(r"--[a-z-]+", cli("send", "--help").out))
    text = (EXAMPLES / path).read_text().replace("\\\n", " ")
    used = set(re.findall(r"--[a-z-]+", " ".join(re.findall(r"teamchat send (.*)", text))))
    assert used
    assert used <= known
