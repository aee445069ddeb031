"""A command that a person typed: which file defines it, and how it reaches the model."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.runners.base import Job, Memory, Slash
from teamchat.runners.claude.runner import LIVE, ClaudeRunner
from teamchat.runners.gemini.runner import GeminiRunner
from teamchat.runners.slash_commands import LARGEST, command_name
from tests.runners.claude.test_project import describe

CLAUDE, GEMINI = ClaudeRunner().slash, GeminiRunner().slash


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A turn in a folder with commands of the project; the home has commands of the user's."""
    files = {
        "home/.claude/commands/review.md": "Review $ARGUMENTS",
        "home/.claude/commands/git/commit.md": "Commit",
        "home/.claude/skills/tidy/SKILL.md": "Tidy",
        "home/.gemini/commands/review.toml": 'prompt = "Review {{args}}, as @{docs/my style.md} says."',
        "home/.gemini/commands/git/commit.toml": 'prompt = "Commit."',
        "home/.gemini/commands/deploy.toml": 'prompt = "See !{./deploy {{args}}}"',
        "home/.gemini/commands/broken.toml": "prompt = ",
        "home/.gemini/commands/empty.toml": "prompt = 5",
        "repo/.claude/commands/build.md": "Build",
        "repo/pkg/.gemini/commands/review.toml": 'prompt = "The project reviews."',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Job(("cli",), tmp_path / "repo" / "pkg", tmp_path / "scratch", env={"HOME": str(tmp_path / "home")})


@pytest.mark.parametrize(
    ("typed", "name"),
    [("/review", "review"), ("/review a\nb", "review"), ("/git:commit all", "git:commit"), ("/a.b-c_d", "a.b-c_d"),
     ("/etc/passwd is odd", None), ("//", None), ("/", None), ("/..", None), ("/a:.b", None), (" /review", None),
     ("review", None), ("/re:", None), ("/ré", None)],
)  # fmt: skip
def test_a_command_has_a_name(typed: str, name: str | None) -> None:
    assert command_name(typed) == name


@pytest.mark.parametrize(
    ("typed", "file"),
    [("/review a b", ".claude/commands/review.md"), ("/git:commit", ".claude/commands/git/commit.md"),
     ("/tidy", ".claude/skills/tidy/SKILL.md"), ("/build", None), ("/clear", None), ("/skills", None)],
)  # fmt: skip
def test_claude_expands_commands_and_skills_of_the_user(job: Job, typed: str, file: str | None) -> None:
    assert CLAUDE is not None
    found = CLAUDE.find(typed, job)
    assert found == (Slash(typed, f"{job.env['HOME']}/{file}") if file else None)


@pytest.mark.parametrize(("version", "expands"), [("2.1.197", False), ("2.1.260", True), ("2.1.330", True)])
def test_an_old_claude_leaves_it_as_typed(job: Job, tmp_path: Path, version: str, *, expands: bool) -> None:
    assert CLAUDE is not None
    describe(tmp_path, version)
    (tmp_path / "cli").touch(0o755)
    found = CLAUDE.find("/review", replace(job, env={**job.env, "PATH": str(tmp_path)}))
    assert found is not None
    assert (found.refused is None) is expands


def test_commands_of_a_project_need_project_settings(job: Job) -> None:
    assert CLAUDE is not None
    assert GEMINI is not None
    trusting = replace(job, project_settings=True)
    assert CLAUDE.find("/build", trusting) == Slash("/build", str(job.cwd.parent / ".claude/commands/build.md"))
    found = GEMINI.find("/review", trusting)
    assert found == Slash("/review", str(job.cwd / ".gemini/commands/review.toml"), "The project reviews.")


@pytest.mark.parametrize(
    ("rules", "trusted"),
    [({"{cwd}": "TRUST_FOLDER"}, True), ({"{up}": "TRUST_FOLDER"}, True),
     ({"{cwd}": "DO_NOT_TRUST", "{up}": "TRUST_FOLDER"}, False),
     ({"{cwd}": "TRUST_FOLDER", "{up}": "DO_NOT_TRUST"}, True), ({"{cwd}/sub": "TRUST_PARENT"}, True), ({}, False),
     ({"{cwd}/sub": "TRUST_FOLDER"}, False), ({"{cwd}": True}, False), ([], False)],
)  # fmt: skip
def test_those_of_a_project_that_gemini_itself_trusts_expand(job: Job, rules: object, *, trusted: bool) -> None:
    assert GEMINI is not None
    text = json.dumps(rules).replace("{cwd}", str(job.cwd)).replace("{up}", str(job.cwd.parent))
    (Path(job.env["HOME"]) / ".gemini" / "trustedFolders.json").write_text(text)
    found = GEMINI.find("/review", job)
    assert found is not None
    assert (found.text == "The project reviews.") is trusted


def test_claude_gets_the_command_as_a_block_of_its_own() -> None:
    assert CLAUDE is not None
    line = CLAUDE.add("[MESSAGE]\n/review ü".encode(), Slash("/review ü", "file"))
    blocks = [{"type": "text", "text": "[MESSAGE]\n/review ü"}, {"type": "text", "text": "/review ü"}]
    assert json.loads(line) == {"type": "user", "message": {"role": "user", "content": blocks}}
    assert line.endswith(b"}\n")
    assert LIVE.line(line) == line
    assert json.loads(LIVE.line(b"Hi"))["message"]["content"] == "Hi"


@pytest.mark.parametrize("memory", ["fresh", "resume", "live"])
def test_claude_is_told_to_read_lines(job: Job, memory: Memory) -> None:
    argv = ClaudeRunner().command(replace(job, slash=True, memory=memory)).argv
    assert argv.count("--input-format") == 1
    assert argv[argv.index("--input-format") + 1] == "stream-json"
    assert ("--input-format" in ClaudeRunner().command(replace(job, memory=memory)).argv) is (memory == "live")


@pytest.mark.parametrize(
    ("typed", "text"),
    [("/review src/a.py and\nb", "Review src/a.py and\nb, as @docs/my\\ style.md says."),
     ("/review", "Review , as @docs/my\\ style.md says."), ("/git:commit", "Commit."),
     ("/git:commit all", "Commit.\n\n/git:commit all")],
)  # fmt: skip
def test_a_command_of_gemini_is_expanded_as_gemini_does(job: Job, typed: str, text: str) -> None:
    assert GEMINI is not None
    found = GEMINI.find(typed, job)
    assert found is not None
    assert (found.text, found.refused) == (text, None)
    said = f"Hi\n\nThe command {typed.split(maxsplit=1)[0]} says:\n\n{text}"
    assert GEMINI.add(b"Hi", found).decode() == said


def test_a_command_of_gemini_that_runs_a_shell_stays_as_typed(job: Job) -> None:
    assert GEMINI is not None
    file = f"{job.env['HOME']}/.gemini/commands/deploy.toml"
    assert GEMINI.find("/deploy now", job) == Slash("/deploy now", file, refused="it runs shell commands")


@pytest.mark.parametrize("typed", ["/broken", "/empty", "/absent", "Review"])
def test_what_defines_no_command_of_gemini_stays_text(job: Job, typed: str) -> None:
    assert GEMINI is not None
    assert GEMINI.find(typed, job) is None


def test_a_file_that_is_none_or_too_large_defines_nothing(job: Job) -> None:
    assert CLAUDE is not None
    commands = Path(job.env["HOME"]) / ".claude" / "commands"
    os.mkfifo(commands / "pipe.md")
    (commands / "large.md").write_bytes(b"x" * (LARGEST + 1))
    assert [CLAUDE.find(typed, job) for typed in ("/pipe", "/large", f"/{'x' * 300}")] == [None, None, None]
