"""A custom command at the beginning of what a person types expands; text of anybody else stays as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.helpers import notes, objects
from tests.images import png
from tests.program import Result, run_here
from tests.scripted_team import Crew, crew

SAYS = "\n\nThe command /review says:\n\nReview src now."


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, text in ((".gemini/commands/review.toml", 'prompt = "Review {{args}} now."'),
                       (".claude/commands/review.md", "Review $ARGUMENTS now.")):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def made(world: Path, home: Path) -> Crew:
    del home
    said = {"gem": ["/review src", "Two.", "Three."], "max": ["One."], "ann": ["Me.", "Again."]}
    return crew(world, said, like={"gem": "gemini", "ann": "claude"}, team={"lead": "gem"})


def test_gemini_is_sent_what_the_command_says(made: Crew, home: Path) -> None:
    assert run_here("send", "--quiet", "[NEXT:gem] /review", "src").code == 0
    (prompt,) = made.prompts("gem")
    assert prompt.endswith(SAYS)
    assert "/review src\n" in prompt.removesuffix(SAYS) + "\n"
    assert f"  command   /review by {home}/.gemini/commands/review.toml\n" in run_here("show").out


def test_claude_is_sent_the_command_behind_the_prompt(made: Crew, home: Path) -> None:
    assert run_here("send", "--quiet", "--to", "ann", "/review src").code == 0
    (line,) = made.prompts("ann")
    prompt, command = json.loads(line)["message"]["content"]
    assert command == {"type": "text", "text": "/review src"}
    assert prompt["text"].endswith("[MESSAGE]\n/review src")
    (receipt,) = objects(run_here("show", "--json"))
    setup = receipt["setup"]
    assert isinstance(setup, dict)
    assert setup["slash"] == f"/review by {home}/.claude/commands/review.md"
    assert "--input-format" in setup["argv"]


def test_only_typed_text_expands(made: Crew) -> None:
    """Not what is piped in, and not what another member says: gem's first reply calls nobody, and max is asked next."""
    assert run_here("send", "--quiet", "--to", "gem", stdin="/review src").code == 0
    assert run_here("send", "--quiet", "--to", "max,gem", "Go on.").code == 0
    assert run_here("send", "--quiet", "--to", "ann", "Look", stdin="/review src").code == 0
    assert [SAYS in prompt for prompt in made.prompts("gem")] == [False, False]
    assert made.prompts("ann")[0].startswith("[CONTEXT]")
    assert "command" not in run_here("show").out


def test_what_is_piped_in_with_a_command_is_no_argument_of_it(made: Crew) -> None:
    assert run_here("send", "--quiet", "--to", "ann", "/review src", stdin="rm -rf").code == 0
    prompt, command = json.loads(made.prompts("ann")[0])["message"]["content"]
    assert command["text"] == "/review src"
    assert prompt["text"].endswith("/review src\n\n```\nrm -rf\n```")


def test_a_dry_run_and_a_replay_have_it_too(made: Crew, home: Path, tmp_path: Path) -> None:
    told = f"\ncommand: /review by {home}/.gemini/commands/review.toml\n"
    assert told in run_here("send", "--dry-run", "/review src").out
    file = tmp_path / "one.cassette"
    sent = run_here("send", "--quiet", "--record", str(file), "/review src")
    (home / ".gemini" / "commands" / "review.toml").unlink()
    assert sent.code == 0
    assert run_here("replay", "--quiet", str(file)).out == sent.out
    assert made.prompts("gem")[0].endswith(SAYS)


UNKNOWN = "has no custom command of that name, and its built-in ones work only on its own screen"


@pytest.mark.parametrize("typed", ["/clear", "/model opus", "/nosuch"])
def test_a_command_that_nobody_has_defined_is_text_and_the_person_is_told(made: Crew, typed: str) -> None:
    ran = run_here("send", "--quiet", "--to", "ann", typed)
    name = typed.partition(" ")[0]
    assert ran == Result(0, "Me.\n", notes(f"ann gets it as text: {name} stays as typed: claude {UNKNOWN}"))
    assert made.prompts("ann")[0].endswith(f"[MESSAGE]\n{typed}")
    assert f"  command   {name} stays as typed: claude {UNKNOWN}\n" in run_here("show").out
    assert f"{name} stays as typed: gemini {UNKNOWN}" in run_here("send", "--quiet", "--to", "gem", typed).err


@pytest.mark.parametrize(
    "text", ["/etc/hosts is broken", "/tmp is full", "/ is the root", "/usr/bin: not found", "What is /clear?", "//x"]
)
def test_a_path_is_no_command(made: Crew, text: str) -> None:
    assert run_here("send", "--quiet", "--to", "ann", text) == Result(0, "Me.\n", "")
    assert made.prompts("ann")[0].endswith(f"[MESSAGE]\n{text}")
    assert "command" not in run_here("show").out


def test_a_program_of_the_team_file_has_no_commands_to_be_told_of(made: Crew) -> None:
    assert run_here("send", "--quiet", "--to", "max", "/clear") == Result(0, "One.\n", "")
    assert "/clear" in made.prompts("max")[0]


@pytest.mark.usefixtures("made")
def test_a_command_that_does_not_expand_says_why(home: Path) -> None:
    file = home / ".gemini" / "commands" / "deploy.toml"
    file.write_text('prompt = "!{./deploy}"')
    assert run_here("send", "--quiet", "/deploy").code == 0
    assert f"  command   /deploy stays as typed: {file}: it runs shell commands\n" in run_here("show").out
    Path("shot.png").write_bytes(png())
    assert run_here("send", "--quiet", "--to", "ann", "/review src", "--file", "shot.png").code == 0
    assert "/review stays as typed: " in run_here("show").out
    assert "images go with it" in run_here("show").out
