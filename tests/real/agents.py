"""The real CLIs that a row describes, run through teamchat against the scripted model: `make agents`.

For each row with a proven version it writes `tests/captures/agents/NAME.json`: what the CLI was given and printed in a
few turns, which `make test` plays through the row again, and what a team meets with it, which stands in docs/clis.md.
It brings the Node that the newest of them need from npm: with another one npm installs an old version without a word.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from teamchat.core.agents import agent_type
from teamchat.core.team.agent_rows import find_row, shipped
from teamchat.runners.agent_row import AgentRow
from teamchat.runners.base import Access, Job
from tests.forks import RUN
from tests.real.clis import CACHE, Unavailable
from tests.real.model.chat import MODEL, PATH, offered
from tests.real.model.replies import Reply, Request, ToolUse
from tests.real.model.server import ModelServer, messages
from tests.real.model.table import CHAT

NODE = "22.23.3"
PYTHONS = ("python3.13", "python3.12", "python3.14")
CAPTURES = Path(__file__).parent.parent / "captures" / "agents"
INSTALL_S, TURN_S = 600, 240
NOTE = "note.txt"
ANSWER = "It is fine."
RUN_IT = "touch $WORK/ran.txt"
PROMPT = "Say whether note.txt is fine.\n"


class Home(Struct, frozen=True):
    """What points one CLI at the scripted model: files of its home, and variables. `{url}` is the model's address."""

    files: Mapping[str, str]
    variables: Mapping[str, str]
    reads: ToolUse
    writes: ToolUse
    runs: ToolUse


def _json(value: object) -> str:
    return json.dumps(value)


HOMES: Mapping[str, Home] = {
    "qwen": Home(
        {".qwen/settings.json": _json({"security": {"auth": {"selectedType": "openai"}}})},
        {"OPENAI_BASE_URL": "{url}", "OPENAI_API_KEY": "dummy", "OPENAI_MODEL": MODEL},
        ToolUse("read_file", {"file_path": f"$WORK/{NOTE}"}),
        ToolUse("write_file", {"file_path": "$WORK/made.txt", "content": "made"}),
        ToolUse("run_shell_command", {"command": RUN_IT, "is_background": False, "description": "Run it"}),
    ),
    "pi": Home(
        {
            ".pi/agent/models.json": _json(
                {
                    "providers": {
                        "scripted": {
                            "baseUrl": "{url}",
                            "apiKey": "dummy",
                            "api": "openai-completions",
                            "models": [
                                {
                                    "id": MODEL,
                                    "name": MODEL,
                                    "reasoning": False,
                                    "input": ["text"],
                                    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                                    "contextWindow": 200_000,
                                    "maxTokens": 8000,
                                }
                            ],
                        }
                    }
                }
            ),
            ".pi/agent/settings.json": _json({"defaultProvider": "scripted", "defaultModel": MODEL}),
        },
        {},
        ToolUse("read", {"path": f"$WORK/{NOTE}"}),
        ToolUse("write", {"path": "$WORK/made.txt", "content": "made"}),
        ToolUse("bash", {"command": RUN_IT}),
    ),
    "copilot": Home(
        {},
        {
            "COPILOT_PROVIDER_BASE_URL": "{url}",
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": MODEL,
            "COPILOT_OFFLINE": "true",
        },
        ToolUse("view", {"path": f"$WORK/{NOTE}"}),
        ToolUse("create", {"path": "$WORK/made.txt", "file_text": "made"}),
        ToolUse("bash", {"command": RUN_IT, "description": "Run it", "mode": "sync"}),
    ),
    "kilo": Home(
        {
            ".config/kilo/kilo.json": _json(
                {
                    "provider": {
                        "scripted": {
                            "npm": "@ai-sdk/openai-compatible",
                            "options": {"baseURL": "{url}", "apiKey": "dummy"},
                            "models": {
                                MODEL: {"name": MODEL, "tool_call": True, "limit": {"context": 200_000, "output": 8000}}
                            },
                        }
                    },
                    "model": f"scripted/{MODEL}",
                }
            )
        },
        {},
        ToolUse("read", {"filePath": f"$WORK/{NOTE}"}),
        ToolUse("write", {"filePath": "$WORK/made.txt", "content": "made"}),
        ToolUse("bash", {"command": RUN_IT, "description": "Run it"}),
    ),
    "vibe": Home(
        {
            ".vibe/config.toml": f"""
active_model = "{MODEL}"
enable_telemetry = false
enable_update_checks = false
[[providers]]
name = "scripted"
api_base = "{{url}}"
api_key_env_var = "SCRIPTED_KEY"
backend = "generic"
[[models]]
name = "{MODEL}"
provider = "scripted"
alias = "{MODEL}"
"""
        },
        {"SCRIPTED_KEY": "dummy"},
        ToolUse("read_file", {"path": f"$WORK/{NOTE}"}),
        ToolUse("write_file", {"path": "$WORK/made.txt", "content": "made"}),
        ToolUse("bash", {"command": RUN_IT}),
    ),
}
"""The CLIs that are proven here."""


