from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from teamchat.core.agents import HOMES, foreign_keys
from teamchat.runners.environment import GIT_LOCAL, changed_variables, environment, for_child

KEYS = {
    "ANTHROPIC_API_KEY": "a",
    "ANTHROPIC_AUTH_TOKEN": "b",
    "CLAUDE_CODE_OAUTH_TOKEN": "c",
    "OPENAI_API_KEY": "d",
    "CODEX_API_KEY": "e",
    "GEMINI_API_KEY": "f",
    "GOOGLE_API_KEY": "g",
}
USER = {"HOME": "/home/u", "PATH": "/bin", "MY_API_KEY": "mine", "ANTHROPIC_BASE_URL": "http://localhost", **KEYS}
TMP = Path("/turn/tmp")


def given(
    vendor: str | None,
    inherited: dict[str, str] = USER,
    *,
    keep: tuple[str, ...] = (),
    add: dict[str, str] | None = None,
    command_env: dict[str, str] | None = None,
) -> dict[str, str]:
    return environment(
        inherited,
        foreign=foreign_keys(vendor),
        homes=HOMES,
        keep=keep,
        add=add or {},
        command_env=command_env or {},
        tmpdir=TMP,
    )


@pytest.mark.parametrize(
    ("vendor", "left"),
    [
        ("claude", {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}),
        ("codex", {"OPENAI_API_KEY", "CODEX_API_KEY"}),
        ("gemini", {"GEMINI_API_KEY", "GOOGLE_API_KEY"}),
        (None, set(KEYS)),
    ],
)
def test_an_agent_sees_its_own_vendors_keys_only(vendor: str | None, left: set[str]) -> None:
    assert KEYS.keys() & given(vendor).keys() == left


@pytest.mark.parametrize("vendor", ["claude", "codex", "gemini", None])
def test_everything_else_is_inherited(vendor: str | None) -> None:
    rest = {name: value for name, value in USER.items() if name not in KEYS}
    assert rest.items() <= given(vendor).items()


def test_keys_that_the_member_keeps_stay() -> None:
    found = given("codex", keep=("GEMINI_API_KEY",))
    assert "GEMINI_API_KEY" in found
    assert "GOOGLE_API_KEY" not in found


@pytest.mark.parametrize("vendor", ["claude", None])
def test_the_sign_of_a_parent_agent_always_goes(vendor: str | None) -> None:
    assert "CLAUDECODE" not in given(
        vendor, {"CLAUDECODE": "1"}, keep=("CLAUDECODE",), add={"CLAUDECODE": "1"}, command_env={"CLAUDECODE": "1"}
    )


@pytest.mark.parametrize("name", ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"])
@pytest.mark.parametrize("vendor", ["claude", "codex", "gemini", None])
def test_an_empty_name_of_a_settings_folder_does_not_make_the_project_one(vendor: str | None, name: str) -> None:
    assert given(vendor, {name: "/mine"})[name] == "/mine"
    assert name not in given(vendor, {name: ""})
    assert name not in given(vendor, {name: "/mine"}, add={name: ""})


def test_the_turn_has_a_temporary_folder_of_its_own() -> None:
    assert given("claude", {"TMPDIR": "/tmp"})["TMPDIR"] == "/turn/tmp"


def test_what_the_team_file_adds_rules() -> None:
    found = given(
        "codex",
        add={"NO_COLOR": "0", "TMPDIR": "/big", "OPENAI_API_KEY": "other", "GEMINI_API_KEY": "given"},
        command_env={"NO_COLOR": "1"},
    )
    assert (
        found.items()
        >= {"NO_COLOR": "0", "TMPDIR": "/big", "OPENAI_API_KEY": "other", "GEMINI_API_KEY": "given"}.items()
    )


def test_node_options_of_the_team_file_do_not_replace_those_that_a_command_has_built_on_them() -> None:
    found = given("gemini", add={"NODE_OPTIONS": "--mine"}, command_env={"NODE_OPTIONS": "--require m --mine"})
    assert found["NODE_OPTIONS"] == "--require m --mine"


@pytest.mark.parametrize(
    ("name", "asked", "users", "found"), [("CLAUDE_CODE_MAX_RETRIES", "3", "10", "10"), ("NO_COLOR", "1", "0", "1")]
)
def test_the_users_own_value_wins_over_a_default_and_not_over_what_is_needed(
    name: str, asked: str, users: str, found: str
) -> None:
    assert given("claude", {}, command_env={name: asked})[name] == asked
    assert given("claude", {name: users}, command_env={name: asked})[name] == found


def test_the_inherited_environment_is_left_alone() -> None:
    before = dict(USER)
    given("codex", before)
    assert before == USER


def test_changes_name_what_differs_and_hide_what_looks_secret() -> None:
    before = {"SAME": "1", "GONE": "x", "OPENAI_API_KEY": "sk-1", "EMPTY_KEY": "x"}
    after = {
        "SAME": "1",
        "TMPDIR": "/t",
        "MY_TOKEN": "s3cret",
        "PROXY": "http://me:s3cret@host/",
        "URL": "http://host/@x",
        "EMPTY_KEY": "",
    }
    assert changed_variables(before, after) == {
        "EMPTY_KEY": "",
        "GONE": None,
        "MY_TOKEN": "(hidden)",
        "OPENAI_API_KEY": None,
        "PROXY": "(hidden)",
        "TMPDIR": "/t",
        "URL": "http://host/@x",
    }
    assert changed_variables(after, after) == {}


def test_what_git_exports_to_a_hook_is_passed_on_only_where_the_team_file_names_it() -> None:
    said = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True)
    named = said.stdout.split()
    assert named
    assert set(named) <= GIT_LOCAL
    inherited = {**USER, **dict.fromkeys(GIT_LOCAL, "/of/a/hook")}
    assert not GIT_LOCAL & given("claude", inherited).keys()
    assert not GIT_LOCAL & given(None, inherited, keep=tuple(GIT_LOCAL)).keys()
    assert given(None, inherited, add={"GIT_DIR": "/mine"})["GIT_DIR"] == "/mine"


def test_no_child_gets_what_is_teamchats_own() -> None:
    own = {"TEAMCHAT_DATABASE": "postgresql://", "DBOS": "1", "DBOS_CONDUCTOR_KEY": "1", "DBOS__VMID": "1"}
    others = {"TEAMCHAT_SESSION": "s1", "TEAMCHAT_DATABASES": "1", "MY_DBOS": "1", "dbos_key": "1", "DBO": "1", "": "1"}
    assert for_child({**own, **others}) == others
    assert given(None, {**USER, **own}, keep=tuple(own), add=own, command_env=own).keys().isdisjoint(own)
