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
PROCESSES = sorted((EXAMPLES / "processes").glob("*.cassette"))
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
        *("turn 1: max", "turn 2: sarah", "turn 3: max", "turn 4: carol", "turn 5: sarah", "turn 6: sarah"),
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


@pytest.mark.parametrize(("says", "code"), [("OK", 0), ("There is a bug.", 1)])
def test_the_hook_lets_a_push_through_or_says_why_not(world: Path, says: str, code: int) -> None:
    folder = repository(world, says)
    done = script("hooks/pre-push", folder, TEAMCHAT_REVIEWERS="max")
    assert done.returncode == code, done.stderr
    assert (says in done.stderr) == (code == 1)
    assert "fatal" not in done.stderr, "a branch without an upstream is no error"


def test_the_hook_calls_the_reviewer_that_init_writes(world: Path) -> None:
    folder = repository(world, "There is a bug.", "reviewer")
    done = script("hooks/pre-push", folder)
    assert (done.returncode, "There is a bug." in done.stderr) == (1, True), done.stderr


def test_the_hook_shows_a_question_and_stops_the_push(world: Path) -> None:
    folder = repository(world, "Is that meant? [NEXT: kai]", "reviewer")
    with (folder / "teamchat.toml").open("a") as file:
        file.write('[[members]]\nname = "kai"\ntype = "human"\n')
    done = script("hooks/pre-push", folder)
    assert done.returncode == 1
    assert done.stderr.endswith(
        "reviewer:\nIs that meant? [NEXT: kai]\npre-push: you are asked; answer with teamchat send, then push again\n"
    )


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize("path", ["scripts/review.sh", "hooks/pre-push"])
def test_nobody_but_the_reviewer_is_called(world: Path, path: str) -> None:
    folder = repository(world, "There is a bug. [NEXT: sarah]", "reviewer")
    with (folder / "teamchat.toml").open("a") as file:
        file.write(REVIEWER.format(name="sarah", says="OK").replace("reviewer", "another"))
    assert cli("trust", cwd=folder).code == 0
    done = script(path, folder, *(["reviewer"] if path.endswith("review.sh") else []))
    printed = done.stdout + done.stderr
    assert "There is a bug." in printed
    assert "OK" not in printed
    assert (done.returncode, cli("log", cwd=folder).out.count("msg-")) == (int(path == "hooks/pre-push"), 2), printed


def test_the_hook_judges_what_was_said_until_a_limit(world: Path) -> None:
    folder = repository(world, "There is a bug.")
    with (folder / "teamchat.toml").open("a") as file:
        file.write(REVIEWER.format(name="sarah", says="OK").replace("reviewer", "another"))
        file.write("[team.limits]\nturns = 1\n")
    assert cli("trust", cwd=folder).code == 0
    done = script("hooks/pre-push", folder, TEAMCHAT_REVIEWERS="max,sarah")
    assert (done.returncode, "There is a bug." in done.stderr) == (1, True), done.stderr
    assert "limits.turns" in done.stderr


def test_the_hook_hears_every_reviewer(world: Path) -> None:
    folder = repository(world, "There is a bug.")
    with (folder / "teamchat.toml").open("a") as file:
        file.write(REVIEWER.format(name="sarah", says="OK").replace("reviewer", "another"))
    assert cli("trust", cwd=folder).code == 0
    done = script("hooks/pre-push", folder, TEAMCHAT_REVIEWERS="max+sarah")
    assert (done.returncode, "There is a bug." in done.stderr) == (1, True), done.stderr


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


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_reviewing_job_takes_instructions_from_the_base(world: Path) -> None:
    """What a pull request changes in an instruction file, a prompt or the team file reaches nobody but as a diff."""
    folder = world / "repository"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("Instructions of the base.\n")
    (folder / "prompt.md").write_text("Prompt of the base.\n")
    team = REVIEWER.format(name="reviewer", says="").replace("echo ''", "cat AGENTS.md")
    team = team.replace('agent = "reviewer"', 'agent = "reviewer"\ninstruction_file = "prompt.md"', 1)
    (folder / "teamchat.toml").write_text(team)
    base = committed(folder, "base")
    (folder / "review.toml").write_text(team)
    assert cli("trust", "--team", "./review.toml", cwd=folder).code == 0
    (folder / "review.toml").unlink()
    for name in ("AGENTS.md", "prompt.md", "teamchat.toml"):
        (folder / name).write_text("# Of the pull request.\n")
    head = committed(folder, "pull request")
    summary = world / "summary"
    env = {**os.environ, "GITHUB_STEP_SUMMARY": str(summary), "BASE": base, "HEAD": head}

    script = step("ci/review.yml", "Review")
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=env, capture_output=True, check=False)

    assert done.returncode == 0, done.stderr
    assert summary.read_text() == "Instructions of the base.\n"
    prompt = cli("show", "1", "--prompt", cwd=folder).out
    assert "Prompt of the base." in prompt
    assert prompt.count("+# Of the pull request.") == 3
