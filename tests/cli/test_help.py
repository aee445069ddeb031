"""What a user sees who asks for help, or types something that is not there."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from importlib.metadata import version
from keyword import iskeyword
from pathlib import Path

import pytest
from typer import Typer

from teamchat.cli.app import COMMANDS, DAILY, EXAMPLES, LazyGroup
from teamchat.cli.startup.options import groups_of
from teamchat.core.engine.processes.table import TAKES
from tests.cli.helpers import refused
from tests.program import Result, run_here
from tests.screens import screen
from tests.scripted_team import crew

TODAY = [
    *("init", "send", "run", "chat", "resume", "log", "show", "diff", "undo", "redo", "doctor", "watch", "sessions"),
    *("search", "export", "usage", "team", "merge", "worktrees", "trust", "stop"),
]


@pytest.mark.parametrize("columns", [80, 120])
def test_the_help_is_a_row_for_each_daily_command_and_fits_a_terminal(columns: int) -> None:
    with screen("--help", columns=columns, rows=24) as shown:
        rows = shown.to_the_end()
    usage, *listed, more, options = rows
    assert len(rows) == 24
    assert usage == "Usage: teamchat [OPTIONS] COMMAND [ARGS]..."
    assert [row.split()[0] for row in listed] == TODAY == list(DAILY)
    assert more == f"{len(COMMANDS) - 21} more: teamchat help commands"
    assert all(option in options for option in ("--version", "--install-completion", "--show-completion", "--help"))
    assert not re.search("[─│╭╮╰╯]", "".join(rows))
    assert run_here("-h") == run_here("--help")


def test_in_a_narrow_terminal_its_lines_are_broken_at_words() -> None:
    with screen("--help", columns=44, rows=60, env={"COLUMNS": ""}) as shown:
        rows = shown.to_the_end()
    assert (
        " init       Write teamchat.toml for the\n            agent CLIs you have, and trust\n            it.\n"
        in "\n".join(rows)
    )


def test_all_commands_are_a_page_of_the_manual() -> None:
    ran = run_here("help", "commands")
    assert (ran.code, ran.err) == (0, "")
    listed = [row.split()[0] for row in ran.out.splitlines() if row.startswith(" ")]
    assert listed == list(COMMANDS)
    assert ran.out.endswith("`teamchat status` is `teamchat log -n 1`.\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_begins_with_its_line(command: str) -> None:
    help_text = LazyGroup(name="teamchat").get_command(None, command).help
    assert " ".join(help_text.split()).startswith(COMMANDS[command].removesuffix("."))


def test_without_arguments_the_help_is_the_answer_and_the_code_says_that_nothing_was_done(world: Path) -> None:
    crew(world, {"max": []})
    ran = run_here()
    assert (ran.code, ran.err) == (2, "")
    assert ran.out.strip() == run_here("--help").out.strip()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_within_the_width_of_a_terminal(command: str) -> None:
    ran = run_here(command, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert f" Usage: teamchat {command} " in ran.out
    assert max(len(line) for line in ran.out.splitlines()) <= 80
    assert run_here(command, "-h") == ran


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_that_it_accepts(command: str) -> None:
    example = EXAMPLES[command]
    assert f" Example: {example}" in run_here(command, "--help").out
    program, name, *words = shlex.split(next(part for part in example.split(" | ") if "teamchat" in part))
    assert (program, name) == ("teamchat", command)
    found = LazyGroup(name="teamchat").get_command(None, command)
    words = words[: words.index(">")] if ">" in words else words
    if words and words[0] in getattr(found, "commands", {}):
        name, *words = words
        found = found.commands[name]
    found.make_context(name, words, resilient_parsing=command in ("replay", "import", "test"))  # the file is not here


def test_a_long_help_has_its_options_in_groups() -> None:
    shown = run_here("send", "--help").out
    heads = [line.split("─")[1].strip() for line in shown.splitlines() if line.startswith("╭")]
    assert heads == [
        "Arguments", "Options", "The message", "Which conversation", "What is printed", "Limits and permission",
    ]  # fmt: skip
    limits = shown.partition("Limits and permission")[2]
    assert all(option in limits for option in ("--only", "--turns", "--timeout", "--trust", "--no-wait"))
    assert "What is printed" not in run_here("task", "--help").out


@pytest.mark.parametrize(
    ("usage", "what"),
    [
        ("resume [OPTIONS] [MESSAGE]", "Continue a conversation that failed, was paused or was killed."),
        ("compact [OPTIONS]", "Summarise the conversation. Later prompts get the summary instead of the old messages."),
        (
            "open [OPTIONS] {MEMBER}",
            "Open a member's session in its own CLI. Only that member will remember what you say there.",
        ),
        ("log [OPTIONS]", "Print the conversation, and what is waiting or paused."),
    ],
)
def test_a_command_says_first_what_it_does(usage: str, what: str) -> None:
    words = " ".join(run_here(usage.split(maxsplit=1)[0], "--help").out.split())
    assert words.startswith(f"Usage: teamchat {usage} {what} ")


def test_the_version_is_that_of_the_distribution() -> None:
    assert run_here("--version") == Result(0, f"teamchat {version('teamchat-cli')}\n", "")


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["sned", "Hi"], "there is no command 'sned': did you mean send?"),
        (["nonsense"], "there is no command 'nonsense'"),
        (["send", "--qiet", "Hi"], "no such option: --qiet (perhaps --file, --quiet, --to)"),
        (["compact", "Hi", "there"], "too many arguments: Hi there (a text with spaces needs quotes)"),
    ],
)
def test_what_is_not_there_is_one_line(args: list[str], error: str) -> None:
    ran = run_here(*args)
    assert (ran.code, refused(ran)) == (2, error)


def test_a_process_that_is_typed_as_a_command_is_one_of_run() -> None:
    ran = run_here("debate", "--rounds", "2", "Which database?")
    assert (ran.code, refused(ran)) == (2, "there is no command 'debate': it is a process")
    assert "  try: teamchat run debate --rounds 2 'Which database?'\n" in ran.err


@pytest.mark.parametrize("kind", TAKES)
@pytest.mark.parametrize("before", [(), ("--quiet",), ("--lead", "max")])
def test_the_help_of_a_kind_of_process_has_its_options_alone(kind: str, before: tuple[str, ...]) -> None:
    shown = set(re.findall(r"^│ --([\w-]+)", run_here("run", *before, kind, "--help").out, re.MULTILINE))
    settings = {setting for takes in TAKES.values() for setting in takes}
    assert shown & settings == {*TAKES[kind]}
    assert {"team", "quiet", "turns"} <= shown


def test_no_two_groups_of_a_command_share_an_option() -> None:
    for name in COMMANDS:
        own = f"{name}_" if iskeyword(name) else name
        found = getattr(import_module(f"teamchat.cli.{own}"), own)
        groups = {} if isinstance(found, Typer) else groups_of(found)
        fields = [field for kind in groups.values() for field in kind.fields()]
        assert len(fields) == len(set(fields)), name
