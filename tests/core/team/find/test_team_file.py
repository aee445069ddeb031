from __future__ import annotations

import contextlib
import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from teamchat.core.errors import AgentMissing, ExitCode, NotTrusted, TeamFileError, UnknownName
from teamchat.core.team.find import find_team_file, installed_team, load, resolve_team
from teamchat.core.team.team import BUILTIN_AGENTS, AgentSpec, Limits, Member

SMALL = '[[members]]\nname = "max"\nagent = "claude"\n'


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def none_installed(program: str) -> str | None:
    raise AssertionError(f"nobody asked for {program}")


def test_a_small_file_has_the_defaults_and_a_human_of_the_users_name(tmp_path: Path) -> None:
    file = write(tmp_path / "proj" / "teamchat.toml", SMALL)
    team = load(file, login="kai")
    folder = tmp_path / "proj"
    assert team.members == (Member("max", "ai", folder, agent="claude"), Member("kai", "human", folder))
    assert (team.name, team.path, team.root, team.option) == ("proj", file, folder, None)
    assert (team.task, team.lead, team.context_window, team.max_bytes) == (None, None, 30, 786432)
    assert (team.max_prompt_tokens, team.share_context, team.limits) == (50000, True, Limits(12, 60.0, 2_000_000, None))
    assert (team.fence, team.redact) == (False, True)
    assert team.agents == BUILTIN_AGENTS
    assert team.digest == hashlib.sha256(SMALL.encode()).hexdigest()


def test_every_key_reaches_the_team(tmp_path: Path) -> None:
    write(tmp_path / "prompts" / "max.md", "Be brief.\r\n")
    (tmp_path / "src").mkdir()
    file = write(
        tmp_path / "teamchat.toml",
        """
[team]
name = "phoenix"
task = "Design a user authentication system"
lead = "MAX"
context_window = 0
max_bytes = 1000
max_prompt_tokens = 2000
share_context = false
fence = true
redact = false

[team.limits]
turns = 3
minutes = 1.5
tokens = 10
cost_usd = 5

[[members]]
name = "kailai"
type = "human"
title = "Owner"

[[members]]
name = "max"
type = "ai"
title = "Architect"
agent = "Claude"
model = "opus[1m]"
system_instruction = ["You are Max.", "", "Be kind."]
instruction_file = "prompts/max.md"
access = "edit"
allow = ["pytest", "npm test"]
cwd = "src"
timeout = "1h30m"
stall = 5
first_byte = "0.5"
args = ["--debug", ""]
env = { A = "1", B = "" }
env_keep = ["OPENAI_API_KEY"]
project_settings = true
web = true
mcp = ["github", "jira", "github"]
git = true
memory = "live"

[agents.local]
command = ["ollama", "run", "llama3"]
""",
    )
    team = load(file)
    assert team.members == (
        Member("kailai", "human", tmp_path, "Owner"),
        Member(
            name="max",
            type="ai",
            cwd=tmp_path / "src",
            title="Architect",
            agent="Claude",
            model="opus[1m]",
            system_instruction="You are Max.\n\nBe kind.",
            instruction_file=tmp_path / "prompts" / "max.md",
            instruction_file_text="Be brief.\r\n",
            access="edit",
            allow=("pytest", "npm test"),
            timeout_s=5400.0,
            stall_s=5.0,
            first_byte_s=0.5,
            args=("--debug", ""),
            env={"A": "1", "B": ""},
            env_keep=("OPENAI_API_KEY",),
            project_settings=True,
            web=True,
            mcp=("github", "jira"),
            git=True,
            memory="live",
        ),
    )
    assert (team.name, team.task, team.lead) == ("phoenix", "Design a user authentication system", "max")
    assert (team.context_window, team.max_bytes, team.max_prompt_tokens, team.share_context) == (0, 1000, 2000, False)
    assert (team.fence, team.redact) == (True, False)
    assert team.limits == Limits(3, 1.5, 10, 5.0)
    assert team.agents == {**BUILTIN_AGENTS, "local": AgentSpec("local", ("ollama", "run", "llama3"))}


def test_a_string_is_an_instruction_as_it_stands(tmp_path: Path) -> None:
    file = write(tmp_path / "teamchat.toml", SMALL + 'system_instruction = "You are Max\\n"\n')
    assert load(file).members[0].system_instruction == "You are Max\n"


def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path: Path) -> None:
    file = write(tmp_path / "teamchat.toml", "\ufeff" + SMALL + 'instruction_file = "max.md"\n')
    write(tmp_path / "max.md", "\ufeffHello")
    assert load(file).members[0].instruction_file_text == "Hello"


def test_a_built_in_agents_command_can_be_replaced(tmp_path: Path) -> None:
    file = write(tmp_path / "teamchat.toml", SMALL + '[agents.claude-code]\ncommand = ["./tools/claude", "-v"]\n')
    team = load(file)
    command = (str(tmp_path / "tools/claude"), "-v")
    assert team.agent_of(team.members[0]) == AgentSpec("claude-code", command, "claude", local=True)


