"""The fault of a team file in one line: the place, the expected value, and a guess at the intended one.

The number of the line comes from a plain scan of the file, which finds the usual ways to write a table or a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from teamchat.core.text.clean import printable
from teamchat.patterns import regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pydantic_core import ErrorDetails

_TYPES = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "a table",
    "string_type": "a string",
}
_MISSING = {
    "agents.command": 'a list such as ["ollama", "run", "llama3"]',
    "checks.command": "a command such as 'make test'",
    "kind": "a kind of process such as 'debate'",
    "members": "at least one [[members]] table",
    "name": "a name",
    "projects.folder": "a folder by its absolute path",
}
_NO_TOML = regex(r"not TOML: .*\(at line (\d+), column \d+\)\Z")
_SAID = regex(r"([\w.]++)(?: '([^']*+)'|\[(\d+)\])?: (?:([\w-]++)[^\s:]*+: )?")  # the place as `first_problem` says it

Line = tuple[int, str, str]  # number, table and first part of the key; "" in a head


class TeamFileProblem(ValueError):
    """A sentence about one key, without the file's name, safe to show on one line."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))


def nearest(word: str, known: Iterable[str]) -> str:
    """Write the end of an error: the known word nearest to `word`, or all known words."""
    options = {option.casefold(): option for option in known}
    if not options:
        return "there is none"
    if (meant := near(word, options.values())) is not None:
        return f"did you mean {meant!r}?"
    return f"expected one of {', '.join(options.values())}"


def near(word: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """Return the known word nearest to `word`; None if none is alike by at least `least`, from 0 to 1."""
    from difflib import get_close_matches

    options = {option.casefold(): option for option in known}
    close = get_close_matches(word[:100].casefold(), options, n=1, cutoff=least)
    return options[close[0]] if close else None


def check_each_once(words: Sequence[str], where: str) -> None:
    """Raise `TeamFileProblem` for a word that appears twice."""
    if twice := [word for place, word in enumerate(words) if word in words[:place]]:
        raise TeamFileProblem(f"{where}: expected each once, got {twice[0]!r} twice")


def first_problem(found: ErrorDetails, raw: Mapping[str, object], keys: Mapping[str, Iterable[str]]) -> str:
    """Write pydantic's first error as a sentence. `keys` has the known keys of each table, by the table's place."""
    table, where, rest = _place(found["loc"], raw)
    key = _key(rest)
    if found["type"] == "extra_forbidden":
        return f"{where}{key}: unknown key, {nearest(str(rest[-1]), keys[table])}"
    return f"{where}{key}{': ' if key else ''}{_expected(found, rest)}"


def _place(loc: Sequence[str | int], raw: Mapping[str, object]) -> tuple[str, str, list[str | int]]:
    """Return the table of an error, its name for the user, and the rest of the path to the key."""
    match list(loc):
        case ["members", int(index), *rest]:
            return "members", f"{_label(raw, index)}: ", rest
        case ["agents" | "processes" | "checks" as table, str(name), *rest]:
            return table, f"{table} {name!r}: ", rest
        case ["team", "limits", key, *rest]:
            return "team.limits", "team.limits: ", [key, *rest]
        case ["team" | "knowledge" | "experience" as table, key, *rest]:
            return table, f"{table}: ", [key, *rest]
        case rest:
            return "", "", rest


def _label(raw: Mapping[str, object], index: int) -> str:
    """Name a member, or give its place if it has no name."""
    members = raw["members"]
    member = members[index] if isinstance(members, list) else None
    name = member.get("name") if isinstance(member, dict) else None
    return f"members {_shown(name)}" if isinstance(name, str) else f"members[{index}]"


def _key(rest: Iterable[str | int]) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest if part != "[key]"]
    return "".join(parts).removeprefix(".")


def _expected(found: ErrorDetails, rest: Sequence[str | int]) -> str:
    kind, context = found["type"], found.get("ctx", {})
    match kind:
        case "missing":
            table, key = str(found["loc"][0]), str(found["loc"][-1])
            return f"missing, expected {_MISSING.get(f'{table}.{key}') or _MISSING[key]}"
        case "value_error":
            return str(context["error"])
        case "literal_error":
            wanted = str(context["expected"])
        case "greater_than_equal":
            wanted = f"at least {context['ge']:g}"
        case "greater_than":
            wanted = f"more than {context['gt']:g}"
        case "less_than_equal":
            wanted = f"at most {int(context['le']):,}"
        case "too_short":
            wanted = "at least one"
        case _:
            wanted = _TYPES.get(kind, found["msg"])
    # A value under `env` may be somebody's key.
    secret = "env" in rest[:1]
    return f"expected {wanted}" if secret else f"expected {wanted}, got {_shown(found['input'])}"


def _shown(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str() | int() | float():
            text = repr(value)
            return text if len(text) <= 60 else f"{text[:60]}..."
        case list():
            return "a list" if value else "an empty list"
        case dict():
            return "a table"
    return "a date or time"


def line_of(sentence: str, text: str) -> int | None:
    """Return the number of the line with a problem's key or table; None if the scan does not find it."""
    if match := _NO_TOML.match(sentence):
        return int(match[1])
    if not (said := _SAID.match(sentence)):
        return None
    table, name, index, key = said.groups()
    lines = list(_lines(text))
    if mine := _of_table(lines, text.split("\n"), table, name, index):
        return _only(mine, key) or mine[0][0]
    above, _, last = table.rpartition(".")
    return None if name else _only([line for line in lines if line[1] == above], last)


def _lines(text: str) -> Iterator[Line]:
    """List the lines outside of multi-line texts, each with its table."""
    table, inside = "", False
    for number, line in enumerate(text.split("\n"), 1):
        was_inside, bare = inside, line.partition("#")[0].strip()
        inside ^= sum(line.count(3 * quote) for quote in "\"'") % 2 == 1
        if was_inside:
            continue
        if bare.startswith("[") and bare.endswith("]"):
            table = ".".join(part.strip(" \t\"'") for part in bare.strip("[] \t").split("."))
            yield number, table, ""
        elif "=" in bare:
            yield number, table, bare.partition("=")[0].partition(".")[0].strip(" \t\"'")


def _of_table(
    lines: Sequence[Line], text: Sequence[str], table: str, name: str | None, index: str | None
) -> list[Line]:
    """List the lines of that table and of those below it; of the members, only the one with this name or index."""
    if table != "members" or name is index is None:
        wanted = f"{table}.{name}" if name else table
        return [line for line in lines if line[1] == wanted or line[1].startswith(f"{wanted}.")]
    members: list[list[Line]] = []
    for line in lines:
        if line[1:] == ("members", ""):
            members.append([])
        if members and (line[1] == "members" or line[1].startswith("members.")):
            members[-1].append(line)
    if index:
        return members[int(index)] if int(index) < len(members) else []
    named = [member for member in members if any(_names(line, text, name) for line in member)]
    return named[-1] if named else []  # the second of two with one name is one too many


def _names(line: Line, text: Sequence[str], name: str | None) -> bool:
    value = text[line[0] - 1].partition("=")[2].partition("#")[0].strip()
    return line[1:] == ("members", "name") and value in (f'"{name}"', f"'{name}'")


def _only(lines: Sequence[Line], key: str | None) -> int | None:
    """Return the number of the only line with that key, or with the head of a table of that name."""
    numbers = [number for number, table, here in lines if key and (here or table.rpartition(".")[2]) == key]
    return numbers[0] if len(numbers) == 1 else None