def row_of(name: str) -> AgentRow:
    row = find_row(name)
    assert row is not None, name
    return row


def installed(name: str) -> str:
    """A PATH with the program at its proven version, and with the Node that it needs. Raises `Unavailable`."""
    row = row_of(name)
    version = row.proven[-1]
    node = _npm_installed(f"node-{NODE}", f"node@{NODE}", {}) / "node" / "bin"
    path = f"{node}{os.pathsep}{os.environ['PATH']}"
    if row.package:
        folder = _npm_installed(f"{name}-{version}", f"{row.package}@{version}", {"PATH": path}) / ".bin"
    else:
        folder = _pip_installed(f"{name}-{version}", f"{row.install.split()[-1]}=={version}") / "bin"
    return f"{folder}{os.pathsep}{path}"


def _npm_installed(folder: str, what: str, env: Mapping[str, str]) -> Path:
    place = CACHE / folder
    if not place.exists():
        partial = CACHE / f"{folder}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        _run(["npm", "install", "--prefix", str(partial), "--no-audit", "--no-fund", what], env)
        partial.rename(place)
    return place / "node_modules"


def _pip_installed(folder: str, what: str) -> Path:
    place = CACHE / folder
    if not place.exists():
        pythons = (shutil.which(name) for name in PYTHONS)
        python = next((path for path in pythons if path and _runs(path)), None) or _of_pyenv()
        shutil.rmtree(place.with_suffix(".partial"), ignore_errors=True)
        try:
            _run([python, "-m", "venv", str(place)], {})
            _run([str(place / "bin" / "pip"), "install", "--quiet", what], {})
        except Unavailable:
            shutil.rmtree(place, ignore_errors=True)
            raise
    return place


def _runs(python: str) -> bool:
    return subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0


def _of_pyenv() -> str:
    for version in ("3.13", "3.12"):
        for path in sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python")):
            return str(path)
    raise Unavailable("no Python 3.12 or newer is installed")


