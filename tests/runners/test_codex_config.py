from __future__ import annotations

import tomllib
from pathlib import Path

from teamchat.runners.codex_config import trusting, without_servers


def test_every_server_is_switched_off_by_its_name_and_kind(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".codex").mkdir(parents=True)
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text(
        '[mcp_servers.files]\ncommand = "x"\n[mcp_servers."a b"]\nurl = "y"\n'
    )
    (project / ".codex" / "config.toml").write_text('[mcp_servers.theirs]\ncommand = "z"\n')
    flag, value = without_servers(project, {"HOME": str(tmp_path)})
    assert flag == "-c"
    assert tomllib.loads(value)["mcp_servers"] == {
        "files": {"command": "false", "enabled": False},
        "a b": {"url": "http://127.0.0.1:9", "enabled": False},
        "theirs": {"command": "false", "enabled": False},
    }


def test_codex_home_says_where_the_users_own_is(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[mcp_servers.files]\ncommand = "x"\n')
    assert "files" in without_servers(tmp_path / "work", {"CODEX_HOME": str(tmp_path)})[1]


def test_a_broken_or_odd_configuration_is_for_codex_to_complain_about(tmp_path: Path) -> None:
    for text in (
        "not toml =",
        "a." * 100_000 + "a = 1",
        "a = " + "[" * 5000,
        "mcp_servers = 3",
        '[mcp_servers]\nx = "y"\n',
    ):
        (tmp_path / "config.toml").write_text(text)
        assert without_servers(tmp_path, {"CODEX_HOME": str(tmp_path)}) in (
            (),
            ("-c", 'mcp_servers={"x"={command="false",enabled=false}}'),
        )


def test_the_project_is_trusted_at_the_root_of_its_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for folder in (tmp_path / "a" / "b", tmp_path / ("a" * 300)):  # neither is there
        flag, value = trusting(folder)
        assert flag == "-c"
        assert tomllib.loads(value) == {"projects": {str(tmp_path): {"trust_level": "trusted"}}}
