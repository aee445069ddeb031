"""A receipt names the key of the team file that allows what was denied."""

from __future__ import annotations

import pytest

from teamchat.cli.output.receipt import keys_for
from teamchat.runners.agent_events import Denied

NOTE = "reads files; has no tool that writes or runs anything (--tools Read,Grep,Glob); no web, no MCP server"


@pytest.mark.parametrize(
    ("tool", "detail", "key"),
    [
        ("WebFetch", "https://example.org", "web = true"),
        ("google_web_search", "weather", "web = true"),
        ("Bash", "git log -p", "git = true"),
        ("run_shell_command", "cd sub && git diff", "git = true"),
        ("Bash", "legit log", "access or allow"),
        ("Bash", "rm -r git x", "access or allow"),
        ("Write", "a.txt", "access or allow"),
        ("mcp__github__list_issues", "{}", 'mcp = ["github"]'),
        ("mcp__my_own__do_it", "{}", 'mcp = ["my_own"]'),
        ("mcp_github_list_issues", "{}", 'mcp = ["github"]'),
        ("mcp_my_tools_run", "{}", 'mcp = ["my_tools"]'),
        ("mcp__a_b__run", "{}", 'mcp = ["a.b"]'),
        ("mcp__teamchat__git_log", "{}", "git = true"),
        ("mcp_teamchat_git_log", "{}", "git = true"),
        ("mcp_nobody_knows_run", "{}", "mcp"),
    ],
)
def test_each_tool_has_its_key(tool: str, detail: str, key: str) -> None:
    assert keys_for([Denied(tool, detail)], NOTE, ["github", "my", "my_own", "my_tools", "a.b"]) == key


def test_each_key_is_named_once() -> None:
    denied = [Denied("WebFetch", "a"), Denied("Bash", "git log"), Denied("WebSearch", "b"), Denied("Write", "c")]
    assert keys_for(denied, NOTE) == "web = true or git = true or access or allow"


def test_a_key_that_the_member_has_is_not_named() -> None:
    denied = [Denied("WebFetch", "a"), Denied("Bash", "git log")]
    assert keys_for(denied, "reads files (--tools x); web, no MCP server, git") == "access or allow"


def test_the_key_allow_is_not_named_where_the_cli_takes_none() -> None:
    assert keys_for([Denied("bash", "ls"), Denied("write", "c")], NOTE, allow=False) == "access"


@pytest.mark.parametrize("tool", ["mcp__github__list", "mcp_my_tools_run", "mcp__teamchat__git_log"])
def test_a_server_that_the_member_has_is_not_named(tool: str) -> None:
    note = "reads files (--tools x); no web, MCP servers github, my_tools, git"
    assert keys_for([Denied(tool, "{}")], note, ["github", "my", "my_tools"]) == "access or allow"
