"""`[checks]` of the team file, and which check a word names."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.check import CHECK_TIMEOUT_S, Check
from teamchat.core.engine.processes.table import TAKES
from teamchat.core.engine.workflow import ProcessSettings
from teamchat.core.errors import TeamFileError, UsageError
from teamchat.core.team.checks import LONGEST_LINE, named_check, with_needs
from teamchat.core.team.find import load
from teamchat.core.team.team import Team

MEMBERS = """
[[members]]
name = "max"
agent = "claude"

[[members]]
name = "sarah"
agent = "codex"
"""
TEAM = {name: Check(name, f"make {name}") for name in ("tests", "lint", "type-check")}


def written(folder: Path, text: str) -> Team:
    file = folder / "teamchat.toml"
    file.write_text(MEMBERS + text)
    return load(file)


def mistake(folder: Path, text: str) -> str:
    with pytest.raises(TeamFileError) as wrong:
        written(folder, text)
    said = str(wrong.value)
    assert said.isprintable()
    where, _, why = said.removeprefix(f"{folder / 'teamchat.toml'}:").partition(" ")
    assert where == "" or where.removesuffix(":").isdigit()
    return why


# --- the team file


def test_a_team_has_none_by_default(tmp_path: Path) -> None:
    assert dict(written(tmp_path, "").checks) == {}


def test_every_key_reaches_the_check(tmp_path: Path) -> None:
    team = written(
        tmp_path,
        """
        [checks.lint]
        command = "make lint && make types"

        [checks.Unit-Tests]
        command = ["./run tests", "a b", "sub/dir"]
        timeout = "1h30m"
        folder = "sub"
        env = { CI = "1", EMPTY = "" }
        env_keep = ["MY_TOKEN"]
        needs = ["LINT"]

        [checks.all-of-it]
        command = ["make"]
        folder = "."
        needs = ["unit_tests", "lint"]
        """,
    )
    assert dict(team.checks) == {
        "lint": Check("lint", "make lint && make types", CHECK_TIMEOUT_S),
        "Unit-Tests": Check(
            "Unit-Tests",
            (f"{tmp_path}/run tests", "a b", "sub/dir"),
            5400.0,
            "sub",
            {"CI": "1", "EMPTY": ""},
            ("MY_TOKEN",),
            ("lint",),
        ),
        "all-of-it": Check("all-of-it", ("make",), needs=("Unit-Tests", "lint")),
    }


def test_a_team_file_that_was_checked_before_has_the_same_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAMCHAT_HOME", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    text = '[checks.a]\ncommand = ["make", "a"]\n[checks.b]\ncommand = "make b"\nneeds = ["a"]\n'
    first = written(tmp_path, text)
    assert [*tmp_path.glob("state/checked/*.json")]
    assert written(tmp_path, text) == first
    written(tmp_path, text + 'env = { MY_KEY = "sk-1" }\n')
    assert not [*tmp_path.glob("state/checked/*.json")]


COMMAND = 'expected a command such as "make test", or a list such as ["make", "test"]'


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "command: missing, expected a command such as 'make test'"),
        ("command = 1", f"command: {COMMAND}"),
        ('command = ""', f"command: {COMMAND}"),
        ('command = " \\n"', f"command: {COMMAND}"),
        ("command = []", f"command: {COMMAND}"),
        ('command = [""]', f"command: {COMMAND}"),
        ('command = ["a", ""]', f"command: {COMMAND}"),
        ('command = ["a", 1]', f"command: {COMMAND}"),
        ('command = "a\\u0000b"', "command: expected text without NUL characters"),
        ('command = ["a", "\\u0000"]', "command: expected text without NUL characters"),
        ('command = "a"\ncommands = "a"', "commands: unknown key, did you mean 'command'?"),
        (
            'command = "a"\ntimeout = 0',
            'timeout: expected a time above zero such as "90s", "30m" or "1h30m", got \'0\'',
        ),
        ('command = "a"\nfolder = ""', "folder: expected text, got ''"),
        ('command = "a"\nenv = { "A=B" = "1" }', "env.A=B: expected the name of an environment variable, got 'A=B'"),
        ('command = "a"\nenv = { A = 12 }', "env.A: expected a string"),
        ('command = "a"\nenv_keep = [""]', "env_keep[0]: expected text, got ''"),
        ('command = "a"\nneeds = "b"', "needs: expected a list, got 'b'"),
        ('command = "a"\nneeds = ["lnt"]', "needs: no check 'lnt', did you mean 'lint'?"),
        ('command = "a"\nneeds = ["zzzz"]', "needs: no check 'zzzz', expected one of lint, late"),
        ('command = "a"\nneeds = ["X"]', "needs: expected other checks, got 'X' itself"),
        ('command = "a"\nneeds = ["lint", "LINT"]', "needs: expected each once, got 'lint' twice"),
    ],
)
def test_a_mistake_names_the_check_and_the_key(table: str, said: str, tmp_path: Path) -> None:
    others = '\n[checks.lint]\ncommand = "l"\n[checks.late]\ncommand = "l"\n'
    assert mistake(tmp_path, f"[checks.x]\n{table}{others}") == f"checks 'x': {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[checks]\nx = 1", "checks 'x': expected a table, got 1"),
        ('[checks."a b"]\ncommand = "a"', "checks 'a b': expected letters, digits, _ . and -, got 'a b'"),
        (
            '[checks.my-tests]\ncommand = "a"\n[checks.MyTests]\ncommand = "a"',
            "checks 'MyTests': the same name as 'my-tests' (case, - and _ are ignored)",
        ),
        ('[checks.a]\ncommand = "a"\nneeds = ["b"]', "checks 'a': needs: no check 'b', there is none"),
    ],
)
def test_a_name_means_one_check(text: str, said: str, tmp_path: Path) -> None:
    assert mistake(tmp_path, text) == said


@pytest.mark.parametrize(
    ("needs", "circle"),
    [
        ({"a": ["b"], "b": ["a"]}, "a, b, a"),
        ({"z": ["a"], "a": ["b", "c"], "b": [], "c": ["d"], "d": ["a"]}, "a, c, d, a"),
    ],
)
def test_checks_that_need_each_other_are_refused(needs: Mapping[str, list[str]], circle: str, tmp_path: Path) -> None:
    text = "".join(f'[checks.{name}]\ncommand = "x"\nneeds = {those}\n' for name, those in needs.items())
    assert mistake(tmp_path, text) == f"checks {circle[0]!r}: needs: a circle: {circle}"


# --- the keys of processes


@pytest.mark.parametrize("line", ['do = "max"', 'check = ["tests"]', 'review = ["max"]'])
def test_only_a_kind_that_takes_them_has_the_keys(line: str, tmp_path: Path) -> None:
    key = line.partition(" ")[0]
    assert mistake(tmp_path, f'[processes.x]\nkind = "vote"\n{line}').startswith(f"processes 'x': {key}: ")


@pytest.fixture
def _taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A debate takes the keys, too."""
    takes = {**TAKES, "debate": (*TAKES["debate"], "do", "check", "review")}
    monkeypatch.setattr("teamchat.core.team.build_processes.TAKES", takes)


