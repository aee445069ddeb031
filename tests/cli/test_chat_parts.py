"""What chat makes of a typed line: a command, what Tab offers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from teamchat.cli.app import COMMANDS
from teamchat.cli.chatting.completing import offered
from teamchat.cli.chatting.files import Files
from teamchat.cli.chatting.slash import (
    GROUPS,
    OF_CHAT,
    OUTSIDE,
    PRINTS,
    WAITS,
    WORDS,
    here,
    in_chat,
    named_in_chat,
    options_in_chat,
    print_help,
)
from tests.core.checkpoint.worktree import WorkTree
from tests.core.routing.marker_texts import grows_linearly

NAMES = ("max", "sarah")


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("@m", (1, ["max"])),
        ("@", (0, ["max", "sarah"])),
        ("Ask @s", (1, ["sarah"])),
        ("@max+", (0, ["max", "sarah"])),
        ("[NEXT: s", (1, ["sarah"])),
        ("[next:max, S", (1, ["sarah"])),
        ("[NEXT: max] and", (0, [])),
        ("mail@m", (0, [])),
        ("/un", (2, ["undo"])),
        ("/send --to m", (1, ["max"])),
        ("/retry --with=s", (1, ["sarah"])),
        ("/open ma", (2, ["max"])),
        ("/show m", (0, [])),
        ("plain", (0, [])),
    ],
)
def test_tab_offers_members_and_commands_where_they_fit(before: str, expected: tuple[int, list[str]]) -> None:
    assert offered(before, NAMES, ("undo", "usage")) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("@", (0, ["max", "sarah", "max.py", "src/app.py"])),
        ("See @m", (1, ["max", "max.py"])),
        ("@src/", (4, ["src/app.py"])),
        ("@max+s", (1, ["sarah"])),
        ("[NEXT: s", (1, ["sarah"])),
        ("/send --to s", (1, ["sarah"])),
    ],
)
def test_tab_offers_files_behind_the_members_of_an_at_sign(before: str, expected: tuple[int, list[str]]) -> None:
    def files(typed: str) -> list[str]:
        return [name for name in ("max.py", "src/app.py") if name.startswith(typed)]

    assert offered(before, NAMES, (), files) == expected


def test_a_hundred_thousand_files_are_searched_while_one_types(tmp_path: Path) -> None:
    repository = WorkTree.committed(tmp_path, tmp_path / "home", {"a b.py": b"", "é.py": b"", "src/one.py": b""})
    repository.write("src/two.py", b"")
    files = Files(tmp_path)
    assert files.beginning_with("", wait=True) == ["src/one.py", "src/two.py", "é.py"]
    assert files.beginning_with("SRC/t") == ["src/two.py"]
    files._names = [(name, name) for name in (f"src/{number:06}.py" for number in range(100_000))]
    began = time.perf_counter()
    assert files.beginning_with("src/0999") == [f"src/{number:06}.py" for number in range(99_900, 99_950)]
    assert time.perf_counter() - began < 0.05


@pytest.mark.parametrize("piece", ["[NEXT:", "[NEXT: a, ", " @a+", "--to a,"])
def test_tab_takes_no_longer_in_a_long_pasted_text(piece: str) -> None:
    assert grows_linearly(lambda text: offered(text, NAMES, ()), piece)


def test_a_command_gets_the_session_and_the_team_of_the_chat() -> None:
    assert here(["show", "3"], "s1", None) == ["show", "--session", "s1", "3"]
    assert here(["show", "--session", "other"], "s1", None) == ["show", "--session", "other"]
    assert here(["team"], "s1", "a.toml") == ["team", "--team", "a.toml"]
    assert here(["summary"], "s1", None) == ["compact", "--session", "s1"]
    assert here(["show"], None, None) == ["show"]
    assert here(["worktrees", "remove", "max"], "s1", None) == ["worktrees", "remove", "--session", "s1", "max"]
    assert here(["worktrees"], "s1", None) == ["worktrees", "--session", "s1"]
    assert here(["sessions", "rename", "s1", "b"], "s1", "a.toml") == [
        "sessions",
        "rename",
        "--team",
        "a.toml",
        "s1",
        "b",
    ]
    assert here(["usage", "--all"], "s1", None) == ["usage", "--all"]


def test_hints_are_commands_of_chat() -> None:
    assert in_chat("teamchat resume --skip") == "/resume --skip"
    assert in_chat("teamchat compact") == "/compact"
    assert in_chat("claude /login && teamchat resume") == "claude /login && teamchat resume"
    assert in_chat("teamchat watch\nteamchat show 1") == "teamchat watch\n/show 1"


def test_errors_name_options_as_they_are_typed_in_chat() -> None:
    said = "nobody is called 'all'; --to max+sarah calls everybody (--anyway sends it as it is)"
    assert options_in_chat(said) == (
        "nobody is called 'all'; @max+sarah calls everybody (/send --anyway sends it as it is)"
    )


def test_warnings_name_the_commands_of_chat() -> None:
    text = "max may only read, and 1 file changed: teamchat diff 2, teamchat undo 2"
    assert named_in_chat(text) == "max may only read, and 1 file changed: /diff 2, /undo 2"
    assert named_in_chat("try: teamchat watch") == "try: teamchat watch"
    assert named_in_chat("try: teamchat undo && teamchat resume") == "try: teamchat undo && teamchat resume"
    assert named_in_chat("a teamchat send elsewhere") == "a teamchat send elsewhere"


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_help_is_wrapped_at_words(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_help()
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) < columns
    assert len(lines) <= (22 if columns >= 80 else 33)
    assert "..." not in "".join(lines)
    assert all(line.startswith("  ") for line in lines)


def test_help_names_every_command_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(word for words in GROUPS.values() for word in words) == sorted({*WORDS, *OF_CHAT, "exit"} - {"help"})
    print_help()
    printed = capsys.readouterr().out
    assert {f"/{word}" for word in (*WORDS, *OF_CHAT)} <= {*printed.split()}


def test_every_command_of_chat_is_one_of_the_command_line() -> None:
    assert {means[0] for means in WORDS.values()} <= set(COMMANDS)
    assert {*WORDS, *OF_CHAT} >= PRINTS | WAITS
    assert {*WORDS, *OF_CHAT, *OUTSIDE} >= set(COMMANDS)
