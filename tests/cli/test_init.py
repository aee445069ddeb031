"""`teamchat init`: the first file, trusted, and then the first conversation."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from teamchat.core.conversation.permission import trust_store
from teamchat.core.errors import ExitCode
from teamchat.core.team.find import load
from teamchat.runners import git_server
from tests.cli.helpers import refused
from tests.installed import install, program
from tests.program import Result, cli, run_here

FILE = Path("teamchat.toml")


@pytest.fixture(autouse=True)
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "kailai")
    monkeypatch.setattr(git_server, "missing", lambda _env: ("the package mcp is not installed", None))


def test_the_reviewer_has_git_where_that_works(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(world, monkeypatch, "claude")
    monkeypatch.setattr(git_server, "missing", lambda _env: None)
    ran = run_here("init")
    assert "trusted: reviewer reads the git repository and its history\n" in ran.out
    assert load(FILE).member("reviewer").git


def next_command(ran: Result) -> list[str]:
    """The command that `init` tells to type, as a shell would take it apart."""
    last = ran.out.splitlines()[-1]
    assert last.startswith("next: teamchat ")
    return shlex.split(last)[2:]


def test_it_writes_a_team_of_what_is_installed_and_says_so(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(world, monkeypatch, "claude", "gemini")
    ran = run_here("init")
    assert ran == Result(
        0,
        "claude is not logged in; to log in: claude auth login\ngemini is not logged in; to log in: gemini\n"
        "wrote teamchat.toml: kailai (you), architect (claude), writer (gemini), reviewer (claude)\n"
        f"trusted: writer starts all your MCP servers\ntrusted: writer edits files in {world}/work\n"
        "next: teamchat send '[NEXT:architect] What would you improve here first?'\n",
        "",
    )
    assert [member.name for member in load(FILE).members] == ["kailai", "architect", "writer", "reviewer"]


def test_a_cli_without_a_login_is_left_out_where_another_has_one(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(install(world, monkeypatch, "claude", "codex", "gemini") / "opencode", "exit 1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "dummy")
    ran = run_here("init")
    told = ran.out.splitlines()
    assert told[0] == "claude is logged in: ANTHROPIC_API_KEY is set"
    assert told[1:3] == [
        "codex is not logged in and is left out; to log in: codex login",
        "gemini is not logged in and is left out; to log in: gemini",
    ]
    assert told[3].startswith("opencode may be logged in and is left out: there is no ")
    assert [member.agent for member in load(FILE).members[1:]] == ["claude", "claude"]
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    assert run_here("init", "--force").code == 0
    assert [member.agent for member in load(FILE).members[1:]] == ["opencode", "opencode"]


def test_what_it_wrote_is_trusted(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(world, monkeypatch, "claude")
    run_here("init")
    assert trust_store().standing(load(FILE)).trusted


@pytest.mark.parametrize("options", [(), ("--template", "pair"), ("--template", "panel"), ("--template", "offline")])
def test_the_next_command_would_run(world: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]) -> None:
    install(world, monkeypatch, "claude", "codex", "gemini")
    ran = run_here(*next_command(run_here("init", *options)), "--dry-run")
    assert ran.code == 0, ran.err
    assert "speaking: nobody" not in ran.out


def test_without_a_cli_it_says_how_to_go_on(world: Path) -> None:
    ran = run_here("init")
    assert ran.code == ExitCode.AGENT_UNAVAILABLE
    assert ran.out == ""
    assert "npm install -g @openai/codex" in ran.err
    assert "teamchat demo" in ran.err
    assert list((world / "work").iterdir()) == []


@pytest.mark.parametrize("installed", [(), ("claude",)])
def test_a_team_file_that_is_there_stays(
    world: Path, monkeypatch: pytest.MonkeyPatch, installed: tuple[str, ...]
) -> None:
    install(world, monkeypatch, *installed)
    FILE.write_text("# mine")
    ran = run_here("init")
    assert (ran.code, FILE.read_text()) == (ExitCode.USAGE, "# mine")
    assert ran.err == (
        "teamchat: teamchat.toml already exists; name another file, or replace it, which keeps a copy\n"
        "  try: teamchat init --file teamchat-2.toml\n"
        "  try: teamchat init --force\n"
    )


def test_another_file_is_another_team(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(world, monkeypatch, "claude")
    FILE.write_text("# mine")
    ran = run_here("init", "--file", "teamchat-2.toml")
    assert ran == Result(
        0,
        "claude is not logged in; to log in: claude auth login\n"
        "wrote teamchat-2.toml: kailai (you), writer (claude), reviewer (claude)\n"
        f"trusted: writer starts all your MCP servers\ntrusted: writer edits files in {world}/work\n"
        "next: teamchat send '[NEXT:writer] What would you improve here first?' --team teamchat-2.toml\n",
        "",
    )
    assert FILE.read_text() == "# mine"
    assert run_here(*next_command(ran), "--dry-run").code == 0


@pytest.mark.parametrize("file", ["team", "a/b.toml", "", "/tmp/x.toml"])
def test_a_team_file_is_named_as_one(file: str) -> None:
    ran = run_here("init", "--file", file)
    assert (ran.code, refused(ran)) == (
        2,
        f"invalid value for '--file': expected a name that ends in .toml, got {str(Path(file))!r}",
    )


def test_force_writes_over_it_and_keeps_a_copy(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(world, monkeypatch, "claude")
    FILE.write_text("# mine")
    ran = run_here("init", "--force")
    assert ran == Result(
        0,
        "claude is not logged in; to log in: claude auth login\n"
        "kept teamchat.toml.bak: what was there before\n"
        "wrote teamchat.toml: kailai (you), writer (claude), reviewer (claude)\n"
        f"trusted: writer starts all your MCP servers\ntrusted: writer edits files in {world}/work\n"
        "next: teamchat send '[NEXT:writer] What would you improve here first?'\n",
        "",
    )
    assert load(FILE).ai_members
    assert Path("teamchat.toml.bak").read_text() == "# mine"


def test_force_without_a_cli_writes_nothing() -> None:
    FILE.write_text("# mine")
    assert run_here("init", "--force").code == ExitCode.AGENT_UNAVAILABLE
    assert FILE.read_text() == "# mine"


def test_a_team_whose_scripts_can_not_be_written_is_not_written_either() -> None:
    Path("agents").write_text("mine")
    ran = run_here("init", "--template", "offline")
    assert ran.code == 2
    assert refused(ran).endswith("cannot be written: File exists")
    assert [path.name for path in Path().iterdir()] == ["agents"]


def test_a_folder_may_have_the_longest_name(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = world / ("a" * 255)
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert run_here("init", "--template", "offline").code == 0


def test_a_template_that_is_none_is_a_usage_error() -> None:
    ran = run_here("init", "--template", "trio")
    assert ran.code == ExitCode.USAGE
    assert "offline" in ran.err


def test_the_offline_team_talks_hands_over_asks_and_ends() -> None:
    made = cli("init", "--template", "offline")
    assert made.code == 0, made.err
    first = cli(*next_command(made))
    assert first.code == ExitCode.HUMAN_ASKED, first.err
    assert [line for line in first.out.splitlines() if line.endswith(":")] == ["planner:", "builder:", "checker:"]
    assert "> A page that says hello" in first.out
    assert first.out.rstrip().endswith("[NEXT: kailai]")
    answer = cli("send", "yes", "--quiet")
    assert (answer.code, answer.out) == (0, "Thank you. Then we are done.\n"), answer.err


def test_the_offline_team_asks_again_about_the_next_message() -> None:
    run_here("init", "--template", "offline")
    for _ in range(2):
        assert run_here("send", "[NEXT:checker] Look at it").code == 0
        assert run_here("send", "[NEXT:planner] Another one").code == ExitCode.HUMAN_ASKED


def test_a_marker_that_the_planner_quotes_calls_nobody() -> None:
    run_here("init", "--template", "offline")
    ran = run_here("send", "--to", "planner", r"`[NEXT: kailai]` in code is text", "--quiet")
    assert ran.code == ExitCode.HUMAN_ASKED
    assert "May we call it done?" in ran.out
