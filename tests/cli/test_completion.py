"""What Tab offers, asked for as the shells' completion scripts do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from teamchat.cli.app import COMMANDS
from teamchat.cli.startup.workspace import open_store
from teamchat.core.engine.processes.table import TAKES
from teamchat.core.store.sessions import create_session
from tests.cli.helpers import refused
from tests.installed import program
from tests.program import Result, run_here

TEAM = """
[[members]]
name = "kailai"
type = "human"
[[members]]
name = "robin"
type = "human"
[[members]]
name = "max"
agent = "claude"
[[members]]
name = "sarah"
agent = "codex"
"""


def bash(line: str) -> list[str]:
    """What is offered for the last word of `line`, which is empty when the line ends in a space."""
    words = line.split(" ")
    return offered(completed("bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1)))


def completed(shell: str, **asked: str) -> Result:
    """What the program answers to a shell's script."""
    with pytest.MonkeyPatch.context() as env:
        for name, value in {"_TEAMCHAT_COMPLETE": f"complete_{shell}", **asked}.items():
            env.setenv(name, value)
        return run_here()


def offered(ran: Result) -> list[str]:
    assert (ran.code, ran.err) == (0, "")
    return ran.out.split()


@pytest.fixture
def team() -> None:
    Path("teamchat.toml").write_text(TEAM)


def test_commands() -> None:
    assert bash("teamchat ") == list(COMMANDS)
    assert bash("teamchat se") == ["send", "sessions", "search"]