UNIT = '[checks.unit-tests]\ncommand = "make"\n[processes.x]\nkind = "debate"\n'


@pytest.mark.usefixtures("_taken")
def test_members_and_checks_of_a_process_are_looked_up(tmp_path: Path) -> None:
    keys = 'do = "MAX"\nreview = ["Sarah"]\ncheck = ["Unit_Tests", "npm test"]'
    settings = written(tmp_path, UNIT + keys).processes["x"].settings
    assert settings == ProcessSettings(do="max", review=("sarah",), check=("unit-tests", "npm test"))


@pytest.mark.usefixtures("_taken")
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('do = "mx"', "do: no AI member 'mx', did you mean 'max'?"),
        ('review = ["sara"]', "review: no AI member 'sara', did you mean 'sarah'?"),
        ('review = ["max", "MAX"]', "review: expected each once, got 'max' twice"),
        ('check = [" "]', "check: expected the name of a check or a shell command, got ' '"),
        ('check = ["unit-tests", "UnitTests"]', "check: expected each once, got 'unit-tests' twice"),
        (
            'check = ["unit-test"]',
            "check: no check 'unit-test': did you mean 'unit-tests'? As a command it is 'sh -c unit-test'",
        ),
    ],
)
def test_a_mistake_in_these_keys_is_told(keys: str, said: str, tmp_path: Path) -> None:
    assert mistake(tmp_path, UNIT + keys) == f"processes 'x': {said}"


# --- which check a word names


@pytest.mark.parametrize("word", ["tests", "TESTS", "type_check", "TypeCheck", "lint"])
def test_a_name_names_a_check(word: str) -> None:
    found = named_check(TEAM, word)
    assert found is TEAM[{"typecheck": "type-check"}.get(word.lower().replace("_", ""), word.lower())]


