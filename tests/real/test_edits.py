"""What `edit` lets a member do is what `Runner.edits` says: each kind of action in one turn of the real CLI."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from teamchat.core.agents import AGENT_TYPES
from teamchat.runners.base import Vendor
from teamchat.runners.edits import KINDS, Kind
from tests.hostile_git import git
from tests.real.model.replies import Reply, ToolUse
from tests.real.model.server import tool_results
from tests.real.model.table import SELF_TESTS
from tests.real.world import World

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini", "opencode")
AT_ONCE = 3  # tools in a reply: Gemini asks its model about loops after 30 replies


@dataclass(frozen=True, slots=True)
class Try:
    """An action of that kind, and whether it is done by now."""

    kind: Kind
    tool: ToolUse
    done: Callable[[], bool]


def tries(user: World, vendor: Vendor) -> Iterator[Try]:
    """Every action; `beside` is a folder beside the workspace, `away` a link to it."""
    cwd = user.cwd
    shell = SELF_TESTS[vendor].running

    def makes(kind: Kind, command: str, name: str) -> Try:
        return Try(kind, shell(command), lambda: os.path.lexists(cwd / name))

    def writing(kind: Kind, name: str) -> Try:
        target = Path(os.path.normpath(cwd / name))
        return Try(kind, _write(vendor, target), target.exists)

    def says(*arguments: str) -> str:
        return git(cwd, *arguments).strip()

    yield writing("files", "made.new")
    yield writing("files", "new/made")
    yield Try("looking", shell("git log --format=FIRST-%s"), lambda: _came_back(user, vendor, "FIRST-first"))
    yield makes("file commands", "mkdir made.folder", "made.folder")
    yield makes("file commands", "touch made.touch", "made.touch")
    yield makes("file commands", "cp keep.txt made.copy", "made.copy")
    yield makes("file commands", "mv moved.txt made.moved", "made.moved")
    yield Try("file commands", shell("rm gone.txt"), lambda: not (cwd / "gone.txt").exists())
    yield Try("file commands", shell("sed -i s/old/new/ sed.txt"), lambda: "new" in (cwd / "sed.txt").read_text())
    yield makes("redirections", "echo x > made.echo", "made.echo")
    yield Try("modes", shell("chmod +x keep.txt"), lambda: bool((cwd / "keep.txt").stat().st_mode & 0o100))
    yield makes("modes", "ln -s keep.txt made.link", "made.link")
    yield makes("programs", 'node -e \'require("fs").writeFileSync("made.node","")\'', "made.node")
    yield makes("programs", "sh script.sh", "made.script")
    yield Try("commits", shell("git commit -q -a -m second"), lambda: says("log", "-1", "--format=%s") == "second")
    yield Try("commits", shell("git checkout -q other"), lambda: says("branch", "--show-current") == "other")
    connects = f'node -e \'require("http").get("{user.server.url}/reached").on("error", () => {{}})\''
    yield Try("network", shell(connects), lambda: any(one.path == "/reached" for one in user.server.requests))
    yield writing("outside", "../beside/made.outside")
    yield makes("outside", "touch ../beside/made.touch", "../beside/made.touch")
    yield writing("links", "away/made.tool")
    yield makes("outside", "echo x > away/made.echo", "../beside/made.echo")
    for folder in (".git", ".claude", ".codex", ".gemini", ".vscode"):
        yield writing(folder, f"{folder}/made")
    yield writing("inner .git", "inner/.git/made")
    yield makes("allowed", 'python3 -c \'open("../beside/made.python", "w")\'', "../beside/made.python")
    yield makes("allowed redirections", "printf x > ../beside/made.printf", "../beside/made.printf")


def _write(vendor: Vendor, target: Path) -> ToolUse:
    if vendor == "codex":  # whose self-test names a file of its folder
        return ToolUse("apply_patch", {"input": f"*** Begin Patch\n*** Add File: {target}\n+written\n*** End Patch"})
    return SELF_TESTS[vendor].writing(target)


def _came_back(user: World, vendor: Vendor, text: str) -> bool:
    return any(text in result for result in tool_results(user.last(vendor)))


@pytest.fixture
def repository(user: World) -> World:
    """A repository with all that the actions need, committed."""
    cwd = user.cwd
    for folder in (cwd.parent / "beside", cwd / "inner"):
        folder.mkdir()
    git(cwd, "init", "-q", "-b", "main")
    git(cwd / "inner", "init", "-q")
    for name in ("keep.txt", "moved.txt", "gone.txt"):
        (cwd / name).write_text("one\n")
    (cwd / "sed.txt").write_text("old\n")
    (cwd / "script.sh").write_text("touch made.script\n")
    (cwd / "away").symlink_to(cwd.parent / "beside")
    git(cwd, "add", "keep.txt", "moved.txt", "gone.txt", "sed.txt", "script.sh", "away")
    git(cwd, "commit", "-q", "-m", "first")
    git(cwd, "branch", "other")
    for key, value in (("user.name", "kai"), ("user.email", "kai@example.org")):
        git(cwd, "config", key, value)
    return user


@pytest.mark.parametrize("vendor", VENDORS)
def test_what_edit_lets_is_what_is_said_of_the_cli(repository: World, vendor: Vendor) -> None:
    row = AGENT_TYPES[vendor].runner.edits
    assert row is not None
    allowed = [] if AGENT_TYPES[vendor].allow == "refused" else ["python3", "printf"]
    repository.member(vendor, f'access = "edit"\nallow = {allowed}')
    tried = list(tries(repository, vendor))
    assert {one.kind for one in tried} == set(KINDS)
    assert not any(one.done() for one in tried if one.kind != "looking")
    replies = [Reply(tools=tuple(one.tool for one in tried[at : at + AT_ONCE])) for at in range(0, len(tried), AT_ONCE)]
    repository.server.script(vendor, [*replies, Reply("I tried.")])
    ran = repository.json("send", "--trust", "Try")
    assert ran.result["text"] == "I tried.", ran.err
    done = [(one.kind, one.tool.input, one.done()) for one in tried]
    assert done == [(one.kind, one.tool.input, row[one.kind] == "lets") for one in tried]
    denied = repository.receipt(1)["outcome"]["denied"]
    refused = [one.tool.input for one in tried if row[one.kind] == "refuses"]
    assert len(denied) == len(refused) or (len(denied) > len(refused) and "fails" in row.values()), (denied, refused)


def test_commands_that_the_users_own_rules_deny_claude_stay_denied(repository: World) -> None:
    settings = Path(repository.env["HOME"]) / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"permissions": {"deny": ["Bash"]}}))
    repository.member("claude", 'access = "edit"\nallow = ["rm"]')
    removes = SELF_TESTS["claude"].running("rm gone.txt")
    repository.server.script("claude", [Reply(tools=(removes,)), Reply("I tried.")])
    assert repository.json("send", "--trust", "Remove it").result["text"] == "I tried."
    assert (repository.cwd / "gone.txt").exists()
