"""No program that teamchat starts gets the address of the shared database, or a variable of the engine behind it."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from teamchat.cli.chatting.files import Files
from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from teamchat.runners.child import guardian
from teamchat.runners.environment import is_teamchats_own
from teamchat.runners.git_server import find_git
from teamchat.runners.git_server.commands import Status
from teamchat.runners.git_server.repository import Git
from tests.cli.test_chat import chat, leave_after_clearing, types
from tests.cli.test_open import FAKE as AT_TERMINAL
from tests.cli.test_open import left, opened
from tests.fakes import live, repl
from tests.program import ROOT, cli, fake, run_here
from tests.shell_team import repository

OWN = {
    "TEAMCHAT_DATABASE": "postgresql://kai:hunter22hunter22@127.0.0.1/x",
    "DBOS_CONDUCTOR_KEY": "hunter22hunter22",
    "DBOS__VMID": "hunter22hunter22",
    "DBOS": "hunter22hunter22",
}
ANSWERS = "cat > /dev/null; echo Done"


class Seen:
    """Programs that write down their environment, each start in a file of its own."""

    def __init__(self, world: Path) -> None:
        self.folder, self.world = world / "seen", world
        self.folder.mkdir()

    def noting(self, kind: str, *, parent: bool = False) -> str:
        """The shell command that does it; with `parent` also for the process that started the shell, on Linux."""
        file = f"{shlex.quote(str(self.folder / kind))}.$$"
        of_parent = f"tr '\\0' '\\n' < /proc/$PPID/environ > {file}.parent"
        return f"env > {file}" + (f"; {of_parent}" if parent and sys.platform == "linux" else "")

    def program(self, name: str, then: str, *, parent: bool = False) -> Path:
        file = self.world / "programs" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{self.noting(name, parent=parent)}\n{then}\n")
        file.chmod(0o755)
        return file

    def first_in_path(self, name: str, then: str) -> None:
        """Have a program of that name found before any other."""
        folder = self.program(name, then).parent
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"

    def environments(self, kind: str) -> dict[str, dict[str, str]]:
        return {
            file.name: dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
            for file in self.folder.glob(f"{kind}.*")
        }


@pytest.fixture
def seen(world: Path, monkeypatch: pytest.MonkeyPatch) -> Seen:
    for name, value in OWN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", os.environ["PATH"])  # to be put back after `first_in_path`
    return Seen(world)


def team(program: Path, agent: str = "", member: str = "", more: str = "") -> None:
    """A trusted team whose one member is that program."""
    file = Path("teamchat.toml").absolute()
    file.write_text(
        f'[[members]]\nname = "kailai"\ntype = "human"\n[[members]]\nname = "max"\nagent = "own"\n{member}\n'
        f"[agents.own]\ncommand = {json.dumps([str(program)])}\n{agent}\n{more}\n"
    )
    trust_store().grant(load(file))


def sent(*words: str) -> None:
    ran = cli("send", *words, "Go")
    assert ran.code in (0, 9), ran.err  # 9: max asks kailai


def an_agent(seen: Seen) -> None:
    team(seen.program("agent", ANSWERS, parent=True))
    sent()


def an_agent_that_stays(seen: Seen) -> None:
    program = seen.program("kept", f'exec {shlex.join(fake(Path(live.__file__)))} "$@"', parent=True)
    team(program, 'like = "claude"', 'memory = "live"')
    sent("--to", "max")


def an_agent_on_a_terminal(seen: Seen) -> None:
    program = seen.program("pty", f"exec {shlex.join(fake(Path(repl.__file__)))} upper", parent=True)
    team(program, "transport = \"pty\"\nprompt_pattern = '>>> '")
    sent()


def an_agent_that_doctor_asks(seen: Seen) -> None:
    team(seen.program("asked", ANSWERS, parent=True))
    assert cli("doctor", "--live").code == 0


def a_hook(seen: Seen) -> None:
    hook = seen.program("hook", "cat > /dev/null", parent=True)
    team(seen.program("agent", ANSWERS), more=f"[hooks]\nmessage = {json.dumps([str(hook)])}")
    sent()


def a_check(seen: Seen) -> None:
    check = seen.program("check", "true", parent=True)
    team(seen.program("agent", ANSWERS), more=f"[checks.tests]\ncommand = {json.dumps([str(check)])}")
    assert cli("check", "tests").code == 0


def a_cli_asked_for_its_version(seen: Seen) -> None:
    seen.first_in_path("claude", "echo '2.1.330 (Claude Code)'")
    Path("teamchat.toml").write_text('[[members]]\nname = "max"\nagent = "claude"\n')
    assert "2.1.330" in cli("doctor").out


def git_for_checkpoints_and_worktrees(seen: Seen) -> None:
    found = shutil.which("git")
    repository(seen.world / "unused")
    seen.first_in_path("git", f'exec {found} "$@"')
    team(seen.program("agent", f"{ANSWERS}; echo more > app.py"), member='access = "edit"\nworkspace = "worktree"')
    sent()
    team(seen.program("agent", f"{ANSWERS}; echo more > app.py"), member='access = "edit"')
    sent()


def git_for_members(seen: Seen) -> None:
    found = shutil.which("git")
    repository(seen.world / "unused")
    seen.first_in_path("git", f'exec {found} "$@"')
    assert Status().answer(Git(Path.cwd(), seen.world / "scratch", find_git(os.environ) or "git"))


def git_for_the_names_of_files(seen: Seen) -> None:
    found = shutil.which("git")
    repository(seen.world / "unused")
    seen.first_in_path("git", f'exec {found} "$@"')
    assert Files(Path.cwd()).beginning_with("app", wait=True) == ["app.py"]


def git_of_the_demo(seen: Seen) -> None:
    seen.first_in_path("git", f'exec {shutil.which("git")} "$@"')
    assert cli("demo").code == 0


def an_opened_program(seen: Seen) -> None:
    run = shlex.join([sys.executable, "-I", "-S", str(AT_TERMINAL), "claude"])
    team(seen.program("opened", f'exec {run} "$@"'), 'like = "claude"', 'memory = "resume"')
    sent("--to", "max")
    shutil.rmtree(seen.folder)
    seen.folder.mkdir()
    with opened("max") as child:
        child.expect_exact("opened [")
        assert left(child, "exit 0") == 0


def the_editor(seen: Seen) -> None:
    team(seen.program("agent", ANSWERS))
    editor = seen.program("editor", 'printf "from the editor" >> "$1"')
    with chat(EDITOR=str(editor), VISUAL="") as shown:
        types(shown, "\x18\x05")
        shown.until(lambda text: "from the editor" in text)
        assert leave_after_clearing(shown) == 0


def what_notify_runs(seen: Seen) -> None:
    team(seen.program("agent", ANSWERS))
    sent("--notify", seen.noting("notify"))


def the_shell_whose_completion_is_installed(seen: Seen) -> None:
    seen.first_in_path("pwsh", 'echo "$HOME/profile.ps1"')
    assert cli("--install-completion", "pwsh").code == 0


def the_shell_that_asks_for_its_completion(seen: Seen) -> None:
    seen.first_in_path("bash", "echo 5.2.1")
    assert cli(env={"_TEAMCHAT_COMPLETE": "source_bash"}).code == 0


KINDS: dict[Callable[[Seen], None], str] = {
    an_agent: "agent",
    an_agent_that_stays: "kept",
    an_agent_on_a_terminal: "pty",
    an_agent_that_doctor_asks: "asked",
    a_hook: "hook",
    a_check: "check",
    a_cli_asked_for_its_version: "claude",
    git_for_checkpoints_and_worktrees: "git",
    git_for_members: "git",
    git_for_the_names_of_files: "git",
    git_of_the_demo: "git",
    an_opened_program: "opened",
    the_editor: "editor",
    what_notify_runs: "notify",
    the_shell_whose_completion_is_installed: "pwsh",
    the_shell_that_asks_for_its_completion: "bash",
}
"""What starts a child of each kind, and the name under which it notes its environment.

