"""Plays hostile agents, in namespaces of its own: `inside.py FOLDER NAME...` as their first process.

For each agent: a new world below FOLDER, `teamchat send` to the agent, then `resume --drop` and a `send` to a member
that is all right. A JSON line tells what was wrong with each: a list of sentences. As in `fakes/mortal.py`, every
teamchat is forked from this process, which has imported all of it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import NamedTuple

import teamchat
from teamchat.cli.app import main
from teamchat.core.errors import ExitCode
from tests.forks import preload
from tests.program import fake
from tests.torture import agents
from tests.torture.agents import AGENTS, Agent

PACKAGE = str(Path(teamchat.__file__).parent)
HANGS_S = 120.0
END_S = 20.0  # for what a killed teamchat leaves to its guardian, which takes two, on a machine with much to do
REFUSALS = {2, 4}  # nothing waits, and no conversation is there
KEPT = {"victim": 0o750, "victim/kept": 0o440}
TIMEOUT = ExitCode.TIMEOUT
SHOWN_BYTES = 20_000  # at the end of what a command prints
GOOD = "cat > /dev/null; echo fine"


class Ran(NamedTuple):
    code: int | None  # None: it had to be killed
    out: str
    err: str


def live(args: list[str], env: dict[str, str], cwd: Path) -> None:
    """All of one process."""
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    tempfile.tempdir = None
    sys.argv = ["teamchat", *args]
    os.setpgid(0, 0)
    main()


def run(args: list[str], env: dict[str, str], cwd: Path) -> Ran:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                live(args, env, cwd)
            except SystemExit as end:
                code = int(end.code or 0)
            except BaseException:  # noqa: BLE001 (the process ends here, and must not go on as this one)
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code_or_none = ended(pid)
        return Ran(code_or_none, *(read(file.fileno()) for file in (out, err)))


def read(file: int) -> str:
    begin = max(os.fstat(file).st_size - SHOWN_BYTES, 0)
    return os.pread(file, SHOWN_BYTES, begin).decode(errors="replace")


def ended(pid: int) -> int | None:
    until = time.monotonic() + HANGS_S
    while time.monotonic() < until:
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == pid:
                    return os.waitstatus_to_exitcode(found[1])
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    return None


def others() -> list[str]:
    """What lives in this namespace beside this process: the names of it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            stat, words = (folder / "stat").read_bytes(), (folder / "cmdline").read_bytes()
            state = stat.rpartition(b")")[2].split()[0]
            if int(folder.name) != os.getpid() and state not in (b"Z", b"X"):
                found.append(f"{folder.name} {words.replace(bytes(1), b' ').decode(errors='replace')[:120]}")
    return found


def orphans() -> list[str]:
    until = time.monotonic() + END_S
    while (left := others()) and time.monotonic() < until:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(0.01)
    return left