@pytest.mark.parametrize(
    "word",
    [
        "make",
        "npm test",
        "./tests",
        "bin/test",
        "tets now",
        "type check",
        "echo '\n'",
        "x" * LONGEST_LINE,
        "tset;\ttrue",
    ],
)
def test_any_other_word_is_a_command(word: str) -> None:
    assert named_check(TEAM, word) == Check(word, word, typed=True)


@pytest.mark.parametrize("word", ["", " ", "\n\t", "a\0b", "x" * (LONGEST_LINE + 1), f"a\n{'x' * 4001}\nb"])
def test_what_no_shell_can_run_is_refused(word: str) -> None:
    with pytest.raises(UsageError):
        named_check(TEAM, word)


@pytest.mark.parametrize("word", ["--review", "-q", " -", "--review=carol max"])
def test_an_option_is_no_check(word: str) -> None:
    with pytest.raises(UsageError) as refused:
        named_check(TEAM, word)
    assert str(refused.value).endswith(f"type the check before it, such as --check tests {word}")
    with pytest.raises(UsageError, match="--check 'make test'"):
        named_check({}, word)


def test_what_is_nearly_a_name_is_refused_and_can_be_typed_otherwise() -> None:
    with pytest.raises(UsageError) as refused:
        named_check(TEAM, "tets")
    assert str(refused.value) == "no check 'tets': did you mean 'tests'? As a command it is 'sh -c tets'"
    assert named_check({}, "tets").typed


@given(st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=20).map(lambda end: f"tets{end}"))
def test_the_command_that_is_told_runs_the_word(word: str) -> None:
    try:
        found = named_check({"tets": Check("tets", "x")}, word)
    except UsageError as refused:
        told = str(refused).partition("As a command it is ")[2]
        [line] = shlex.split(told)
        found = named_check({"tets": Check("tets", "x")}, line)
        assert found.typed
        assert isinstance(found.command, str)
        assert shlex.split(found.command) == ["sh", "-c", word]
    else:
        assert found.typed or found.name == "tets"


def test_the_shell_reads_it_so() -> None:
    with pytest.raises(UsageError) as refused:
        named_check({"id;id": Check("id;id", "x")}, "id;'id'")
    [line] = shlex.split(str(refused.value).partition("As a command it is ")[2])
    assert subprocess.check_output(["/bin/sh", "-c", line], text=True).count("uid=") == 2


# --- what a check needs


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Check]:
    """Checks of which each needs some of those before it; they are defined in any order."""
    names = [f"c{number}" for number in range(draw(st.integers(1, 8)))]
    needs = [draw(st.lists(st.sampled_from(names[:at]), unique=True)) if at else [] for at in range(len(names))]
    pairs = draw(st.permutations([*zip(names, needs, strict=True)]))
    return {name: Check(name, "x", needs=tuple(those)) for name, those in pairs}


@given(graphs(), st.data())
def test_each_check_comes_once_and_behind_what_it_needs(team: dict[str, Check], data: st.DataObject) -> None:
    named = data.draw(st.lists(st.sampled_from([*team.values()])))
    found = [check.name for check in with_needs(team, named)]
    assert len(found) == len(set(found))
    assert {check.name for check in named} <= set(found)
    for place, name in enumerate(found):
        assert set(team[name].needs) <= set(found[:place])
    needed = {need for name in found for need in team[name].needs}
    assert set(found) == needed | {check.name for check in named}
    assert with_needs(team, named[:1]) == tuple(team[name] for name in found[: len(with_needs(team, named[:1]))])


def names(checks: Iterable[Check]) -> list[str]:
    return [check.name for check in checks]


def test_what_was_named_first_comes_first() -> None:
    needs: Mapping[str, tuple[str, ...]] = {"a": ("l", "m"), "b": (), "l": (), "m": ("b",)}
    team = {name: Check(name, "x", needs=those) for name, those in needs.items()}
    typed = Check("make", "make", typed=True)
    assert names(with_needs(team, [typed, team["a"], team["b"], typed])) == ["make", "l", "b", "m", "a"]
    assert names(with_needs(team, [team["b"], team["a"]])) == ["b", "l", "m", "a"]
    assert with_needs(team, []) == ()


def test_a_long_chain_of_needs_is_followed(tmp_path: Path) -> None:
    chain = [f"c{number}" for number in range(3000)]
    tables = (f'[checks.{name}]\ncommand = "x"\nneeds = ["{then}"]\n' for name, then in pairwise(chain))
    team = written(tmp_path, "".join(tables) + f'[checks.{chain[-1]}]\ncommand = "x"\n')
    assert names(with_needs(team.checks, [team.checks["c0"]])) == chain[::-1]
