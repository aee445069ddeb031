"""Where the row of an agent is looked for, and what is wrong with one in one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from teamchat.core.team.agent_rows import all_rows, find_row
from teamchat.core.team.problems import TeamFileProblem
from teamchat.runners.agent_row import OWN

COMMAND = 'command = ["mine"]\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a person's rows."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    rows = tmp_path / "config" / "teamchat" / "agents"
    rows.mkdir(parents=True)
    return rows


def test_a_row_of_teamchat_itself() -> None:
    row = find_row("Qwen")
    assert row is not None
    assert (row.command[0], row.origin, row.is_proven("read")) == ("qwen", OWN, True)


def test_a_row_of_the_person_is_never_proven(folder: Path) -> None:
    text = f'{COMMAND}proven = ["1.0"]\n[access.read]\nargs = ["--read"]\nnote = "reads"\n'
    (folder / "mine.toml").write_text(text)
    row = find_row("mine")
    assert row is not None
    assert (row.command, row.origin, row.is_proven("read")) == (("mine",), "you", False)
    assert "mine" in dict(all_rows())


@pytest.mark.parametrize("name", ["missing", "../mine", "", "a/b", "x" * 300, "naïve", ".", "a\0b"])
def test_no_row(name: str, folder: Path) -> None:
    (folder.parent / "mine.toml").write_text(COMMAND)
    assert find_row(name) is None


@pytest.mark.usefixtures("folder")
def test_a_row_of_a_package_is_read_and_nothing_of_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "some_agents" / "rows"
    package.mkdir(parents=True)
    for place in (package, package.parent):
        (place / "__init__.py").write_text("raise SystemExit('imported')\n")
    (package / "packed.toml").write_text(COMMAND)
    about = tmp_path / "site" / "some_agents-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: some-agents\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text("[teamchat.agents]\npacked = some_agents.rows\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    row = find_row("packed")
    assert row is not None
    assert row.origin == "the package some-agents 1.2"
    assert "some_agents" not in sys.modules
    (package / "packed.toml").unlink()
    with pytest.raises(TeamFileProblem, match=r"packed\.toml: no such file"):
        find_row("packed")


def test_a_name_that_teamchat_has_cannot_be_replaced(folder: Path) -> None:
    (folder / "qwen.toml").write_text(COMMAND)
    with pytest.raises(TeamFileProblem, match="teamchat has an agent 'qwen' already"):
        find_row("qwen")
    (folder / "claude.toml").write_text(COMMAND)
    with pytest.raises(TeamFileProblem, match="'claude' is an agent that teamchat has without a row"):
        find_row("claude")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "command: expected a program"),
        ("command = []", "command: expected a program"),
        ('command = "mine"', "command: Expected `array`, got `str`"),
        (f"{COMMAND}nope = 1", "unknown key 'nope': teamchat help own-agent has them"),
        (f"{COMMAND}[access.read]\nnope = 1", "access: unknown key 'nope'"),
        ('command = ["./mine"]', "command: expected a program of PATH, or an absolute path, got './mine'"),
        ('command = ["mine\\u0000"]', "expected text without NUL characters"),
        (f'{COMMAND}env = {{ "A=B" = "x" }}', "env: expected the name of a variable, got 'A=B'"),
        (f'{COMMAND}last = ["--all=1"]\nnever = ["--all"]', "never: its own command has --all=1"),
        (f'{COMMAND}stream = "json"\njson = "a..b"', "json: expected a path such as result.text"),
        (f'{COMMAND}session = "id"', "json: expected with stream"),
        (f'{COMMAND}fail_pattern = "x*"', "fail_pattern: expected one that an empty line does not match"),
        (f"{COMMAND}[access.write]\nargs = []", "Invalid enum value 'write'"),
        (f'{COMMAND}origin = "teamchat"', "origin: a row does not say whose it is"),
        (f'{COMMAND}prompt = "tty"', "prompt: expected one of file, pipe, argument"),
        (f'{COMMAND}stream = "yaml"', "stream: expected one of plain, json, claude"),
        (f'{COMMAND}json = "a"', 'json: expected with stream = "json"'),
        (f'{COMMAND}stream = "json"', 'json: expected with stream = "json"'),
        (f'{COMMAND}resume = ["-r", "{{}}"]', "resume: expected only where the stream has the id"),
        (f'{COMMAND}model = ["-m"]', "model: expected a {} in place of its value"),
        (f"{COMMAND}largest = 0", "largest: expected a number of bytes"),
        (f"{COMMAND}fail_pattern = '('", "fail_pattern: expected a regular expression"),
        ("command = [", "Invalid value"),
        ('command = ["mine"]\nx.y.z.a.b.c.d.e.f.g = 1', "a key of more than 8 parts"),
    ],
)
def test_what_is_wrong_is_one_line(text: str, problem: str, folder: Path) -> None:
    (folder / "mine.toml").write_text(text)
    with pytest.raises(TeamFileProblem) as raised:
        find_row("mine")
    said = str(raised.value)
    assert (said.startswith(f"{folder / 'mine.toml'}: "), problem in said, "\n" in said) == (True, True, False), said


@pytest.mark.parametrize("name", ["Bad", "naïve", "a b", "-a"])
def test_a_file_with_a_name_that_no_row_has_is_told(name: str, folder: Path) -> None:
    (folder / f"{name}.toml").write_text(COMMAND)
    with pytest.raises(TeamFileProblem, match="a row's file has a name of small letters"):
        find_row(name)


def test_what_is_no_file_is_told(folder: Path) -> None:
    (folder / "mine.toml").mkdir()
    with pytest.raises(TeamFileProblem, match=r"mine\.toml: "):
        find_row("mine")
    (folder / "gone.toml").symlink_to("nothing")
    with pytest.raises(TeamFileProblem, match=r"gone\.toml: no such file"):
        find_row("gone")
    (folder / "latin.toml").write_bytes(b'command = ["\xff"]')
    with pytest.raises(TeamFileProblem, match=r"latin\.toml: not UTF-8 \(byte 12\)"):
        find_row("latin")
    (folder / "large.toml").write_text(f"{COMMAND}#{'x' * 70_000}")
    with pytest.raises(TeamFileProblem, match=r"large\.toml"):
        find_row("large")
