"""What a member may do: `read` writes nothing whatever the user's own rules allow; `edit` writes in the workspace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply, Request, ToolUse
from tests.real.model.server import tool_results
from tests.real.parity_world import toml, toml_server
from tests.real.world import World

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")


def writing(vendor: Vendor, target: Path) -> list[Reply]:
    """A model that first writes a file by the CLI's own edit tool, then by its shell, then is done."""
    patch = f"*** Begin Patch\n*** Add File: {target.name}\n+written\n*** End Patch"
    edit: dict[Vendor, ToolUse] = {
        "claude": ToolUse("Write", {"file_path": str(target), "content": "written"}),
        "codex": ToolUse("apply_patch", {"input": patch}),
        "gemini": ToolUse("write_file", {"file_path": str(target), "content": "written"}),
    }
    command = f"touch {target}.shell"
    shell: dict[Vendor, ToolUse] = {
        "claude": ToolUse("Bash", {"command": command}),
        "codex": ToolUse("exec_command", {"cmd": command}),
        "gemini": ToolUse("run_shell_command", {"command": command}),
    }
    return [Reply(tools=(edit[vendor],)), Reply(tools=(shell[vendor],)), Reply("I tried.")]


def allow_everything(user: World) -> None:
    """The most permissive settings a user could have written for themselves."""
    home = Path(user.env["HOME"])
    (home / ".claude").mkdir(exist_ok=True)
    permissions = {"allow": ["Write", "Edit", "Bash", "Bash(*)"], "defaultMode": "acceptEdits"}
    (home / ".claude" / "settings.json").write_text(json.dumps({"permissions": permissions}))
    config = home / ".codex" / "config.toml"
    config.write_text('sandbox_mode = "danger-full-access"\napproval_policy = "never"\n' + config.read_text())
    (home / ".codex" / "rules").mkdir(exist_ok=True)
    (home / ".codex" / "rules" / "mine.rules").write_text('prefix_rule(pattern=["touch"], decision="allow")\n')
    settings = json.loads((home / ".gemini" / "settings.json").read_text())
    settings["tools"] = {"allowed": ["write_file", "replace", "run_shell_command"]}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    (home / ".gemini" / "policies").mkdir(exist_ok=True)
    (home / ".gemini" / "policies" / "mine.toml").write_text(
        '[[rule]]\ntoolName = ["write_file", "run_shell_command"]\ndecision = "allow"\npriority = 999\n'
    )


@pytest.mark.core
@pytest.mark.parametrize("permissive", [False, True], ids=["plain user", "permissive user"])
@pytest.mark.parametrize("vendor", VENDORS)
def test_read_writes_nothing_and_the_receipt_counts_it(user: World, vendor: Vendor, *, permissive: bool) -> None:
    if permissive:
        allow_everything(user)
    user.member(vendor)
    target = user.cwd / "made.txt"
    user.server.script(vendor, writing(vendor, target))
    ran = user.json("send", "Write a file")
    assert ran.code == 0, ran.err
    assert ran.result["text"] == "I tried."
    assert not target.exists()
    assert not Path(f"{target}.shell").exists()
    assert user.receipt(1)["outcome"]["denied"], user("show").out


@pytest.mark.parametrize("vendor", VENDORS)
def test_edit_writes_in_the_workspace(user: World, vendor: Vendor) -> None:
    user.member(vendor, 'access = "edit"\nallow = ["touch"]')
    target = user.cwd / "made.txt"
    user.server.script(vendor, writing(vendor, target))
    ran = user.json("send", "--trust", "Write a file")
    assert ran.code == 0, ran.err
    assert target.read_text().strip() == "written"
    assert Path(f"{target}.shell").exists()
    assert "made.txt" in user.receipt(1)["outcome"]["files"]
    assert user.receipt(1)["outcome"]["denied"] in ([], None)


@pytest.mark.parametrize("vendor", VENDORS)
def test_edit_does_not_write_outside_the_workspace_and_the_receipt_says_so(
    user: World, vendor: Vendor, tmp_path: Path
) -> None:
    user.member(vendor, 'access = "edit"')
    outside = tmp_path / "outside"
    outside.mkdir()
    user.server.script(vendor, writing(vendor, outside / "made.txt"))
    assert user.json("send", "--trust", "Write a file").code == 0
    assert list(outside.iterdir()) == []
    denied = user.receipt(1)["outcome"]["denied"]  # Codex does not tell all
    assert vendor == "codex" or len(denied) == 2


