"""Every command that an error, a finding or a failure gives to be typed: collected from the source, and parsed."""

from __future__ import annotations

import ast
import builtins
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import pytest

import teamchat
from teamchat.cli.app import COMMANDS, LazyGroup
from teamchat.cli.startup.typed import TAKERS, TYPED, placed
from teamchat.core import errors
from teamchat.core.text.commands import command_of

SOURCE = Path(teamchat.__file__).parent
ERRORS = [name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)]
# which argument is a hint, of what has one
PLACE = {**dict.fromkeys([*ERRORS, "complain"], 1), **dict.fromkeys(["Failed", "Failure", "NotStarted", "Login"], 2)}
KEYWORDS = {"hint", "login"}  # the login of a CLI's `Voice`
MAY_HINT = re.compile(rf"\b(?:{'|'.join(PLACE)})\(|\b(?:{'|'.join(KEYWORDS)})=")  # other files need no parsing
PROGRAMS = {
    "teamchat",
    "npm",
    "claude",
    "codex",
    "gemini",
    "git",
    "opencode",
    "printenv",
    "cd",
    "export",
    "pipx",
    "chmod",
    "kill",
    "mkdir",
    "mv",
    "rm",
}
PLACEHOLDERS = re.compile(r"\.\.\.|…|<\w+>|\b(?:FILE|NAMES?|TEXT|TURN|MEMBER|N)\b")


class Anything(str):
    """What a name that only a running program knows may stand for: a member, a path, a table of them."""

    __slots__ = ()

    def __getattr__(self, _: str) -> Anything:
        return self

    def __call__(self, *_: object) -> Anything:
        return self

    def __getitem__(self, _: object) -> Anything:
        return self

    def __truediv__(self, other: str) -> Anything:
        return Anything(other)

    def __iter__(self) -> Iterator[str]:
        return iter([self])

    def exists(self) -> bool:
        return False

    @property
    def typed(self) -> str:
        """What stands behind a command where nothing need be said."""
        return ""


class Table(dict[str, str]):
    """A table of the source, which has something for everybody."""

    def __missing__(self, _: str) -> str:
        return next(iter(self.values()))


SOMEBODY = Anything("max")
CHOSEN = {"_hint": SOMEBODY}  # by a strategy, when its process is over
LOCAL = {"shlex": shlex, "options": (), "here": ["--force"]}  # what a function may import, or add


def hints() -> Iterator[tuple[str, str]]:
    """Every hint with its place in the source; one that is chosen at run time in all its forms."""
    for file in sorted(SOURCE.rglob("*.py")):
        name = ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        if "core.team.templates" in name:  # programs of their own
            continue
        text = file.read_text(encoding="utf-8")
        if not MAY_HINT.search(text):
            continue
        known = {**vars(builtins), **vars(import_module(name))}
        nodes = list(ast.walk(ast.parse(text)))
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        for node in nodes:
            for expression in _hints_of(node):
                around = [one for one in functions if one.lineno <= expression.lineno <= (one.end_lineno or 0)]
                for form in _forms(expression, around, known):
                    if (value := _value(form, known)) is not None:
                        yield f"{name}:{expression.lineno}", value


