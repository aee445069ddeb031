"""Finds the row of an agent: one of teamchat's own, of the person's configuration folder, or of an installed package.

A project's folder holds none. A package names the folder of its `NAME.toml` by the entry point NAME of the group
`teamchat.agents`, and is read as data: nothing of it is imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import get_args

import msgspec
from msgspec.structs import replace

from teamchat.core.agents import AGENT_TYPES, CLIS, ROWS
from teamchat.core.files.folders import config_dir
from teamchat.core.team.problems import TeamFileProblem
from teamchat.patterns import regex
from teamchat.runners.agent_row import OWN, AgentRow, Mentions, Prompt, Reply
from teamchat.runners.untrusted.json import is_path
from teamchat.runners.untrusted.regular_files import read_regular
from teamchat.runners.untrusted.toml import loads

GROUP = "teamchat.agents"
LARGEST = 64 * 1024  # bytes of a row
_DEEPEST = 8  # parts of a key
_NAME = regex(r"[a-z0-9][a-z0-9_-]{0,39}")
_VARIABLE = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_CHOICES = {"prompt": Prompt, "reply": Reply, "mentions": Mentions}
_STREAMS = ("plain", "json", *(row.name for row in CLIS))


def find_row(name: str) -> AgentRow | None:
    """Find the row of an agent that is neither built in nor in a table of a team file; None without a row.

    Raises `TeamFileProblem` for a wrong row, or for one with the name of another.
    """
    if "/" in name or "\0" in name or not name.isprintable():
        return None
    written, name = config_dir() / "agents" / f"{name}.toml", name.lower()
    if not _NAME.fullmatch(name) or (written.stem != name and os.path.lexists(written)):
        if os.path.lexists(written):
            raise TeamFileProblem(f"{written}: a row's file has a name of small letters, digits, - and _, up to 40")
        return None
    own, persons = ROWS / f"{name}.toml", config_dir() / "agents" / f"{name}.toml"
    if own.is_file():
        if os.path.lexists(persons):
            raise TeamFileProblem(f"{persons}: teamchat has an agent {name!r} already; give the file another name")
        return read_row(own, OWN)
    return read_row(persons, "you") if os.path.lexists(persons) else _of_package(name)


def _of_package(name: str) -> AgentRow | None:
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=name):
        if entry.dist:
            folder = Path(*entry.module.split("."))
            path = Path(str(entry.dist.locate_file(folder / f"{name}.toml")))
            return read_row(path, f"the package {entry.dist.name} {entry.dist.version}")
    return None


def shipped() -> Iterator[tuple[str, AgentRow]]:
    """List teamchat's own rows by name."""
    for path in sorted(ROWS.glob("*.toml")):
        yield path.stem, read_row(path, OWN)


def all_rows() -> Iterator[tuple[str, AgentRow]]:
    """List the rows of teamchat, then the person's. Raises `TeamFileProblem` for a wrong row."""
    yield from shipped()
    for path in sorted((config_dir() / "agents").glob("*.toml")):
        if _NAME.fullmatch(path.stem) and (row := find_row(path.stem)):
            yield path.stem, row


def row_names() -> list[str]:
    """List the names of teamchat's rows and of the person's, without reading the rows."""
    return [path.stem for folder in (ROWS, config_dir() / "agents") for path in sorted(folder.glob("*.toml"))]


def read_row(path: Path, origin: str) -> AgentRow:
    """Read the row in a file; `origin` says whose it is. Raises `TeamFileProblem`."""
    try:
        raw = loads(read_regular(path, LARGEST).decode(), _DEEPEST)
        row = _checked(msgspec.convert(raw, AgentRow), path.stem)
    except FileNotFoundError:
        raise TeamFileProblem(f"{path}: no such file") from None
    except OSError as error:
        raise TeamFileProblem(f"{path}: cannot be read: {error.strerror}") from None
    except msgspec.ValidationError as error:
        raise TeamFileProblem(f"{path}: {_in_words(str(error))}") from None
    except UnicodeDecodeError as error:
        raise TeamFileProblem(f"{path}: not UTF-8 (byte {error.start})") from None
    except ValueError as error:
        raise TeamFileProblem(f"{path}: {str(error).removeprefix(str(path)).strip()}") from None
    return replace(row, origin=origin)


def _checked(row: AgentRow, name: str) -> AgentRow:
    """Check the row for mistakes that its types allow, and return it. Raises `ValueError`."""
    if row.origin:
        raise ValueError("origin: a row does not say whose it is")
    if name in AGENT_TYPES:
        raise ValueError(f"{name!r} is an agent that teamchat has without a row")
    if not row.command or not all(row.command):
        raise ValueError("command: expected a program and its arguments")
    if "/" in row.command[0] and not Path(row.command[0]).is_absolute():
        raise ValueError(f"command: expected a program of PATH, or an absolute path, got {row.command[0]!r}")
    if "\\u0000" in msgspec.json.encode(row).decode():
        raise ValueError("expected text without NUL characters")
    for variable in chain(row.env, *(bounds.env for bounds in row.access.values())):
        if not _VARIABLE.fullmatch(variable):
            raise ValueError(f"env: expected the name of a variable, got {variable!r}")
    if given := forbidden(row, (*row.command, *row.last)):
        raise ValueError(f"never: its own command has {given}")
    _check_reading(row)
    return row


def _check_reading(row: AgentRow) -> None:
    """Raise `ValueError` for output that cannot be read, or for keys of a session that it does not have."""
    for key in ("json", "session"):
        if (path := getattr(row, key)) and not is_path(path):
            raise ValueError(f"{key}: expected a path such as result.text or messages.-1.content, got {path!r}")
    if row.stream not in _STREAMS:
        raise ValueError(f"stream: expected one of {', '.join(_STREAMS)}, got {row.stream!r}")
    if bool(row.json) != (row.stream == "json") or (row.session and not row.json):
        raise ValueError('json: expected with stream = "json", and only there (as is session)')
    if row.resume and row.stream == "plain":
        raise ValueError("resume: expected only where the stream has the id of a session")
    for key in ("model", "resume"):
        if (words := getattr(row, key)) and not any("{}" in word for word in words):
            raise ValueError(f"{key}: expected a {{}} in place of its value")
    if row.largest is not None and row.largest < 1:
        raise ValueError("largest: expected a number of bytes")
    try:
        re.compile(row.fail_pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"fail_pattern: expected a regular expression ({error})") from None
    if row.fail_pattern and re.fullmatch(row.fail_pattern, ""):
        raise ValueError(f"fail_pattern: expected one that an empty line does not match, got {row.fail_pattern!r}")


def forbidden(row: AgentRow, words: Iterable[str]) -> str | None:
    """Return the first word that the program must never get, also as `--option=value`; None if there is none."""
    return next((word for word in words if word in row.never or word.partition("=")[0] in row.never), None)


def _in_words(error: str) -> str:
    """Put the key in front of msgspec's sentence: `access.read: ...`."""
    what, _, place = error.partition(" - at `")
    key = place.rstrip("`").removeprefix("$").removeprefix(".")
    if key in _CHOICES:
        what = f"expected one of {', '.join(get_args(_CHOICES[key]))}"
    if what.startswith("Object contains unknown field"):
        what = f"unknown key {what.split('`')[1]!r}: teamchat help own-agent has them"
    return f"{key.replace('[...]', '')}: {what}" if key else what
