"""The git server as an agent CLI meets it: a program that speaks the Model Context Protocol on stdin and stdout."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from teamchat.runners import git_server
from tests.hostile_git import make
from tests.leftovers import marked

pytest.importorskip("mcp_types", reason="the extra `git` is not installed")
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make(tmp_path / "work")


def talk(repository: Path, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The results of `tools/list` and of those calls, from a server that is started in the repository."""
    asked = [("initialize", CLIENT), ("tools/list", {})]
    asked += [("tools/call", {"name": name, "arguments": arguments}) for name, arguments in calls]
    requests = [{"jsonrpc": "2.0", "id": id_, "method": method, "params": p} for id_, (method, p) in enumerate(asked)]
    requests.insert(1, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    process = subprocess.Popen(
        git_server.server_command(repository, repository.with_name("scratch"), os.environ),
        cwd=repository,
        env=marked({"PATH": "/usr/local/bin:/usr/bin:/bin"}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin
        assert process.stdout
        answers = {}
        for request in requests:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            if "id" in request:
                answers[request["id"]] = json.loads(process.stdout.readline())
        process.stdin.close()
    assert process.returncode == 0
    return [answers[number]["result"] for number in range(1, len(asked))]


def test_it_offers_its_tools_and_answers(repository: Path) -> None:
    for trap in ("teamchat", "mcp", "anyio"):
        (repository / trap).mkdir()
        (repository / trap / "__init__.py").write_text("raise SystemExit(9)")
    listed, status, wrong, unknown = talk(
        repository, ("git_status", {"paths": ["notes.txt"]}), ("git_log", {"count": 0}), ("git_push", {})
    )
    assert [tool["name"] for tool in listed["tools"]] == ["git_status", "git_diff", "git_log", "git_show", "git_blame"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in listed["tools"])
    assert listed["tools"][2]["inputSchema"]["properties"]["count"]["maximum"] == 500
    assert status["content"] == [{"type": "text", "text": "## main\n M notes.txt"}]
    assert not status.get("isError")
    assert wrong["content"][0]["text"] == "count: Input should be greater than or equal to 1"
    assert unknown["content"][0]["text"] == "there is no tool 'git_push'"
    assert wrong["isError"]
    assert unknown["isError"]