def test_options_and_their_choices() -> None:
    assert "--template" in bash("teamchat init --")
    assert bash("teamchat init --template p") == ["pair", "panel"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_completes_in_zsh_whose_offers_have_help(command: str) -> None:
    asked = completed("zsh", _TYPER_COMPLETE_ARGS=f"teamchat {command} --")
    assert '"--help":"Show this message and exit."' in asked.out


def test_an_option_that_ends_the_program_does_not_speak() -> None:
    assert bash("teamchat --version sen") == ["send"]


@pytest.mark.usefixtures("team")
class TestMembers:
    def test_everybody_but_the_speaker_can_be_spoken_to(self) -> None:
        assert bash("teamchat send Hi --to ") == ["robin", "max", "sarah"]
        assert bash("teamchat send Hi --as robin --to ") == ["kailai", "max", "sarah"]

    def test_what_was_typed_is_gone_on_with(self) -> None:
        assert bash("teamchat send --to m") == ["max"]
        assert bash("teamchat send --to=m") == ["max"]
        assert bash("teamchat send --to x") == []

    @pytest.mark.parametrize("sign", [",", "+", "、"])
    def test_after_a_name_comes_another_one(self, sign: str) -> None:
        assert bash(f"teamchat send --to max{sign}") == [f"max{sign}robin", f"max{sign}sarah"]
        assert bash(f"teamchat send --to robin,max{sign}s") == [f"robin,max{sign}sarah"]

    def test_only_people_speak(self) -> None:
        assert bash("teamchat send --as ") == ["kailai", "robin"]

    def test_of_the_team_that_the_line_names(self, world: Path) -> None:
        (world / "other.toml").write_text('[[members]]\nname = "al"\nagent = "claude"\n')
        assert bash("teamchat send --team ../other.toml --to a") == ["al"]

    def test_fish_is_told_whether_there_is_anything(self) -> None:
        asked = {"_TYPER_COMPLETE_ARGS": "teamchat send --to s"}
        assert offered(completed("fish", **asked, _TYPER_COMPLETE_FISH_ACTION="get-args")) == ["sarah"]
        assert completed("fish", **asked, _TYPER_COMPLETE_FISH_ACTION="is-args").code == 0


class TestProcesses:
    def test_the_kinds_and_those_of_the_team_file(self) -> None:
        assert bash("teamchat run ") == list(TAKES)
        Path("teamchat.toml").write_text(TEAM + '[processes.review]\nkind = "debate"\n')
        assert bash("teamchat run ") == [*TAKES, "review"]
        assert bash("teamchat run re") == ["review"]

    @pytest.mark.usefixtures("team")
    @pytest.mark.parametrize("option", ["members", "workers", "planner", "reducer", "judge", "lead"])
    def test_only_ai_members_take_part(self, option: str) -> None:
        assert bash(f"teamchat run debate --{option} ") == ["max", "sarah"]

    def test_only_who_may_edit_does_the_task_of_until(self) -> None:
        Path("teamchat.toml").write_text(TEAM + 'access = "edit"\n[[members]]\nname = "kim"\nagent = "codex"\n')
        assert bash("teamchat run until --do ") == ["sarah"]
        assert bash("teamchat run until --review ") == ["max", "sarah", "kim"]
        Path("teamchat.toml").write_text(TEAM + 'access = "full"\n')
        assert bash("teamchat run until --do s") == ["sarah"]

    @pytest.mark.usefixtures("team")
    def test_after_a_member_comes_another_one(self) -> None:
        assert bash("teamchat run debate --members max,") == ["max,sarah"]


class TestSessions:
    def test_the_last_one_first(self) -> None:
        with open_store(Path.cwd()) as db:
            for name in (None, "review", "refactor"):
                create_session(db, "team", None, name)
        assert bash("teamchat log --session ") == ["refactor", "review", "s1"]
        assert bash("teamchat send --session re") == ["refactor", "review"]

    def test_a_name_that_a_shell_would_take_apart_is_not_offered(self) -> None:
        with open_store(Path.cwd()) as db:
            for name in ("two words", "$(touch pwned)", "a`b`", "a;b", "fine"):
                create_session(db, "team", None, name)
        assert bash("teamchat log --session ") == ["fine"]

    def test_the_store_is_left_as_it_is(self, world: Path) -> None:
        with open_store(Path.cwd()) as db:
            create_session(db, "team", None)
            file = db.path
        before = sorted(world.rglob("*")), file.read_bytes()
        assert bash("teamchat log --session ") == ["s1"]
        assert (sorted(world.rglob("*")), file.read_bytes()) == before

    def test_a_conversation_that_goes_on_does_not_keep_anybody_waiting(self) -> None:
        with open_store(Path.cwd()) as db:
            create_session(db, "team", None)
            with db.transaction():
                assert bash("teamchat log --session ") == ["s1"]

    def test_a_broken_store_offers_nothing(self) -> None:
        with open_store(Path.cwd()) as db:
            file = db.path
        file.write_bytes(b"no database" * 500)
        assert bash("teamchat log --session ") == []


def test_teams_of_the_user(world: Path) -> None:
    teams = world / "home" / "config_home" / "teamchat" / "teams"
    teams.mkdir(parents=True)
    for name in ("phoenix.toml", "panel.toml", "notes.txt", "two words.toml"):
        (teams / name).touch()
    assert bash("teamchat send --team ") == ["panel", "phoenix"]
    assert bash("teamchat team --team ph") == ["phoenix"]


@pytest.mark.parametrize("line", ["send --to ", "send --as ", "log --session ", "send --team "])
@pytest.mark.parametrize("broken", [None, "no toml", "[team]\nnam = 1\n"])
def test_where_something_is_wrong_nothing_is_offered_and_nothing_made(
    world: Path, line: str, broken: str | None
) -> None:
    if broken is not None:
        Path("teamchat.toml").write_text(broken)
    before = sorted(world.rglob("*"))
    assert bash(f"teamchat {line}") == []
    assert sorted(world.rglob("*")) == before


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_shown(shell: str) -> None:
    ran = run_here("--show-completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert f"_TEAMCHAT_COMPLETE=complete_{shell}" in ran.out


def test_the_script_is_installed_for_the_user(world: Path) -> None:
    ran = run_here("--install-completion", "bash")
    script = world / "home" / ".bash_completions" / "teamchat.sh"
    assert ran == Result(0, f"bash completion is in {script}; it works in the next shell\n", "")
    assert "complete_bash" in (world / "home" / ".bash_completions" / "teamchat.sh").read_text()
    assert "teamchat.sh" in (world / "home" / ".bashrc").read_text()


@pytest.mark.parametrize(
    ("shell", "path"), [("zsh", ".zfunc/_teamchat"), ("fish", ".config/fish/completions/teamchat.fish")]
)
def test_the_script_of_the_shell_that_was_named_is_installed(world: Path, shell: str, path: str) -> None:
    assert run_here("--install-completion", shell).code == 0
    assert f"complete_{shell}" in (world / "home" / path).read_text()
    assert not (world / "home" / ".bashrc").exists()


def test_a_shell_that_is_none_is_a_usage_error() -> None:
    ran = run_here("--install-completion", "tcsh")
    assert (ran.code, refused(ran)) == (
        2,
        "invalid value for '--install-completion': 'tcsh' is not one of 'bash', 'zsh', 'fish', 'powershell', 'pwsh'",
    )


@pytest.mark.usefixtures("team")
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_itself_completes_with_the_script(world: Path) -> None:
    (world / "bin").mkdir()
    program(world / "bin" / "teamchat", f'exec {sys.executable} -m teamchat "$@"')
    script = run_here("--show-completion", "bash").out
    asking = """
COMP_WORDS=(teamchat send --to max,) COMP_CWORD=3
_teamchat_completion teamchat
printf '%s\\n' "${COMPREPLY[@]}"
"""
    argv = ["bash", "--norc", "-c", f'PATH="{world}/bin:$PATH"\n{script}{asking}']
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("max,robin\nmax,sarah\n", "")
