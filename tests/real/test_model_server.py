"""Each real CLI finishes turns against the scripted model: plain, with a tool, with an error, with any text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from teamchat.runners.base import Vendor
from tests.real.clis import Finished, run
from tests.real.model.replies import Reply, ToolUse
from tests.real.model.server import ModelServer, prompt, system_text, tool_results
from tests.real.model.table import MODELS

pytestmark = pytest.mark.real


@dataclass(frozen=True, slots=True)
class Cli:
    """The least that runs a CLI, and the least that reads it."""

    vendor: Vendor
    argv: tuple[str, ...]
    key_header: str
    key: str
    look: Reply
    said: Callable[[Finished], str]


def _claude_said(done: Finished) -> str:
    return str(done.events[-1].get("result"))


def _codex_said(done: Finished) -> str:
    items = [item for event in done.events if isinstance(item := event.get("item"), dict)]
    return str([item["text"] for item in items if item["type"] == "agent_message"][-1])


def _gemini_said(done: Finished) -> str:
    return "".join(str(event["content"]) for event in done.events if event.get("role") == "assistant")


CLAUDE = Cli(
    "claude",
    ("claude", "-p", "--output-format", "stream-json", "--verbose", "--model", MODELS["claude"]),
    "x-api-key",
    "dummy-anthropic-key",
    Reply(tools=(ToolUse("Read", {"file_path": "note.txt"}),)),
    _claude_said,
)
CODEX = Cli(
    "codex",
    ("codex", "exec", "--json", "--skip-git-repo-check", "--disable", "plugins", "--sandbox", "read-only", "-"),
    "authorization",
    "Bearer dummy-openai-key",
    Reply(tools=(ToolUse("exec_command", {"cmd": "cat note.txt"}),)),
    _codex_said,
)
GEMINI = Cli(
    "gemini",
    ("gemini", "--output-format", "stream-json", "--skip-trust"),
    "x-goog-api-key",
    "dummy-gemini-key",
    Reply(tools=(ToolUse("read_file", {"file_path": "note.txt"}),)),
    _gemini_said,
)

ODD = "\0 NUL \x1b[31m red \r\n \r alone \x07 你好，世界 👩‍👩‍👧 ünï \u2028\u2029 \ufeff \U0010ffff\n"
PROMPTS = {
    "option": "-p --help",
    "mention": "@nobody is here",
    "bang": "!ls",
    "slash": " /help",
    "large": ODD + "line of text ünï 漢字 🎉 0123456789 abcdefghij\n" * 14_000,
}


@pytest.fixture(params=[CLAUDE, CODEX, GEMINI], ids=lambda cli: cli.vendor)
def cli(request: pytest.FixtureRequest) -> Cli:
    chosen: Cli = request.param
    return chosen


def test_a_plain_turn_brings_the_prompt_to_the_model_and_its_text_back(
    cli: Cli, server: ModelServer, real_env: dict[str, str], workspace: Path
) -> None:
    server.script(cli.vendor, [Reply(("Good ", "morning ", "世界"), delay_s=0.05)])
    done = run(cli.argv, b"Hello", workspace, real_env)
    assert (done.exit_code, cli.said(done)) == (0, "Good morning 世界")
    (turn,) = server.turns(cli.vendor)
    assert prompt(turn) == "Hello"
    assert len(system_text(turn)) > 1000
    assert turn.headers[cli.key_header] == cli.key


def test_a_tool_runs_and_the_model_gets_its_result(
    cli: Cli, server: ModelServer, real_env: dict[str, str], workspace: Path
) -> None:
    (workspace / "note.txt").write_text("The word is XYLOPHONE.\n")
    server.script(cli.vendor, [cli.look, Reply("I read it.")])
    done = run(cli.argv, b"What is the word?", workspace, real_env)
    assert (done.exit_code, cli.said(done)) == (0, "I read it.")
    first, second = server.turns(cli.vendor)
    assert tool_results(first) == []
    assert "XYLOPHONE" in tool_results(second)[0]


def test_an_error_of_the_model_is_reported(
    cli: Cli, server: ModelServer, real_env: dict[str, str], workspace: Path
) -> None:
    server.script(cli.vendor, [Reply(status=400, message="no such thing")])
    done = run(cli.argv, b"Hello", workspace, real_env)
    assert done.exit_code != 0
    assert "no such thing" in done.stdout


@pytest.mark.parametrize("text", PROMPTS.values(), ids=PROMPTS)
def test_any_prompt_arrives_byte_for_byte_from_a_file(
    cli: Cli, text: str, server: ModelServer, real_env: dict[str, str], workspace: Path
) -> None:
    done = run(cli.argv, text.encode(), workspace, real_env)
    assert (done.exit_code, cli.said(done)) == (0, "OK")
    assert [prompt(turn) for turn in server.turns(cli.vendor)] == [text]


def test_a_long_answer_is_whole_in_a_file(
    cli: Cli, server: ModelServer, real_env: dict[str, str], workspace: Path
) -> None:
    lines = [f"{number} of many lines, each another\n" for number in range(20_000)]
    pieces = tuple("".join(lines[at : at + 1000]) for at in range(0, len(lines), 1000))
    server.script(cli.vendor, [Reply(pieces)])
    done = run(cli.argv, b"Count", workspace, real_env)
    assert (done.exit_code, cli.said(done).strip()) == (0, "".join(lines).strip())