Those with a guardian (or, at a terminal, its typist) above them note that one's environment, too.
"""
UNDER_ANOTHER = frozenset({"agent", "kept", "pty", "asked", "hook", "check"})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_child_gets_the_database(seen: Seen, kind: Callable[[Seen], None]) -> None:
    kind(seen)
    found = seen.environments(KINDS[kind])
    assert found, "it was not started"
    if sys.platform == "linux" and KINDS[kind] in UNDER_ANOTHER:
        assert any(name.endswith(".parent") for name in found)
    for name, env in found.items():
        assert "PATH" in env, name
        assert [variable for variable in env if is_teamchats_own(variable)] == [], name
        assert "hunter22hunter22" not in json.dumps(env), name


def test_the_receipt_says_that_the_agent_did_not_get_them(seen: Seen) -> None:
    team(seen.program("agent", ANSWERS))
    sent()
    receipt = run_here("show").out
    assert "hunter22" not in receipt
    assert "TEAMCHAT_DATABASE" in receipt


@pytest.mark.parametrize("name", ["TEAMCHAT_DATABASE", "DBOS__VMID"])
@pytest.mark.parametrize("key", ['env = {{ {} = "x" }}', 'env_keep = ["{}"]'])
@pytest.mark.parametrize("whose", ["member", "check"])
def test_a_team_file_that_names_one_is_refused(seen: Seen, name: str, key: str, whose: str) -> None:
    line = key.format(name)
    file = Path("teamchat.toml")
    team(seen.program("agent", ANSWERS))
    check = f'\n[checks.tests]\ncommand = "true"\n{line}\n' if whose == "check" else ""
    member = f'agent = "own"\n{line}' if whose == "member" else 'agent = "own"'
    file.write_text(file.read_text().replace('agent = "own"', member) + check)
    ran = cli("send", "Go")
    assert (ran.code, ran.out) == (2, ""), ran.err
    said, *hints = ran.err.splitlines()
    assert said.endswith(f"no agent and no check gets {name}, which is for teamchat alone; remove it")
    assert hints == ["  try: teamchat help team-file"]


# --- every place that starts a process

STARTING = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell", "subprocess"},
    "asyncio.subprocess": {"create_subprocess_exec", "create_subprocess_shell"},
    "pexpect": {"spawn", "run", "runu", "spawnu", "popen_spawn", "pty_spawn"},
    "ptyprocess": {"PtyProcess", "PtyProcessUnicode"},
    "pty": {"spawn", "fork"},
    "concurrent.futures": {"ProcessPoolExecutor"},
}
OF_OS = ("system", "popen", "fork", "posix_spawn", "exec", "spawn", "startfile")  # how their names begin
MODULES = frozenset({"multiprocessing", "webbrowser", "pydoc", "_posixsubprocess"})  # that start some by themselves
METHODS = frozenset({"subprocess_exec", "subprocess_shell", "open_in_editor", "run_system_command", "echo_via_pager"})

THROUGH = frozenset(
    {
        ("cli/chatting/keys.py", "_edited", "subprocess.call"),
        ("runners/child/command.py", "_started", "subprocess.Popen"),
        ("runners/child/command.py", "tied", "subprocess.run"),
        ("runners/child/guardians.py", "_started", "subprocess.Popen"),
        ("runners/child/process.py", "foreground", "subprocess.Popen"),
        ("runners/terminal/tty.py", "_spawn", "pexpect.spawn"),
    }
)
"""What starts a process, each with `env=for_child(...)`."""
OF_PS = frozenset(
    {
        ("runners/child/guardian.py", "processes", "subprocess.Popen"),
        ("runners/child/guardian.py", "named", "subprocess.run"),
    }
)
"""What starts macOS's ps, each with `env=_of_ps()`."""
OTHERWISE = {
    ("runners/child/guardian.py", "Guardian.start", "os.posix_spawn"): "gets the order's, from `Process._begin`",
    ("core/team/templates/demo/checker.py", "<module>", "subprocess.run"): "is an agent's, which has none of them",
}
"""What starts a process without it, and why that one does not get them either."""


