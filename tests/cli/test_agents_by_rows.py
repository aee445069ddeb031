"""A person uses an agent that a row describes: one of teamchat's, and one of their own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.helpers import objects, refused, said
from tests.program import Result, run_here

MINE = """
command = ["mine", "--print"]
install = "brew install mine"
stream = "json"
json = "text"
session = "id"
model = ["--model", "{}"]
resume = ["--resume", "{}"]
stays_in = "~/.mine"
last = ["-p"]
login = "mine login"
never = ["--yolo"]
why_never = "it would delete your home"
lost = "its colours"
leaves = "nothing"

[access.read]
args = ["--read"]
env = { MINE_MODE = "quiet" }
note = "reads files (--read)"

[access.full]
note = "may do everything"
"""
SCRIPT = """echo "$@" >> argv; cat > "prompt-$(wc -l < argv)"; echo "$MINE_MODE" > mode
echo '{"id": "s-7"}'
echo '{"id": "s-7", "text": "Read."}'
"""


@pytest.fixture
def config(world: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the person's rows; programs in `bin` are on PATH."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(world / "config"))
    monkeypatch.setenv("PATH", f"{world / 'bin'}:{os.environ['PATH']}")
    folder = world / "config" / "teamchat" / "agents"
    folder.mkdir(parents=True)
    (world / "bin").mkdir()
    return folder


def program(world: Path, name: str, script: str) -> None:
    path = world / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def team(agent: str, **keys: object) -> None:
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())
    person = '[[members]]\nname = "kailai"\ntype = "human"'
    Path("teamchat.toml").write_text(f'{person}\n[[members]]\nname = "max"\nagent = "{agent}"\n{lines}\n')


def send(*args: str) -> Result:
    return run_here("send", *args, "Hi")


def captured(name: str) -> Mapping[str, str]:
    file = Path(__file__).parent.parent / "captures" / "agents" / f"{name}.json"
    turn: Mapping[str, str] = json.loads(file.read_text())["scenes"]["reply"]
    return turn


@pytest.mark.parametrize("name", ["qwen", "kilo"])
def test_an_agent_of_teamchats_own_rows_works_as_a_built_in_one(name: str, world: Path, config: Path) -> None:
    assert config.is_dir()
    (world / "output").write_text(captured(name)["stdout"])
    program(world, name, f"cat > /dev/null; cat '{world / 'output'}'")
    team(name)
    if name == "kilo":  # a file of the folder makes it run something
        assert send().code == 5
        assert run_here("trust").code == 0
    ran = send()
    assert (ran.code, said()[-1]) == (0, ("max", "It is fine."))
    receipt = objects(run_here("show", "--json"))[0]
    assert receipt["outcome"]["usage"]["output_tokens"] == 7  # type: ignore[index]
    assert "reads files; " in run_here("show").out


def test_a_row_of_ones_own_from_nothing(world: Path, config: Path) -> None:
    (config / "mine.toml").write_text(MINE)
    program(world, "mine", SCRIPT)
    team("mine", model="large", memory="resume")
    assert send().code == 5
    trusted = run_here("trust")
    assert (
        "max runs MINE_MODE=quiet mine --print --read -p by your row, access read: as its row says: reads files"
        in trusted.err
    )
    assert send().code == 0
    assert said()[-1] == ("max", "Read.")
    assert Path("mode").read_text() == "quiet\n"
    assert send().code == 0
    assert Path("argv").read_text().splitlines() == [
        "--print --read --model large -p",
        "--print --read --model large --resume s-7 -p",
    ]
    shown = run_here("team").out
    assert "access read: as its row says: reads files (--read)" in shown
    assert "lost: its colours" in shown
    assert "as its row says: reads files (--read)" in run_here("show").out


def test_a_row_that_changes_asks_again(world: Path, config: Path) -> None:
    (config / "mine.toml").write_text(MINE)
    program(world, "mine", SCRIPT)
    team("mine")
    assert run_here("trust").code == 0
    assert send().code == 0
    (config / "mine.toml").write_text(MINE.replace('"--read"', '"--read-more"'))
    ran = send()
    assert (ran.code, "--read-more" in ran.err) == (5, True)
    (config / "mine.toml").write_text(MINE.replace('"mine login"', '"other login"'))
    ran = send()
    assert (ran.code, "other login" in ran.err) == (5, True)


@pytest.mark.parametrize("key", ["args", "last", "env"])
def test_a_file_that_a_row_names_is_trusted_by_its_content(key: str, world: Path, config: Path) -> None:
    text = MINE.replace('args = ["--read"]', 'args = ["--read", "./tool.sh"]') if key == "args" else MINE
    text = text.replace('last = ["-p"]', 'last = ["./tool.sh"]') if key == "last" else text
    text = text.replace('MINE_MODE = "quiet"', 'MINE_MODE = "./tool.sh"') if key == "env" else text
    (config / "mine.toml").write_text(text)
    Path("tool.sh").write_text("#!/bin/sh\n")
    program(world, "mine", SCRIPT)
    team("mine")
    assert run_here("trust").code == 0
    assert send().code == 0
    Path("tool.sh").write_text("#!/bin/sh\nrm -rf x\n")
    assert send().code == 5


def test_an_access_that_its_row_has_not_is_refused(world: Path, config: Path) -> None:
    (config / "mine.toml").write_text(MINE)
    program(world, "mine", SCRIPT)
    team("mine", access="edit")
    assert "access: the row of mine has read and full alone" in refused(send())
    team("mine", allow=["make"])
    assert "mine cannot be held to a list of commands" in refused(send())


def test_a_model_that_reaches_no_program_is_refused(config: Path) -> None:
    (config / "mine.toml").write_text('command = ["mine"]\n')
    team("mine", model="large")
    assert "model: mine takes none (its row has no `model`); remove it" in refused(send())
    own = '[[members]]\nname = "max"\nagent = "own"\nmodel = "large"\n[agents.own]\ncommand = ["x"]\n'
    Path("teamchat.toml").write_text(own)
    assert "model: own takes none" in refused(send())


def test_a_prompt_that_is_an_argument_is_no_option(world: Path, config: Path) -> None:
    (config / "mine.toml").write_text('command = ["mine"]\nprompt = "argument"\n')
    program(world, "mine", 'printf %s "$1" > prompt; echo Read.')
    team("mine", system_instruction="--yolo is what you are called.")
    assert run_here("trust").code == 0
    assert send().code == 0
    assert Path("prompt").read_text().startswith((" --yolo", "You"))


def test_what_a_program_must_never_be_given_is_refused(config: Path) -> None:
    (config / "mine.toml").write_text(MINE)
    team("mine", args=["--yolo"])
    assert "--yolo must never be given to mine: it would delete your home" in refused(send())
    own = '[[members]]\nname = "max"\nagent = "writer"\n[agents.writer]\ncommand = ["aider", "--yes-always"]\n'
    Path("teamchat.toml").write_text(own)
    assert "--yes-always must never be given to writer" in refused(send())


def test_a_projects_folder_holds_no_rows(config: Path) -> None:
    assert config.is_dir()
    for folder in (Path("agents"), Path(".teamchat/agents"), Path(".config/teamchat/agents")):
        folder.mkdir(parents=True)
        (folder / "mine.toml").write_text(MINE)
    team("mine")
    assert "unknown agent 'mine'" in refused(send())


def test_a_wrong_row_is_told_by_its_file(config: Path) -> None:
    (config / "mine.toml").write_text("command = 1")
    team("mine")
    assert f"{config / 'mine.toml'}: command: Expected `array`, got `int`" in refused(send())


def test_a_prompt_that_no_argument_can_hold_is_refused_before_anything_starts(world: Path, config: Path) -> None:
    assert config.is_dir()
    program(world, "kimi", 'touch ran; echo "$2" > prompt; echo "• Read."')
    team("kimi")
    assert run_here("trust").code == 0
    assert send().code == 0
    assert Path("prompt").read_text().rstrip().endswith("Hi")
    assert "bytes as its last argument (--prompt)" in run_here("show").out
    assert said()[-1] == ("max", "Read.")
    Path("ran").unlink()
    ran = run_here("send", "word " * 40_000)
    assert (ran.code, "its CLI takes 131,071" in ran.err, Path("ran").exists()) == (12, True, False)


def test_a_program_that_is_not_installed_is_told_with_its_command(config: Path) -> None:
    assert config.is_dir()
    team("qwen")
    ran = send()
    assert (ran.code, "npm install -g @qwen-code/qwen-code" in ran.err) == (11, True)
    for name, command in (("continue", "npm install -g @continuedev/cli"), ("mine", "brew install mine")):
        (config / "mine.toml").write_text(MINE)
        team(name)
        assert run_here("trust").code == 0
        ran = run_here("resume")
        assert (ran.code, f"try: {command}" in ran.err) == (11, True)


@pytest.mark.parametrize(
    ("said_version", "finding"),
    [("0.24.4", "0.24.4, proven"), ("v9.9.9", "9.9.9, not tested; the newest proven is 0.24.4")],
)
def test_doctor_tells_the_version_of_a_member(said_version: str, finding: str, world: Path, config: Path) -> None:
    assert config.is_dir()
    program(world, "qwen", f"echo {said_version}")
    team("qwen")
    assert finding in run_here("doctor").out


def test_doctor_lists_the_agents_that_are_installed(world: Path, config: Path) -> None:
    (config / "mine.toml").write_text(MINE)
    for name, version in (("cn", "1.5.47"), ("qwen", "0.24.4"), ("mine", "3.0"), ("claude", "2.1.330 (Claude Code)")):
        program(world, name, f"echo {version}")
    out = run_here("doctor").out
    assert "qwen     version 0.24.4, proven" in out.replace("✓ ", "")
    assert "continue version 1.5.47, observed 2026-11-28, not proven" in out.replace("· ", "")
    assert "by your row" in out


def test_init_offers_them(world: Path, config: Path) -> None:
    assert config.is_dir()
    program(world, "qwen", "echo 0.24.4")
    ran = run_here("init")
    assert ran.code == 0, ran.err
    assert 'agent = "qwen"' in Path("teamchat.toml").read_text()