def _run(argv: Sequence[str], env: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=INSTALL_S, check=False, env={**os.environ, **env}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{argv[0]}: {error}") from error
    if done.returncode:
        raise Unavailable(f"{' '.join(argv[:2])} failed: {done.stderr.strip()[-300:]}")


class Stage:
    """A home, a folder and a store for one CLI; its model is `server`."""

    def __init__(self, name: str, server: ModelServer, folder: Path, path: str) -> None:
        self.name, self.server, self.row, self.home_of = name, server, row_of(name), HOMES[name]
        self.home, self.work = folder / "home", folder / "work"
        for place in (self.home, self.work, self.home / "tmp"):
            place.mkdir(parents=True, exist_ok=True)
        (self.work / NOTE).write_text("All is well.\n")
        url = f"{server.url}{PATH}"
        for file, text in self.home_of.files.items():
            (self.home / file).parent.mkdir(parents=True, exist_ok=True)
            (self.home / file).write_text(text.replace("{url}", url))
        self.env = {
            "HOME": str(self.home),
            "PATH": path,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "TMPDIR": str(self.home / "tmp"),
            "TEAMCHAT_HOME": str(folder / "state"),
            **{name: value.replace("{url}", url) for name, value in self.home_of.variables.items()},
        }

    def team(self, keys: str = "") -> None:
        members = "".join(f'[[members]]\nname = "{name}"\nagent = "{self.name}"\n{keys}\n' for name in ("one", "two"))
        (self.work / "teamchat.toml").write_text(f'[[members]]\nname = "kailai"\ntype = "human"\n{members}')
        self("trust")

    def __call__(self, *args: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*RUN, *args],
            cwd=self.work,
            env=self.env,
            input=given,
            capture_output=True,
            text=True,
            timeout=TURN_S,
            check=False,
        )

    def result(self, *args: str, given: str = "") -> dict[str, Any]:
        """The last line of `--json`."""
        done = self(*args, "--json", given=given)
        assert done.stdout, done.stderr
        last: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return last

    def placed(self, tool: ToolUse) -> ToolUse:
        """The tool with paths of this folder."""
        work = str(self.work)
        filled = {
            key: value.replace("$WORK", work) if isinstance(value, str) else value for key, value in tool.input.items()
        }
        return ToolUse(tool.name, filled)

    def hidden(self, text: str) -> str:
        """The text without the folders and the address of this run."""
        program = Path(self.env["PATH"].split(os.pathsep)[0])
        folders = {str(self.work): "$WORK", str(self.home): "$HOME", str(program.parent): "$CLI"}
        for folder, name in {**folders, str(program.resolve().parent): "$CLI", self.server.url: "$MODEL"}.items():
            text = text.replace(folder, name)
        return text


def in_order(*replies: Reply) -> Callable[[Request], Reply]:
    """What the model answers: these replies in order, and the last one from then on."""
    waiting = list(replies)
    return lambda _request: waiting.pop(0) if len(waiting) > 1 else waiting[0]


def hands_over(request: Request) -> Reply:
    """Who is asked first hands over, and so does who answers that; a title is no turn."""
    if not offered(request.body):
        return Reply("A title")
    said = "\n".join(message.text for message in messages(request))
    return Reply("Done." if "Seen." in said else "Seen. [NEXT: one]" if "Look." in said else "Look. [NEXT: two]")


def captured(stage: Stage, access: Access, *replies: Reply) -> dict[str, Any]:
    """One turn of the CLI by its row's command, with what it was given and printed."""
    stage.server.script(CHAT, in_order(*replies))
    runner = agent_type("plain", stage.row).runner
    scratch = Path(stage.env["TMPDIR"])
    command = runner.command(Job(stage.row.command, stage.work, scratch, access=access))
    given = scratch / "stdin"
    given.write_text(PROMPT)
    begin = len(stage.server.requests)
    with given.open("rb") as stdin:
        done = subprocess.run(
            [*command.through, *command.argv],
            stdin=stdin,
            cwd=stage.work,
            env={**stage.env, **command.env},
            capture_output=True,
            timeout=TURN_S,
            check=False,
        )
    asked = [request for request in stage.server.requests[begin:] if request.vendor == CHAT]
    return {
        "access": access,
        "stdin": PROMPT,
        "argv": [stage.hidden(word) for word in command.argv],
        "env": dict(command.env),
        "stdout": stage.hidden(done.stdout.decode()),
        "stderr": stage.hidden(done.stderr.decode()),
        "exit_code": done.returncode,
        "requests": len(asked),
        "offered": offered(asked[0].body) if asked else [],
    }