class Starts(ast.NodeVisitor):
    """Everything in a module that can start a process, also where it is not called but given to somebody."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.found: dict[tuple[str, str], list[ast.Call | None]] = {}
        self._within: list[str] = []
        self._calls: dict[ast.expr, ast.Call] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            first = alias.name.partition(".")[0]
            self.names[alias.asname or first] = alias.name if alias.asname else first
            if first in MODULES:
                self._add(f"import {alias.name}", None)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self.names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        if (node.module or "").partition(".")[0] in MODULES:
            self._add(f"import {node.module}", None)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for default in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        self._inside(node.name, node.body)  # what annotations say starts nothing

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for base in (*node.decorator_list, *node.bases):
            self.visit(base)
        self._inside(node.name, node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        self._calls[node.func] = node
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self._look(node, self.names.get(node.id, ""))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        whole = ast.unparse(node)
        first, _, rest = whole.partition(".")
        if node.attr in METHODS:
            self._add(node.attr, self._calls.get(node))
        self._look(node, f"{self.names[first]}.{rest}" if first in self.names else "")
        self.generic_visit(node)

    def _inside(self, name: str, body: list[ast.stmt]) -> None:
        self._within.append(name)
        for statement in body:
            self.visit(statement)
        self._within.pop()

    def _look(self, node: ast.expr, dotted: str) -> None:
        module, _, name = dotted.rpartition(".")
        if name in STARTING.get(module, ()) or (module in {"os", "posix"} and name.startswith(OF_OS)):
            self._add(dotted, self._calls.get(node))

    def _add(self, what: str, call: ast.Call | None) -> None:
        self.found.setdefault((".".join(self._within) or "<module>", what), []).append(call)


def starts(source: str) -> dict[tuple[str, str], list[ast.Call | None]]:
    visitor = Starts()
    visitor.visit(ast.parse(source))
    return visitor.found


def all_starts() -> Iterator[tuple[tuple[str, str, str], list[ast.Call | None]]]:
    package = ROOT / "teamchat"
    for file in sorted(package.rglob("*.py")):
        for (where, what), calls in starts(file.read_text(encoding="utf-8")).items():
            yield (file.relative_to(package).as_posix(), where, what), calls


def env_of(call: ast.Call | None) -> str:
    """The function that makes the environment in a call that starts a process; empty if none does."""
    for keyword in call.keywords if call else ():
        match keyword:
            case ast.keyword(arg="env", value=ast.Call(func=ast.Name(id=name))):
                return name
    return ""


def test_every_place_that_starts_a_process_is_known() -> None:
    found = {place for place, _ in all_starts()}
    assert found == THROUGH | OF_PS | OTHERWISE.keys(), "use for_child, enter it, and add its kind above"


def test_every_place_that_starts_a_process_gives_it_the_environment_of_a_child() -> None:
    for place, calls in all_starts():
        if place in THROUGH:
            assert {env_of(call) for call in calls} == {"for_child"}, place
        elif place in OF_PS:
            assert {env_of(call) for call in calls} == {"_of_ps"}, place


def test_ps_gets_what_it_reads_alone(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    del seen
    monkeypatch.setenv("TZ", "UTC")
    assert guardian._of_ps().keys() <= set(guardian.PS_READS)
    assert guardian._of_ps()["TZ"] == "UTC"


@pytest.mark.parametrize(
    "line",
    [
        "import subprocess\nsubprocess.run(['x'])",
        "import subprocess as s\ns.Popen(['x'])",
        "from subprocess import Popen as P\ndef f(a=P): pass",
        "import subprocess\nstart = subprocess.check_output",
        "import os\nos.execvp('x', ['x'])",
        "import os\nos.posix_spawnp('x', ['x'], {})",
        "from os import system\nsystem('x')",
        "import asyncio\nasync def f(): await asyncio.create_subprocess_exec('x')",
        "import asyncio.subprocess\nasyncio.subprocess.create_subprocess_shell('x')",
        "import pexpect\npexpect.run('x')",
        "import multiprocessing",
        "from multiprocessing.pool import Pool",
        "import webbrowser",
        "loop.subprocess_exec(None, 'x')",
    ],
)
def test_a_new_place_is_found(line: str) -> None:
    assert starts(line)
