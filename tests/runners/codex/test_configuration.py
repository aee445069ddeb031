from __future__ import annotations

import os
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from teamchat.runners.base import Job
from teamchat.runners.codex import configuration as codex_config
from teamchat.runners.codex.configuration import trusting
from teamchat.runners.codex.runner import CodexRunner


def given(cwd: Path, env: dict[str, str], **keys: Any) -> dict[str, Any]:
    """The settings that a member is given on its command line beside those of its access and the web."""
    argv = CodexRunner().command(Job(("codex",), cwd, Path("/scratch"), env=env, **keys)).argv
    settings = tomllib.loads("\n".join(value for flag, value in pairwise(argv) if flag == "-c"))
    return {name: value for name, value in settings.items() if name in {"mcp_servers", "projects"}}


def test_every_server_is_switched_off_by_its_name_and_kind(tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text(
        '\ufeff[mcp_servers.files]\ncommand = "x"\n[mcp_servers."a b"]\nurl = "y"\n', "utf-8"
    )
    (tmp_path / ".codex" / "work.config.toml").write_text('[mcp_servers.of_profile]\ncommand = "x"\n')
    assert given(tmp_path / "project", {"HOME": str(tmp_path)})["mcp_servers"] == {
        "files": {"command": "false", "enabled": False},
        "a b": {"url": "http://127.0.0.1:9", "enabled": False},
        "of_profile": {"command": "false", "enabled": False},
    }


def test_the_machines_servers_are_switched_off_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex_config, "SYSTEM", tmp_path / "system.toml")
    (tmp_path / "system.toml").write_text('[mcp_servers.theirs]\ncommand = "x"\n')
    assert list(given(tmp_path, {"HOME": str(tmp_path)})["mcp_servers"]) == ["theirs"]


def test_a_projects_servers_are_off_by_name_with_project_settings(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / ".codex").mkdir()
    (project / ".codex" / "config.toml").write_text('[mcp_servers.theirs]\ncommand = "z"\n')
    env = {"HOME": str(tmp_path)}
    assert given(project / "sub", env) == {}
    switched_off = {"mcp_servers": {"theirs": {"command": "false", "enabled": False}}}
    assert given(project / "sub", env, project_settings=True)["mcp_servers"] == switched_off["mcp_servers"]
    assert given(project / "sub", env, access="edit", mcp=()) == {}


def test_the_servers_that_are_named_are_on_and_the_others_off(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[mcp_servers.a]\ncommand = "x"\n[mcp_servers."b c"]\nurl = "y"\n')
    env = {"CODEX_HOME": str(tmp_path)}
    on, off = {"enabled": True, "default_tools_approval_mode": "approve"}, {"command": "false", "enabled": False}
    for access in ("read", "edit", "full"):
        assert given(tmp_path, env, access=access, mcp=("b c",))["mcp_servers"] == {"a": off, "b c": on}
    assert given(tmp_path, env, access="edit") == {}
    assert CodexRunner().servers(tmp_path, env) == {"a": "command", "b c": "url"}


def test_git_is_a_server_that_is_waited_for(tmp_path: Path) -> None:
    server = given(tmp_path, {"HOME": str(tmp_path)}, access="edit", git=Path("/state/git"))["mcp_servers"]["teamchat"]
    assert server.pop("command") == sys.executable
    assert server.pop("args")[-4:-1] == ["teamchat.runners.git_server.serve", str(tmp_path), "/state/git"]
    assert server == {
        "enabled": True,
        "default_tools_approval_mode": "approve",
        "required": True,
        "startup_timeout_sec": 60,
    }


def test_codex_home_says_where_the_users_own_is(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[mcp_servers.files]\ncommand = "x"\n')
    assert "files" in given(tmp_path / "work", {"CODEX_HOME": str(tmp_path)})["mcp_servers"]


@pytest.mark.parametrize(
    "text",
    [
        "not toml =",
        "a." * 100_000 + "a = 1",
        "a = " + "[" * 5000,
        '[mcp_servers]\nx = {\n command = "y",\n}\n',
        b"\xff",
    ],
    ids=["broken", "deep keys", "deep lists", "TOML 1.1", "no UTF-8"],
)
def test_a_file_that_is_not_understood_refuses_read_and_is_named(tmp_path: Path, text: str | bytes) -> None:
    (tmp_path / "config.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    env = {"CODEX_HOME": str(tmp_path)}
    refusal = CodexRunner().refusal("read", env)
    assert refusal
    assert refusal.startswith(f"{tmp_path / 'config.toml'} cannot be read: ")
    assert refusal.endswith("; its MCP servers are not known")
    assert CodexRunner().refusal("edit", env) is None
    login = CodexRunner().login(tmp_path, env)
    assert login
    assert (login.there, login.reason) == (None, refusal.rpartition(";")[0])


@pytest.mark.parametrize(("text", "names"), [("mcp_servers = 3", []), ('[mcp_servers]\nx = "y"\n', ["x"])])
def test_an_odd_configuration_is_for_codex_to_complain_about(tmp_path: Path, text: str, names: list[str]) -> None:
    (tmp_path / "config.toml").write_text(text)
    env = {"CODEX_HOME": str(tmp_path)}
    assert list(given(tmp_path, env).get("mcp_servers", {})) == names
    assert CodexRunner().refusal("read", env) is None


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.toml")
    assert CodexRunner().refusal("read", {"CODEX_HOME": str(tmp_path)}) is None


def test_the_project_is_trusted_at_the_root_of_its_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for folder in (tmp_path / "a" / "b", tmp_path / ("a" * 300)):  # neither is there
        flag, value = trusting(folder)
        assert flag == "-c"
        assert tomllib.loads(value) == {"projects": {str(tmp_path): {"trust_level": "trusted"}}}