def _hints_of(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        called = str(getattr(node.func, "attr", getattr(node.func, "id", "")))
        yield from (keyword.value for keyword in node.keywords if keyword.arg in KEYWORDS and called != "write")
        yield from node.args[PLACE[called] : PLACE[called] + 1] if called in PLACE else ()


def _forms(expression: ast.expr, around: Sequence[ast.AST], known: dict[str, object]) -> Iterator[ast.expr]:
    """The expression with each branch of its conditions, and with what was assigned to a name in the name's place."""
    if isinstance(expression, ast.IfExp):
        yield from _forms(expression.body, around, known)
        yield from _forms(expression.orelse, around, known)
        return
    if isinstance(expression, ast.Name) and expression.id not in known:
        assigned = [
            node.value
            for function in around
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == expression.id
        ]
        if assigned:
            for value in assigned:
                yield from _forms(value, around, known)
            return
    yield expression


def _value(expression: ast.expr, known: dict[str, object]) -> str | None:
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    given = {name: {**LOCAL, **known, **CHOSEN}.get(name, SOMEBODY) for name in names}
    given = {name: Table(value) if isinstance(value, Mapping) else value for name, value in given.items()}
    code = compile(ast.Expression(expression), "<hint>", "eval")
    TYPED.set(["send", "Hi"])
    found = eval(code, given)  # noqa: S307 (our own source)
    assert found is None or isinstance(found, str), ast.unparse(expression)
    return found


FOUND = [(place, line) for place, hint in hints() for line in hint.split("\n")]
COMMAND_LINES = [(place, line) for place, line in FOUND if line not in ("", SOMEBODY)]  # the hint of another error


def test_there_are_hints_in_every_part() -> None:
    parts = {place.split(".")[1] for place, _ in COMMAND_LINES}
    assert parts == {"cli", "core", "runners"}
    assert len(COMMAND_LINES) > 50


@pytest.mark.parametrize(("place", "line"), COMMAND_LINES)
def test_a_hint_is_a_command_and_nothing_beside_it(place: str, line: str) -> None:
    for part in re.split(r" (?:&&|\|) ", line):
        program, *words = shlex.split(part)
        assert program in {*PROGRAMS, SOMEBODY}, place
        assert not any(word.startswith("#") for word in words), place
        assert not PLACEHOLDERS.search(part), place
        if program == "teamchat":
            _parses(words)


def _parses(words: list[str]) -> None:
    """Raises what Typer says of a command that is none."""
    if words[-1] == "--help" or words[0] == SOMEBODY:
        return
    assert words[0] in COMMANDS
    if words[0] == "show":  # a turn is called by its number
        words = [word.replace(SOMEBODY, "1") for word in words]
    command = LazyGroup(name="teamchat").get_command(None, words[0])
    context = command.make_context(words[0], words[1:], help_option_names=["-h", "--help"])  # which it remembers
    if subcommands := getattr(command, "commands", None):
        for name in (word for word in words[1:2] if not word.startswith("-")):
            subcommands[name].make_context(name, words[2:], parent=context)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_takes_every_hint(shell: str, tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "hints"
    script.write_text("\n".join(line for _, line in COMMAND_LINES) + "\n")
    ran = subprocess.run([shell, "-n", script], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_reads_quoted_words_as_they_were_typed(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    signs = "\\'\"!#=~*?[]{}$`()<>|&;^%@:, \na"
    words = ["", *(one + other + last for one in signs for other in signs for last in ("", "\\", "a"))]
    ran = subprocess.run(
        [shell, "-c", command_of("printf", r"%s\0", *words)], capture_output=True, text=True, check=False
    )
    assert (ran.stderr, ran.stdout.split("\0")[:-1]) == ("", words)
    assert shlex.split(command_of(*words)) == words


def test_no_text_of_the_program_has_a_command_with_a_placeholder() -> None:
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            assert not re.search(r"teamchat [a-z]+ [^\n]*(?:\"\.\.\.\"| \.\.\.)", text), (file, text)
            assert not re.search(r"\bteamchat [^\n`]*  # ", text), (file, text)


def test_a_hint_is_for_the_team_and_the_session_that_were_typed() -> None:
    typed = ["show", "9", "--session", "the login", "--team=b.toml"]
    assert placed("teamchat log", typed) == "teamchat log --team b.toml --session 'the login'"
    assert placed("teamchat team", typed) == "teamchat team --team b.toml"
    assert placed("teamchat init", typed) == "teamchat init"
    assert placed("teamchat send --new Hi", typed) == "teamchat send --new Hi --team b.toml"
    assert placed("teamchat send --session c Hi", typed) == "teamchat send --session c Hi --team b.toml"
    assert placed("npm i x && teamchat resume\nteamchat demo", ["log", "--team", "t"]) == (
        "npm i x && teamchat resume --team t\nteamchat demo"
    )
    retyped = "teamchat send --anyway 'make && teamchat log --team x' --session s1"
    assert placed(retyped, ["--session", "s1"]) == retyped
    assert placed(f"{retyped} && teamchat log", ["--session", "s1"]) == f"{retyped} && teamchat log --session s1"
    assert placed("teamchat send 'about --session x'", ["--session", "s1"]).endswith("' --session s1")


@pytest.mark.parametrize(
    ("hint", "typed", "again"),
    [
        ("--new", "--no-wait --session s1 --to max 'a b'", "--new --no-wait --to max 'a b'"),
        ("--new", "--session=s1 --team b.toml Hi -- --session x", "--new --team b.toml Hi -- --session x"),
        ("--session s1", "--new --session s1 --to echo hi", "--session s1 --to echo hi"),
        ("--new --record b", "--to max --record a hi", "--new --record b --to max hi"),
        ("--new --record b", "--record=a --new hi", "--new --record b hi"),
        ("--to max", "--to , hi", "--to max hi"),
        ("--to max", "--session s1 --to=, hi", "--to max --session s1 hi"),
        ("--to max", "--to ,", "--to max"),
        ("--new", "'two\n&& lines'", "--new 'two\n&& lines'"),
    ],
)
def test_a_message_that_is_refused_in_one_place_is_given_whole_for_another(hint: str, typed: str, again: str) -> None:
    assert placed(f"teamchat send {hint} 'Your message'", ["send", *shlex.split(typed)]) == f"teamchat send {again}"


def test_a_message_that_is_too_long_for_a_line_is_not_given_as_an_example() -> None:
    for text in ("x" * 1000, "a\x1bb"):
        assert placed("teamchat stop\nteamchat send --new 'Your message'", ["send", text]) == "teamchat stop"


@pytest.mark.parametrize("option", TAKERS)
def test_the_commands_that_take_where_they_work_are_known(option: str) -> None:
    group = LazyGroup(name="teamchat")
    takes = {name for name in COMMANDS if any(option in one.opts for one in group.get_command(None, name).params)}
    assert takes - {"replay", "test", "import"} == set(TAKERS[option])  # no hint names these
