"""The files and keys that trust covers: whatever decides what a member's program does, and what bounds it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from teamchat.core.team.find import load
from teamchat.core.team.trust import TrustStore
from teamchat.core.team.trusted_files import LARGE, MOST_FOLDERS, file_states

MEMBER = '[[members]]\nname = "al"\nagent = "own"\n'
CLAUDE = '[[members]]\nname = "max"\nagent = "claude"\n'


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "state" / "trust.json")


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


def runs(*command: str) -> str:
    return f"{MEMBER}[agents.own]\ncommand = {json.dumps(command)}\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (runs("bash", "-c", ". ./x"), "x"),
        (runs("bash", "-c", "A=1 source tools/x.sh&&echo"), "tools/x.sh"),
        (runs("sh", "-c", 'cat "x y" | sh; (x)'), "x"),
        (runs("sh", "-c", "python -I -m tools.x --fast"), "tools/x.py"),
        (CLAUDE + 'env = { NODE_OPTIONS = "--max-old-space-size=99 --require ./x.js" }', "x.js"),
        (runs("env", "NODE_OPTIONS=--require=./x.js", "node"), "x.js"),
        (runs("bash", "-c", "cd tools && ./run.sh"), "tools/run.sh"),
        (runs("bash", "-c", "cd tools; cd in; . ./x"), "tools/in/x"),
        (runs("bash", "-c", "(cd tools/; make agent)"), "tools/Makefile"),
        (runs("bash", "-c", '"$PWD/run.sh"'), "run.sh"),
        (runs("bash", "-c", 'cd tools && "${PWD}/run.sh"'), "tools/run.sh"),
        (runs("bash", "-c", "exec $(pwd)/run.sh"), "run.sh"),
        (runs("/bin/bash", "-c", "/bin/sh x"), "x"),
        (runs("make", "-C", "tools"), "tools/Makefile"),
        (runs("make", "-Ctools"), "tools/Makefile"),
        (runs("nice", "make"), "Makefile"),
        (runs("npm", "--prefix", "tools", "start"), "tools/package.json"),
        (runs("npm", "--prefix=tools", "start"), "tools/package.json"),
        (runs("env", "-C", "tools", "bash", "x"), "tools/x"),
        (runs("python3", "-m", "mod"), "mod.py"),
        (runs("python3", "-m", "pack.tool"), "pack/tool.py"),
        (runs("python3", "-m", "pack"), "pack/__main__.py"),
        (runs("python3", "-m", "pack"), "pack/__init__.py"),
        (runs("python3", "pack"), "pack/__main__.py"),
        (runs("node", "./agent"), "agent.js"),
        (runs("node", "-r", "./hook", "agent.mjs"), "hook.cjs"),
        (runs("make", "agent"), "Makefile"),
        (runs("npm", "run", "agent"), "package.json"),
        (CLAUDE + 'args = ["--mcp-config={\\"a\\": \\"./x.json\\"}"]', "x.json"),
        (CLAUDE + 'env = { BASH_ENV = "./x" }', "x"),
        (CLAUDE + 'env = { PATH = "bin:/usr/bin" }', "bin/git"),
        (CLAUDE + 'env = { PATH = "bin:/usr/bin" }', "bin/claude"),
        (CLAUDE + 'env = { PATH = "/usr/bin:{proj}/bin" }', "bin/node"),
    ],
)
def test_a_file_that_decides_what_runs_asks_again_when_it_changes(
    text: str, name: str, tmp_path: Path, store: TrustStore
) -> None:
    proj = tmp_path / "proj"
    write(proj / "teamchat.toml", text.replace("{proj}", str(proj)))
    write(proj / name, "one")
    team = load(proj / "teamchat.toml")
    store.grant(team)
    assert store.standing(team).trusted
    write(proj / name, "two")
    assert store.standing(team).changes == (f"{name} has changed",)
    (proj / name).unlink()
    assert store.standing(team).changes == (f"removed file {name}",)


@pytest.mark.parametrize("text", ["echo 1 >> app.py", "echo 1>app.py; echo 2 >|'app.py'", '(date) >> "app.py"&& :'])
@pytest.mark.parametrize("shell", [("sh", "-c"), ("/bin/bash", "-e", "-lc"), ("env", "A=1", "zsh", "-c")])
def test_a_script_that_a_shell_only_writes_may_change(
    text: str, shell: tuple[str, ...], tmp_path: Path, store: TrustStore
) -> None:
    write(tmp_path / "teamchat.toml", runs(*shell, text))
    write(tmp_path / "app.py", "one")
    team = load(tmp_path / "teamchat.toml")
    store.grant(team)
    write(tmp_path / "app.py", "two")
    assert store.standing(team).trusted


@pytest.mark.parametrize(
    "command",
    [
        ("sh", "-c", "echo 1 > app.py; python3 app.py"),
        ("sh", "-c", "echo 1 > $(./app.py)"),
        ("bash", "-c", "ls > >(./app.py)"),
        ("sh", "-c", "grep '>' ./app.py 'x'"),
        ("sh", "-c", "./app.py > out"),
        ("bash", "-c", "exec 3<>app.py; . /dev/fd/3"),
        ("sh", "-c", "sh -c 'ls > app.py'"),
        ("ruby", "-e", '{:a => "./app.py"}.each_value { |file| system(file) }'),
    ],
)
def test_a_script_that_a_command_names_otherwise_asks_again(
    command: tuple[str, ...], tmp_path: Path, store: TrustStore
) -> None:
    write(tmp_path / "teamchat.toml", runs(*command))
    write(tmp_path / "app.py", "one")
    team = load(tmp_path / "teamchat.toml")
    store.grant(team)
    write(tmp_path / "app.py", "two")
    assert store.standing(team).changes == ("app.py has changed",)


@pytest.mark.parametrize("text", [". ./x", "bash -e x", "A=$(source x)", "zsh<x"])
def test_a_script_needs_neither_a_mode_nor_an_ending(text: str, tmp_path: Path, store: TrustStore) -> None:
    write(tmp_path / "teamchat.toml", runs("bash", "-c", text))
    (tmp_path / "x").write_text("one")
    team = load(tmp_path / "teamchat.toml")
    store.grant(team)
    (tmp_path / "x").write_text("two")
    assert store.standing(team).changes == ("x has changed",)


def test_words_below_a_folder_outside_of_the_workspace_are_not_looked_for(tmp_path: Path, store: TrustStore) -> None:
    write(tmp_path / "tools" / "run.sh", "one")
    write(tmp_path / "proj" / "teamchat.toml", runs("bash", "-c", f"cd {tmp_path}/tools && ./run.sh"))
    team = load(tmp_path / "proj" / "teamchat.toml")
    store.grant(team)
    write(tmp_path / "tools" / "run.sh", "two")
    assert store.standing(team).trusted


def test_a_command_with_many_folders_is_looked_through_at_a_bound(tmp_path: Path) -> None:
    names = [f"f{number}" for number in range(3 * MOST_FOLDERS)]
    for name in names:
        write(tmp_path / name / "run.sh", "one")
    write(tmp_path / "teamchat.toml", runs("bash", "-c", f"cd {' '.join(names)}; ./run.sh"))
    assert len(file_states(load(tmp_path / "teamchat.toml"))) == MOST_FOLDERS


def test_what_a_shell_reads_and_writes_may_change(tmp_path: Path, store: TrustStore) -> None:
    write(tmp_path / "teamchat.toml", runs("sh", "-c", "cat notes.md | wc > out; tee log.txt"))
    team = load(tmp_path / "teamchat.toml")
    store.grant(team)
    for name in ("notes.md", "out", "log.txt"):
        (tmp_path / name).write_text("new")
    assert store.standing(team).trusted


@pytest.mark.parametrize("slash", ["{proj}/agent.sh", "{proj}/../proj/agent.sh", "{tmp}/link.sh", "agent.sh"])
def test_a_program_of_the_workspace_is_covered_however_it_is_found(
    slash: str, tmp_path: Path, store: TrustStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    proj = tmp_path / "proj"
    write(proj / "agent.sh", "one")
    (tmp_path / "link.sh").symlink_to(proj / "agent.sh")
    monkeypatch.setenv("PATH", f"{proj}:/usr/bin")
    write(proj / "teamchat.toml", runs(slash.format(proj=proj, tmp=tmp_path)))
    team = load(proj / "teamchat.toml")
    store.grant(team)
    write(proj / "agent.sh", "two")
    assert [line.endswith(" has changed") for line in store.standing(team).changes] == [True]


def test_a_program_that_comes_to_lie_before_the_trusted_one_asks_again(
    tmp_path: Path, store: TrustStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    proj = tmp_path / "proj"
    write(tmp_path / "bin" / "agent", "mine")
    write(proj / "teamchat.toml", runs("agent"))
    monkeypatch.setenv("PATH", f"{proj}/bin:{tmp_path}/bin")
    team = load(proj / "teamchat.toml")
    store.grant(team)
    write(tmp_path / "bin" / "agent", "mine, and newer")  # outside: no member that is bound to the workspace did it
    assert store.standing(team).trusted
    write(proj / "bin" / "agent", "theirs")
    assert store.standing(team).changes == ("added file bin/agent",)


@pytest.mark.parametrize("text", [runs("./agent"), CLAUDE + 'env = { PATH = "bin" }'])
def test_a_pipe_in_the_place_of_a_program_asks_again_and_is_not_waited_for(
    text: str, tmp_path: Path, store: TrustStore
) -> None:
    for name in ("agent", "bin/claude"):
        write(tmp_path / name, "one")
    write(tmp_path / "teamchat.toml", text)
    team = load(tmp_path / "teamchat.toml")
    store.grant(team)
    for name in ("agent", "bin/claude"):
        (tmp_path / name).unlink()
        os.mkfifo(tmp_path / name, 0o777)
    assert not store.standing(team).trusted


def test_a_file_outside_of_the_workspace_that_a_variable_names_is_not_opened(tmp_path: Path, store: TrustStore) -> None:
    write(tmp_path / "key.json", "one")
    write(tmp_path / "proj" / "teamchat.toml", f'{CLAUDE}env = {{ CREDENTIALS = "{tmp_path}/key.json" }}')
    team = load(tmp_path / "proj" / "teamchat.toml")
    store.grant(team)
    write(tmp_path / "key.json", "two")
    assert store.standing(team).trusted


def test_a_large_script_whose_time_is_set_back_asks_again(tmp_path: Path, store: TrustStore) -> None:
    script = tmp_path / "proj" / "agent.sh"
    write(script, "echo one\n")
    os.truncate(script, LARGE + 1)
    before = script.stat()
    write(tmp_path / "proj" / "teamchat.toml", runs("./agent.sh"))
    team = load(tmp_path / "proj" / "teamchat.toml")
    store.grant(team)
    with script.open("r+b") as file:
        file.write(b"echo two")
    os.utime(script, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert script.stat().st_size == before.st_size
    assert not store.standing(team).trusted


def test_a_folder_of_a_member_that_leads_elsewhere_in_the_workspace_asks_again(
    tmp_path: Path, store: TrustStore
) -> None:
    proj = tmp_path / "proj"
    write(proj / "teamchat.toml", f'{CLAUDE}cwd = "src"\naccess = "edit"\n')
    for name in ("src", "tools"):
        (proj / name).mkdir()
    team = load(proj / "teamchat.toml")
    store.grant(team)
    (proj / "src").rmdir()
    (proj / "src").symlink_to("tools")
    assert store.standing(team).changes == (f"access of max: edits files in {proj}/src → edits files in {proj}/tools",)


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("redact = false", "the team sends other vendors' members well-known keys as they are"),
        ("limits.turns = 13", "the team has turns = 13 as a limit (12 by default)"),
        ("limits.minutes = 61.5", "the team has minutes = 61.5 as a limit (60.0 by default)"),
        ("limits.tokens = 2000001", "the team has tokens = 2,000,001 as a limit (2,000,000 by default)"),
        ("limits.rounds = 3", "the team has rounds = 3 as a limit (2 by default)"),
        ("limits.similarity = 0", "the team has similarity = 0.0 as a limit (0.9 by default)"),
        ("limits.similarity = 0.95", "the team has similarity = 0.95 as a limit (0.9 by default)"),
    ],
)
def test_what_weakens_a_protection_needs_trust(head: str, line: str, tmp_path: Path, store: TrustStore) -> None:
    write(tmp_path / "teamchat.toml", f"[team]\n{head}\n{CLAUDE}")
    team = load(tmp_path / "teamchat.toml")
    standing = store.standing(team)
    assert not standing.trusted
    store.grant(team)
    assert store.standing(team).trusted
    write(tmp_path / "teamchat.toml", f'[team]\n{CLAUDE}access = "edit"\n')
    changed = store.standing(load(tmp_path / "teamchat.toml")).changes
    key = head.partition(" =")[0]
    assert changed == (
        "added mcp of max: starts all your MCP servers",
        f"added access of max: edits files in {tmp_path}",
        "added agent of max: is claude",
        f"removed {key} of the team: {line[9:]}",
    )


@pytest.mark.parametrize(
    "head", ["limits.turns = 3", "limits.minutes = 1", "limits.similarity = 0.5", "limits.cost_usd = 100.0", ""]
)
def test_a_stricter_limit_needs_none(head: str, tmp_path: Path, store: TrustStore) -> None:
    write(tmp_path / "teamchat.toml", f"[team]\n{head}\n{CLAUDE}")
    assert store.standing(load(tmp_path / "teamchat.toml")).trusted


def test_a_fence_that_is_taken_away_asks_again_where_trust_was_needed(tmp_path: Path, store: TrustStore) -> None:
    def team(head: str, rest: str = 'access = "edit"\n') -> None:
        write(tmp_path / "teamchat.toml", f"[team]\n{head}\n{CLAUDE}{rest}")

    team("fence = true")
    store.grant(load(tmp_path / "teamchat.toml"))
    team("")
    assert store.standing(load(tmp_path / "teamchat.toml")).changes == ("fence of the team: on → off",)
    team("", rest="")
    assert store.standing(load(tmp_path / "teamchat.toml")).trusted