@pytest.mark.parametrize(
    ("written", "program", "local"),
    [
        ("./tool", "{folder}/tool", True),
        ("bin/tool", "{folder}/bin/tool", True),
        ("../tool", "{folder}/../tool", True),
        ("tool", "tool", False),
        ("/usr/bin/tool", "/usr/bin/tool", False),
        ("~/tool", "{home}/tool", False),
    ],
)
def test_a_program_with_a_slash_is_relative_to_the_team_files_folder(
    written: str, program: str, local: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    text = f'[[members]]\nname = "al"\nagent = "own"\n[agents.own]\ncommand = ["{written}"]\nlike = "codex"\n'
    team = load(write(tmp_path / "proj" / "teamchat.toml", text))
    expected = program.format(folder=tmp_path / "proj", home=tmp_path / "home")
    assert team.agent_of(team.members[0]) == AgentSpec("own", (expected,), "codex", local=local)


def test_the_nearest_team_file_is_found(tmp_path: Path) -> None:
    outer = write(tmp_path / "teamchat.toml", SMALL)
    inner = write(tmp_path / "a" / "teamchat.toml", SMALL)
    (tmp_path / "a" / "b" / "teamchat.toml").mkdir(parents=True)
    assert find_team_file(tmp_path / "a" / "b") == inner
    assert find_team_file(tmp_path / "a") == inner
    assert find_team_file(tmp_path) == outer


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("given", ["teamchat.toml", "", "link"])
def test_a_file_of_a_parent_that_is_another_users_is_refused(tmp_path: Path, given: str) -> None:
    shared, mine = tmp_path / "a b", tmp_path / "a b" / "mine"
    mine.mkdir(parents=True)
    file = shared / "teamchat.toml"
    if given == "link":
        file.symlink_to(write(tmp_path / "other.toml", SMALL))
    else:
        write(file, SMALL)
    assert find_team_file(mine) == file
    os.chown(shared / given if given != "link" else file, 54321, -1, follow_symlinks=False)
    with pytest.raises(NotTrusted) as refused:
        find_team_file(mine)
    whose = f"{file} belongs to user 54321 and lies above your folder: it is not used unless you name it"
    assert (str(refused.value), refused.value.hint) == (whose, f"teamchat team --team '{file}'\nteamchat init")
    assert resolve_team(str(file), mine, tmp_path / "config").path == file
    assert find_team_file(shared) == file  # here it lies where one stands, as in a folder that one was given
    os.chown(mine, 54321, -1)
    assert find_team_file(mine) == file


def a_socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(place.parent):  # its whole path may be too long
        made.bind(place.name)


@pytest.mark.parametrize(
    ("make", "what"),
    [(os.mkfifo, "a named pipe"), (a_socket, "a socket"), (lambda file: file.symlink_to(os.devnull), "a device")],
)
def test_what_is_no_file_hides_no_other_team_file(tmp_path: Path, make: Callable[[Path], object], what: str) -> None:
    write(tmp_path / "teamchat.toml", SMALL)
    place = tmp_path / "sub" / "teamchat.toml"
    place.parent.mkdir()
    make(place)
    for folder in (place.parent, place.parent / "deep"):
        folder.mkdir(exist_ok=True)
        with pytest.raises(TeamFileError) as refused:
            resolve_team(None, folder, tmp_path / "config")
        assert str(refused.value) == f"{place}: {what}, not a file"


def test_what_is_no_file_is_told_for_a_named_team_too(tmp_path: Path) -> None:
    teams = tmp_path / "config" / "teams"
    teams.mkdir(parents=True)
    os.mkfifo(teams / "crew.toml")
    with pytest.raises(TeamFileError, match=r"crew\.toml: a named pipe, not a file"):
        resolve_team("crew", tmp_path, tmp_path / "config")


def test_no_team_file_is_no_error(tmp_path: Path) -> None:
    assert find_team_file(tmp_path) is None


def test_without_an_option_the_nearest_file_is_the_team(tmp_path: Path) -> None:
    file = write(tmp_path / "teamchat.toml", SMALL)
    (tmp_path / "deep").mkdir()
    team = resolve_team(None, tmp_path / "deep", tmp_path / "config", which=none_installed)
    assert (team.path, team.root, team.option) == (file, tmp_path, None)


@pytest.mark.parametrize(
    "option", ["other/team.toml", "./other/team.toml", "other/../other/team.toml", "{}/other/team.toml"]
)
def test_the_option_names_a_file(option: str, tmp_path: Path) -> None:
    file = write(tmp_path / "other" / "team.toml", SMALL)
    team = resolve_team(option.format(tmp_path), tmp_path, tmp_path / "config", which=none_installed)
    assert (team.name, team.path, team.root, team.option) == ("team", file, tmp_path / "other", str(file))


def test_a_file_that_is_there_goes_before_a_name(tmp_path: Path) -> None:
    file = write(tmp_path / "phoenix", SMALL)
    write(tmp_path / "config" / "teams" / "phoenix.toml", SMALL)
    assert resolve_team("phoenix", tmp_path, tmp_path / "config").path == file


def test_a_folder_of_the_same_name_does_not_hide_a_named_team(tmp_path: Path) -> None:
    (tmp_path / "phoenix").mkdir()
    file = write(tmp_path / "config" / "teams" / "phoenix.toml", SMALL)
    assert resolve_team("phoenix", tmp_path, tmp_path / "config").path == file


def test_a_named_teams_members_work_where_the_user_stands(tmp_path: Path) -> None:
    text = SMALL + 'cwd = "src"\ninstruction_file = "max.md"\n'
    file = write(tmp_path / "config" / "teams" / "phoenix.toml", text)
    write(tmp_path / "config" / "teams" / "max.md", "Hello")
    (tmp_path / "here" / "src").mkdir(parents=True)
    team = resolve_team("phoenix", tmp_path / "here", tmp_path / "config")
    assert (team.name, team.path, team.root, team.option) == ("phoenix", file, tmp_path / "here", "phoenix")
    assert team.members[0].cwd == tmp_path / "here" / "src"
    assert team.members[0].instruction_file_text == "Hello"


def test_an_unknown_team_is_reported_with_those_there_are(tmp_path: Path) -> None:
    write(tmp_path / "teams" / "zoo.toml", SMALL)
    write(tmp_path / "teams" / "abc.toml", SMALL)
    with pytest.raises(UnknownName) as unknown:
        resolve_team("phoenix", tmp_path, tmp_path)
    assert str(unknown.value) == f"there is no team 'phoenix' in {tmp_path}/teams (teams: abc, zoo)"


@pytest.mark.parametrize("option", ["phoenix", "", "a\0b", "x" * 300])
def test_an_unknown_team_is_an_error_even_where_none_is_kept(option: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownName) as unknown:
        resolve_team(option, tmp_path, tmp_path)
    assert str(unknown.value) == f"there is no team {option!r} in {tmp_path}/teams (teams: none yet)"


def test_without_any_file_the_installed_clis_are_the_team(tmp_path: Path) -> None:
    found = {"claude": "/bin/claude", "gemini": "/bin/gemini"}
    team = resolve_team(None, tmp_path, tmp_path / "config", which=found.get)
    assert team.ai_members == (
        Member("claude", "ai", tmp_path, agent="claude"),
        Member("gemini", "ai", tmp_path, agent="gemini"),
    )
    assert len(team.humans) == 1
    assert (team.name, team.path, team.lead, team.digest) == (tmp_path.name, None, None, None)


def test_a_user_called_like_a_cli_is_you(tmp_path: Path) -> None:
    team = installed_team(tmp_path, {"claude": "/bin/claude"}.get, login="claude")
    assert [member.name for member in team.members] == ["claude", "you"]


def test_the_team_of_the_root_folder_has_a_name() -> None:
    assert installed_team(Path("/"), {"codex": "/bin/codex"}.get).name == "team"


def test_the_installed_clis_are_fenced_and_redact(tmp_path: Path) -> None:
    team = installed_team(tmp_path, {"codex": "/bin/codex"}.get)
    assert (team.fence, team.redact) == (True, True)


def test_with_nothing_installed_the_error_says_how_to_install(tmp_path: Path) -> None:
    with pytest.raises(AgentMissing) as missing:
        installed_team(tmp_path, which=lambda _: None)
    assert (
        str(missing.value)
        == "no team file here, and no agent CLI is installed; install one, or try teamchat without one"
    )
    assert missing.value.hint == (
        "npm install -g @anthropic-ai/claude-code\n"
        "npm install -g @openai/codex\n"
        "npm install -g @google/gemini-cli\n"
        "npm install -g opencode-ai\n"
        "teamchat init --template offline"
    )
    assert missing.value.code is ExitCode.AGENT_UNAVAILABLE


def test_a_broken_team_file_is_not_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "teamchat.toml", "members = 1")
    with pytest.raises(TeamFileError):
        resolve_team(None, tmp_path, tmp_path, which=none_installed)


@pytest.mark.parametrize(
    ("agent", "access", "memory"),
    [
        ("claude", "read", "fresh"),
        ("claude", "edit", "resume"),
        ("codex", "full", "resume"),
        ("local", "edit", "fresh"),
    ],
)
def test_a_member_that_may_edit_remembers_by_default_where_its_cli_can(
    tmp_path: Path, agent: str, access: str, memory: str
) -> None:
    text = f'[[members]]\nname = "max"\nagent = "{agent}"\naccess = "{access}"\n[agents.local]\ncommand = ["cat"]\n'
    assert load(write(tmp_path / "teamchat.toml", text)).members[0].memory == memory
