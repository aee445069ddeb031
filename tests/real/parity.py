"""Measures what a member of each CLI has of what the plain CLI has, and makes docs/parity.md of it.

Both are run in the same world against the scripted model server, whose model tries everything. `python -m
tests.real.parity` writes the data that teamchat ships, and the page.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from teamchat.core.doctor.parity import ROWS, Held, Mode, parity
from teamchat.core.errors import ExitCode
from teamchat.runners.base import Vendor
from tests.leftovers import marked
from tests.program import ROOT
from tests.real import clis
from tests.real.model.replies import Reply, Request, ToolUse
from tests.real.model.server import ModelServer, tool_results
from tests.real.model.table import MODELS, SELF_TESTS
from tests.real.parity_page import page
from tests.real.parity_world import EXPANDS, RULE, Place, give, give_settings, plant
from tests.real.world import World

MODES: tuple[Mode, ...] = get_args(Mode)
DATA, PAGE = ROOT / "teamchat" / "core" / "doctor" / "parity.json", ROOT / "docs" / "parity.md"
PLAIN: Mapping[Vendor, tuple[str, ...]] = {
    "claude": ("claude", "-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"),
    "codex": ("codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "--image=shot.png", "-"),
    "gemini": ("gemini", "--output-format", "stream-json", "--approval-mode", "yolo"),
    "opencode": ("opencode", "run", "--format", "json", "--auto", "--title", "x", "--file=shot.png"),
}
TOOLS: Mapping[str, tuple[str, ...]] = {
    "shell": ("Bash", "exec_command", "run_shell_command", "bash"),
    "web-search": ("WebSearch", "web_search", "google_web_search", "websearch"),
    "web-fetch": ("WebFetch", "web_fetch", "webfetch"),
    "subagents": ("Agent", "Task", "spawn_agent", "multi_agent_v1", "invoke_agent", "task"),
    "skills": ("Skill", "activate_skill", "skill"),
    "todo": ("TodoWrite", "TaskCreate", "update_plan", "write_todos", "todowrite"),
    "plan": ("EnterPlanMode", "enter_plan_mode"),
    "notebook": ("NotebookEdit",),
    "question": ("AskUserQuestion", "request_user_input", "ask_user", "question"),
    "background": ("TaskStop", "TaskOutput", "BashOutput", "list_background_processes", "write_stdin"),
    "later": ("CronCreate", "ScheduleWakeup"),
}
TEXTS: Mapping[str, str] = {
    "subagents-user": "SAYS-agent-of-user",
    "subagents-project": "SAYS-agent-of-project",
    "skills-user": "SAYS-of-user",
    "skills-project": "SAYS-of-project",
    "command-user": "SAYS-command-user now",
    "command-project": "SAYS-command-project now",
    "instructions-cwd": "SAYS-instructions-cwd",
    "instructions-parents": "SAYS-instructions-root",
    "instructions-subfolders": "SAYS-instructions-sub",
    "instructions-user": "SAYS-instructions-user",
    "local": "SAYS-local",
    "rules-files": "SAYS-rules",
    "memory": "SAYS-memory",
    "style": "SAYS-style",
    "mention": "SAYS-mentioned",
    "git-status": "# gitStatus",
}
RESULTS = {
    "read": "SAYS-note-read",
    "directories": "SAYS-outside",
    "git": "SAYS-committed",
    "variables": "SAYS-variable",
}
MADE = {
    "write": "edited",
    "run": "ran",
    "expand": "expanded",
    "rules-user": "ruled",
    "rules-project": "ruled-by-project",
    "mcp-user": "mcp-user",
    "mcp-plugin": "mcp-plugin",
    "mcp-project": "mcp-project",
    "hooks-user": "hook-user",
    "hooks-project": "hook-project",
}
AUTHOR = ("-c", "user.name=k", "-c", "user.email=k")
TEAM = """[team]
[[members]]
name = "k"
type = "human"
[[members]]
name = "m"
agent = "{vendor}"
access = "{access}"
"""
IMAGES = (b'"type":"image"', b'"type": "image"', b"input_image", b"image/png")
GEMINI = f"/{MODELS['gemini']}:"
EFFORT = (b'"effort":"low"', b'"effort": "low"')
MODEL = (b'"model":"claude-sonnet-5"', b'"model":"gpt-5.5"', b'"model": "gpt-5.5"')


@dataclass(frozen=True, slots=True)
class Try:
    """What is typed, in which setup, and whether the model then tries everything; `rows` are read off it.

    `settings`: of a project that makes the CLI run something, where a member gets no turn for it.
    """

    words: str
    rows: frozenset[str]
    hooks: bool = False
    everything: bool = False
    settings: bool = False


TYPED = frozenset({"command-user", "command-project"})
APART = {
    "claude": TYPED | {"hooks-user", "mcp-plugin"},
    "codex": frozenset[str](),
    "gemini": TYPED | {"hooks-user"},
    "opencode": frozenset({"mcp-project"}),
}


def tries(vendor: Vendor) -> list[Try]:
    """The first one shows most; the user's hooks and plugins, and typed commands, have others."""
    first = Try("Look @note.txt @shot.png", frozenset(ROWS) - APART[vendor], everything=True)
    if vendor == "codex":
        return [first]
    if vendor == "opencode":
        return [first, Try("Look", APART[vendor], settings=True)]
    return [
        first,
        Try("/mine now", APART[vendor] - {"command-project"}, hooks=True),
        Try("/theirs now", frozenset({"command-project"})),
    ]


