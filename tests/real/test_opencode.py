"""opencode in turns of each access: what it may do, that it goes on and is stopped, and what a project cannot do."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from teamchat.core.errors import ExitCode
from tests.images import png
from tests.real.model.replies import Reply, ToolUse
from tests.real.model.server import messages, tool_results
from tests.real.world import TIMEOUT_S, World, alive, kill, tree, wait_until

pytestmark = pytest.mark.real
WAITS = "tail -f waits.txt"


@pytest.fixture
def opencode(user: World) -> World:
    """A user with a member of opencode that reads."""
    give(user)
    return user


def give(user: World, extra: str = "") -> None:
    user.member("opencode", f'system_instruction = "You are Max, {{env:HOME}}"\n{extra}')


def run(command: str) -> ToolUse:
    return ToolUse("bash", {"command": command, "description": "Run it"})


def write(path: Path) -> ToolUse:
    return ToolUse("write", {"filePath": str(path), "content": "written"})


@pytest.mark.core
def test_a_member_that_reads_reads_and_goes_on_and_writes_nothing(opencode: World, tmp_path: Path) -> None:
    """What the user's own settings allow, and a `.env`, change nothing."""
    cwd, outside = opencode.cwd, tmp_path / "outside"
    outside.mkdir()
    (cwd / "note.txt").write_text("XYLOPHONE\n")
    (cwd / "AGENTS.md").write_text("Say MARIMBA.\n")
    (cwd / "shot.png").write_bytes(png())
    settings = Path(opencode.env["HOME"]) / ".config" / "opencode" / "opencode.json"
    allowed = {"permission": {"*": "allow", "edit": "allow", "bash": "allow", "read": {"*.key": "deny"}}}
    settings.write_text(json.dumps({**json.loads(settings.read_text()), **allowed}))
    (cwd / "own.key").write_text("SECRET")
    tries = (
        *(write(cwd / "made"), run("touch made.sh"), write(outside / "made")),
        *(ToolUse("read", {"filePath": str(cwd / name)}) for name in ("own.key", "note.txt")),
        ToolUse("task", {"description": "x", "prompt": "x", "subagent_type": "general"}),
        ToolUse("webfetch", {"url": f"{opencode.server.url}/fetched", "format": "text"}),
    )
    opencode.server.script("opencode", [Reply("Let me.", "Hm.", tries), Reply("I looked.")])
    give(opencode, 'memory = "resume"')
    ran = opencode.json("send", "--file", "shot.png", "Look @note.txt")
    assert (ran.code, ran.result["text"]) == (0, "I looked."), ran.err
    assert sorted(path.name for path in cwd.iterdir()) == [
        "AGENTS.md",
        "note.txt",
        "own.key",
        "shot.png",
        "teamchat.toml",
    ]
    assert list(outside.iterdir()) == []
    results = tool_results(opencode.last("opencode"))
    assert sum("XYLOPHONE" in result for result in results) == 1
    assert not any("SECRET" in result for result in results)
    assert not any("fetched" in request.path for request in opencode.server.requests)
    assert b"image/png" in opencode.last("opencode").raw
    assert "Say MARIMBA." in opencode.system("opencode")
    assert "You are Max, {env:HOME}" in opencode.system("opencode")
    outcome = opencode.receipt(1)["outcome"]
    tools = sorted(one["tool"] for one in outcome["denied"])  # it runs them side by side
    assert tools == ["bash", "read", "task", "webfetch", "write", "write"]
    assert (outcome["usage"]["input_tokens"], outcome["usage"]["output_tokens"]) == (22, 14)
    assert outcome["usage"]["cost_usd"] > 0
    opencode.server.script("opencode", [Reply("I remember.")])
    assert opencode.json("send", "And now?").result["text"] == "I remember."
    said = [message.text for message in messages(opencode.last("opencode"))]
    assert sum("Look @note.txt" in text for text in said) == 1
    assert opencode.receipt(2)["setup"]["resumes"]


RUNS = (
    *(
        "touch made",
        "declare -i n='a[$(touch made)]'",
        "[[ a -eq 'a[$(touch made)]' ]]",
        "echo $(touch made)",
        "> made",
    ),
    *(
        "export x=$(touch made)",
        "(( a[$(touch made)] ))",
        "X=$(touch made)",
        "f() { touch made; }; f",
        "echo | touch made",
    ),
    *(
        "let 'a[$(touch made)]'",
        "cat <<< $(touch made)",
        "for x in $(touch made); do :; done",
        "trap 'touch made' EXIT",
    ),
)