@pytest.mark.parametrize("access", ["read", "edit"])
def test_a_subagent_of_codex_gets_no_more_than_its_member(user: World, tmp_path: Path, access: str) -> None:
    started, outside = tmp_path / "started", tmp_path / "outside"
    role = {"name": "mine", "description": "x", "developer_instructions": "SAYS-mine"}
    widest = {"sandbox_mode": "danger-full-access", "approval_policy": "never"}
    program = {"command": "touch", "args": [str(started)]}
    folder = Path(user.env["HOME"]) / ".codex" / "agents"
    folder.mkdir()
    (folder / "mine.toml").write_text(toml({**role, **widest}) + toml_server("own", program))

    def reply(request: Request) -> Reply:
        if b"SAYS-mine" in request.raw:  # the subagent
            command = f"touch {outside} inside; echo tried"
            tried = any("tried" in result for result in tool_results(request))
            return Reply("Done.") if tried else Reply(tools=(ToolUse("exec_command", {"cmd": command}),))
        if any(b"SAYS-mine" in other.raw and tool_results(other) for other in user.server.turns("codex")):
            return Reply("Done.")
        if tool_results(request):
            return Reply(tools=(ToolUse("exec_command", {"cmd": "sleep 1"}),))
        call = {"agent_type": "mine", "message": "Look"}
        return Reply(tools=(ToolUse("spawn_agent", call, namespace="multi_agent_v1"),))

    user.member("codex", f'access = "{access}"')
    user.server.script("codex", reply)
    assert user("send", "--trust", "Look").code == 0
    called = [request for request in user.server.turns("codex") if b"SAYS-mine" in request.raw]
    assert any("Read-only file system" in result for request in called for result in tool_results(request))
    assert not outside.exists()
    assert (user.cwd / "inside").exists() == (access == "edit")
    assert not started.exists()


def widen_edit(user: World, outside: Path) -> None:
    """Settings of the user's own that would give `edit` another folder, a network and the web."""
    home = Path(user.env["HOME"])
    (home / ".claude").mkdir(exist_ok=True)
    permissions = {"allow": ["WebFetch", "WebSearch"]}
    (home / ".claude" / "settings.json").write_text(json.dumps({"permissions": permissions}))
    config = home / ".codex" / "config.toml"
    widened = f'[sandbox_workspace_write]\nnetwork_access = true\nwritable_roots = ["{outside}"]\n'
    config.write_text('web_search = "live"\n' + config.read_text() + widened)
    (home / ".gemini" / "policies").mkdir(exist_ok=True)
    policy = '[[rule]]\ntoolName = ["web_fetch", "google_web_search"]\ndecision = "allow"\npriority = 999\n'
    (home / ".gemini" / "policies" / "mine.toml").write_text(policy)


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_users_settings_give_edit_no_web_and_codex_no_other_folder(
    user: World, vendor: Vendor, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    widen_edit(user, outside)
    page = f"{user.server.url}/page"
    fetch = f"python3 -c 'import urllib.request as u; u.urlopen(\"{page}\")'"
    shim = 'ls "$TMPDIR/.codex/bin"; echo x > "$TMPDIR/.codex/bin/git"'
    tools: dict[Vendor, list[ToolUse]] = {
        "claude": [ToolUse("WebFetch", {"url": page, "prompt": "Read"}), ToolUse("WebSearch", {"query": "x"})],
        "codex": [ToolUse("exec_command", {"cmd": cmd}) for cmd in (f"touch '{outside}/made'", fetch, shim)],
        "gemini": [ToolUse("web_fetch", {"prompt": f"Read {page}"}), ToolUse("google_web_search", {"query": "x"})],
    }
    user.server.script(vendor, [*(Reply(tools=(tool,)) for tool in tools[vendor]), Reply("I tried.")])
    for access in ("read", "edit"):
        user.member(vendor, f'access = "{access}"')
        assert user.json("send", "--trust", "Look").result["text"] == "I tried."
        user.server.script(vendor, [*(Reply(tools=(tool,)) for tool in tools[vendor]), Reply("I tried.")])
    assert not [request.path for request in user.server.requests if "/page" in request.path]
    assert list(outside.iterdir()) == []
    if vendor == "codex":  # the git that Codex itself runs stays teamchat's
        written = [result for result in tool_results(user.last(vendor)) if "git\n" in result]
        assert "Read-only file system" in written[0]
    offered = {tool.get("name") or tool.get("type") for tool in offered_tools(user.last(vendor).body)}
    assert not offered & {"WebFetch", "WebSearch", "web_search", "web_fetch", "google_web_search"}


def offered_tools(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tools that a model was offered, in the format of whatever vendor."""
    tools = body.get("tools", [])
    return [tool for one in tools for tool in one.get("functionDeclarations", [one])]


def test_full_access_is_refused_where_claude_refuses_it_to_root(user: World) -> None:
    user.member("claude", 'access = "full"')
    ran = user("send", "--trust", "Hi")
    assert ran.code == 5
    assert "root" in ran.err
    assert user.server.turns("claude") == []