def measured(vendor: Vendor, programs: str, *, whole: bool = True) -> dict[str, dict[Mode, bool]]:
    """The rows of that CLI by what was seen; without the `whole` only those that the first try shows."""
    found: dict[str, dict[Mode, bool]] = {}
    for one in tries(vendor)[: None if whole else 1]:
        for mode in MODES:
            with tempfile.TemporaryDirectory(prefix="parity-") as folder, ModelServer() as server:
                seen = _run(vendor, mode, one, Path(folder).resolve(), server, programs)
            for row in sorted(one.rows):
                found.setdefault(row, {})[mode] = row in seen
    return {row: found[row] for row in ROWS if row in found}


def _run(vendor: Vendor, mode: Mode, one: Try, folder: Path, server: ModelServer, programs: str) -> set[str]:
    place = Place(folder / "home", folder / "repo", folder / "outside", folder / "made")
    for made in (place.home, place.root, place.outside, place.made):
        made.mkdir()
    env = {**clis.environment(place.home, server.url, programs), "IS_SANDBOX": "1", "PARITY": "variable"}
    env = marked({**env, "GEMINI_CLI_NO_RELAUNCH": "true", "TEAMCHAT_HOME": str(folder / "state")})
    plant(place)
    for words in (("init", "-q"), (*AUTHOR, "commit", "-qm", "SAYS-committed", "--allow-empty")):
        subprocess.run(["git", *words], cwd=place.root, check=True)
    give(vendor, place, hooks=one.hooks)
    if one.settings:
        give_settings(place)
    server.script(vendor, [*(_everything(vendor, place, server.url) if one.everything else ()), Reply("Done.")])
    if mode == "plain":
        clis.run(PLAIN[vendor], one.words.encode(), place.cwd, env)
    else:
        user = World(server, env, place.cwd)
        user.team(TEAM.format(vendor=vendor, access=mode))
        image = ("--file", "shot.png") if vendor in ("codex", "opencode") and one.everything else ()
        ran = user("send", "--trust", *image, one.words)
        assert ran.code == (ExitCode.NOT_TRUSTED if one.settings else 0), ran.err
    return _seen(server, vendor, place)


def _everything(vendor: Vendor, place: Place, url: str) -> Iterator[Reply]:
    """A model that tries everything, one thing after another."""
    ping = f"python3 -c \"import urllib.request as u; u.urlopen('{url}/v1/models?parity')\""
    for command in ("git log --format=%s", "python3 -c \"open('ran','w')\"", EXPANDS, RULE, "./theirs.sh", ping):
        yield Reply(tools=(SELF_TESTS[vendor].running(command),))
    yield Reply(tools=(SELF_TESTS[vendor].writing(place.cwd / "edited"),))
    for file in (place.cwd / "sub" / "note.txt", place.outside / "note.txt"):
        read: dict[Vendor, ToolUse] = {
            "claude": ToolUse("Read", {"file_path": str(file)}),
            "codex": ToolUse("exec_command", {"cmd": f"cat {file}"}),
            "gemini": ToolUse("read_file", {"file_path": str(file)}),
            "opencode": ToolUse("read", {"filePath": str(file)}),
        }
        yield Reply(tools=(read[vendor],))
    if vendor == "codex":
        yield from _subagents("mine", "theirs")


def _subagents(*names: str) -> Iterator[Reply]:
    """Codex tells its subagents apart only to the one that is called: each is called, and has time to ask the model."""
    calls = ({"agent_type": name, "message": "Look"} for name in names)
    yield Reply(tools=tuple(ToolUse("spawn_agent", call, namespace="multi_agent_v1") for call in calls))
    for _ in ("the caller", *names):  # the called ones take replies of the same script
        yield Reply(tools=(ToolUse("exec_command", {"cmd": "sleep 2"}),))


def _seen(server: ModelServer, vendor: Vendor, place: Place) -> set[str]:
    turns = server.turns(vendor)
    raw = b"\n".join(request.raw for request in turns)
    results = "\n".join(result for request in turns for result in tool_results(request))
    made = {path.name for folder in (place.made, place.cwd) for path in folder.iterdir()}
    pinged = any("parity" in request.path for request in server.requests)
    return {
        *(row for row, names in TOOLS.items() if any(_offered(turns, name) for name in names)),
        *(row for row, text in TEXTS.items() if re.search(re.escape(text.encode()) + rb"(?![\w-])", raw)),
        *(row for row, text in RESULTS.items() if text in results),
        *(row for row, name in MADE.items() if name in made or (row == "mcp-plugin" and "plugin" in made)),
        *(["network"] if pinged else []),
        *(["image"] if any(sign in raw for sign in IMAGES) else []),
        *(["model"] if any(sign in raw for sign in MODEL) or any(GEMINI in one.path for one in turns) else []),
        *(["effort"] if any(sign in raw for sign in EFFORT) else []),
    }


def _offered(turns: Sequence[Request], name: str) -> bool:
    """Whether a tool of that name is offered: in the list of the tools, or named as one to be loaded (Claude, Codex).

    The first request has no call of a tool in it yet.
    """
    listed = rf'"(?:name|type)": ?"{name}"|(?<=\\n){name}(?=\\n)|- {name}(?=:|\\n)'
    return bool(turns) and re.search(listed.encode(), turns[0].raw) is not None


def dumped(data: Mapping[Vendor, Held]) -> str:
    """JSON with a line for each row."""
    tables = (
        f' "{vendor}": {{\n' + ",\n".join(f"  {json.dumps(row)}: {json.dumps(held)}" for row, held in rows.items())
        for vendor, rows in data.items()
    )
    return "{\n" + "\n },\n".join(tables) + "\n }\n}\n"


def main() -> int:
    programs = clis.installed(clis.PINNED)
    data = {vendor: measured(vendor, programs) for vendor in clis.VENDORS}
    DATA.write_text(dumped(data), encoding="utf-8")
    parity.cache_clear()
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
