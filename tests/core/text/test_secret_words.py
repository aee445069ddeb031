"""Secrets that a member's own arguments call so are in no receipt and no cassette."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from teamchat.core.text.secret_words import masked, secrets_in
from tests.program import run_here
from tests.scripted_team import crew

SHAPED = "ghp_" + "A1" * 18


@pytest.mark.parametrize(
    ("words", "hidden"),
    [
        (["--api-key", "hunter2-x"], ["--api-key", "(hidden)"]),
        (["--api-key=hunter2-x"], ["--api-key=(hidden)"]),
        (["--db.password", "p&ss wörd"], ["--db.password", "(hidden)"]),
        (["-token", "abc123"], ["-token", "(hidden)"]),
        (["-H", "Authorization: Bearer abc.def-1"], ["-H", "Authorization: Bearer (hidden)"]),
        (["-H", "X-Api-Key: abcdef"], ["-H", "X-Api-Key: (hidden)"]),
        (["-c", 'mcp={"env": {"A_TOKEN": "abcdef"}, "x": 1}'], ["-c", 'mcp={"env": {"A_TOKEN": "(hidden)"}, "x": 1}']),
        (["env", "DB_PASS=s3cr3t", "tool"], ["env", "DB_PASS=(hidden)", "tool"]),
        (["sh", "-c", "PGPASSWORD=s3cr3t psql"], ["sh", "-c", "PGPASSWORD=(hidden) psql"]),
        (["https://x.example/?access_token=abcdef&y=1"], ["https://x.example/?access_token=(hidden)"]),
        (["--key", "hunter2", "say", "hunter2!"], ["--key", "(hidden)", "say", "(hidden)!"]),
        (["run", SHAPED], ["run", "*" * len(SHAPED)]),
        (["redis://:pa55word@cache"], [f"redis://{'*' * 9}@cache"]),
    ],
)
def test_what_a_command_calls_secret_is_hidden(words: list[str], hidden: list[str]) -> None:
    assert list(masked(words, secrets_in(words))) == hidden


@pytest.mark.parametrize(
    "words",
    [
        ["--max-tokens", "500000"],
        ["--max-tokens=500000", "--keyboard", "german"],
        ["-c", 'model_providers.x.env_key="OPENAI_API_KEY"'],
        ["--api-key", "$API_KEY", "--token=${TOKEN}"],
        ["--auth", "--verbose"],
        ["--token", "short"],
        ["python3", "-c", "sorted(x, key=lambda y: y.token)"],
        ["--password-file", "/run/secrets/password", "--author", "kailai"],
    ],
)
def test_what_only_sounds_like_it_is_shown(words: list[str]) -> None:
    assert list(masked(words, secrets_in(words))) == words


def test_neither_receipt_nor_cassette_has_a_secret_of_the_arguments(world: Path) -> None:
    secrets = ("hunter2-x", "s3cr3t-y", SHAPED)
    args = ["--api-key", secrets[0], "-H", f"Authorization: Bearer {secrets[1]}", SHAPED]
    reply = f"I was run with {secrets[0]} and {secrets[1]}."
    made = crew(world, {"max": [reply]}, like={"max": "codex"}, members={"max": {"args": args}})
    made.file.write_text(made.file.read_text().replace("args = ", f'env = {{ URL = "{SHAPED}" }}\nargs = '))
    trust_store().grant(load(made.file))
    assert run_here("send", "--record", "a.cassette", "Go").code == 0
    turn = json.loads(run_here("show", "--json").out)
    stars = "*" * len(SHAPED)
    assert turn["setup"]["argv"][-6:-1] == ["--api-key", "(hidden)", "-H", "Authorization: Bearer (hidden)", stars]
    assert turn["setup"]["env"]["URL"] == stars
    assert reply in run_here("log").out  # what was said is what was said
    recorded = Path("a.cassette").read_text()
    assert [secret for secret in secrets if secret in recorded or secret in json.dumps(turn["setup"])] == []
    assert run_here("replay", "--speed", "0", "--verify", "a.cassette").code == 0
