"""What `web`, `mcp` and `git` give a member: the same with all three CLIs, under read and edit alike.

The model server's log has what the model was offered, and what came back of its calls.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from teamchat.runners.base import Vendor
from tests.hostile_git import arm, make
from tests.real.model.replies import Reply, Request, ToolUse
from tests.real.model.server import tool_results
from tests.real.test_servers import GIVE
from tests.real.world import World

pytest.importorskip("mcp_types", reason="the extra `git` is not installed")
pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
FETCH: dict[Vendor, ToolUse] = {
    "claude": ToolUse("WebFetch", {"url": "http://127.0.0.1:9/", "prompt": "What is there?"}),
    "gemini": ToolUse("web_fetch", {"prompt": "What is at http://127.0.0.1:9/ ?"}),
}
NOT_THERE = ("No such tool available: WebFetch", 'Tool "web_fetch" not found')


def call(vendor: Vendor, of: str, tool: str, **arguments: object) -> ToolUse:
    """A call of a tool of an MCP server, by each CLI's name for it."""
    names: dict[Vendor, ToolUse] = {
        "claude": ToolUse(f"mcp__{of}__{tool}", arguments),
        "codex": ToolUse(tool, arguments, namespace=f"mcp__{of}"),
        "gemini": ToolUse(f"mcp_{of}_{tool}", arguments),
    }
    return names[vendor]


def play(user: World, vendor: Vendor, *tools: ToolUse) -> list[str]:
    """What came back to the model of these calls, each in a request of its own."""
    user.server.script(vendor, [*(Reply(tools=(tool,)) for tool in tools), Reply("Done.")])
    ran = user.json("send", "--trust", "--new", "Go")
    assert ran.result.get("text") == "Done.", ran.err + ran.out
    return tool_results(user.last(vendor))


def has_web(user: World, vendor: Vendor, member: str) -> bool:
    """Whether a member with these keys can search, or fetch a page."""
    user.member(vendor, member)
    if vendor == "codex":  # its model searches by itself
        play(user, vendor)
        return "web_search" in offered(user.last(vendor))
    (answer,) = play(user, vendor, FETCH[vendor])
    return not any(words in answer for words in NOT_THERE)


def offered(request: Request) -> set[str]:
    tools: Any = request.body["tools"]
    return {tool["type"] for tool in tools}


@pytest.mark.core
@pytest.mark.parametrize("vendor", VENDORS)
def test_git_reads_a_hostile_repository_and_runs_nothing_of_it(user: World, tmp_path: Path, vendor: Vendor) -> None:
    user.cwd = make(tmp_path / "repository")
    canaries = tmp_path / "canaries"
    canaries.mkdir()
    arm(user.cwd, lambda name: f"touch '{canaries / name}'")
    user.member(vendor, "git = true")
    asked = [
        call(vendor, "teamchat", "git_status"),
        call(vendor, "teamchat", "git_diff"),
        call(vendor, "teamchat", "git_log", patch=True),
        call(vendor, "teamchat", "git_show", path="notes.txt"),
        call(vendor, "teamchat", "git_blame", path="notes.txt"),
    ]
    status, diff, log, show, blame = play(user, vendor, *asked)
    assert " M notes.txt" in status
    assert "+not committed" in diff
    assert "Change a line" in log
    assert "changed" in show
    assert "Not Committed Yet" in blame
    assert list(canaries.iterdir()) == []
    assert user.receipt(1)["outcome"]["denied"] in ([], None)


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_web_is_there_with_the_key_alone(user: World, vendor: Vendor) -> None:
    assert not has_web(user, vendor, "")
    if vendor != "codex":
        assert "give it more with web = true in the team file" in user("show").out
    assert has_web(user, vendor, "web = true")
    assert not has_web(user, vendor, 'access = "edit"')
    assert has_web(user, vendor, 'access = "edit"\nweb = true')


@pytest.mark.parametrize("vendor", VENDORS)
def test_only_the_servers_that_are_named_start_and_their_tools_need_no_question(
    user: World, tmp_path: Path, vendor: Vendor
) -> None:
    folder = tmp_path / "told"
    folder.mkdir()
    GIVE[vendor](Path(user.env["HOME"]), folder)
    for access in ("read", "edit"):
        user.member(vendor, f'mcp = ["own"]\ngit = true\naccess = "{access}"')
        written, status = play(user, vendor, call(vendor, "own", "write_it"), call(vendor, "teamchat", "git_status"))
        assert "written" in written
        assert "is not in a git repository" in status
        assert sorted(path.name for path in folder.iterdir()) == ["own", "own has written"]
        for path in folder.iterdir():
            path.unlink()
    user.member(vendor, 'mcp = []\naccess = "edit"')
    play(user, vendor)
    assert list(folder.iterdir()) == []


def test_git_is_there_beside_a_server_of_the_users_in_a_folder_that_claude_trusts(user: World, tmp_path: Path) -> None:
    folder = tmp_path / "told"
    folder.mkdir()
    GIVE["claude"](Path(user.env["HOME"]), folder)
    settings = Path(user.env["HOME"]) / ".claude" / "settings.json"
    settings.write_text(json.dumps({"permissions": {"allow": ["mcp__own"]}}))
    record = Path(user.env["HOME"]) / ".claude.json"
    trust = {"projects": {str(user.cwd): {"hasTrustDialogAccepted": True}}}
    record.write_text(json.dumps(json.loads(record.read_text()) | trust))
    user.member("claude", 'git = true\naccess = "edit"')
    asked = (call("claude", "own", "write_it"), call("claude", "teamchat", "git_status"))
    assert play(user, "claude", *asked) == ["written", f"{user.cwd} is not in a git repository"]
    assert "--project-config-root" in user.receipt(1)["setup"]["argv"]