def scenes(stage: Stage) -> dict[str, Any]:
    """The turns that `make test` plays. A reader's write and command are refused, and a writer's command."""
    reads, writes, runs = (
        stage.placed(tool) for tool in (stage.home_of.reads, stage.home_of.writes, stage.home_of.runs)
    )
    made = {
        "reply": captured(stage, "read", Reply(ANSWER)),
        "tool": captured(stage, "read", Reply(tools=(reads,)), Reply(ANSWER)),
        "write": captured(stage, "read", Reply(tools=(writes,)), Reply(tools=(runs,)), Reply("It was not written.")),
        "login": captured(stage, "read", Reply(status=401, message="Incorrect API key provided")),
        "empty": captured(stage, "read", Reply("")),
    }
    left = sorted(path.name for path in stage.work.iterdir())
    assert left == [NOTE], f"with access read it left {left}"
    made["edit"] = captured(stage, "edit", Reply(tools=(writes,)), Reply(tools=(runs,)), Reply("Written."))
    left = sorted(path.name for path in stage.work.iterdir())
    assert left == ["made.txt", NOTE], f"with access edit it left {left}"
    return made


def met(stage: Stage) -> dict[str, str]:
    """What a team meets with the CLI, in words."""
    found: dict[str, str] = {}
    stage.team()
    stage.server.script(CHAT, hands_over)
    result = stage.result("send", "[NEXT: one] Please work")
    turns = len(stage("log").stdout.split("msg-")) - 1
    found["hand-overs"] = (
        "both ways" if (result["code"], turns) == (0, 4) else f"code {result['code']}, {turns} messages"
    )
    stage.team('timeout = "60s"')
    for status, name in ((401, "401"), (500, "one 500")):
        replies = [Reply(status=status, message="Incorrect API key provided" if status == 401 else "it broke")]
        replies += [] if status == 401 else [Reply("Done.")]
        stage.server.script(CHAT, in_order(*replies))
        found[name] = _turn(stage, "[NEXT: one] Hi")
    stage.server.script(CHAT, in_order(Reply("")))
    found["empty reply"] = _turn(stage, "[NEXT: one] Hi")
    stage.server.script(CHAT, in_order(Reply("Large. Done.")))
    found["300 kB"] = _turn(stage, "[NEXT: one] " + "word " * 60_000)
    stage.team('timeout = "8s"')
    stage.server.script(CHAT, in_order(Reply("Slow.", delay_s=600.0)))
    found["stop"] = _turn(stage, "[NEXT: one] Hi") + _left(stage)
    return found


def _turn(stage: Stage, message: str) -> str:
    """The exit code of a new session of one turn, and how that ended."""
    begin = time.monotonic()
    code = stage.result("send", "--new", given=message)["code"]
    outcome = stage.result("show")["outcome"] or {}
    if failure := outcome.get("failure"):
        return f"{code}: {failure['kind']}"
    return f"{code}: done in {'under' if time.monotonic() - begin < 30 else 'over'} 30 s"


def _left(stage: Stage) -> str:
    """Whether a process of the stopped turn is left, by the home that its environment names."""
    time.sleep(1)
    wanted = f"HOME={stage.home}".encode()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                return f", and {(entry / 'comm').read_text().strip()} is left"
        except OSError:
            continue
    return ", nothing is left"


def prove(name: str) -> dict[str, Any]:
    """All of it for one CLI. Raises `Unavailable`."""
    path = installed(name)
    row = row_of(name)
    asked = subprocess.run(
        [*row.command[:1], *row.version], capture_output=True, text=True, env={**os.environ, "PATH": path}, check=False
    )
    if row.proven[-1] not in asked.stdout + asked.stderr:
        raise Unavailable(f"{name} --version says {(asked.stdout + asked.stderr).strip()[:100]!r}")
    with ModelServer() as server, tempfile.TemporaryDirectory(prefix="agents-", ignore_cleanup_errors=True) as folder:
        stage = Stage(name, server, Path(folder), path)
        today = dt.datetime.now(dt.UTC).date().isoformat()
        return {"version": row.proven[-1], "date": today, "scenes": scenes(stage), "met": met(stage)}


def main(names: Sequence[str]) -> int:
    CAPTURES.mkdir(exist_ok=True)
    failed = 0
    for name in names or [name for name, row in shipped() if row.proven]:
        try:
            proven = prove(name)
        except Unavailable as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed += 1
            continue
        (CAPTURES / f"{name}.json").write_text(json.dumps(proven, indent=1, ensure_ascii=False) + "\n")
        print(name, json.dumps(proven["met"]))
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
