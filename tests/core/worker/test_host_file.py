"""`host.toml`: how it is written and read, and what it refuses."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from teamchat.core.dispatch.order import Order, Project
from teamchat.core.errors import HostUnavailable
from teamchat.core.worker.host_file import HostFile, read_host_file
from tests.program import Result, cli

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
AGENT = '[agents.writer]\ncommand = ["/bin/cat"]\n'
CLOCK = "TEAMCHAT_HOST_CLOCK"


class Machine:
    """A machine with a HOME and a PATH of its own, and a project."""

    def __init__(self, folder: Path) -> None:
        self.home, self.programs, self.project = folder / "home", folder / "programs", folder / "project"
        self.file = self.home / ".config" / "teamchat" / "host.toml"
        for made in (self.home, self.programs, self.project):
            made.mkdir()
        self.git("init", "-q", ".")
        self.git("commit", "-qm", "one", "--allow-empty")

    def git(self, *words: str) -> str:
        argv = (*GIT, *words)
        return subprocess.run(argv, cwd=self.project, check=True, capture_output=True, text=True).stdout.strip()

    def program(self, name: str) -> str:
        path = self.programs / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return str(path)

    def has(self, text: str) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(text)

    def worker(self, *words: str | Path, **env: str) -> Result:
        given = {
            "HOME": str(self.home),
            "TEAMCHAT_HOME": str(self.home / "state"),
            "XDG_CONFIG_HOME": "",
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "TEAMCHAT_DATABASE": f"sqlite:///{self.home}/none.sqlite",
        }
        return cli("worker", *words, env={**given, **env})


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_init_writes_the_agents_and_projects_that_are_there(machine: Machine) -> None:
    claude, root = machine.program("claude"), machine.git("rev-parse", "HEAD")
    machine.git("remote", "add", "origin", "git@github.com:acme/shop.git")
    done = machine.worker("--init", "--project", machine.project)
    assert done.code == 0, done.err
    assert done.out == machine.file.read_text()
    assert stat.S_IMODE(machine.file.stat().st_mode) == 0o600
    found = read_host_file(machine.file)
    assert {name: (one.spec.command, one.spec.protocol, one.access) for name, one in found.agents.items()} == {
        "claude-code": ((claude,), "claude", "read")
    }
    assert found.projects == ((Project(("github.com/acme/shop",), root), machine.project),)
    again = machine.worker("--init")
    assert (again.code, "is there already; change it there, or remove it first" in again.err) == (2, True)
    assert done.out == machine.file.read_text()


def test_init_on_a_machine_with_nothing_says_so(machine: Machine) -> None:
    done = machine.worker("--init")
    assert done.code == 0, done.err
    assert "found no agent" in done.err
    assert "no project is offered; add [[projects]]" in done.err
    assert not read_host_file(machine.file).agents
    started = machine.worker()
    assert f"this machine offers nothing: {machine.file} has no agent" in one_line(started, 11)
    machine.has(AGENT)
    assert f"this machine offers nothing: {machine.file} has no project" in one_line(machine.worker(), 11)


@pytest.mark.parametrize("name", ["🎉 ünï", 'quo"te \\ back', "del\x7f", "line\nline"])
def test_init_writes_any_name_so_that_it_is_read_again(machine: Machine, name: str) -> None:
    place = machine.project.rename(machine.project.with_name(name))
    done = machine.worker("--init", "--project", place)
    assert done.code == 0, done.err
    assert [folder for _, folder in read_host_file(machine.file).projects] == [place]


def test_init_refuses_a_folder_that_is_no_project_or_no_utf_8(machine: Machine, tmp_path: Path) -> None:
    odd = machine.project.rename(os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff"))
    for folder, words in ((tmp_path, "is no project that a host could know"), (odd, "is no UTF-8")):
        assert words in one_line(machine.worker("--init", "--project", folder), 11)
        assert not machine.file.exists()


MISTAKES = {
    "agents = 3": "agents: expected a table, got 3",
    "[agents]\nwriter = 3": "agents 'writer': expected a table, got 3",
    "[agents.writer]": "agents 'writer': command: missing, expected a list",
    "[agents.writer]\ncommand = 'cat'": "agents 'writer': command: expected a list, got 'cat'",
    "[agents.writer]\ncommand = []": "agents 'writer': command: expected at least one, got an empty list",
    "[agents.writer]\ncommand = ['cat']": "agents 'writer': command: expected an absolute path, got 'cat'",
    "[agents.writer]\ncommand = [1]": "agents 'writer': command[0]: expected a string, got 1",
    '[agents.writer]\ncommand = ["/bin/\\u0000"]': "agents 'writer': command: expected words without NUL",
    f"{AGENT}like = 'terminal'": "agents 'writer': like: expected one of plain, claude",
    f"{AGENT}like = 'nobody'": "got 'nobody'",
    f"{AGENT}access = 'all'": "agents 'writer': access: expected 'read'",
    f"{AGENT}acess = 'read'": "agents 'writer': acess: unknown key, did you mean 'access'?",
    "[[project]]": "project: unknown key, did you mean 'projects'?",
    "[[projects]]": "projects[0].folder: missing, expected a folder by its absolute path",
    "[[projects]]\nfolder = 1": "projects[0].folder: expected a string, got 1",
    "[[projects]]\nfolder = 'here'": "projects[0].folder: expected a folder by its absolute path, got 'here'",
    "[[projects]]\nfolder = '/no/such'": "projects[0].folder: expected a folder by its absolute path, got '/no/such'",
    '[[projects]]\nfolder = "/\\u0000"': "projects[0].folder: expected a folder by its absolute path",
    "[[projects]]\nfolder = '~nobody-of-that-name/x'": "projects[0].folder: expected a folder",
    "[[projects]]\nfolder = '/'": "projects[0]: / is no project that a host could know",
    "[[projects]]\nfolder = '/'\nremotes = ''": "projects[0].remotes: unknown key, did you mean 'remote'?",
    "[projects]\nfolder = '/'": "projects: expected a list, got a table",
    "[agents.claude]\ncommand = ['/bin/cat']\n[agents.claude-code]\ncommand = ['/bin/cat']": (
        "agents 'claude-code': the same agent as agents 'claude'"
    ),
    '[agents."two\\nlines"]\ncommand = ["cat"]': "agents 'two\\nlines'",
    '[agents.""]\ncommand = ["/bin/cat"]': "agents ''",
    "unsigned = 1": "unsigned: expected true or false, got 1",
    "keep = 0": "keep: expected",
    "keep = 1.5": "keep: expected",
    "kep = 7": "kep: unknown key, did you mean 'keep'?",
    "=": "not TOML",
    "a.b.c.d.e.f.g.h.i = 1": "not TOML: a key of more than 8 parts",
}


def one_line(done: Result, code: int) -> str:
    """The error, which is one line beside its hint."""
    assert done.code == code, done.err
    lines = done.err.splitlines()
    assert "Traceback" not in done.err
    assert len([line for line in lines if not line.strip().startswith("try:")]) == 1, done.err
    return lines[0]


@pytest.mark.parametrize(("text", "words"), MISTAKES.items(), ids=range(len(MISTAKES)))
def test_a_mistake_is_one_line_with_its_place(machine: Machine, text: str, words: str) -> None:
    machine.has(text)
    said = one_line(machine.worker(), 2)
    assert f"{machine.file}: " in said
    assert words in said


def test_a_file_that_is_not_read(machine: Machine) -> None:
    for make in (
        lambda: machine.file.write_bytes(b"\xff"),
        lambda: machine.file.write_bytes(b"#" * (1 << 21)),
        lambda: os.mkfifo(machine.file),
        machine.file.mkdir,
        lambda: machine.file.symlink_to(machine.file),
    ):
        machine.file.parent.mkdir(parents=True, exist_ok=True)
        make()
        assert "cannot be read" in one_line(machine.worker(), 2)
        machine.file.rmdir() if machine.file.is_dir() else machine.file.unlink()


def test_without_a_file_nothing_is_offered(machine: Machine) -> None:
    done = machine.worker()
    assert f"this machine offers nothing: there is no {machine.file}" in one_line(done, 11)
    assert "try: teamchat worker --init" in done.err


def test_an_agent_that_is_not_in_the_file(machine: Machine) -> None:
    machine.has(AGENT)
    assert "offers no agent 'other' (there are: writer)" in one_line(machine.worker("--agent", "other"), 4)


@pytest.mark.parametrize("factor", ["x", "-1", "0", "nan", "inf", "1e400"])
def test_a_clock_that_is_no_number_is_said_in_one_line(machine: Machine, factor: str) -> None:
    machine.has(f"{AGENT}[[projects]]\nfolder = '{machine.project}'\n")
    assert f"{CLOCK}: expected a number above 0, got {factor!r}" in one_line(machine.worker(**{CLOCK: factor}), 2)


@pytest.fixture
def offered(machine: Machine, tmp_path: Path) -> HostFile:
    (machine.project / "part").mkdir()
    (machine.project / "file").touch()
    (machine.project / "out").symlink_to(tmp_path)
    (machine.project / "round").symlink_to("round")
    (machine.project / "inside").symlink_to("part")
    machine.has(f"{AGENT}[[projects]]\nfolder = '{machine.project}'\nremote = 'https://github.com/acme/shop'\n")
    return read_host_file(machine.file)


def order(folder: str, remotes: tuple[str, ...] = ("github.com/acme/shop",)) -> Order:
    return Order("t", "alpha", "max", "writer", "plain", Project(remotes, None, folder), b"", None, "read", 5.0, 5.0)


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("..", "outside of the project"),
        ("part/../../project/../home", "outside of the project"),
        ("/", "outside of the project"),
        ("out", "outside of the project"),
        ("out/home", "outside of the project"),
        ("round", "has no folder"),
        ("file", "has no folder"),
        ("none", "has no folder"),
        ("x" * 5000, "has no folder"),
        ("a\0b", "has no folder"),
        ("~", "has no folder"),
    ],
)
def test_a_folder_outside_of_the_project_is_refused(offered: HostFile, folder: str, words: str) -> None:
    with pytest.raises(HostUnavailable, match=words):
        offered.folder(order(folder))


def test_a_folder_of_the_project(offered: HostFile, machine: Machine) -> None:
    assert offered.folder(order("")) == machine.project
    assert offered.folder(order("part")) == offered.folder(order("inside")) == machine.project / "part"
    with pytest.raises(HostUnavailable, match=r"does not offer the project github\.com/acme/other"):
        offered.folder(order("", ("github.com/acme/other",)))
    with pytest.raises(HostUnavailable, match="does not offer the project without a name"):
        offered.folder(order("", ()))