class World:
    """The files of one agent's play."""

    def __init__(self, folder: Path, agent: Agent) -> None:
        self.folder, self.agent = folder, agent
        for name in ("home", "state", "tmp", "work"):
            (folder / name).mkdir(parents=True)
        self.work = folder / "work"
        (self.work / "victim").mkdir()
        (self.work / "victim" / "kept").write_text("kept")
        for name, mode in KEPT.items():
            (self.work / name).chmod(mode)
        (self.work / "teamchat.toml").write_text(self.team())
        places = {"HOME": "home", "TEAMCHAT_HOME": "state", "TMPDIR": "tmp", "STATE": "state"}
        self.env = {
            **{name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LC_ALL") if name in os.environ},
            **{name: str(folder / place) for name, place in places.items()},
            "PYTHON": sys.executable,
        }

    def team(self) -> str:
        agent = self.agent
        command = json.dumps([*fake(Path(agents.__file__)), agent.name])
        kind = 'transport = "pty"\nprompt_pattern = ">>> "' if agent.terminal else f'like = "{agent.like}"'
        member = f'timeout = "{2 if agent.hangs else 60}s"' + ('\nmemory = "live"' if agent.live else "")
        return (
            f'[[members]]\nname = "kailai"\ntype = "human"\n[[members]]\nname = "bad"\nagent = "bad"\n{member}\n'
            f'[[members]]\nname = "good"\nagent = "good"\n[agents.bad]\ncommand = {command}\n{kind}\n'
            f"[agents.good]\ncommand = {json.dumps(['sh', '-c', GOOD])}\n"
        )

    def run(self, *args: str) -> Ran:
        return run([*args, "--trust", "--quiet"], self.env, self.work)

    def repair(self) -> None:
        subprocess.run(["sh", "-c", self.agent.repair], env=self.env, check=False)

    def left(self) -> list[str]:
        """The files of turns that are over, and what was done to others' files."""
        left = [str(path) for pattern in ("tmp/teamchat-*", "state/*/*/turns/*") for path in self.folder.glob(pattern)]
        modes = {name: (self.work / name).lstat().st_mode & 0o7777 for name in KEPT}
        return [f"left {path}" for path in left] + ([] if modes == KEPT else [f"changed modes: {modes}"])


def play(agent: Agent, folder: Path) -> list[str]:
    """What is wrong with how teamchat came through it."""
    world = World(folder, agent)
    wrong: list[str] = []
    first = world.run("send", "--to", "bad", "go")
    wrong += judge(agent, first)
    if first.code is not None and first.code >= 0:
        wrong += [f"orphan after the turn: {name}" for name in orphans()]
    if agent.repair:
        wrong += refusal(world.run("resume", "--drop"))
        world.repair()
    second = world.run("resume", "--drop")
    if second.code != 0 and second.code not in REFUSALS:
        wrong.append(f"resume --drop ended with {second}")
    third = world.run("send", "--to", "good", "hi")
    if (third.code, third.out) != (0, "fine\n"):
        wrong.append(f"the next turn ended with {third}")
    wrong += [
        f"traceback: {ran.err[-3000:]}"
        for ran in (first, second, third)
        if "Traceback" in ran.err and PACKAGE in ran.err
    ]
    wrong += [f"orphan: {name}" for name in orphans()]
    return wrong + world.left()


def judge(agent: Agent, ran: Ran) -> list[str]:
    shown = ran._replace(out=ran.out[-300:], err=ran.err[-2000:])
    if ran.code is None:
        return [f"hangs: {shown}"]
    answered = ran.code == 0
    if agent.ends != "either" and answered != (agent.ends == "answers"):
        return [f"should end as {agent.ends!r}: {shown}"]
    if ran.code == TIMEOUT and not agent.hangs:
        return [f"kept teamchat until its timeout: {shown}"]
    if answered and not ran.out.strip():
        return [f"a success without an answer: {shown}"]
    if agent.ends == "answers" and "the answer" not in ran.out:
        return [f"another answer: {shown}"]
    return []


def refusal(ran: Ran) -> list[str]:
    """What is wrong with how a command says that it cannot go on before something is repaired; it may well go on."""
    first, *rest = ran.err.splitlines() or [""]
    told = first.startswith("teamchat: ") and "/" in first and len(rest) < 2
    fits = ran.code == 0 or ran.code in REFUSALS or (ran.code == ExitCode.STORE and told)
    return [] if fits else [f"before the repair: {ran}"]


def end_all() -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def serve() -> None:
    preload()
    gc.freeze()  # a collection in a process that is forked would copy every page
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where tests run in the background it is ignored
    folder = Path(sys.argv[1])
    tempfile.tempdir = str(folder)
    for name in sys.argv[2:]:
        began = time.monotonic()
        wrong = play(AGENTS[name], folder / name)
        end_all()
        print(json.dumps({"name": name, "wrong": wrong, "seconds": round(time.monotonic() - began, 1)}), flush=True)


if __name__ == "__main__":
    if os.getpid() != 1:
        sys.exit("inside.py: it runs only as the first process of a namespace, since it ends every other one there")
    serve()
