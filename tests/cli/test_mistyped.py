"""Lines that people type into chat as commands, and lines that only look like one: none reaches a member unmeant."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.cli.chatting.slash import MEANT, OF_CHAT, OF_OTHERS, OUTSIDE, SAME, WORDS, command_of
from teamchat.core.errors import UsageError
from teamchat.core.team.team import Member, Team

TEAM = Team(
    "crew",
    tuple(Member(name, "ai", Path("/"), agent="claude-code") for name in ("max", "sarah")),
    Path("/"),
    lead="max",
)
SPACE = " (a space before it sends it)"


def words(line: str) -> list[str] | None:
    found = command_of(line, TEAM)
    return list(found.words) if found else None


def refusal(line: str) -> str:
    with pytest.raises(UsageError) as caught:
        command_of(line, TEAM)
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/quit", ["quit"]),
        ("/exit", ["quit"]),
        ("/?", ["help"]),
        ("/help undo", ["help", "undo"]),
        ("/status", ["status"]),
        ("/cost", ["cost"]),
        ("/model", ["model"]),
        ("/clear", ["clear"]),
        ("/compact", ["compact"]),
        ("/new", ["new"]),
        ("/new Don't use packages", ["new", "Don't use packages"]),
        ("/branch b", ["branch", "b"]),
        ("/compare s1 s2", ["compare", "s1", "s2"]),
        ("/stop", ["stop"]),
        ("/trust", ["trust"]),
        ("/show 3", ["show", "3"]),
        ("/search 'two words'", ["search", "two words"]),
    ],
)
def test_commands_of_the_command_line_and_of_chat(line: str, expected: list[str]) -> None:
    assert words(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/task", ["task"]),
        ("/task Don't use packages", ["task", "--", "Don't use packages"]),
        ("/task A \"b\" 'c' \\d  $HOME", ["task", "--", "A \"b\" 'c' \\d  $HOME"]),
        ("/task 'a parser'", ["task", "--", "a parser"]),
        ("/task 'a' and 'b'", ["task", "--", "'a' and 'b'"]),
        ("/task --clear", ["task", "--clear"]),
        ("/task --session s2 It's done", ["task", "--session", "s2", "--", "It's done"]),
        ("/task - not an option", ["task", "--", "- not an option"]),
        ("/task -- --clear is a word", ["task", "--", "-- --clear is a word"]),
        ("/send --to max Don't stop", ["send", "--to", "max", "--", "Don't stop"]),
        ("/send --to=max,sarah --only What's this?", ["send", "--to=max,sarah", "--only", "--", "What's this?"]),
        (
            "/run vote --options 'a b,c' Which one's best?",
            ["run", "vote", "--options", "a b,c", "--", "Which one's best?"],
        ),
        ("/run debate Who's right?", ["run", "debate", "--", "Who's right?"]),
        ("/learn Never push to main, it's protected", ["learn", "--", "Never push to main, it's protected"]),
        ("/todo add Don't forget", ["todo", "add", "--", "Don't forget"]),
        ("/todo done 1 2", ["todo", "done", "1", "2"]),
        ("/todo", ["todo"]),
    ],
)
def test_a_text_is_the_rest_of_the_line_as_it_is(line: str, expected: list[str]) -> None:
    assert words(line) == expected


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/qiut", "did you mean /quit?"),
        ("/quti", "did you mean /quit?"),
        ("/exti", "did you mean /exit?"),
        ("/QUIT", "did you mean /quit?"),
        ("/Help", "did you mean /help?"),
        ("/undoo", "did you mean /undo?"),
        ("/clera", "did you mean /clear?"),
        ("/hlep", "did you mean /help?"),
        ("/quit.", "did you mean /quit?"),
        ("/rewind", "did you mean /undo?"),
        ("/fork", "did you mean /branch?"),
        ("/history", "did you mean /log?"),
        ("/continue", "did you mean /resume?"),
        ("/q", "did you mean /quit?"),
        ("/bye", "did you mean /quit?"),
        ("/demo", "/demo runs outside of chat: teamchat demo"),
        ("/watch", "/watch runs outside of chat: teamchat watch"),
        ("/init", "/init runs outside of chat: teamchat init"),
        ("/test", "/test runs outside of chat: teamchat test"),
        ("/chat", "/chat runs outside of chat: teamchat chat"),
        ("/import old.json", "/import runs outside of chat: teamchat import"),
        ("/show 'a", "/show: no closing quotation"),
    ],
)
def test_a_mistyped_one_is_refused_with_what_was_probably_meant(line: str, says: str) -> None:
    assert says in refusal(line)


@pytest.mark.parametrize("word", ["deploy", "x", "yolo", "réviser", "命令"])
def test_what_nobody_has_is_refused_without_a_guess(word: str) -> None:
    if Path(f"/{word}").exists():
        pytest.skip(f"/{word} is a folder here")
    assert refusal(f"/{word}") == f"there is no command /{word}; /help lists them{SPACE}"


@pytest.mark.parametrize(
    "line",
    [
        "/etc/hosts is wrong",
        "/etc/",
        "/usr/bin is full",
        "/Makefile.am has a tab",
        "/robots.txt is missing",
        "/tmp is full",
        "/tmp, /var and /home",
        "//comment",
        "/* a comment */",
        "/-/",
        "/",
        "/ quit",
        "/2 of it",
        " /quit",
        "  /undo",
        "quit",
        "Type /quit to leave",
        "",
    ],
)
def test_a_path_and_a_line_with_a_space_before_are_messages(line: str) -> None:
    assert words(line) is None


def test_an_unknown_command_without_members_says_where_they_are_listed() -> None:
    with pytest.raises(UsageError, match="there is no command /deploy; /help lists them"):
        command_of("/deploy")


def test_what_others_call_it_leads_to_commands_that_are_there() -> None:
    assert {*MEANT.values()} <= {*WORDS, *OF_CHAT}
    assert {*SAME.values()} <= {*WORDS, *OF_CHAT}
    assert not {*MEANT, *OF_OTHERS, *SAME} & {*WORDS, *OF_CHAT, *OUTSIDE}


@given(word=st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=12), rest=st.text(max_size=20))
def test_a_slash_and_a_word_is_never_a_message_unless_it_is_a_path_here(word: str, rest: str) -> None:
    line = f"/{word} {rest}"
    try:
        found = command_of(line, TEAM)
    except UsageError:
        return
    if found is None:
        assert word.startswith("-") or Path(f"/{word}").exists()


@given(text=st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=40))
def test_a_task_is_taken_as_it_is(text: str) -> None:
    kept = text.strip()
    if not kept or kept[0] in "-'\"":
        return
    assert words(f"/task {text}") == ["task", "--", kept]
