"""The count of tokens in a Codex session's own file, as Codex 0.169.0 writes it, and what is no such file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teamchat.runners.agent_events import Usage
from teamchat.runners.codex.usage import TAIL, used_in

SESSION = "01a20189-1e88-7822-88ad-209a2523d25c"


def count(tokens: object) -> str:
    usage = {"input_tokens": tokens, "cached_input_tokens": 3, "cache_write_input_tokens": 0, "output_tokens": 7}
    info = {"total_token_usage": usage, "last_token_usage": {**usage, "input_tokens": 1}, "model_context_window": 1}
    return json.dumps({"type": "event_msg", "payload": {"type": "token_count", "info": info, "rate_limits": None}})


def write(home: Path, *lines: str, session: str = SESSION) -> None:
    folder = home / "sessions" / "2026" / "11" / "22"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"rollout-2026-11-22T04-34-53-{session}.jsonl").write_text(
        "\n".join(lines) + "\n", errors="surrogateescape"
    )


@pytest.mark.parametrize("variables", [{"CODEX_HOME": "{home}"}, {"HOME": "{home}/..", "CODEX_HOME": ""}])
def test_the_last_count_of_the_session_is_its_usage(tmp_path: Path, variables: dict[str, str]) -> None:
    home = tmp_path / ".codex"
    write(home, count(11), count(22), '{"type": "event_msg", "payload": {"type": "task_complete"}}')
    write(home, count(99), session=SESSION.replace("0", "1"))
    env = {name: value.format(home=home) for name, value in variables.items()}
    assert used_in(env, SESSION) == Usage(22, 3, 7, None, cumulative=True)


def test_a_long_file_is_read_at_its_end(tmp_path: Path) -> None:
    write(tmp_path, count(1), "x" * (TAIL + 10), count(22), "y" * (TAIL // 2))
    used = used_in({"CODEX_HOME": str(tmp_path)}, SESSION)
    assert used
    assert used.input_tokens == 22


@pytest.mark.parametrize(
    "lines",
    [
        ["", "no JSON", '{"token_count"'],
        ['{"payload": {"type": "token_count", "info": null}}'],
        ['{"payload": {"type": "message", "text": "token_count"}}'],
        ['["token_count"]'],
        ['\udcff"token_count"'],
    ],
)
def test_a_file_without_a_count_tells_nothing(tmp_path: Path, lines: list[str]) -> None:
    write(tmp_path, *lines)
    assert used_in({"CODEX_HOME": str(tmp_path)}, SESSION) is None


@pytest.mark.parametrize("session", [SESSION[:-1], "*", "a\0b", "../x", ""])
def test_a_session_without_a_file_tells_nothing(tmp_path: Path, session: str) -> None:
    write(tmp_path, count(11))
    assert used_in({"CODEX_HOME": str(tmp_path)}, session) is None
    assert used_in({"CODEX_HOME": str(tmp_path / "none")}, session) is None
    assert used_in({}, session) is None