@pytest.mark.core
def test_a_member_that_edits_runs_no_command(opencode: World) -> None:
    cwd = opencode.cwd
    settings = Path(opencode.env["HOME"]) / ".config" / "opencode" / "opencode.json"
    allowed = {"permission": {"bash": {"*": "ask", "echo *": "allow", "touch *": "allow"}}}
    settings.write_text(json.dumps({**json.loads(settings.read_text()), **allowed}))
    give(opencode, 'access = "edit"')
    tries = (write(cwd / "written"), *map(run, RUNS), write(cwd.parent / "outside"))
    opencode.server.script("opencode", [Reply("Let me.", tools=tries), Reply("I tried.")])
    ran = opencode.json("send", "--trust", "Go")
    assert (ran.code, ran.result["text"]) == (0, "I tried."), ran.err
    assert (cwd / "written").read_text() == "written"
    assert not (cwd / "made").exists()
    assert not (cwd.parent / "outside").exists()
    assert len(opencode.receipt(1)["outcome"]["denied"]) == len(RUNS) + 1
    give(opencode, 'access = "edit"\nallow = ["echo"]')
    ran = opencode("send", "--trust", "Go")
    assert ran.code == ExitCode.USAGE
    assert "allow: opencode cannot be held to a list of commands" in ran.err


def test_rules_and_servers_in_settings_with_a_trailing_comma_count(opencode: World) -> None:
    """The plain program reads them, too: its rule denies, and its server starts."""
    cwd = opencode.cwd
    settings = Path(opencode.env["HOME"]) / ".config" / "opencode" / "opencode.json"
    server = {"trap": {"type": "local", "command": ["touch", str(cwd.parent / "server")]}}
    mine = json.dumps({**json.loads(settings.read_text()), "permission": {"edit": {"*docs/*": "deny"}}, "mcp": server})
    settings.write_text(f"{mine[:-1]},}} // mine\n")
    give(opencode, 'access = "edit"\nmcp = []')
    tries = (write(cwd / "docs" / "made"), write(cwd / "made"))
    opencode.server.script("opencode", [Reply("Let me.", tools=tries), Reply("I tried.")])
    ran = opencode.json("send", "--trust", "Go")
    assert (ran.code, ran.result["text"]) == (0, "I tried."), ran.err
    assert (cwd / "made").exists()
    assert not (cwd / "docs").exists()
    assert not (cwd.parent / "server").exists()
    give(opencode, 'access = "full"')
    opencode.server.script("opencode", [Reply("Let me.", tools=tries), Reply("I tried.")])
    assert opencode("send", "--trust", "Go").code == 0
    assert not (cwd / "docs").exists()
    assert (cwd.parent / "server").exists()
    settings.write_text("{'permission': {edit: ")
    ran = opencode("send", "--trust", "Go")
    assert ran.code == ExitCode.NOT_TRUSTED
    assert "its rules and MCP servers are not known" in ran.err


@pytest.mark.core
def test_kill_9_leaves_no_process(opencode: World) -> None:
    (opencode.cwd / "waits.txt").touch()
    give(opencode, 'access = "full"')
    opencode.server.script("opencode", [Reply("Wait.", tools=(run(WAITS),))])
    with opencode.start("send", "--trust", "Go") as process:
        wait_until(lambda: any(command(pid) == WAITS for pid in tree(process.pid)))
        seen = tree(process.pid)
        kill(process)
    wait_until(lambda: not any(alive(pid) for pid in seen))
    opencode.server.script("opencode", [Reply("Whole again.")])
    ran = opencode.json("resume")
    assert (ran.code, ran.result["text"]) == (0, "Whole again."), ran.err


def command(pid: int) -> str:
    """The command line of a process; nothing once it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def test_a_signal_stops_a_turn_and_a_failure_is_told(opencode: World) -> None:
    opencode.server.script("opencode", [Reply("Half", ending="stall")])
    with opencode.start("send", "Go") as process:
        wait_until(lambda: opencode.server.turns("opencode"))
        seen = tree(process.pid)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert [pid for pid in seen if alive(pid)] == []
    opencode.server.script("opencode", [Reply(status=401, message="invalid x-api-key")])
    began = time.monotonic()
    ran = opencode("resume")
    assert ran.code == ExitCode.AGENT_UNAVAILABLE, ran.err
    assert "is not logged in, or the login was refused: invalid x-api-key" in ran.err
    assert time.monotonic() - began < TIMEOUT_S
